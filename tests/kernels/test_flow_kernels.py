"""The kernels of the flow against readable twins and independent solvers."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.optimize import lsq_linear

import reluflow as rf
from reluflow.engines.flow import collocation, tableau
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.state import start
from reluflow.kernels import classes
from reluflow.kernels.boundaries import arrive, box_weights, land, settle, slide_forces
from reluflow.kernels.carrying import light_ones
from reluflow.kernels.classes import rows_of
from reluflow.kernels.collocation import node_outputs, rebent
from reluflow.kernels.exits import BOUND, SPREAD, first_boundary, first_exit
from reluflow.kernels.frozen import NEVER, any_below, drift, exit_boost
from reluflow.kernels.layout import Neurons
from reluflow.kernels.margins import share_jacobian, shares
from reluflow.kernels.releases import releases


def bernstein(monomials):
    """Bernstein coefficients on [0, 1], by solving for the values at as many points."""
    degree = len(monomials) - 1
    at = np.linspace(0.0, 1.0, degree + 1)
    binomials = [
        np.prod(np.arange(degree - k + 1, degree + 1)) / max(1, np.prod(np.arange(1, k + 1)))
        for k in range(degree + 1)
    ]
    basis = np.array(
        [[b * t**k * (1 - t) ** (degree - k) for k, b in enumerate(binomials)] for t in at]
    )
    return np.linalg.solve(basis, np.polyval(monomials[::-1], at))


@pytest.mark.parametrize("seed", range(60))
def test_first_exit_is_the_first_crossing_root(seed):
    rng = np.random.default_rng(seed)
    monomials = rng.normal(size=6)
    sign = 1.0 if monomials[0] > 0 else -1.0
    roots = np.roots(monomials[::-1])
    real = np.sort(roots[(np.abs(roots.imag) < 1e-9) & (roots.real > 0) & (roots.real <= 1)].real)
    expected = 2.0
    for root in real:
        if sign * np.polyval(monomials[::-1], root + 1e-6) < 0:
            expected = root
            break
    assert first_exit(bernstein(monomials), sign, 0.0) == pytest.approx(expected, abs=1e-9)


def test_first_exit_sees_a_double_crossing_between_equal_signs():
    # (t - 0.5)^2 - 1e-6: positive at both ends, negative on a window of width 2e-3
    monomials = np.array([0.25 - 1e-6, -1.0, 1.0, 0.0, 0.0, 0.0])
    assert first_exit(bernstein(monomials), 1.0, 0.0) == pytest.approx(0.5 - 1e-3, abs=1e-9)


def test_first_exit_lets_a_grazing_path_pass():
    monomials = np.array([0.25 + 1e-6, -1.0, 1.0, 0.0, 0.0, 0.0])
    assert first_exit(bernstein(monomials), 1.0, 0.0) == 2.0


@pytest.mark.parametrize("seed", range(80))
def test_box_weights_solve_the_box_least_squares_problem(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 5))
    X = rng.normal(size=(size, 5))
    c = rng.normal(size=size) * 10.0 ** rng.integers(-12, 3, size=size)
    g = rng.normal(size=5)
    theta = rng.choice([0.0, 0.3, 1.0], size)
    box_weights(X @ g, c, X @ X.T, theta)
    assert np.all((theta >= 0.0) & (theta <= 1.0))
    mine = np.linalg.norm(g + (theta * c) @ X)
    best = lsq_linear((c[:, None] * X).T, -g, bounds=(0, 1), tol=1e-14)
    assert mine <= np.linalg.norm(g + (best.x * c) @ X) * (1 + 1e-9) + 1e-14


def test_settle_slides_where_both_sides_push_back():
    gram = np.eye(2) + 0.5 * (np.ones((2, 2)) - np.eye(2))
    c = np.array([1.0, -1.0])  # point 1 attracts a neuron with a > 0; point 0 pulls it up there
    row = np.array([1, 1], dtype=np.int8)
    settle(1.0, c, gram, row, np.array([False, True]), np.array([0.0, -0.5]))
    assert row.tolist() == [1, 3]
    rho = np.empty(2)
    slide_forces(c, gram, row, rho)
    assert gram[1] @ rho == pytest.approx(0.0, abs=1e-16)
    assert rho[1] / c[1] == pytest.approx(0.5)


@pytest.mark.parametrize(("a", "kind"), [(1.0, 1), (-1.0, 0)])
def test_settle_crosses_a_repelling_plane_in_the_direction_of_arrival(a, kind):
    gram = np.eye(2)
    c = np.array([1.0, a])  # a c > 0 on point 1: it repels
    row = np.array([1, 1 - kind], dtype=np.int8)
    arrival = np.array([0.0, 1.0 if kind else -1.0])
    settle(a, c, gram, row, np.array([False, True]), arrival)
    assert row[1] == kind


@pytest.mark.parametrize("seed", range(40))
def test_exit_boost_is_the_first_root_of_the_boosted_preactivation(seed):
    rng = np.random.default_rng(seed)
    z, a, p, xi = rng.normal(size=4)
    sign = np.sign(z)
    q = np.linspace(0.0, 8.0, 400_001)
    path = sign * ((z - p * xi) + xi * (p * np.cosh(q) + a * np.sinh(q)))
    below = np.flatnonzero(path < 0)
    found = exit_boost(z, a, p, xi, sign)
    if len(below):
        assert found == pytest.approx(q[below[0]], abs=4e-5)
    else:
        assert found > 8.0
    assert exit_boost(1.0, 1.0, 1.0, 1.0, 1.0) == NEVER


def test_drift_follows_the_neuron_equation_across_its_events():
    rng = np.random.default_rng(3)
    n, d, m, span = 5, 3, 6, 1.5
    X, c = rng.normal(size=(n, d)), rng.normal(size=n)
    W = rng.normal(size=(m, d))
    A = rng.choice([-1.0, 1.0], m) * np.linalg.norm(W, axis=1)
    mode = (W @ X.T > 0).astype(np.int8)
    a, w, z, sigma = A.copy(), W.copy(), W @ X.T, np.zeros(m)
    log = np.empty((200, 5))
    used = drift(a, w, z, sigma, mode, np.ones(m, dtype=bool), c, X, X @ X.T, span, log)
    assert used > 0
    crossing_only = [
        j
        for j in range(m)
        if not (mode[j] >= 2).any()
        and 2 not in log[:used][log[:used, 1] == j, 4].tolist()
        and 3 not in log[:used][log[:used, 1] == j, 4].tolist()
    ]
    assert len(crossing_only) >= 3

    def field(_, v):
        g = (c * (X @ v[1:] > 0)) @ X
        return np.concatenate([[v[1:] @ g], v[0] * g])

    for j in crossing_only:
        start = np.concatenate([[A[j]], W[j]])
        exact = solve_ivp(field, (0, span), start, rtol=1e-10, atol=1e-13, max_step=1e-3).y[:, -1]
        mine = np.exp(sigma[j]) * np.concatenate([[a[j]], w[j]])
        assert mine == pytest.approx(exact, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("hidden", [False, True])
def test_node_outputs_equal_the_exponential_for_constant_forces(hidden):
    rng = np.random.default_rng(5)
    n, d, m, step = 4, 3, 7, 0.04
    X, c, W, a = (
        rng.normal(size=(n, d)),
        rng.normal(size=n),
        rng.normal(size=(m, d)),
        rng.normal(size=m),
    )
    active = np.array([[True, False, True, True], [False, True, True, False]])
    cid = np.arange(m) % 2
    weight = rng.uniform(0.5, 2.0, m)
    mode = active[cid].astype(np.int8)
    rows = rows_of(mode, X, X @ X.T)
    neurons = Neurons(a, W, W @ X.T, weight, mode)
    c_nodes = np.tile(c, (tableau.STAGES, 1))
    out = node_outputs(c_nodes, neurons, rows, X, step, tableau.RADAU_A, hidden)
    h = np.zeros(n)
    for j in range(m):
        g = np.where(active[cid[j]], c, 0.0) @ X
        if hidden:
            end = np.concatenate([[a[j]], W[j] + step * a[j] * g])
        else:
            A = np.zeros((d + 1, d + 1))
            A[0, 1:], A[1:, 0] = g, g
            end = expm(step * A) @ np.concatenate([[a[j]], W[j]])
        h += weight[j] * end[0] * np.where(active[cid[j]], X @ end[1:], 0.0)
    assert out[-1] == pytest.approx(h, rel=1e-11)


# ---------------------------------------------------------------------- classes


def random_modes(seed, m=40, n=4):
    rng = np.random.default_rng(seed)
    return rng.choice([0, 1, 2, 3], size=(m, n), p=[0.4, 0.4, 0.1, 0.1]).astype(np.int8)


@pytest.mark.parametrize("seed", range(8))
def test_classes_are_the_distinct_living_rows(seed):
    mode = random_modes(seed, m=int(3 + 30 * seed), n=1 + seed % 5)
    cid, first = classes.group(mode)
    plain = np.minimum(mode, 2)
    alive = (mode == 1).any(axis=1)
    assert ((cid >= 0) == alive).all()
    assert len(first) == len(np.unique(plain[alive], axis=0))
    for j in np.flatnonzero(alive):
        np.testing.assert_array_equal(plain[j], plain[first[cid[j]]])


@pytest.mark.parametrize("d", [3, 6])
def test_lift_and_dual_project_out_the_sliding_points(d):
    rng = np.random.default_rng(d)
    mode = random_modes(5, m=30, n=5)
    X = rng.normal(size=(5, d))
    X[4] = X[1] - 2.0 * X[0]  # points that slide together may depend on each other
    rows = rows_of(mode, X, X @ X.T)
    c = rng.normal(size=(2, 5))
    g, gam = classes.pulls(classes.spread(c, rows), rows, X)
    several = 0
    for k in range(len(rows.active)):
        held = X[rows.point[rows.begin[k] : rows.begin[k + 1]]]
        free = np.where(rows.active[k], c, 0.0) @ X
        w = rng.normal(size=d)
        on = w - (held @ w) @ rows.dual[rows.begin[k] : rows.begin[k + 1]]
        if len(held):
            free = free - (np.linalg.pinv(held) @ (held @ free.T)).T
            w = w - np.linalg.pinv(held) @ (held @ w)
        np.testing.assert_allclose(g[k], free, rtol=0, atol=1e-12)
        np.testing.assert_allclose(gam[k], free @ X.T, rtol=0, atol=1e-12)
        np.testing.assert_allclose(on, w, rtol=0, atol=1e-12)
        several += len(held) > 1
    assert several >= 2
    np.testing.assert_allclose(
        classes.speeds(c[0], rows, X), np.linalg.norm(g[:, 0], axis=1), rtol=1e-14
    )


@pytest.mark.parametrize("hidden", [False, True])
def test_tangent_kernel_is_the_speed_of_the_outputs(hidden):
    rng = np.random.default_rng(2)
    mode, X = random_modes(7, m=12, n=4), rng.normal(size=(4, 3))
    a, w, weight = rng.normal(size=12), rng.normal(size=(12, 3)), rng.uniform(0.1, 2.0, 12)
    rows = rows_of(mode, X, X @ X.T)
    for j in range(12):
        land(w[j], mode[j] >= 2, X, X @ X.T)
    z = np.where(mode >= 2, 0.0, w @ X.T)
    kernel = classes.tangent_kernel(a, z, weight, rows, X @ X.T, hidden)
    c = rng.normal(size=4)
    g, _ = classes.pulls(classes.spread(c[None], rows), rows, X)
    expected = np.zeros(4)
    for j in np.flatnonzero(rows.cid >= 0):
        own = g[rows.cid[j], 0]
        slope = a[j] * (X @ own) if hidden else a[j] * (X @ own) + z[j] * (w[j] @ own) / a[j]
        expected += weight[j] * a[j] * np.where(mode[j] == 1, slope, 0.0)
    np.testing.assert_allclose(kernel @ c, expected, rtol=0, atol=1e-12)
    assert np.linalg.eigvalsh(kernel).min() >= -1e-12


def test_rescaling_moves_powers_of_two_only():
    rng = np.random.default_rng(0)
    factor = 10.0 ** rng.integers(-8, 8, size=20)
    a, w, sigma = factor * rng.normal(size=20), factor[:, None] * rng.normal(size=(20, 3)), factor
    a1, w1, sigma1 = a.copy(), w.copy(), sigma.copy()
    a1[0], w1[0] = 0.0, 0.0
    classes.rescale(a1, w1, sigma1)
    top = np.maximum(np.abs(a1), np.abs(w1).max(axis=1))[1:]
    assert (top >= 0.25).all()
    assert (top < 8.0).all()
    ratio = a[1:] / a1[1:]
    assert (np.frexp(ratio)[0] == 0.5).all()
    np.testing.assert_allclose(sigma1[1:] - sigma[1:], np.log(ratio), rtol=0, atol=1e-8)


# ---------------------------------------------------------------------- solved steps


def begun(seed, loss, hidden=False):
    """The start of a step of a random problem in which one neuron slides."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(5, 3)), rng.normal(size=5)
    if loss != rf.losses.Square():
        y = np.sign(y)
    problem = Problem(rf.Dataset(X, y), loss, "hidden" if hidden else "both")
    state = start(problem, rf.Network(rng.normal(size=9), rng.normal(size=(9, 3))))
    state.mode[0, 2], state.mode[0, 1] = 2, 1
    land(state.w[0], state.mode[0] >= 2, problem.X, problem.gram)
    return problem, collocation.begin(problem, state)


