"""Dataset: validated once, frozen, equal for equal data."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import reluflow as rf
from reluflow.errors import InputError


def test_one_point_is_legal():
    data = rf.Dataset([[2.0]], [1.0])
    assert (data.n, data.d) == (1, 1)
    assert data.gram.tolist() == [[4.0]]


def test_integers_and_either_byte_order_become_float64():
    data = rf.Dataset(np.array([[1, 2]], dtype=">i4"), np.array([3], dtype=">f4"))
    assert data.X.dtype == data.y.dtype == np.dtype("=f8")
    assert data == rf.Dataset([[1.0, 2.0]], [3.0])


@pytest.mark.parametrize("attribute", ["X", "y", "gram"])
def test_arrays_are_read_only(attribute):
    array = getattr(rf.Dataset([[1.0, 2.0]], [3.0]), attribute)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 0.0


@pytest.mark.parametrize("attribute", ["X", "n", "name", "gram", "id"])
def test_attributes_cannot_be_replaced(attribute):
    with pytest.raises(AttributeError, match=rf"`{attribute}` of a Dataset cannot be changed"):
        setattr(rf.Dataset([[1.0]], [1.0]), attribute, 3)


def test_the_callers_array_is_copied():
    X = np.eye(2)
    data = rf.Dataset(X, [1.0, 1.0])
    X[0, 0] = 5.0
    assert data.X[0, 0] == 1.0


@given(hnp.arrays("f8", (3, 2), elements=st.integers(1, 99)))
def test_equality_and_hash_follow_the_contents(X):
    one, two = rf.Dataset(X, [1, 2, 3]), rf.Dataset(X.copy(), [1, 2, 3], name="other")
    assert one == two
    assert hash(one) == hash(two)
    assert len({one, two}) == 1
    moved = X.copy()
    moved[0, 0] = np.nextafter(moved[0, 0], 100.0)
    assert one != rf.Dataset(moved, [1, 2, 3])
    assert one != rf.Dataset(X, [1, 2, 4])


def test_equality_with_something_else_is_false():
    assert rf.Dataset([[1.0]], [1.0]) != "data"


def test_a_reshaped_array_is_other_data():
    assert rf.Dataset(np.ones((2, 2)), [1, 1]) != rf.Dataset(np.ones((1, 4)), [1])


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.empty((0, 3)), [], r"`X` has shape \(0, 3\): it is empty"),
        (np.empty((3, 0)), [1, 2, 3], r"`X` has shape \(3, 0\): it is empty"),
        ([], [], r"`X` has shape \(0,\); 2 axes are needed"),
        ([1.0, 2.0], [1.0, 2.0], r"`X` has shape \(2,\); 2 axes"),
        (np.ones((2, 2, 2)), [1, 1], r"`X` has shape \(2, 2, 2\)"),
        (np.eye(2), [[1.0, 2.0]], r"`y` has shape \(1, 2\); 1 axes"),
        (np.eye(2), [1.0, 2.0, 3.0], "`X` has 2 rows but `y` has 3 labels"),
        (np.eye(2), 1.0, r"`y` has shape \(\)"),
        ([[1.0, np.nan]], [1.0], r"`X` has 1 non-finite entries \(first: nan at \(0, 1\)\)"),
        ([[1.0]], [np.inf], r"`y` has 1 non-finite entries \(first: inf"),
        ([[1.0], [0.0], [0.0]], [1, 2, 3], r"`X` has 2 zero rows \(first: 1\)"),
        ([[-0.0, 0.0]], [1], "1 zero rows"),
        (np.array([[None]]), [1], "`X` has dtype object"),
        ([["a"]], [1], "`X` has dtype <U1"),
        ([[1j]], [1], "`X` has dtype complex128"),
        ([[1.0], [1e200]], [1, 1], r"`X` has entries of size 1e\+200 \(first: row 1\)"),
        ([[1.0], [5e-324]], [1, 1], r"`X` has entries of size 4.94e-324 \(first: row 1\)"),
        ([[1.0]], [-1e300], r"`y` has entries of size 1e\+300 .*Rescale"),
    ],
)
def test_refusals_say_what_and_where(X, y, message):
    with pytest.raises(InputError, match=message):
        rf.Dataset(X, y)


def test_small_coordinates_beside_large_ones_are_fine():
    assert rf.Dataset([[1.0, 5e-324]], [0.0]).gram[0, 0] == 1.0


def test_teachers_must_fit():
    data = rf.Dataset(np.eye(2), [1, 1], teacher=[1, 2])
    assert data.teacher.tolist() == [1.0, 2.0]
    net = rf.Network([1.0], [[1.0, 0.0]])
    assert rf.Dataset(np.eye(2), [1, 0], teacher=net).teacher is net
    with pytest.raises(InputError, match="`teacher` has 3 entries but the points have 2"):
        rf.Dataset(np.eye(2), [1, 1], teacher=[1, 2, 3])
    with pytest.raises(InputError, match="`teacher` takes 2 inputs but the points have 3"):
        rf.Dataset(np.eye(3), [1, 1, 1], teacher=net)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"name": 3}, "`name` is 3, not text"),
        ({"ambient_dim": 0}, "`ambient_dim` is 0; it must be at least 1"),
        ({"ambient_dim": 2.5}, "`ambient_dim` is 2.5, not a whole number"),
        ({"spectrum": [np.nan]}, "`spectrum` has 1 non-finite"),
        ({"spectrum": 1.0}, r"`spectrum` has shape \(\)"),
    ],
)
def test_what_is_known_about_the_points_is_checked_too(extra, message):
    with pytest.raises(InputError, match=message):
        rf.Dataset(np.eye(2), [1, 1], **extra)


def test_repr_names_the_data():
    assert repr(rf.Dataset([[1.0]], [1.0], name="toy")) == "Dataset('toy', n=1, d=1)"


@pytest.mark.parametrize("X", [[2.0, 0.0], [[2.0], [0.0]], np.array([[2], [0]])])
def test_a_bias_is_the_last_coordinate(X):
    data = rf.Dataset(X, [1.0, -1.0], bias=True)
    np.testing.assert_array_equal(data.X, [[2.0, 1.0], [0.0, 1.0]])
    assert data.bias
    assert data == rf.Dataset(data.X, data.y)
    assert not rf.Dataset(data.X, data.y).bias


def test_bias_is_yes_or_no():
    with pytest.raises(InputError, match="`bias` is 1"):
        rf.Dataset([[1.0]], [1.0], bias=1)
    with pytest.raises(InputError, match="rectangular"):
        rf.Dataset([[1.0], [1.0, 2.0]], [1.0, 2.0], bias=True)


def test_labels_in_a_column_are_flattened_with_a_warning():
    with pytest.warns(rf.errors.ReluflowWarning, match=r"`y` has shape \(2, 1\).*y.ravel"):
        data = rf.Dataset(np.eye(2), np.array([[1.0], [2.0]]))
    assert data.y.tolist() == [1.0, 2.0]
