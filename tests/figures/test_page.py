"""Figures on a page: the structure of the data for plotly.js."""

import itertools
import json

import numpy as np
import pytest

from reluflow.errors import InputError
from reluflow.figures import (
    Arrows,
    Axis,
    Figure,
    Frame,
    Heat,
    Line,
    Panel,
    Points,
    Raster,
    Rule,
    Span,
    Text,
    page,
    palette,
)

from . import samples

X = np.arange(1.0, 4.0)


def one(*layers, x="linear", y="linear", **options):
    """The plotly data of a figure with one panel."""
    return page.to_plotly(
        Figure("f", "f", (Panel("", Axis("x", x), Axis("y", y), layers, **options),))
    )


@pytest.mark.parametrize("kind", samples.LAYERS)
def test_every_kind_of_layer_is_plain_data(kind):
    found = page.to_plotly(samples.figure(kind))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    kinds = {trace["type"] for trace in found["data"]}
    assert kinds <= {"scatter", "heatmap"}
    assert found["layout"]["xaxis"]["title"]["text"] == "time t"


def test_plotly_is_not_imported():
    import subprocess
    import sys

    code = "import sys, reluflow.figures.page; print({'plotly', 'matplotlib'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_plotly_itself_accepts_the_figure():
    import plotly.graph_objects as go

    for figure in (samples.all_kinds(), samples.movie()):
        go.Figure(page.to_plotly(figure))  # raises on an unknown name or value


def test_lines_keep_their_style_and_break_at_gaps():
    y = np.array([1.0, np.nan, 3.0])
    (trace,) = one(Line(X, y, label="run", colour=2, dash="dot", opacity=0.5))["data"]
    assert trace["y"] == [1.0, None, 3.0]
    assert trace["line"] == {"color": palette.colour(2), "width": 2.0, "dash": "dot"}
    assert (trace["name"], trace["mode"], trace["opacity"]) == ("run", "lines", 0.5)
    assert trace["showlegend"]


def test_a_band_is_one_polygon_for_each_stretch():
    low = np.array([1.0, np.nan, 2.0, 3.0])
    x = np.arange(4.0)
    band, _ = one(Line(x, low, low=low, high=low + 1))["data"]
    assert band["x"] == [0, 0, None, 2, 3, 3, 2, None]
    assert band["y"] == [2, 1, None, 3, 4, 3, 2, None]
    assert band["fillcolor"] in palette.to_dark()


def test_numbers_keep_eight_digits():
    (trace,) = one(Line(X, np.array([np.pi, 1e-300, 123456789.123])))["data"]
    assert trace["y"] == [3.1415927, 1e-300, 123456790.0]


def test_a_log_axis_shows_positive_numbers_only_and_says_so():
    layer = Line(X, np.array([1.0, 0.0, -1.0]))
    found = one(layer, y="log")
    assert found["data"][0]["y"] == [1.0, None, None]
    figure = Figure("f", "f", (Panel("", Axis("x"), Axis("loss", "log"), (layer,)),))
    assert page.remarks(figure) == [
        "Not shown: 2 values that are not positive, on the log axis “loss”."
    ]
    assert page.remarks(samples.all_kinds()) == []


def test_ranges_hold_all_data_and_rules_in_decades_on_a_log_axis():
    layers = (Line(X, X * 10), Rule(1e4), Rule(0.5, "x"), Span(2, 7), Text(1, 1, "here"))
    axes = one(*layers, y="log")["layout"]
    low, high = axes["yaxis"]["range"]
    assert low < 0
    assert 4 < high < 4.5
    low, high = axes["xaxis"]["range"]
    assert 0 < low < 0.5
    assert 7 < high < 8


def test_a_given_range_is_kept_and_an_empty_panel_has_one():
    panel = Panel("", Axis("x", "log", range=(1e-2, 1e3)), Axis("y"), (Line(X[:0], X[:0]),))
    axes = page.to_plotly(Figure("f", "f", (panel,)))["layout"]
    assert axes["xaxis"]["range"] == [-2, 3]
    assert axes["yaxis"]["range"] == [0, 1]
    assert one(Line(X[:1], X[:1]))["layout"]["xaxis"]["range"] == [0.5, 1.5]