def solve(problem, at, step, rtol, longer=None):
    """One solved step, none of its neurons light."""
    heavy = np.ones(len(at.state.a), dtype=bool)
    return collocation.attempt(problem, at, step, rtol, longer, heavy, 0.0, rtol, rtol)[0]


LOSSES = [rf.losses.Square(), rf.losses.Exponential(), rf.losses.Logistic()]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("step", [1e-6, 0.02, 0.1])
def test_a_solved_step_gives_back_its_forces(loss, hidden, step):
    problem, at = begun(3, loss, hidden)
    stretch = solve(problem, at, step, 1e-9)
    h = collocation.outputs(problem, at, stretch.c, step)
    np.testing.assert_allclose(problem.forces(h), stretch.c, rtol=0, atol=1e-11)
    np.testing.assert_allclose(h, stretch.h, rtol=0, atol=1e-10)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_a_longer_step_spares_iterations_of_a_shorter_one(loss):
    problem, at = begun(4, loss)
    longer = solve(problem, at, 0.1, 1e-9)
    alone = solve(problem, at, 0.06, 1e-9)
    helped = solve(problem, at, 0.06, 1e-9, longer)
    np.testing.assert_allclose(helped.c, alone.c, rtol=0, atol=1e-11)
    assert helped.iterations < alone.iterations


