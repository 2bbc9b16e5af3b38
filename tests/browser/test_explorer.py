"""The explorer in a real browser: the hand, the truth, the links, the keys, the life of a page."""

import asyncio
import base64
import json
import os
import random
import time
from statistics import median

import numpy as np
import pytest

import reluflow as rf
from explore.helpers import served
from reluflow import spec
from reluflow.explore import export, presets
from reluflow.explore.state import from_json, to_json

from . import look
from .explorer import opened

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def server():
    with served() as found:
        yield found


@pytest.fixture
def tab(chromium, server):
    with opened(chromium, server) as found:
        yield found
        assert found.messages == []


def place(tab, i, card="line"):
    box = tab.page.locator(f".card-{card} .handle:not(.neuron)").nth(i).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(tab, i, path, card="line"):
    x, y = place(tab, i, card)
    tab.page.mouse.move(x, y)
    tab.page.mouse.down()
    for dx, dy in path:
        tab.page.mouse.move(x + dx, y + dy)
    tab.page.mouse.up()


def shown_outputs(tab):
    """What the page computes at the points from the weights of the last sample."""
    return tab.app("(a) => a.run.state.X.map((row) => a.run.final.value(row))")


def flow_of(state):
    return rf.flow(state.dataset(), state.network(), **state.options())


# ------------------------------------------------------------------ drag


def test_a_drag_of_fifty_moves_ends_in_the_last_state(tab):
    """Ids rise, the last state wins; the times are printed, and judged by nobody's busy machine."""
    before = tab.state()
    drag(tab, 2, [(0.6 * k, -0.8 * k) for k in range(1, 51)])
    tab.exact()
    after = tab.state()
    assert after["y"][2] > before["y"][2]
    assert after["X"][2][0] > before["X"][2][0]
    assert [p for k, p in enumerate(after["y"]) if k != 2] == [
        p for k, p in enumerate(before["y"]) if k != 2
    ]
    log = tab.app("(a) => a.link.log.map((e) => ({...e, state: e.state.y[2]}))")
    ids = [entry["id"] for entry in log]
    assert ids == sorted(ids)
    assert log[-1]["kind"] == "full"
    assert log[-1]["state"] == after["y"][2]
    assert tab.app("(a) => a.run.state.y[2]") == after["y"][2]
    drafts = [e for e in log if e["kind"] == "draft" and "painted" in e]
    assert drafts
    engine = [e["ms"]["engine"] for e in drafts]
    beyond = [e["painted"] - e["moved"] - e["ms"]["engine"] for e in drafts]
    print(f"drag: engine {median(engine):.0f} ms, beyond {median(beyond):.0f} ms, {len(drafts)}")


def test_what_is_computed_at_rest_looks_old_while_a_hand_moves(tab):
    tab.slow()
    strip = tab.page.locator(".card-strip .cells").inner_html()
    assert tab.page.locator(".late").count() == 0
    tab.app("(a) => { a.link.full = () => {}; }")  # the hand does not rest
    drag(tab, 2, [(0, -10), (0, -20)])
    tab.page.wait_for_selector("#app[data-status=draft] .card-strip.late")
    assert tab.page.locator(".card-line .extremal.late").count() == 1
    assert tab.page.locator(".numbers td.late").count() > 5
    assert tab.page.locator(".numbers td:nth-child(2).late").count() == 0
    assert tab.page.locator(".card-strip .cells").inner_html() == strip


def test_a_drag_during_a_full_run_takes_its_place(tab):
    tab.app("(a) => a.change({ net: { ...a.state.net, width: 90 } })")
    tab.page.wait_for_timeout(170)  # the full run has just begun
    drag(tab, 0, [(0, -10), (0, -20)])
    tab.exact()
    assert tab.app("(a) => a.run.state.y[0]") == tab.state()["y"][0]