def test_ticks_with_words_replace_the_numbers():
    axis = Axis("y", ticks=((0.5, "<first>"), (1.5, "second")))
    found = page.to_plotly(Figure("f", "f", (Panel("", Axis("x"), axis, (Line(X, X),)),)))
    assert found["layout"]["yaxis"]["ticktext"] == ["&lt;first&gt;", "second"]


def test_long_curves_keep_ends_extremes_and_gaps():
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 100_000)
    y = rng.normal(size=x.size)
    y[[777, 55_555]] = 50, -60
    y[40_000:40_500] = np.nan
    (trace,) = one(Line(x, y))["data"]
    assert len(trace["x"]) <= 2100
    assert trace["x"][0] == 0
    assert trace["x"][-1] == 1
    assert {50.0, -60.0, None} <= set(trace["y"])


def test_many_curves_share_the_points():
    x = np.linspace(0, 1, 5000)
    found = one(*(Line(x, np.sin(k * x)) for k in range(200)))
    assert sum(len(trace["x"]) for trace in found["data"]) <= 1.1 * page.POINTS
    assert len(json.dumps(found)) < 1.5e6


def test_points_have_sizes_in_pixels_and_text_on_hover():
    (trace,) = one(Points(X, X, size=np.array([3.0, 6, 9]), text=["a", "<i>", "c"]))["data"]
    assert trace["marker"]["size"] == [4, 8, 12]
    assert trace["text"] == ["a", "&lt;i&gt;", "c"]
    assert trace["hovertemplate"].startswith("%{text}")


def test_an_arrow_is_a_shaft_with_a_head_at_its_end():
    (trace,) = one(Arrows(0 * X, 0 * X, X, -X))["data"]
    assert trace["x"][:6] == [0, 1, None, 0, 2, None]
    assert trace["y"][:3] == [0, -1, None]
    assert trace["marker"]["size"][:3] == [0, 10, 0]
    assert trace["marker"]["angleref"] == "previous"


def test_a_raster_has_flat_colours_names_and_crosses():
    import base64

    z = np.array([[0, 1, 2], [2, 2, 0]])
    raster = Raster(np.arange(4), np.arange(3), z, ("off", "on", "<slide>"), (7, 0, 1))
    cells, *keys, crosses = one(raster)["data"]
    assert base64.b64decode(cells["z"]["bdata"]) == bytes([0, 1, 2, 2, 2, 0])
    assert cells["z"]["shape"] == "2, 3"
    assert [shade for _, shade in cells["colorscale"]][::2] == [
        palette.GRID["light"],
        palette.colour(0),
        palette.colour(1),
    ]
    assert cells["text"][1] == ["&lt;slide&gt;", "&lt;slide&gt;", "off"]
    assert [key["name"] for key in keys] == ["off", "on", "&lt;slide&gt;"]
    assert all(key["showlegend"] for key in keys)
    assert (crosses["x"], crosses["y"]) == ([2.5, 0.5], [0.5, 1.5])


def test_a_heat_map_has_a_bar_beside_its_panel():
    heat = Heat(np.array([1.0, 10, 100]), np.arange(3), np.array([[1, np.nan, 3], [4, 5, 6]]), "W")
    found = one(heat, x="log")
    assert found["data"][0]["z"] == [[1, None, 3], [4, 5, 6]]
    assert found["data"][0]["x"] == pytest.approx(10 ** np.array([-0.5, 0.5, 1.5, 2.5]))
    bar = found["layout"]["coloraxis"]["colorbar"]
    assert bar["title"]["text"] == "W"
    assert bar["x"] > found["layout"]["xaxis"]["domain"][1]


def test_rules_spans_and_texts_stand_where_they_should_on_log_axes():
    layers = (Rule(100.0, label="bound"), Span(1, 10, "early"), Text(10.0, 1000.0, "here"))
    layout = one(Line(X, X), *layers, x="log", y="log")["layout"]
    rule, span = layout["shapes"]
    assert (rule["y0"], rule["yref"], rule["xref"]) == (100, "y", "x domain")  # shapes: values
    assert (span["x0"], span["x1"]) == (1, 10)
    bound, here = layout["annotations"]
    assert (bound["y"], bound["text"]) == (2, "bound")  # annotations: decades
    assert (here["x"], here["y"]) == (1, 3)


