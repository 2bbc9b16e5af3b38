"""The optimum under weight decay: an independent solver, certificates by hand, both extremes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reluflow as rf
from reluflow import Dataset, losses
from reluflow.errors import InputError
from reluflow.interpolators import min_norm

from .checks import outputs, relu_sums, rotation, squared_norm, supremum_bound
from .exchange import decay_bounds


def draw(seed):
    """At most 7 points in at most 4 dimensions, some on shared rays, and a decay."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 8)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, d))
    if seed % 3 == 1:  # points share rays and planes, and have opposites
        X = rng.integers(-2, 3, size=(n, d)).astype(float)
        X[~X.any(axis=1), 0] = 1.0
    return Dataset(X, rng.normal(size=n)), 10.0 ** rng.uniform(-4, -0.5)


@pytest.mark.parametrize(
    "seed", [*range(16), *(pytest.param(k, marks=pytest.mark.long) for k in range(16, 50))]
)
def test_the_objective_is_that_of_an_independent_solver(seed):
    data, decay = draw(seed)
    best = min_norm(data, decay=decay)
    assert best.certified
    lower, upper = decay_bounds(data.X, data.y, decay, 1 / data.n)
    assert upper - lower <= 1e-8 * upper
    assert best.objective == pytest.approx((lower + upper) / 2, rel=1e-8)


@pytest.mark.parametrize("factor", losses.FACTORS)
@pytest.mark.parametrize("seed", range(4))
def test_primal_dual_and_gap_by_hand(seed, factor):
    data, decay = draw(seed)
    kappa = {"1/2n": 1 / data.n, "1/2": 1.0, "1/n": 2 / data.n}[factor]
    best = min_norm(data, decay=decay, loss=losses.Square(factor))
    assert best.certified
    assert best.is_exhaustive
    error = data.y - outputs(best.network, data.X)
    assert best.value == pytest.approx(squared_norm(best.network), rel=1e-12)
    objective = kappa / 2 * error @ error + decay / 2 * best.value
    assert best.objective == pytest.approx(objective, rel=1e-12)
    assert best.residual == pytest.approx(np.abs(error).max(), rel=1e-9)
    assert supremum_bound(data.X, best.dual) <= decay * (1 + 1e-8)
    bound = best.dual @ data.y - best.dual @ best.dual / (2 * kappa)
    assert best.lower_bound == pytest.approx(bound, rel=1e-12)
    # the forces are the dual vector, and every neuron is where its sum attains the bound
    np.testing.assert_allclose(best.dual, kappa * error, atol=1e-6 * kappa * np.abs(data.y).max())
    values = relu_sums(data.X, best.dual, best.network.directions) * best.network.signs
    np.testing.assert_allclose(values[best.network.signs != 0], decay, rtol=1e-4)
    assert best.network.width <= data.n


def test_orthonormal_points_shrink_by_a_closed_form():
    # one neuron a sign: outputs along y, shorter by decay / kappa
    y = np.array([3.0, 4.0, -2.0])
    for decay in (0.1, 1.0, 1.9):
        best = min_norm(Dataset(np.eye(3), y), decay=decay, loss=losses.Square("1/2"))
        assert best.value == pytest.approx(2 * (5 - decay) + 2 * (2 - decay), rel=1e-9)
        wanted = y * [1 - decay / 5, 1 - decay / 5, 1 - decay / 2]
        np.testing.assert_allclose(best.network.predict(np.eye(3)), wanted, rtol=1e-9)


def test_strong_decay_leaves_the_zero_network():
    data, _ = draw(0)
    edge = supremum_bound(data.X, data.y / data.n)
    above, below = min_norm(data, decay=1.001 * edge), min_norm(data, decay=0.999 * edge)
    assert above.value == 0.0
    assert above.certified
    assert above.gap == 0.0
    assert above.objective == pytest.approx(data.y @ data.y / (2 * data.n), rel=1e-14)
    assert below.value > 0.0
    assert below.certified


