"""Bent axes and texts beside rules, as the page and paper draw them."""

import numpy as np
import pytest

from reluflow.errors import InputError
from reluflow.figures import Axis, Figure, Line, Panel, Raster, Rule, Span
from reluflow.figures.page import to_plotly
from reluflow.figures.paper import picture
from reluflow.figures.places import middles, on_the_left, placed, unplaced

PACED = Axis("t", pace=((0.0, 0.0), (1.0, 0.8), (3.0, 1.0)), ticks=((1.0, "one"), (2.0, "two")))


def test_places_and_values_are_inverse_also_beyond_the_knots():
    values = np.linspace(-1.0, 5.0, 25)
    np.testing.assert_allclose(unplaced(placed(values, PACED), PACED), values, atol=1e-14)
    assert placed(5.0, PACED) == pytest.approx(1.2)
    assert placed(-1.0, PACED) == pytest.approx(-0.8)
    assert np.isnan(placed(np.nan, PACED))
    np.testing.assert_allclose(placed(middles(np.array([0.0, 3.0]), PACED), PACED), [0.5])


@pytest.mark.parametrize(
    "pace", [((0.0, 0.0),), ((0.0, 0.0), (0.0, 1.0)), ((0.0, 1.0), (1.0, 0.0))]
)
def test_a_pace_that_does_not_rise_is_refused(pace):
    with pytest.raises(InputError, match="does not rise"):
        Axis("t", pace=pace)
    with pytest.raises(InputError, match="not linear"):
        Axis("t", "log", pace=PACED.pace)


def test_the_page_has_places_and_knows_their_values():
    cells = Raster(
        np.array([0.0, 1.0, 3.0]), np.arange(3.0), np.eye(2, dtype=int), ("no", "yes"), (7, 0)
    )
    layers = (
        Line(np.array([0.5, 2.0]), np.array([1.0, 2.0]), "curve"),
        Rule(2.0, "x", "here"),
        Span(1.0, 2.0),
        cells,
    )
    drawn = to_plotly(Figure("f", "F", (Panel("", PACED, Axis("y"), layers),), cursor=True))
    assert drawn["data"][0]["x"] == [0.4, 0.9]
    assert drawn["data"][1]["x"] == [0.0, 0.8, 1.0]
    assert all("customdata" in drawn["data"][k]["hovertemplate"] for k in (0, 1))
    rule, span = drawn["layout"]["shapes"]
    assert (rule["x0"], span["x0"], span["x1"]) == (0.9, 0.8, 0.9)
    assert drawn["layout"]["xaxis"]["tickvals"] == [0.8, 0.9]
    assert drawn["layout"]["meta"]["pace"] == {"x": [[0.0, 1.0, 3.0], [0.0, 0.8, 1.0]]}


def test_paper_bends_its_axis_too():
    line = Line(np.array([0.0, 1.0, 3.0]), np.array([0.0, 1.0, 2.0]), "curve")
    axes = picture(Figure("f", "F", (Panel("", PACED, Axis("y"), (line,)),))).axes[0]
    x = axes.transData.transform([(value, 0.0) for value in (0.0, 1.0, 3.0)])[:, 0]
    assert (x[1] - x[0]) / (x[2] - x[0]) == pytest.approx(0.8)
    assert [text.get_text() for text in axes.get_xticklabels()] == ["one", "two"]


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_of_two_rules_close_together_the_lower_has_its_text_on_the_left(scale):
    curve = Line(np.arange(3.0), np.array([1.0, 10.0, 100.0]), "curve")
    close = (Rule(2.0, "y", "a"), Rule(2.1, "y", "b"), Rule(50.0, "y", "c"), Rule(2.05, "x", "d"))
    assert on_the_left((curve, *close), Axis("y", scale)) == {1}
    assert on_the_left((curve, Rule(-1.0, "y", "lost")), Axis("y", scale)) == set()
    panel = Panel("", Axis("x"), Axis("y", scale), (curve, *close[:2]))
    notes = to_plotly(Figure("f", "F", (panel,)))["layout"]["annotations"]
    assert [note["xanchor"] for note in notes] == ["left", "right"]


def test_columns_leave_room_for_long_texts_at_an_axis():
    def starts(text):
        panel = Panel("", Axis("x"), Axis("y", ticks=((0.0, text),)), (Rule(0.0),))
        layout = to_plotly(Figure("f", "F", (panel, panel), columns=2))["layout"]
        return layout["xaxis2"]["domain"][0] - layout["xaxis"]["domain"][1]

    assert starts("0") == pytest.approx(0.1)
    assert starts("points of the other sign") > 0.2
