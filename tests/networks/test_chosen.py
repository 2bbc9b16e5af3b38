"""Networks with chosen pre-activations: exactness, least norm, assignment, refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluflow import datasets, networks
from reluflow.dataset import Dataset
from reluflow.errors import InputError

DATA = datasets.gaussian(4, 9, n_positive=2, seed=0)
OWN = np.where(DATA.y > 0, 0, 1)


@given(
    n=st.integers(1, 12),
    extra=st.integers(3, 40),
    m=st.integers(1, 5),
    kind=st.sampled_from(["scalar", "point", "neuron"]),
    seed=st.integers(0, 10**6),
)
def test_preactivations_are_reproduced(n, extra, m, kind, seed):
    rng = np.random.default_rng(seed)
    data = datasets.gaussian(n, n + extra, seed=rng)
    shape = {"scalar": (), "point": (n,), "neuron": (m, n)}[kind]
    eps = rng.uniform(0.01, 1.0, shape)
    signs = rng.choice([-1.0, 1.0], m)
    net = networks.by_preactivations(data, eps, signs)
    np.testing.assert_allclose(
        net.W @ data.X.T, np.broadcast_to(eps, (m, n)), rtol=1e-10, atol=1e-10
    )
    np.testing.assert_array_equal(net.a, signs)
    np.testing.assert_array_equal(net.log_scale, 0.0)
    # least norm: no component outside the span of the points, and the textbook formula
    textbook = np.linalg.solve(data.gram, np.broadcast_to(eps, (m, n)).T).T @ data.X
    np.testing.assert_allclose(net.W, textbook, rtol=1e-6, atol=1e-9)


def test_badly_scaled_and_badly_conditioned_points():
    rng = np.random.default_rng(1)
    eps = rng.uniform(0.1, 1, 6)
    for scales in (np.logspace(-2, 2, 6), np.full(6, 1e-90), np.full(6, 1e90)):
        X = rng.standard_normal((6, 9)) * scales[:, None]
        net = networks.by_preactivations(Dataset(X, np.ones(6)), eps, [1.0])
        np.testing.assert_allclose(X @ net.W[0], eps, rtol=1e-10)
    X = rng.standard_normal((6, 9))
    X[5] = X[4] + 1e-5 * rng.standard_normal(9)  # the Gram matrix has condition 1e11
    net = networks.by_preactivations(Dataset(X, np.ones(6)), eps, [1.0])
    np.testing.assert_allclose(X @ net.W[0], eps, rtol=1e-9)


def test_bartlett_factor_and_square_data():
    data = datasets.bartlett(30, 10**9, seed=0)
    net = networks.by_preactivations(data, 0.005, [1, -1])
    np.testing.assert_allclose(net.W @ data.X.T, 0.005, rtol=1e-12)


def test_negative_preactivations_are_allowed_without_an_assignment():
    eps = np.array([[0.1, -0.2, 0.0, 0.3]])
    net = networks.by_preactivations(DATA, eps, [1.0])
    np.testing.assert_allclose(net.W @ DATA.X.T, eps, atol=1e-12)


def test_assignment_switches_off_unassigned_neurons_of_the_same_sign():
    data = Dataset(np.eye(3, 5), [1.0, -2.0, 3.0])
    net = networks.by_preactivations(data, 0.1, [1, 1, -1, -1], assignment=[1, 2, 0])
    #                      point 0 (+)  1 (-)  2 (+)
    expected = 0.1 * np.array([[-1, 1, 1], [1, 1, -1], [1, 1, 1], [1, -1, 1]])
    np.testing.assert_allclose(data.X @ net.W.T, expected.T, rtol=1e-12)


def test_assignment_changes_nothing_for_two_neurons():
    plain = networks.by_preactivations(DATA, 0.1, [1, -1])
    assert networks.by_preactivations(DATA, 0.1, [1, -1], assignment=OWN) == plain


UNEVEN = Dataset(DATA.X * np.logspace(-9, 9, 4)[:, None], DATA.y)
REPEATED = Dataset([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0]], [1.0, 1.0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: networks.by_preactivations(DATA.X, 0.1, [1]), "is a ndarray, not a Dataset"),
        (
            lambda: networks.by_preactivations(Dataset(np.eye(3)[:, :2] + 1, [1, 1, 1]), 0.1, [1]),
            "3 points in 2 dimensions",
        ),
        (lambda: networks.by_preactivations(REPEATED, 0.1, [1]), "linearly dependent"),
        (lambda: networks.by_preactivations(UNEVEN, 0.1, [1]), "to similar norms"),
        (lambda: networks.by_preactivations(DATA, 0.1, [1, 0.5]), r"`signs\[1\]` is 0.5"),
        (lambda: networks.by_preactivations(DATA, 0.1, []), "`signs` is empty"),
        (lambda: networks.by_preactivations(DATA, [0.1] * 3, [1]), r"shape \(3,\) for 1 neurons"),
        (lambda: networks.by_preactivations(DATA, [[0.1] * 4] * 2, [1]), r"shape \(2, 4\)"),
        (lambda: networks.by_preactivations(DATA, [[0.1], [1, 2]], [1]), "not a rectangular"),
        (lambda: networks.by_preactivations(DATA, np.nan, [1]), "non-finite"),
        (
            lambda: networks.by_preactivations(DATA, 0.1, [1, -1], assignment=[0, 1]),
            "2 entries for 4 points",
        ),
        (
            lambda: networks.by_preactivations(DATA, 0.1, [1, -1], assignment=OWN + 1),
            "neurons are 0 to 1",
        ),
        (
            lambda: networks.by_preactivations(DATA, 0.1, [1, -1], assignment=OWN + 0.5),
            r"`assignment\[0\]` is",
        ),
        (
            lambda: networks.by_preactivations(DATA, 0.1, [-1, 1], assignment=OWN),
            "of sign [+-]1. That neuron can never fit it",
        ),
        (
            lambda: networks.by_preactivations(DATA, -0.1, [1, -1], assignment=OWN),
            "it must be positive",
        ),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
