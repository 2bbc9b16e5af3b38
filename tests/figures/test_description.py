"""What a description refuses, and the geometry of its cells."""

import numpy as np
import pytest

from reluflow.errors import InputError
from reluflow.figures import Axis, Figure, Heat, Line, Raster
from reluflow.figures.places import edges, middles

X = np.arange(3.0)


@pytest.mark.parametrize(
    ("scale", "bounds"), [("log", (0.0, 1.0)), ("log", (-1.0, 1.0)), ("linear", (1.0, 1.0))]
)
def test_a_range_that_cannot_be_drawn_is_refused(scale, bounds):
    with pytest.raises(InputError, match=f"the {scale} axis 'loss' has the range"):
        Axis("loss", scale, range=bounds)
    with pytest.raises(InputError, match="Give two different finite numbers"):
        Axis("loss", range=(0.0, np.nan))


def test_layers_of_unequal_lengths_are_refused():
    with pytest.raises(InputError, match=r"lengths \[2, 3\]"):
        Line(X, X[:2])
    with pytest.raises(InputError, match="Edges are one more than cells"):
        Raster(X, X, np.zeros((3, 3), int), ("a",), (0,))
    with pytest.raises(InputError, match="middles of the cells, or their edges"):
        Heat(X, X, np.zeros((3, 5)))
    with pytest.raises(InputError, match="has no panel"):
        Figure("f", "f", ())


def test_edges_come_back_from_their_middles():
    for axis, given in ((Axis("x"), np.arange(5.0)), (Axis("x", "log"), np.geomspace(1, 81, 5))):
        assert edges(middles(given, axis), 4, axis) == pytest.approx(given)
        assert edges(given, 4, axis) == pytest.approx(given)
    assert edges(np.array([3.0]), 1, Axis("x")) == pytest.approx([2.5, 3.5])


def test_a_cell_below_zero_has_no_middle_on_a_log_axis():
    assert np.isnan(middles(np.array([-1.0, 1.0]), Axis("x", "log"))).all()
    assert middles(np.array([1e-200, 1e-100]), Axis("x", "log")) == pytest.approx(1e-150)