def test_neurons_are_dragged_too(tab):
    tab.use("sliding")
    dot = tab.page.locator(".card-plane .handle.neuron").first.bounding_box()
    x, y = dot["x"] + dot["width"] / 2, dot["y"] + dot["height"] / 2
    svg = tab.page.locator(".card-plane svg").bounding_box()
    tab.page.mouse.move(x, y)
    tab.page.mouse.down()
    tab.page.mouse.move(svg["x"] + svg["width"] * 0.9, svg["y"] + svg["height"] * 0.8)
    tab.page.mouse.up()
    tab.exact()
    (move,) = tab.state()["moves"]
    assert -1.2 < move["angle"] < -0.2
    start = tab.app("(a) => a.start && a.run.netAt(0).angle(a.state.moves[0].neuron)")
    assert start == pytest.approx(move["angle"], abs=1e-6)


# ------------------------------------------------------------------ truth


@pytest.mark.parametrize("preset", ["line", "correlated", "univariate", "highdim"])
def test_final_values_are_those_of_the_flow(tab, preset):
    tab.use(preset)
    run = flow_of(presets.named(preset))
    expected = run.final.predict(run.data.X)
    assert shown_outputs(tab) == pytest.approx(expected.tolist(), rel=3e-6, abs=3e-6)
    assert tab.app("(a) => a.run.logT.at(-1)") == run.log_t[-1]
    norm = tab.page.locator(".numbers tbody tr").first.locator("td").first.inner_text()
    assert float(
        norm.replace("·10", "e").translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻−", "0123456789--"))
    ) == (pytest.approx(run.final.squared_norm, rel=1e-3))


@pytest.mark.parametrize(
    "fields",
    [
        {"train": "output", "rates": [1, 3], "log_scale": 0},
        {"train": "linearised", "rates": [0.5, 2], "log_scale": 2},
        {"train": "both", "rates": [0.25, 4], "log_scale": -3},
        {"decay": 0.05, "log_scale": -2},
        {"slope": 0.3, "log_scale": -2},
    ],
)
def test_other_ways_of_training_are_those_of_the_flow(tab, chromium, server, fields):
    tab.app("(a, fields) => a.change(fields)", fields)
    tab.exact()
    state = from_json(tab.state())
    assert {name: to_json(state)[name] for name in fields} == fields
    run = flow_of(state)
    linearised = state.train == "linearised"
    expected = run.kept["outputs"][-1] if linearised else run.final.predict(run.data.X)
    assert shown_outputs(tab) == pytest.approx(expected.tolist(), rel=1e-5, abs=1e-5)
    link = tab.app("(a) => a.linkText()").partition("#")[2]
    with opened(chromium, server, fragment="#" + link) as other:
        assert shown_outputs(other) == shown_outputs(tab)


def test_a_layer_that_is_not_trained_has_no_rate(tab):
    hidden, output = (tab.page.get_by_label(f"rate, {name}") for name in ("hidden", "output"))
    hidden.fill("2")
    hidden.press("Tab")
    tab.page.locator("label.field:has(span:text-is('train')) select").select_option("output")
    assert tab.state()["rates"] == [1, 1]
    tab.exact()
    assert hidden.is_hidden()
    assert output.is_visible()
    assert tab.page.locator(".alert").is_hidden()


def test_a_solution_that_is_not_unique_is_undecided(tab):
    tab.app(
        "(a) => a.change({ line: false, X: [[1, 0], [0.3, 1]], y: [1, 1], log_scale: 0, moves: [],"
        " net: { kind: 'given', a: [1], W: [[0, -1]] } })"
    )
    tab.exact()
    tab.slow()
    assert tab.page.locator(".badge").inner_text() == "undecided"
    assert "not unique" in tab.page.locator(".alert").inner_text()


def test_two_tolerances_that_disagree_are_undecided(tab):
    from explore.helpers import between_two_ways, on_the_edge

    tab.app("(a, state) => a.change(state)", to_json(on_the_edge(between_two_ways())))
    tab.exact()
    tab.slow()
    assert tab.page.locator(".badge").inner_text() == "undecided"
    assert "rounding decides" in tab.page.locator(".alert").inner_text()


# ------------------------------------------------------------------ links


def test_a_link_gives_the_same_path(tab, chromium, server):
    tab.use("origin")
    link = tab.app("(a) => a.linkText()")
    assert server.token not in link
    with opened(chromium, server, fragment="#" + link.partition("#")[2]) as other:
        assert other.state() == tab.state()
        values = "(a) => [...a.run.arrays.u, ...a.run.arrays.log_t.slice(1)]"
        # a refinement of the samples depends on time; the records of the engine do not
        one, two = tab.app("(a) => a.run.final.u.join()"), other.app("(a) => a.run.final.u.join()")
        assert one == two
        assert len(other.app(values)) > 10


