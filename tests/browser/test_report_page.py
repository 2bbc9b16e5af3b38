"""The report in a real browser: offline, by keyboard, in the dark, on paper, on a small screen."""

import io
import re
from pathlib import Path

import numpy as np
import pytest

from . import look

pytestmark = pytest.mark.browser
BLUE = {"light": "rgb(0, 114, 178)", "dark": "rgb(61, 151, 219)"}
FIGURES = 5


def titles(page):
    return [" ".join(text.split()) for text in page.locator("h2").all_inner_texts()]


def frame(page):
    return int(page.locator("input[type=range]").input_value())


def test_it_opens_without_a_network_a_complaint_or_a_request(visit, files):
    seen = visit()
    assert seen.page.title() == "Neurons align, then grow"
    assert seen.messages == []
    assert seen.requests == [files["sample"].as_uri()]


def test_the_policy_stops_what_a_script_would_fetch(visit):
    seen = visit()
    failed = seen.page.evaluate(
        "() => fetch('https://example.org/').then(() => 'fetched', () => 'refused')"
    )
    assert failed == "refused"
    assert any("Content Security Policy" in text for text in seen.messages)
    seen.page.evaluate(look.ADD_SCRIPT, "window.added = 1")
    assert seen.page.evaluate("() => window.added") is None


def test_every_figure_is_drawn(visit):
    page = visit().page
    assert page.locator(".plot").count() == FIGURES
    for k in range(1, FIGURES + 1):
        drawn = page.locator(f"#figure-{k} .plot")
        assert drawn.locator("svg.main-svg").count() >= 1
        marks = drawn.locator(".scatterlayer path, .heatmaplayer image")
        boxes = [marks.nth(j).bounding_box() for j in range(marks.count())]
        assert any(box and box["width"] > 3 for box in boxes), k
    assert page.locator("#figure-4 .heatmaplayer image").count() == 1
    assert page.locator("#figure-5 .cbfills, #figure-5 .cbfill").count() >= 1


def test_the_movie_plays_to_its_end_pauses_and_starts_again(visit):
    page = visit(clock=True).page
    button = page.locator(".play")
    last = int(page.locator("input[type=range]").get_attribute("max"))
    before = page.evaluate(look.POSITIONS)
    assert len(before) == 2 * 20  # x and y of each neuron
    button.click()
    assert button.inner_text() == "Pause"
    page.clock.run_for(1000)
    assert frame(page) > 1
    assert page.evaluate(look.POSITIONS) != pytest.approx(before, abs=1)
    button.click()
    assert button.inner_text() == "Play"
    stopped = frame(page)
    page.clock.run_for(2000)
    assert frame(page) == stopped
    button.click()
    page.clock.run_for(60_000)
    assert frame(page) == last
    assert button.inner_text() == "Play"
    button.click()
    assert frame(page) == 0
    assert page.evaluate(look.POSITIONS) == pytest.approx(before, abs=0.1)  # px


def test_the_slider_marks_its_time_in_the_other_figures(visit):
    page = visit().page
    shapes = """() => [1, 2, 4].map(
      (k) => document.querySelector(`#figure-${k} .plot`).layout.shapes ?? [])"""
    assert [len(found) for found in page.evaluate(shapes)] == [0, 0, 0]
    slider = page.locator("input[type=range]")
    slider.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    data = page.evaluate("() => JSON.parse(document.getElementById('data').textContent)")
    time = data["figures"][2]["layout"]["meta"]["times"][5]
    paces = [data["figures"][k]["layout"]["meta"]["pace"].get("x") for k in (0, 1, 3)]
    assert any(paces)  # an axis that events pace has the mark at the place of its time
    expected = [time if pace is None else np.interp(time, *pace) for pace in paces]
    found = page.evaluate(shapes)
    assert [shape["x0"] for (shape,) in found] == pytest.approx(expected)


def test_an_axis_paced_by_events_tells_its_times_on_hover(visit):
    page = visit().page
    told = page.evaluate("""() => {
      const { figures } = JSON.parse(document.getElementById('data').textContent);
      return figures.map((spec, k) => {
        const plot = document.querySelector(`#figure-${k + 1} .plot`);
        const trace = plot.data[0];
        return [spec.layout.meta.pace.x ?? null, trace.type, trace.customdata ?? null];
      });
    }""")
    paced = [one for one in told if one[0] is not None]
    assert paced
    for (values, _), kind, times in paced:
        shown = [t for t in (times[0] if kind == "heatmap" else times) if t is not None]
        assert min(shown) >= values[0] - 1e-6
        assert max(shown) == pytest.approx(values[-1], abs=1e-4)


