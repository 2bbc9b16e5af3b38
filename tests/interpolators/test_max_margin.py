"""Maximum margin in any dimension: brute force, the solver of the line, certificates by hand."""

from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from reluflow import Dataset, Network, datasets
from reluflow.errors import InputError
from reluflow.geometry import kkt, margin
from reluflow.interpolators import max_margin, min_norm
from reluflow.interpolators.max_margin import _by_patterns

from .checks import circle, outputs, rotation, squared_norm, supremum_bound
from .exchange import margin_bounds


def draw(seed):
    """At most 8 points in at most 3 dimensions: Gaussian, on a lattice (ties), or with a bias."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 9)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, d))
    if seed % 3 == 1:  # points share rays and planes, and have opposites
        X = rng.integers(-2, 3, size=(n, d)).astype(float)
        X[~X.any(axis=1), 0] = 1.0
    if seed % 3 == 2 and d > 1:
        X[:, -1] = 1.0
    net = Network(rng.normal(size=8), rng.normal(size=(8, d)))
    y = np.where(net.predict(X) > 0, 1.0, -1.0)  # some network separates these
    if seed % 3 == 0 and d > 1:
        y = rng.choice([-1.0, 1.0], n)  # any network separates general positions
    return Dataset(X, y)


@pytest.mark.parametrize(
    "seed", [*range(24), *(pytest.param(k, marks=pytest.mark.long) for k in range(24, 100))]
)
def test_the_value_is_that_of_brute_force(seed):
    data = draw(seed)
    best = max_margin(data)
    assert best.certified
    lower, upper = margin_bounds(data.X, data.y)
    assert upper - lower <= 1e-8 * upper
    assert best.value == pytest.approx((lower + upper) / 2, rel=1e-8)
    assert best.margin == pytest.approx(margin(data, best.network), rel=1e-10)


@pytest.mark.parametrize("seed", range(6))
def test_the_solver_of_the_line_agrees_with_the_general_one(seed):
    rng = np.random.default_rng(seed)
    n = 4 + seed
    data = datasets.from_points(np.sort(rng.uniform(-2, 2, n)), rng.choice([-1.0, 1.0], n))
    line, general = max_margin(data), _by_patterns(data)
    assert line.certified
    assert general.certified
    assert general.value == pytest.approx(line.value, rel=1e-7)
    assert general.network.bias


@pytest.mark.parametrize(("n", "d"), [(1, 1), (2, 1), (7, 2), (7, 3), (6, 6), (5, 9)])
def test_primal_dual_and_gap_by_hand(n, d):
    rng = np.random.default_rng(n + d)
    X = np.array([[0.5], [-2.0]])[:n] if d == 1 else rng.normal(size=(n, d))
    data = Dataset(X, rng.choice([-1.0, 1.0], n))
    best = max_margin(data)
    assert best.certified
    assert best.is_exhaustive
    margins = data.y * outputs(best.network, X)
    assert margins.min() == pytest.approx(1.0, abs=1e-12)
    assert best.value == pytest.approx(squared_norm(best.network), rel=1e-12)
    np.testing.assert_allclose(best.network.balance, 0.0, atol=1e-12 * best.value)
    assert best.network.width <= n
    assert (best.multipliers >= 0).all()
    assert best.lower_bound == pytest.approx(2 * best.multipliers.sum(), rel=1e-12)
    assert supremum_bound(X, best.multipliers * data.y) <= 1 + 1e-8
    assert np.abs(best.multipliers * (margins - 1)).max() <= 1e-6 * best.value
    assert kkt(data, best.network).eps_rel <= 1e-6


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.sampled_from([(5, 2), (5, 3), (4, 4)]))
def test_invariances(seed, shape):
    rng = np.random.default_rng(seed)
    data = Dataset(rng.normal(size=shape), rng.choice([-1.0, 1.0], shape[0]))
    value = max_margin(data).value
    order = rng.permutation(data.n)
    longer = np.where(np.arange(data.n) == 0, 3.0, 1.0)[:, None]
    assert max_margin(Dataset(data.X[order], data.y[order])).value == pytest.approx(value, rel=1e-7)
    turned = Dataset(data.X @ rotation(rng, data.d), data.y)
    assert max_margin(turned).value == pytest.approx(value, rel=1e-7)
    assert max_margin(Dataset(data.X, -data.y)).value == pytest.approx(value, rel=1e-7)
    assert max_margin(Dataset(4 * data.X, data.y)).value == pytest.approx(value / 4, rel=1e-7)
    # constraints only: fitting the labels costs more, a point less or further out costs less
    assert value <= min_norm(data).value * (1 + 1e-7)
    assert max_margin(Dataset(data.X[1:], data.y[1:])).value <= value * (1 + 1e-7)
    assert max_margin(Dataset(longer * data.X, data.y)).value <= value * (1 + 1e-7)


def test_orthogonal_points_need_a_neuron_a_label():
    norms = np.array([1.0, 2.0, 3.0, 0.5])
    best = max_margin(Dataset(np.diag(norms), [1.0, 1.0, -1.0, -1.0]))
    wanted = 2 * (np.hypot(1, 1 / 2) + np.hypot(1 / 3, 2))
    assert best.value == pytest.approx(wanted, rel=1e-9)
    assert best.network.width == 2


def test_of_points_on_one_ray_the_nearest_decides():
    X = np.array([[2.0, 2.0], [1.0, 1.0], [0.0, 1.0]])
    y = np.array([1.0, 1.0, -1.0])
    best, alone = max_margin(Dataset(X, y)), max_margin(Dataset(X[1:], y[1:]))
    assert best.value == pytest.approx(alone.value, rel=1e-9)
    assert best.multipliers[0] == 0.0


def test_column_generation_agrees_with_all_patterns_at_once(monkeypatch):
    rng = np.random.default_rng(3)
    data = Dataset(rng.normal(size=(7, 4)), rng.choice([-1.0, 1.0], 7))
    everything = max_margin(data)
    monkeypatch.setattr("reluflow.interpolators.columns._ALL_AT_ONCE", 0)
    generated = max_margin(data)
    assert generated.certified
    assert generated.value == pytest.approx(everything.value, rel=1e-7)


def test_beyond_enumeration_the_bound_is_safe_and_the_gap_is_told(monkeypatch):
    rng = np.random.default_rng(1)
    data = Dataset(rng.normal(size=(8, 5)), rng.choice([-1.0, 1.0], 8))
    exact = max_margin(data)
    monkeypatch.setattr("reluflow.interpolators.supremum.enumerable", lambda _: False)
    told = max_margin(data)
    assert not told.is_exhaustive
    assert told.lower_bound <= exact.value * (1 + 1e-9)
    assert told.value >= exact.lower_bound * (1 - 1e-9)
    assert told.certified == (told.gap <= 1e-7 * told.value)
    assert supremum_bound(data.X, told.multipliers * data.y) <= 1 + 1e-8


def test_close_points_are_separated_or_named():
    X = np.array([[1.0, 0.0, 0.0], [1.0, 1e-6, 0.0], [0.0, 1.0, 1.0]])
    best = max_margin(Dataset(X, [1.0, -1.0, 1.0]))
    assert best.lower_bound <= best.value
    assert best.value > 1e5
    assert best.certified == (best.gap <= 1e-7 * best.value)


def test_bad_data_gets_a_sentence():
    with pytest.raises(InputError, match=r"points 0 and 2 lie on one ray with opposite labels"):
        max_margin(Dataset([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [2.0, 2.0, 0.0]], [1.0, 1.0, -1.0]))
    with pytest.raises(InputError, match=r"label 1 is 0\.5; margins need labels 1 or -1"):
        max_margin(Dataset(np.eye(3), [1.0, 0.5, 1.0]))
    X = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    both = np.concatenate([X, -X])
    with pytest.raises(InputError, match=r"opposite points \(0, 3\), \(1, 4\), \(2, 5\) have"):
        max_margin(Dataset(both, [1.0, 1.0, 1.0, -1.0, -1.0, -1.0]))
    # equal labels at opposite points ask nothing of the linear part
    assert max_margin(Dataset(both, [1.0, 1.0, 1.0, -1.0, -1.0, 1.0])).certified


# ---- a given width


def value_of_width(X, y, width):
    """Every choice of patterns and signs in the plane, each a smooth convex problem, by SciPy."""
    rows = np.unique(circle(3600) @ X.T > 0, axis=0)
    best = np.inf
    for choice in combinations_with_replacement(list(product(rows, (1.0, -1.0))), width):
        margins = np.hstack([sign * (y * row)[:, None] * X for row, sign in choice])
        sides = np.zeros((width, len(X), width, 2))
        for k, (row, _) in enumerate(choice):
            sides[k, :, k] = np.where(row, 1.0, -1.0)[:, None] * X
        A = np.concatenate([margins, sides.reshape(-1, 2 * width)])
        b = np.append(np.ones(len(X)), np.zeros(width * len(X)))
        start = linprog(np.zeros(2 * width), A_ub=-A, b_ub=-b, bounds=(None, None))
        if start.status != 0:
            continue
        answer = minimize(
            lambda w: np.sqrt((w.reshape(width, 2) ** 2).sum(axis=1) + 1e-24).sum(),
            start.x,
            constraints={"type": "ineq", "fun": lambda w, A=A, b=b: A @ w - b},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        if (A @ answer.x - b).min() > -1e-9:
            best = min(best, 2 * answer.fun)
    return best


@pytest.mark.parametrize("seed", [0, 1, 9, 12, 14, 18, 38])
def test_a_given_width_has_the_value_of_all_choices_of_patterns(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    data = Dataset(rng.normal(size=(n, 2)), rng.choice([-1.0, 1.0], n))
    width = 2
    if seed % 4 == 0:
        data, width = Dataset(data.X, np.ones(n)), 1
    assert max_margin(data).network.width > width
    wanted = value_of_width(data.X, data.y, width)
    if wanted == np.inf:  # seeds 0 and 38
        with pytest.raises(InputError, match=f"no network of width {width} separates"):
            max_margin(data, width=width)
        return
    best = max_margin(data, width=width)
    assert best.certified
    assert best.network.width <= width
    assert (data.y * outputs(best.network, data.X)).min() == pytest.approx(1.0, abs=1e-12)
    assert best.value == pytest.approx(wanted, rel=1e-8)


def test_a_given_width_has_its_value_where_scipy_gives_up(monkeypatch):
    """Non-negative least squares of SciPy 1.14 go round in circles on some inputs."""
    rng = np.random.default_rng(1)
    n = int(rng.integers(3, 6))
    data = Dataset(rng.normal(size=(n, 2)), rng.choice([-1.0, 1.0], n))

    def gives_up(*given, **options):
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr("scipy.optimize.nnls", gives_up)
    found = max_margin(data, width=2)
    assert found.certified
    assert found.value == pytest.approx(value_of_width(data.X, data.y, 2), rel=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_widths_cost_less_the_more_they_are(seed):
    rng = np.random.default_rng(seed)
    data = Dataset(rng.normal(size=(5, 3)), [1.0, -1.0, 1.0, -1.0, 1.0])
    free = max_margin(data)
    values = []
    for width in range(2, free.network.width + 2):
        try:
            best = max_margin(data, width=width)
        except InputError:
            assert not values  # once some width separates, every larger one does
            continue
        assert best.certified
        assert best.network.width <= width
        values.append(best.value)
    assert (np.diff(values) <= 1e-7 * values[0]).all()
    assert values[-1] == values[-2] == free.value


def test_an_optimum_of_the_line_with_neurons_to_spare_is_narrow_enough():
    rng = np.random.default_rng(2)
    x, label = rng.uniform(-2, 2, 10), np.sin(3 * rng.uniform(-2, 2, 10))
    data = datasets.from_points(x, np.where(label > 0, 1.0, -1.0))
    free = max_margin(data)
    best = max_margin(data, width=data.n)
    assert best.network.width <= data.n
    assert best.certified
    assert best.value == pytest.approx(free.value, rel=1e-9)


def test_bad_widths_get_a_sentence():
    rng = np.random.default_rng(0)
    data = Dataset(rng.normal(size=(6, 3)), [1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    with pytest.raises(InputError, match="no network of width 1 separates these points"):
        max_margin(data, width=1)
    with pytest.raises(InputError, match="`width` is 0"):
        max_margin(data, width=0)
    many = Dataset(rng.normal(size=(12, 3)), np.tile([1.0, -1.0], 6))
    with pytest.raises(InputError, match=r"4 neurons on \d+ patterns and signs can be chosen in"):
        max_margin(many, width=4)