def test_a_step_far_too_long_is_given_up():
    problem, at = begun(3, rf.losses.Square())
    assert solve(problem, at, 1e4, 1e-9) is None


def test_bend_is_interpolated_with_a_zero_at_the_start():
    rng = np.random.default_rng(1)
    p = np.concatenate([np.zeros((1, 3)), rng.normal(size=(4, 3))])
    values = np.polynomial.polynomial.polyval(tableau.RADAU, p).T
    expected = np.polynomial.polynomial.polyval(0.3 * tableau.RADAU, p).T
    np.testing.assert_allclose(rebent(values, tableau.START_RADAU, 0.3), expected, atol=1e-13)


@pytest.mark.parametrize("loss", LOSSES[1:], ids=lambda loss: loss.name)
def test_shares_and_their_jacobian_are_those_of_the_loss(loss):
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], 5)
    problem = Problem(rf.Dataset(rng.normal(size=(5, 2)), y), loss, "both")
    logistic = loss.name == "logistic"
    for size in (1.0, 30.0, 2000.0):
        h = size * rng.normal(size=(3, 5))
        c = shares(h, y, logistic)
        np.testing.assert_allclose(c, problem.forces(h), rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(np.abs(c).sum(axis=1), 1.0)
        for row, force in zip(h, c, strict=True):
            np.testing.assert_allclose(
                share_jacobian(row, force, y, logistic), problem.force_jacobian(row), atol=1e-14
            )


def test_bounds_of_the_cheap_test_enclose_the_table():
    table = np.abs(tableau.PATH_BERNSTEIN).max(axis=0)
    assert (table <= BOUND).all()
    assert (table >= 0.99 * np.array(BOUND)).all()
    basis = tableau.lagrange_matrix(tableau.START_GAUSS, np.linspace(0.0, 1.0, 100001))
    top = np.abs(basis).max(axis=0)
    assert (top <= np.array(SPREAD) + 1e-12).all()
    assert (top >= 0.99 * np.array(SPREAD)).all()


@pytest.mark.parametrize("seed", range(40))
def test_first_boundary_is_the_earliest_exit_of_all_points(seed):
    rng = np.random.default_rng(seed)
    n = 30
    z = rng.normal(size=(1, n)) * 10.0 ** rng.uniform(-2, 1)
    mode = (z > 0).astype(np.int8)
    mode[0, :3] = 2  # slides have no exit
    speed = rng.normal(size=(1, n)) + 10.0 ** rng.uniform(-2, 1) * rng.normal(size=(5, n))
    work, slack = np.empty(tableau.PATH_BERNSTEIN.shape[0]), np.zeros(n)
    tau, where = first_boundary(z, mode, 0, speed, 0.7, tableau.PATH_BERNSTEIN, slack, work)
    exits = [
        first_exit(z[0, i] + 0.7 * tableau.PATH_BERNSTEIN @ speed[:, i], np.sign(z[0, i]), 0.0)
        for i in range(3, n)
    ]
    assert tau == pytest.approx(min(exits), rel=1e-12)
    assert where == (-1 if tau > 1.0 else 3 + int(np.argmin(exits)))


def test_light_neurons_are_small_and_alive():
    _, at = begun(3, rf.losses.Square())
    sizes = at.neurons.a**2 + (at.neurons.w**2).sum(axis=1)
    nobody = np.zeros(9, dtype=bool)
    living = at.classes.cid >= 0
    light = light_ones(at.neurons, at.classes, nobody, float(np.median(sizes)))
    np.testing.assert_array_equal(light, living & (sizes < np.median(sizes)))
    assert not light_ones(at.neurons, at.classes, ~nobody, 1e9).any()


@pytest.mark.parametrize("seed", range(12))
def test_releases_are_the_first_times_outside_the_box(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4, 3))
    mode = np.array([[1, 1, 2, 0], [1, 2, 3, 1]], dtype=np.int8)
    rows = rows_of(mode, X, X @ X.T)
    values = rng.normal(size=4) * np.ones((5, 1)) + 0.6 * rng.normal(size=(5, 4))
    values[:, 1:3] = rng.choice([-1.0, 1.0], 2) * (1.5 + 0.2 * rng.normal(size=(5, 2)))
    table = tableau.FORCE_BERNSTEIN
    found, unit, up = releases(values[0], values[1:], rows, table, 1e-9, 1e-9, 0.5)
    np.testing.assert_allclose(unit, np.abs(values[:, rows.point]).max(axis=0))
    at = np.linspace(0.0, 1.0, 20001)
    path = tableau.lagrange_matrix(tableau.START_RADAU, at) @ values
    for p, tau in enumerate(found):
        theta = (path @ rows.lift[p]) / path[:, rows.point[p]]
        outside = np.flatnonzero((theta < 0.0) | (theta > 1.0))
        if len(outside):
            assert tau == pytest.approx(at[outside[0]], abs=2e-4)
            assert up[p] == (theta[outside[0]] > 1.0)
        else:
            assert tau == 2.0