def test_two_hundred_broken_links_get_a_sentence_each(tab):
    good = tab.app("(a) => a.linkText()").partition("#")[2]
    rng = random.Random(3)
    broken = ["s1=", "s2=abc", "s1=%%%", "s1=" + "A" * 300_000, "<script>alert(1)</script>"]
    for value in (None, 1, [], {"v": 1}, {"v": 2}, {"v": 1, "X": [[1e999]], "y": [1]}):
        body = json.dumps(value).encode()
        broken.append("s1=" + base64.urlsafe_b64encode(body).decode().rstrip("="))
    while len(broken) < 200:
        cut = rng.randrange(4, len(good) - 8)
        letters = [*good[:cut], *("" if rng.random() < 0.5 else good[cut + rng.randrange(1, 9) :])]
        for _ in range(rng.randrange(1, 4)):
            letters[rng.randrange(3, len(letters))] = rng.choice("AZaz09-_=#<%")
        broken.append("".join(letters))
    for fragment in broken:
        tab.page.evaluate("(text) => { location.hash = text; }", fragment)
        tab.page.wait_for_timeout(5)
        said = tab.page.locator(".alert").inner_text()
        assert "cannot be opened" in said or tab.app("(a) => a.link.inFlight !== null"), fragment
    tab.use("line")
    assert tab.app("(a) => a.run.count") > 2


# ------------------------------------------------------------------ keyboard and access


def test_points_are_added_moved_and_deleted_by_keys(tab):
    count = len(tab.state()["X"])
    tab.page.locator("body").press("a")
    assert len(tab.state()["X"]) == count + 1
    tab.exact()
    handle = tab.page.locator(".card-line .handle").nth(count)
    handle.focus()
    before = tab.state()
    for key in ("ArrowRight", "Shift+ArrowUp"):
        tab.page.keyboard.press(key)
    after = tab.state()
    assert after["X"][count][0] > before["X"][count][0]
    assert after["y"][count] > before["y"][count]
    tab.page.keyboard.press("Delete")
    assert len(tab.state()["X"]) == count
    tab.exact()


def test_time_obeys_keys(tab):
    body = tab.page.locator("body")
    last = tab.app("(a) => a.run.count - 1")
    body.press("Home")
    assert tab.app("(a) => a.index") == 0
    body.press(".")
    first = tab.app("(a) => a.index")
    assert 0 < first < last
    body.press(".")
    body.press(",")
    assert tab.app("(a) => a.index") == pytest.approx(first)
    kinds = set()
    for _ in range(3):
        body.press("t")
        kinds.add(tab.app("(a) => a.axis.kind"))
    assert kinds == {"log", "scaled", "progress"}
    body.press("Space")
    tab.page.wait_for_timeout(400)
    assert tab.app("(a) => a.index") > first
    body.press("Space")
    held = tab.app("(a) => a.index")
    tab.page.wait_for_timeout(200)
    assert tab.app("(a) => a.index") == held
    tab.page.locator("input[aria-label=Time]").focus()
    tab.page.keyboard.press("End")
    assert tab.app("(a) => a.index") == last
    tab.page.keyboard.press("g")
    tab.page.wait_for_selector(".pins li")
    assert tab.page.locator("svg .ghost").count() >= 1