def test_a_figure_can_be_saved_alone(visit):
    page = visit().page
    for kind, start in (("data", b"{"), ("svg", b"<svg"), ("png", b"\x89PNG")):
        with page.expect_download() as waiting:
            page.locator(f"#figure-1 .save button[data-kind={kind}]").click()
        body = Path(waiting.value.path()).read_bytes()
        assert body.startswith(start)
        assert waiting.value.suggested_filename.startswith("loss.")


def test_the_movie_obeys_the_keyboard(visit):
    page = visit(clock=True).page
    slider, shown = page.locator("input[type=range]"), page.locator(".player output")
    slider.focus()
    start = shown.inner_text()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert frame(page) == 2
    assert shown.inner_text() != start
    assert slider.get_attribute("aria-valuetext") == shown.inner_text()
    page.keyboard.press("ArrowLeft")
    assert frame(page) == 1
    page.keyboard.press("Space")
    page.clock.run_for(1000)
    playing = frame(page)
    assert playing > 2
    page.keyboard.press("Space")
    page.clock.run_for(1000)
    assert frame(page) == playing
    page.keyboard.press("End")
    assert frame(page) == int(slider.get_attribute("max"))
    page.locator(".play").focus()
    page.keyboard.press("ArrowLeft")
    assert frame(page) == int(slider.get_attribute("max")) - 1


def test_readers_who_want_less_motion_get_a_slow_movie(visit):
    page = visit(clock=True, reduced_motion="reduce").page
    page.locator(".play").click()
    page.clock.run_for(900)
    assert frame(page) == 0
    page.clock.run_for(200)
    assert frame(page) == 1
    assert (
        page.evaluate("() => getComputedStyle(document.documentElement).scrollBehavior") == "auto"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_and_its_figures_follow_the_system(visit, scheme):
    page = visit(color_scheme=scheme).page
    body = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert body == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 26)"}[scheme]
    assert BLUE[scheme] in page.evaluate(look.STROKES, 1)
    other = "dark" if scheme == "light" else "light"
    page.emulate_media(color_scheme=other)
    page.wait_for_selector(f"html[data-theme={other}]")
    assert BLUE[other] in page.evaluate(look.STROKES, 1)
    assert BLUE[scheme] not in page.evaluate(look.STROKES, 1)