# ---------------------------------------------------------------------- landing


@pytest.mark.parametrize("points", [[1], [0, 2], [0, 1, 2]])
def test_landing_is_the_orthogonal_projection(points):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4, 3))
    X[2] = X[0] - 3.0 * X[1]  # the three planes share a line
    w = rng.normal(size=3)
    on = np.isin(np.arange(4), points)
    expected = w - np.linalg.pinv(X[on]) @ (X[on] @ w)
    land(w, on, X, X @ X.T)
    np.testing.assert_allclose(w, expected, rtol=0, atol=1e-13)
    before = w.copy()
    land(w, np.zeros(4, dtype=bool), X, X @ X.T)
    np.testing.assert_array_equal(w, before)


def test_arrival_on_a_repelling_plane_crosses_it():
    X = np.eye(2)
    w, row = np.array([1.0, 1e-12]), np.array([1, 0], dtype=np.int8)
    arrive(1.0, w, row, np.array([1.0, 1.0]), X, np.eye(2), 1, 1e-13)
    assert w[1] == 0.0
    assert row.tolist() == [1, 0]  # nothing pulls it up: it arrived at rest
    X = np.array([[1.0, 0.5], [0.0, 1.0]])
    arrive(1.0, w, row, np.array([1.0, 1.0]), X, X @ X.T, 1, 1e-13)
    assert row.tolist() == [1, 1]


def test_a_neuron_without_active_points_dies_on_arrival():
    X = np.array([[1.0, 0.0], [0.0, 1.0]])
    w, row = np.array([-1.0, 1e-9]), np.array([0, 1], dtype=np.int8)
    arrive(1.0, w, row, np.array([1.0, -1.0]), X, np.eye(2), 1, 1e-13)
    assert row.tolist() == [0, 0]


def test_sizes_below_a_level_are_noticed():
    a, w, sigma = np.array([3.0, 0.5]), np.array([[4.0], [0.0]]), np.array([0.0, -700.0])
    living = np.array([0, 1])
    assert any_below(a, w, sigma, living, -1000.0)
    assert not any_below(a, w, sigma, living, -1402.0)
    assert not any_below(a, w, sigma, np.array([0, -1]), np.log(25.0) - 1e-9)
    assert any_below(a, w, sigma, np.array([0, -1]), np.log(25.0) + 1e-9)
