"""Figures on paper: the files, read back with an independent eye."""

import io
import re
import sys

import matplotlib
import numpy as np
import pytest
from PIL import Image

from reluflow.errors import InputError, MissingExtraError
from reluflow.figures import Axis, Figure, Frame, Heat, Line, Panel, Points, palette, paper

from . import samples


def size_in(pdf: bytes) -> tuple[float, float]:
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+) ?\]", pdf)
    return float(box[1]) / 72, float(box[2]) / 72


@pytest.mark.parametrize("kind", samples.LAYERS)
def test_every_kind_of_layer_is_drawn_in_its_colours(kind, tmp_path):
    _, png = paper.write(samples.figure(kind, wide=False), tmp_path)
    with Image.open(png) as image:
        pixels = np.asarray(image.convert("RGB")).reshape(-1, 3)
    expected = {
        "heat": ["#440154", "#fde725"],
        "span": [palette.colour(0), "#e0f3ee"],
        "text": [palette.colour(0), palette.SOFT["light"]],
    }
    for shade in expected.get(kind, [palette.colour(0), palette.colour(1)]):
        rgb = [int(shade[k : k + 2], 16) for k in (1, 3, 5)]
        assert (np.abs(pixels.astype(int) - rgb).max(axis=1) <= 2).sum() > 20, shade


@pytest.mark.parametrize(("wide", "width"), [(False, 3.25), (True, 6.75)])
def test_pdf_has_the_width_asked_for_and_embedded_fonts(wide, width, tmp_path):
    pdf, png = paper.write(samples.figure("line", wide=wide), tmp_path)
    body = pdf.read_bytes()
    assert size_in(body)[0] == pytest.approx(width)
    assert b"/FontFile2" in body  # TrueType outlines inside
    assert b"/Type3" not in body
    fonts = re.findall(rb"/BaseFont /(\S+)", body)
    assert fonts
    assert all(b"DejaVu" in font for font in fonts)
    with Image.open(png) as image:
        assert image.size[0] == round(width * paper.PNG_DPI)


def test_two_renders_are_identical_bytes_without_a_date(tmp_path):
    panels = tuple(samples.panel(kind) for kind in ("line", "raster", "heat"))
    figure = Figure("three", "Vectors, cells and a bar", panels, columns=3)
    first = paper.write(figure, tmp_path / "one")
    again = paper.write(figure, tmp_path / "two")
    for one, two in zip(first, again, strict=True):
        assert one.read_bytes() == two.read_bytes()
    assert b"CreationDate" not in first[0].read_bytes()


def test_settings_of_the_user_neither_matter_nor_change(tmp_path):
    plain = paper.write(samples.figure("line"), tmp_path)[0].read_bytes()
    with matplotlib.rc_context({"font.size": 30, "pdf.fonttype": 3, "lines.linewidth": 9}):
        again = paper.write(samples.figure("line"), tmp_path)[0].read_bytes()
        assert matplotlib.rcParams["font.size"] == 30
    assert plain == again


def drawn(figure):
    with paper._settings():
        canvas = paper._draw(figure)
        canvas.savefig(io.BytesIO(), format="png", dpi=40)
    return canvas


def test_a_movie_shows_first_middle_and_last_frame_on_common_axes():
    canvas = drawn(samples.movie(frames=5))
    assert [axes.get_title() for axes in canvas.axes] == ["t = 0", "t = 2", "t = 4"]
    assert len({axes.get_xlim() for axes in canvas.axes}) == 1
    assert canvas.get_size_inches()[0] == pytest.approx(6.75)


def test_frames_without_a_given_range_share_the_range_of_all():
    frames = tuple(
        Frame(f"{k}", (Points(np.array([0.0, k]), np.array([0.0, 1]), label="p"),)) for k in (1, 9)
    )
    panel = Panel("", Axis("x"), Axis("y"), frames[0].layers)
    limits = {axes.get_xlim() for axes in drawn(Figure("m", "m", (panel,), frames=frames)).axes}
    assert len(limits) == 1
    assert limits.pop()[1] >= 9


def test_panels_fill_the_grid_row_by_row():
    canvas = drawn(samples.all_kinds(columns=3))
    boxes = [axes.get_position() for axes in canvas.axes if axes.get_title()]
    tops = [round(box.y1, 1) for box in boxes]
    assert len(boxes) == 8
    assert tops[0] == tops[1] > tops[3] > tops[6]


def test_values_a_log_axis_cannot_show_are_left_out_not_moved():
    y = np.array([1.0, 0.0, -2.0, 1e-3, np.nan, 1e-6])
    axes = drawn(Figure("f", "f", (Panel("", Axis("x"), Axis("y", "log"), (Line(y, y),)),))).axes[0]
    assert axes.get_ylim()[0] == pytest.approx(1e-6, rel=0.9)


def test_a_curve_with_nothing_to_show_is_an_empty_panel(tmp_path):
    zero = np.zeros(3)
    layers = (Line(zero, zero, label="zero"), Points(zero[:0], zero[:0], label="none"))
    paper.write(Figure("f", "f", (Panel("", Axis("x"), Axis("y", "log"), layers),)), tmp_path)
    heat = Heat(np.arange(3), np.arange(3), np.full((2, 2), np.nan), "empty")
    paper.write(Figure("f", "f", (Panel("", Axis("x"), Axis("y"), (heat,)),)), tmp_path)


def test_labels_are_words_not_formulas_and_all_are_shown():
    x = np.arange(3.0)
    labels = ["$\\frac{", "_hidden", "b $x$ <b>"]
    layers = tuple(Line(x, x + k, label=label, colour=k) for k, label in enumerate(labels))
    canvas = drawn(Figure("f", "f", (Panel("100 $", Axis("x $"), Axis("y"), layers),)))
    shown = [text.get_text().replace("\\$", "$").strip() for text in canvas.legends[0].texts]
    assert shown == labels


def test_one_label_with_two_looks_has_two_entries():
    x = np.arange(3.0)
    panels = tuple(
        Panel("", Axis("x"), Axis("y"), (Line(x, x, label="run", colour=k),)) for k in (0, 0, 1)
    )
    assert len(drawn(Figure("f", "f", panels)).legends[0].texts) == 2


def test_ticks_with_words_replace_the_numbers():
    axis = Axis("neuron", ticks=((0.5, "first"), (1.5, "second")))
    x = np.arange(3.0)
    axes = drawn(Figure("f", "f", (Panel("", Axis("x"), axis, (Line(x, x),)),))).axes[0]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["first", "second"]


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".hidden", "nul\0"])
def test_a_name_that_is_no_file_name_is_refused(name, tmp_path):
    with pytest.raises(InputError, match="is not a file name"):
        paper.write(Figure(name, "f", (samples.panel("line"),)), tmp_path)
    assert not list(tmp_path.iterdir())


def test_something_else_than_a_figure_is_refused(tmp_path):
    with pytest.raises(InputError, match="`figure` is a dict, not a Figure"):
        paper.write({}, tmp_path)


def test_a_missing_matplotlib_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'reluflow\[report\]'"):
        paper.write(samples.figure("line"), tmp_path)