@pytest.mark.parametrize("seed", [0, 2, 5])
def test_vanishing_decay_meets_the_least_norm(seed):
    data, _ = draw(seed)
    fit = min_norm(data)
    last = np.inf
    for decay in (1e-2, 1e-4, 1e-6, 1e-8, 1e-12):
        best = min_norm(data, decay=decay)
        assert best.certified
        short = 1 - 2 * best.objective / (decay * fit.value)
        assert -1e-9 <= short <= last
        last = short
    assert last <= 1e-9
    assert best.value == pytest.approx(fit.value, rel=1e-8)
    np.testing.assert_allclose(best.dual / 1e-12, fit.dual, atol=1e-6 * np.abs(fit.dual).max())
    assert best.residual <= 1e-9 * np.abs(data.y).max()
    same = min_norm(data, decay=0.0)
    assert same.value == same.objective == fit.value


def test_the_path_is_monotone_in_decay():
    data, _ = draw(5)
    path = [min_norm(data, decay=decay) for decay in np.geomspace(1e-5, 1.0, 12)]
    values = np.array([best.value for best in path])
    objectives = np.array([best.objective for best in path])
    assert (np.diff(values) <= 1e-7 * values[0]).all()
    assert (np.diff(objectives) >= -1e-7 * objectives[-1]).all()


def test_points_that_contradict_each_other_are_averaged():
    X = np.array([[1.0, 0.0], [1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    data = Dataset(X, [1.0, 3.0, 1.0, 0.0])
    best = min_norm(data, decay=0.01)
    assert best.certified
    # one neuron along the ray: 1/8 sum (l h - y)^2 + 0.01 h is least at h = (6 - 0.04) / 6
    assert best.network.predict([[1.0, 0.0]])[0] == pytest.approx((6 - 0.04) / 6, rel=1e-9)
    with pytest.raises(InputError, match="lie on one ray"):
        min_norm(data)


@settings(max_examples=6)
@given(st.integers(0, 10**6), st.sampled_from([(4, 2), (4, 3), (5, 5)]))
def test_invariances(seed, shape):
    rng = np.random.default_rng(seed)
    data = Dataset(rng.normal(size=shape), rng.normal(size=shape[0]))
    best = min_norm(data, decay=0.01)
    order = rng.permutation(data.n)
    for twin in (
        Dataset(data.X[order], data.y[order]),
        Dataset(data.X @ rotation(rng, data.d), data.y),
        Dataset(data.X, -data.y),
    ):
        assert min_norm(twin, decay=0.01).objective == pytest.approx(best.objective, rel=2e-7)
    # labels and decay in other units
    scaled = min_norm(Dataset(data.X, 7 * data.y), decay=0.07)
    assert scaled.objective == pytest.approx(49 * best.objective, rel=2e-7)


def test_no_trained_network_is_below_the_bound():
    data = rf.datasets.centred(d=4, seed=0)
    net = rf.networks.balanced(4, width=20, log_scale=-1.0, seed=1)
    decay = 0.02
    bound = min_norm(data, decay=decay).lower_bound
    a, W = net.a.copy(), net.W.copy()
    for _ in range(3000):  # descent with decay, by hand
        z = W @ data.X.T
        force = (data.y - a @ np.maximum(z, 0.0)) / data.n
        da, dW = np.maximum(z, 0.0) @ force, a[:, None] * ((z > 0) * force) @ data.X
        a, W = a + 0.05 * (da - decay * a), W + 0.05 * (dW - decay * W)
    error = data.y - np.maximum(data.X @ W.T, 0.0) @ a
    reached = error @ error / (2 * data.n) + decay / 2 * ((a**2).sum() + (W**2).sum())
    assert bound * (1 - 1e-12) <= reached <= 1.5 * bound


def test_a_failed_solver_leaves_bounds(monkeypatch):
    from reluflow.interpolators import atoms
    from reluflow.interpolators.cone_program import ConeSolution

    def fail(P, q, A, b, cones):
        return ConeSolution("failed", np.full(len(q), np.nan), np.full(len(b), np.nan))

    data, _ = draw(0)
    exact = min_norm(data, decay=1e-2)
    monkeypatch.setattr(atoms, "solve", fail)
    told = min_norm(data, decay=1e-2)
    assert not told.certified
    assert told.lower_bound <= exact.objective <= told.objective


def test_bad_input_gets_a_sentence():
    data = Dataset(np.eye(2), [1.0, -1.0])
    with pytest.raises(InputError, match="`decay` is -1"):
        min_norm(data, decay=-1.0)
    with pytest.raises(InputError, match="`loss` is 'logistic'; the least norm is that of square"):
        min_norm(data, decay=1.0, loss="logistic")
    assert min_norm(Dataset(np.eye(2), [0.0, 0.0]), decay=1.0).objective == 0.0