def test_every_control_changes_the_state_by_keys(tab):
    """Each select and number in turn, with the arrow keys only."""
    tab.page.locator("details summary").first.press("Enter")
    fields = tab.page.locator(
        ".controls label.field select, .controls label.field input, .controls input[type=range]"
    )
    changed = 0
    for k in range(fields.count()):
        control = fields.nth(k)
        if not control.is_visible():
            continue
        before = json.dumps(tab.state())
        control.focus()
        top = control.evaluate(
            "(e) => e.tagName === 'SELECT' ? e.selectedIndex === e.options.length - 1"
            " : e.min !== '' && Number(e.value) === Number(e.min)"
        )
        tab.page.keyboard.press("ArrowUp" if top else "ArrowDown")
        if control.evaluate("(e) => e.type === 'number'"):
            tab.page.keyboard.press("Tab")
        assert json.dumps(tab.state()) != before, control.evaluate("(e) => e.outerHTML")
        changed += 1
    assert changed >= 10
    tab.exact()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(chromium, server, scheme):
    from axe_playwright_python.sync_playwright import Axe

    with opened(chromium, server, color_scheme=scheme, bypass_csp=True) as tab:
        tab.slow()
        found = Axe().run(tab.page).response["violations"]
        serious = [v for v in found if v["impact"] in ("serious", "critical")]
        assert not serious, [(v["id"], v["nodes"][0]["html"][:200]) for v in serious]
        low = [c for c in tab.page.evaluate(look.CONTRASTS) if c[2] < 4.5]
        assert not low, low


@pytest.mark.parametrize("width", [1400, 800, 420])
@pytest.mark.parametrize("preset", ["line", "staircase"])
def test_nothing_is_wider_than_the_page(chromium, server, width, preset):
    with opened(chromium, server, width=width) as tab:
        tab.use(preset)
        assert tab.page.evaluate(look.OVERFLOW) <= 0


def test_readers_who_want_less_motion_get_still_pictures(chromium, server):
    with opened(chromium, server, reduced_motion="reduce") as tab:
        tab.page.locator("body").press("Home")
        tab.page.locator("body").press("Space")
        tab.page.wait_for_timeout(500)
        assert tab.app("(a) => a.index") == 0


# ------------------------------------------------------------------ network and life


def test_no_request_leaves_the_server(tab):
    tab.slow()
    assert len(tab.requests) > 10
    for url in tab.requests:
        inside = (f"http://{tab.server.host}/", f"ws://{tab.server.host}/ws", "data:,", "blob:")
        assert url.startswith(inside)
    assert tab.server.token not in tab.page.url
    failed = tab.page.evaluate("() => fetch('http://127.0.0.1:9/').then(() => 1, () => 'refused')")
    assert failed == "refused"
    assert any("Content Security Policy" in text for text in tab.messages)
    tab.messages.clear()


def test_without_the_token_there_is_no_explorer(chromium, server):
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"http://{server.host}/")
    page.wait_for_selector(".badge-gone")
    assert page.locator(".badge").inner_text() == "no server"
    assert "open the address it prints" in page.locator(".alert").inner_text()
    context.close()


def test_two_thousand_changes_leave_nothing_behind(tab):
    change = """async (a) => {
      let x = 1;
      for (let k = 0; k < 1000; k += 1) {
        x = (x * 16807) % 2147483647;
        const i = x % a.state.X.length;
        a.movePoint(i, [(x % 4000) / 1000 - 2, 1], (x % 1999) / 1000 - 1);
        if (k % 4 === 0) await new Promise((go) => requestAnimationFrame(go));
      }
    }"""
    sizes = []
    for _ in range(2):
        tab.app(change)
        tab.exact()
        nodes = tab.page.evaluate("() => document.querySelectorAll('*').length")
        sizes.append((nodes, resident_mb()))
    assert tab.app("(a) => JSON.stringify(a.run.state) === JSON.stringify(a.state)")
    (nodes, memory), (nodes_later, memory_later) = sizes
    assert nodes_later < 1.5 * nodes + 500  # events differ; nothing piles up
    assert memory_later - memory < 50.0
    assert tab.app("(a) => a.link.log.length") <= 400