def test_what_has_no_place_on_the_axis_is_left_out():
    layers = (Rule(-1.0), Rule(np.nan, "x"), Text(0.0, -1.0, "nowhere"))
    layout = one(Line(X, X), *layers, y="log")["layout"]
    assert layout["shapes"] == layout["annotations"] == []


def test_panels_fill_the_grid_and_stand_in_one_column_on_narrow_screens():
    layout = page.to_plotly(samples.all_kinds(columns=2))["layout"]
    assert layout["xaxis"]["domain"][1] < layout["xaxis2"]["domain"][0]
    assert layout["yaxis"]["domain"] == layout["yaxis2"]["domain"]
    assert layout["yaxis3"]["domain"][1] < layout["yaxis"]["domain"][0]
    narrow = layout["meta"]["narrow"]
    assert narrow["height"] > layout["height"]
    tall = [narrow[f"yaxis{k}" if k > 1 else "yaxis"]["domain"] for k in range(1, 9)]
    assert all(below[1] < above[0] for above, below in itertools.pairwise(tall))
    assert tall[0][1] == 1
    assert tall[-1][0] == pytest.approx(0, abs=1e-3)


def test_equal_units_tie_the_axes():
    assert one(Line(X, X), equal=True)["layout"]["yaxis"]["scaleanchor"] == "x"


def test_a_label_with_one_look_stands_in_the_legend_once():
    panels = tuple(
        Panel("", Axis("x"), Axis("y"), (Line(X, X, label="run", colour=k),)) for k in (0, 0, 1)
    )
    shown = [trace["showlegend"] for trace in page.to_plotly(Figure("f", "f", panels))["data"]]
    assert shown == [True, False, True]


def test_a_movie_has_one_frame_each_with_as_many_traces():
    first = (Points(X, X, label="p"),)
    second = (Points(X, 2 * X, label="p"), Line(X, X, label="late"), Rule(1.0))
    panels = (
        Panel("movie", Axis("x"), Axis("y"), first),
        Panel("still", Axis("x"), Axis("y"), (Line(X, X), Rule(2.0))),
    )
    frames = (Frame("t = 0", first), Frame("t < 1", second))
    found = page.to_plotly(Figure("f", "f", panels, frames=frames))
    assert found["layout"]["meta"]["frames"] == ["t = 0", "t &lt; 1"]
    assert [frame["traces"] for frame in found["frames"]] == [[], [0, 1]]
    assert [len(frame["data"]) for frame in found["frames"]] == [0, 2]
    assert [len(frame["layout"]["shapes"]) for frame in found["frames"]] == [1, 2]
    assert found["data"][2]["xaxis"] == "x2"
    assert found["layout"]["yaxis"]["range"][1] > 6  # holds the largest of all frames
    assert [trace["showlegend"] for trace in found["data"][:2]] == [True, False]
    points, line = found["frames"][1]["data"]
    assert set(points) == {"y"}  # of a trace only what changes
    assert line["name"] == "late"
    assert line["showlegend"]


def test_hostile_words_are_escaped_everywhere():
    evil = "<a href='https://evil.example'>x</a></script>"
    layers = (
        Line(X, X, label=evil),
        Points(X, X, label=evil, text=[evil] * 3),
        Rule(1.0, label=evil),
        Span(1, 2, evil),
        Text(1, 1, evil),
        Raster(X, X, np.zeros((2, 2), int), (evil,), (0,)),
        Heat(X, X, np.zeros((2, 2)), evil),
    )
    axis = Axis(evil, ticks=((1.0, evil),))
    panel = Panel(evil, axis, axis, layers)
    found = page.to_plotly(Figure("f", evil, (panel,), frames=(Frame(evil, layers),)))

    def texts(value, key=""):
        if isinstance(value, dict):
            for name, part in value.items():
                yield from texts(part, name)
        elif isinstance(value, list):
            for part in value:
                yield from texts(part, key)
        elif isinstance(value, str) and key not in ("legendgroup", "hovertemplate"):
            yield value

    shown = list(texts(found))
    assert sum("evil.example" in text for text in shown) >= 12
    assert not any("<" in text for text in shown)


def test_something_else_than_a_figure_is_refused():
    with pytest.raises(InputError, match="`figure` is a list, not a Figure"):
        page.to_plotly([])