def test_the_button_changes_the_theme_and_keeps_the_frame(visit):
    page = visit().page
    page.locator("input[type=range]").focus()
    page.keyboard.press("ArrowRight")
    page.locator("#theme").click()
    assert page.locator("#theme").inner_text() == "Light colours"
    assert BLUE["dark"] in page.evaluate(look.STROKES, 1)
    assert frame(page) == 1
    page.locator("#theme").click()
    assert BLUE["light"] in page.evaluate(look.STROKES, 1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_words_have_contrast(visit, scheme):
    page = visit(color_scheme=scheme).page
    found = page.evaluate(look.CONTRASTS)
    assert len(found) > 150
    assert any(words == "log" for _, words, _ in found)  # those of figures too
    assert {"pass", "fail", "unresolved", "not applicable"} <= {words for _, words, _ in found}
    assert [row for row in found if row[2] < 4.5] == []


def test_tab_reaches_every_control_and_shows_where_it_is(visit):
    page = visit().page
    visited = []
    for _ in range(80):
        page.keyboard.press("Tab")
        visited.append(page.evaluate(look.FOCUS))
        if visited[-1]["tag"] == "BODY":
            break
    names = [(stop["tag"], stop["name"]) for stop in visited]
    assert names[0] == ("A", "skip")
    order = [
        ("BUTTON", "theme"),
        ("A", "#summary"),
        ("BUTTON", "play"),
        ("INPUT", "0"),
        ("INPUT", "pass"),
        ("INPUT", "not-applicable"),
    ]
    places = [names.index(stop) for stop in order]
    assert places == sorted(places)
    offered = [stop["download"] for stop in visited if stop["download"]]
    assert offered == ["study.toml", "losses.csv", "all.bin"]
    assert [stop for stop in visited if stop["tag"] != "BODY" and not stop["visible"]] == []


def test_the_skip_link_leads_past_the_contents(visit):
    page = visit().page
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.closest('main') !== null")


def test_the_filter_hides_rows_and_says_how_many_are_left(visit):
    page = visit().page
    rows = page.locator("tr[data-verdict]:visible")
    assert rows.count() == 6
    page.locator("input[value=pass]").focus()
    page.keyboard.press("Space")
    assert rows.count() == 4
    assert page.locator(".shown").inner_text() == "4 of 6 rows shown"
    assert page.locator("tr[data-verdict=pass]:visible").count() == 0
    page.keyboard.press("Space")
    assert rows.count() == 6


def test_downloads_have_the_right_bytes_every_time(visit):
    from report import sample

    page = visit().page
    for name, body in sample.page().downloads.items():
        for _ in range(2):
            with page.expect_download() as waiting:
                page.locator(f"a[download='{name}']").click()
            assert waiting.value.suggested_filename == name
            assert waiting.value.path().read_bytes() == body


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_paper_gets_all_sections_and_no_buttons(visit, scheme):
    import pypdf

    page = visit(color_scheme=scheme, width=1400).page
    expected = titles(page)
    page.locator("input[value=fail]").uncheck()
    body = page.pdf(format="A4", print_background=True)
    printed = pypdf.PdfReader(io.BytesIO(body))
    text = re.sub(r"\s+", " ", " ".join(sheet.extract_text() for sheet in printed.pages))
    for title in expected:
        assert title in text
    for words in ("of the loss", "along the teacher", "sliding", "T7", "two neurons are not"):
        assert words in text  # axes, legends and rows that the filter hid
    for words in ("Dark colours", "Light colours", "Show verdicts", "Skip to"):
        assert words not in text
    assert 3 <= len(printed.pages) <= 14
    page.emulate_media(media="print")
    assert page.locator("button:visible, input:visible, nav:visible").count() == 0
    page.emulate_media(media="screen")
    assert BLUE[scheme] in page.evaluate(look.STROKES, 1)  # back as it was


def test_printing_in_the_dark_uses_light_figures_that_fit(visit):
    page = visit(color_scheme="dark", width=1400).page
    page.evaluate(
        """() => window.addEventListener('beforeprint', () => {
          const plot = document.querySelector('#figure-1 .plot');
          window.printed = {
            stroke: getComputedStyle(plot.querySelector('path.js-line')).stroke,
            width: plot.querySelector('svg.main-svg').getAttribute('width'),
          };
        })"""
    )
    page.pdf(format="A4")
    assert page.evaluate("() => window.printed") == {"stroke": BLUE["light"], "width": "660"}


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("name", ["sample", "hostile"])
def test_no_sideways_scrolling(visit, width, name):
    page = visit(name, width=width).page
    assert page.evaluate(look.OVERFLOW) <= 0


def test_panels_stack_when_the_window_shrinks(visit):
    page = visit(width=1400).page
    (x, y), (x2, y2) = page.evaluate(look.PANELS)
    assert x[1] < x2[0]
    assert y == y2
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function(f"() => ({look.PANELS})()[1][0][0] === 0")
    (_, y), (_, y2) = page.evaluate(look.PANELS)
    assert y2[1] < y[0]
    assert page.evaluate(look.OVERFLOW) <= 0


def test_hostile_words_are_words(visit, files):
    from report import sample

    seen = visit("hostile")
    page = seen.page
    assert page.evaluate("() => window.hacked") is None
    assert seen.messages == []
    assert seen.requests == [files["hostile"].as_uri()]
    assert page.locator("img, .plot svg a").count() == 0
    assert page.locator("h1").inner_text() == " ".join(sample.EVIL.split())
    assert sample.EVIL in page.locator("#figure-1 .legendtext").first.text_content()
    page.locator("#figure-1 .plot").hover()
    page.locator("#theme").click()
    assert page.evaluate("() => window.hacked") is None


def test_without_scripts_the_words_and_tables_remain(visit):
    page = visit(java_script_enabled=False).page
    assert "The figures need JavaScript" in page.locator("noscript, main").first.inner_text()
    assert len(titles(page)) == 12
    assert page.locator("tr[data-verdict]:visible").count() == 6


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("light", {"width": 1400}),
        ("dark", {"color_scheme": "dark"}),
        ("narrow", {"width": 390}),
        ("print", {"width": 680}),  # A4 with its margins
    ],
)
def test_screenshots_to_look_at(visit, tmp_path, name, options):
    from PIL import Image

    page = visit(**options).page
    if name == "print":
        page.emulate_media(media="print")
        page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(look.OVERFLOW) <= 0
    page.screenshot(path=tmp_path / f"{name}.png", full_page=True)
    with Image.open(tmp_path / f"{name}.png") as image:
        assert image.size[0] == options.get("width", 1000)
        assert len(image.convert("RGB").getcolors(2**24)) > 200