def resident_mb():
    with open(f"/proc/{os.getpid()}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def test_the_page_says_when_the_server_is_gone_and_comes_back(chromium):
    with served() as first, opened(chromium, first) as tab:
        loop = first._listening.get_loop()
        asyncio.run_coroutine_threadsafe(first.close(), loop).result(60)
        tab.page.wait_for_selector(".badge-gone")
        assert "server is gone" in tab.page.locator(".alert").inner_text()
        asyncio.run_coroutine_threadsafe(first.listen(first.port), loop).result(60)
        tab.page.wait_for_selector("#app:not([data-status=gone])")
        tab.exact()
        assert tab.page.locator(".alert").is_hidden()


# ------------------------------------------------------------------ degenerate drags


def test_a_point_at_the_origin_is_named_where_it_is(tab):
    tab.use("correlated")
    drawn = tab.page.locator(".card-loss .curve.trained").get_attribute("d")
    tab.app("(a) => a.movePoint(1, [0, 0], null)")
    tab.page.wait_for_selector("#app.stale")
    assert "point 1 is the origin" in tab.page.locator(".card-plane .bubble").text_content()
    assert tab.page.locator(".card-plane .handle.bad").count() == 1
    assert tab.page.locator(".card-loss .curve.trained").get_attribute("d") == drawn
    tab.app("(a) => a.movePoint(1, [0.5, 0.5], null)")
    tab.page.wait_for_selector("#app:not(.stale)")


def test_labels_that_are_none_and_points_that_clash_are_named(tab):
    tab.use("univariate")
    tab.page.locator("[data-cell='1,y']").fill("0.3")
    tab.page.keyboard.press("Tab")
    tab.page.wait_for_selector("#app.stale")
    assert "label 0.3 of point 1" in tab.page.locator(".card-line .bubble").text_content()
    tab.app("(a) => a.movePoint(1, [...a.state.X[2]], -1)")
    tab.page.wait_for_timeout(300)
    assert "coincide" in tab.page.locator(".alert").inner_text()
    tab.use("line")
    tab.app("(a) => a.movePoint(1, [...a.state.X[2]], -1)")
    tab.exact()
    assert "coincide" in tab.page.locator(".alert").inner_text()
    assert tab.page.locator("#app.stale").count() == 0


def test_a_hand_keeps_points_of_two_classes_apart(tab):
    tab.use("univariate")
    x1, x2 = place(tab, 1)[0], place(tab, 2)[0]
    drag(tab, 1, [(x2 - x1, 0)])
    tab.exact()
    state = tab.state()
    low, high = tab.app("(a) => a.scenes[0].last[0]")
    assert state["y"][1] == -state["y"][2]
    gap = abs(state["X"][1][0] - state["X"][2][0])
    assert 0.5e-3 * (high - low) < gap < 0.02 * (high - low)
    assert tab.page.locator("#app.stale").count() == 0


# ------------------------------------------------------------------ own data and downloads


def test_a_pasted_table_is_explored_and_a_bad_one_is_not(tab):
    tab.page.get_by_text("own data").click()
    area = tab.page.get_by_label("A table of points")
    area.fill("x,y\n-1,0.5\n0.5,1\n2,-1\n")
    tab.page.get_by_role("button", name="Use table").click()
    tab.page.wait_for_timeout(300)
    tab.exact()
    assert tab.state()["X"] == [[-1, 1], [0.5, 1], [2, 1]]
    area.fill("hello")
    tab.page.get_by_role("button", name="Use table").click()
    tab.page.wait_for_selector(".alert:not([hidden])")
    assert "the table" in tab.page.locator(".alert").inner_text()
    assert len(tab.state()["X"]) == 3


def test_downloads_make_the_run_again(tab, tmp_path):
    tab.use("sliding")
    run = flow_of(presets.named("sliding"))
    for name in ("TOML", "Run file"):
        with tab.page.expect_download() as waiting:
            tab.page.locator(".controls").get_by_role("button", name=name, exact=True).click()
        path = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(path)
        found = spec.load(path).start() if name == "TOML" else rf.load(path)
        assert np.array_equal(found.kept["W"], run.kept["W"])
    with tab.page.expect_download() as waiting:
        tab.page.get_by_label("Save The loss as SVG").click()
    text = waiting.value.path().read_text()
    from xml.etree import ElementTree

    assert ElementTree.fromstring(text).tag.endswith("svg")
    assert ".curve.trained" in text


def test_the_report_is_a_study_of_what_is_shown(tab):
    tab.app("(a) => a.change({ X: [[-1, 1], [0, 1], [1, 1]], y: [1, -0.5, 0.7], log_scale: -2 })")
    tab.exact()
    with tab.page.expect_download() as waiting:
        tab.page.locator(".controls").get_by_role("button", name="Report", exact=True).click()
    assert waiting.value.suggested_filename == "report.html"
    text = waiting.value.path().read_text()
    state = from_json(tab.state())
    assert "reluflow report" in text
    assert "The learned function" in text
    assert f"{flow_of(state).final.squared_norm:.4g}" in text


def test_the_script_makes_the_run_again(tab):
    tab.use("sliding")
    with tab.page.expect_download() as waiting:
        tab.page.locator(".controls").get_by_role("button", name="Python", exact=True).click()
    told = {}
    exec(waiting.value.path().read_text(), told)
    run = flow_of(presets.named("sliding"))
    np.testing.assert_array_equal(told["run"].final.W, run.final.W)


def test_a_csv_file_is_explored(tab, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("x,y\n-1,0.5\n0,-0.25\n0.5,1\n1,0\n")
    tab.page.get_by_text("own data").click()
    tab.page.get_by_label("A CSV file").set_input_files(path)
    for _ in range(200):
        if len(tab.state()["X"]) == 4:
            break
        tab.page.wait_for_timeout(50)
    tab.exact()
    state = tab.state()
    assert [row[0] for row in state["X"]] == [-1, 0, 0.5, 1]
    assert state["y"] == [0.5, -0.25, 1, 0]


def test_a_stored_page_plays_without_python(chromium, tmp_path):
    path = tmp_path / "page.html"
    export.write(presets.named("orthogonal"), path)
    context = chromium.new_context(viewport={"width": 1000, "height": 900}, offline=True)
    page = context.new_page()
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_selector("#app[data-ready=run]")
    final = page.locator(".moment").inner_text()
    page.locator("body").press("Home")
    page.wait_for_timeout(100)
    assert page.locator(".moment").inner_text() != final
    page.locator("body").press("Space")
    page.wait_for_timeout(500)
    assert page.locator(".controls").count() == 0
    assert page.locator(".plateau").count() == 3
    assert said == []
    assert asked == [path.as_uri()]
    context.close()


# ------------------------------------------------------------------ notebook


def test_the_widget_shows_the_same_page_through_its_messages(chromium):
    """The module of the widget with a model that stands for the kernel's: messages and buffers."""
    from explore.helpers import Talk
    from reluflow.explore import bundle, frames

    first = from_json(to_json(presets.named("sliding")) | {"net": to_json_net(5)})
    talk = Talk(first)
    context = chromium.new_context()
    page = context.new_page()
    said = []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.expose_function("toKernel", lambda text: talk.session.receive(text))
    page.set_content("<div id='cell'></div>")
    page.add_style_tag(content=bundle.read("style.css"))
    script = (
        bundle.bundle("notebook.js")
        + """
      window.hear = null;
      window.saved = {};
      const model = { on: (_, act) => { window.hear = act; }, send: (m) => window.toKernel(m.text),
        set: (name, value) => { window.saved[name] = value; }, save_changes: () => {} };
      widgetModule.render({ model, el: document.getElementById("cell") });
    """
    )
    page.add_script_tag(content=script, type="module")
    given = 0
    for _ in range(600):
        for header, arrays in talk.said[given:]:
            frame = frames.encode({k: v for k, v in header.items() if k != "arrays"}, arrays)
            page.evaluate(
                "(bytes) => window.hear({}, [new DataView(Uint8Array.from(bytes).buffer)])",
                [*frame],
            )
            given += 1
        if page.locator("[data-ready=run][data-status=exact]").count():
            break
        page.wait_for_timeout(50)
    assert said == []
    assert page.locator(".card-plane .handle.neuron").count() == 5
    assert page.evaluate("() => window.saved._state.net.width") == 5
    talk.session.close()
    context.close()


def to_json_net(width):
    return {"kind": "drawn", "width": width, "seed": 3}


def test_the_python_side_of_the_widget_answers():
    widget = rf.explore(presets.first().dataset(), presets.first().network())
    try:
        told = []
        widget.send = lambda content, buffers: told.append(buffers[0])
        widget._hear(widget, {"text": '{"v": 1, "id": 1, "kind": "hello"}'}, [])
        for _ in range(100):
            if told:
                break
            time.sleep(0.05)
        assert b"hello" in told[0]
        assert widget.state.dataset() == presets.first().dataset()
    finally:
        widget.close()
