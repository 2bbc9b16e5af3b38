"""Inner loops of the collocation step against readable NumPy twins."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import polynomial
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import reluflow as rf
from reluflow.engines.flow import collocation, tableau
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.state import ON_PLANE, start
from reluflow.kernels.carrying import advance
from reluflow.kernels.exits import first_exit
from reluflow.kernels.passage import combine, denominators, weights_at
from reluflow.kernels.transport import (
    class_matrices,
    eliminate,
    invert,
    slopes,
    slopes_alone,
)

S = tableau.STAGES


# ---------------------------------------------------------------------- small pieces


@settings(max_examples=25)
@given(st.integers(1, 6), st.integers(0, 10**6))
def test_invert_equals_the_inverse(size, seed):
    matrix = np.random.default_rng(seed).normal(size=(size, size))
    inverse = matrix.copy()
    invert(inverse)
    bound = 1e-13 * np.linalg.cond(matrix)
    np.testing.assert_allclose(inverse @ matrix, np.eye(size), rtol=0, atol=max(bound, 1e-12))


@settings(max_examples=25)
@given(st.integers(1, 6), st.integers(0, 10**6))
def test_eliminate_solves_the_system(size, seed):
    rng = np.random.default_rng(seed)
    matrix, x = rng.normal(size=(size, size)), rng.normal(size=size)
    solution = x.copy()
    eliminate(matrix.copy(), solution)
    bound = 1e-14 * np.linalg.cond(matrix) * (1.0 + np.abs(solution).max())
    np.testing.assert_allclose(solution, np.linalg.solve(matrix, x), rtol=0, atol=bound)


def test_eliminate_pivots_where_the_diagonal_vanishes():
    x = np.array([2.0, 4.0])
    eliminate(np.array([[0.0, 2.0], [4.0, 0.0]]), x)
    np.testing.assert_allclose(x, [1.0, 1.0])


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("step", [1e-3, 0.7])
def test_a_neuron_alone_is_carried_as_in_its_class(hidden, step):
    rng = np.random.default_rng(8)
    g, w, a = rng.normal(size=(S, 3)), rng.normal(size=3), 0.7
    b = g @ w
    gg, inverse = class_matrices(g[None], step, tableau.GAUSS_A, hidden)
    shared, alone = np.empty((2, S)), np.empty((2, S))
    slopes(a, b, gg, inverse, 0, step, tableau.GAUSS_A, hidden, *shared)
    slopes_alone(a, b, g @ g.T, step, tableau.GAUSS_A, hidden, *alone)
    np.testing.assert_allclose(alone, shared, rtol=1e-12)


@pytest.mark.parametrize("tau", [0.0, 0.3, 1.0])
def test_values_inside_a_step_are_those_of_the_interpolant(tau):
    values = np.random.default_rng(2).normal(size=(S + 1, 3))
    weights, out = np.empty((1, S + 1)), np.zeros((2, 3))
    nodes = tableau.START_RADAU
    weights_at(nodes, denominators(nodes), tau, weights, 0)
    combine(weights, 0, values, out, 1)
    expected = [np.polyval(np.polyfit(nodes, column, S), tau) for column in values.T]
    np.testing.assert_allclose(out, [np.zeros(3), expected], atol=1e-11)


def test_invert_pivots_where_the_diagonal_vanishes():
    matrix = np.array([[0.0, 2.0], [4.0, 0.0]])
    invert(matrix)
    np.testing.assert_allclose(matrix, [[0.0, 0.25], [0.5, 0.0]])


def test_tables_integrate_polynomials_exactly():
    # collocation with S nodes integrates degree S - 1 exactly; quadrature more
    for nodes, A in ((tableau.RADAU, tableau.RADAU_A), (tableau.GAUSS, tableau.GAUSS_A)):
        for degree in range(S):
            np.testing.assert_allclose(A @ nodes**degree, nodes ** (degree + 1) / (degree + 1))
    for degree in range(2 * S):
        assert tableau.GAUSS_B @ tableau.GAUSS**degree == pytest.approx(1.0 / (degree + 1))
    for degree in range(2 * S - 1):
        last = tableau.RADAU_A[-1]
        assert last @ tableau.RADAU**degree == pytest.approx(1.0 / (degree + 1))
    assert tableau.RADAU[-1] == 1.0


def test_interpolation_tables_reproduce_polynomials():
    rng = np.random.default_rng(0)
    p = rng.normal(size=S)
    at_radau = polynomial.polyval(tableau.RADAU, p)
    assert tableau.RADAU_TO_START @ at_radau == pytest.approx(p[0])
    np.testing.assert_allclose(
        tableau.RADAU_TO_GAUSS @ at_radau, polynomial.polyval(tableau.GAUSS, p)
    )
    longer = rng.normal(size=S + 1)
    values = polynomial.polyval(tableau.START_RADAU, longer)
    t = np.linspace(0, 1, 7)
    bernstein = tableau.FORCE_BERNSTEIN @ values
    np.testing.assert_allclose(bernstein_value(bernstein, t), polynomial.polyval(t, longer))
    slopes = polynomial.polyval(tableau.START_GAUSS, longer)
    path = tableau.PATH_BERNSTEIN @ slopes
    np.testing.assert_allclose(
        bernstein_value(path, t), polynomial.polyval(t, polynomial.polyint(longer)), atol=1e-14
    )


# ---------------------------------------------------------------------- first exit


def bernstein_value(coefficients, t):
    """De Casteljau, vectorised."""
    rows = [np.full(np.shape(t), c, dtype=float) for c in coefficients]
    while len(rows) > 1:
        rows = [(1 - t) * u + t * v for u, v in pairwise(rows)]
    return rows[0]


def to_bernstein(p):
    """Bernstein coefficients on [0, 1] of a monomial polynomial, by interpolation."""
    size = len(p)
    t = 0.5 - 0.5 * np.cos(np.pi * (np.arange(size) + 0.5) / size)
    basis = np.array([bernstein_value(row, t) for row in np.eye(size)]).T
    return np.linalg.solve(basis, polynomial.polyval(t, p))


def exit_by_roots(p, sign):
    """First point of (0, 1] where sign * p turns negative, from all roots; 2.0 if none."""
    roots = polynomial.polyroots(p)
    real = np.sort(roots[np.abs(roots.imag) < 1e-9].real)
    edges = np.concatenate([[0.0], real[(real > 0) & (real < 1)], [1.0]])
    for left, right in pairwise(edges):
        if sign * polynomial.polyval(0.5 * (left + right), p) < 0:
            return left
    return 2.0


@settings(max_examples=150)
@given(st.integers(0, 10**6), st.integers(1, 5))
def test_first_exit_equals_the_first_root(seed, degree):
    rng = np.random.default_rng(seed)
    roots = rng.uniform(-0.5, 1.5, size=degree)
    p = polynomial.polyfromroots(roots) * rng.choice([-1.0, 1.0])
    sign = 1.0 if polynomial.polyval(0.0, p) > 0 else -1.0
    gaps = np.diff(np.sort(np.append(roots, [0.0, 1.0])))
    if gaps.min() < 1e-4:
        return
    found = first_exit(to_bernstein(p), sign, 0.0)
    assert found == pytest.approx(exit_by_roots(p, sign), rel=1e-9, abs=1e-9)


def test_first_exit_of_a_polynomial_that_stays():
    assert first_exit(np.array([1.0, 0.2, 3.0]), 1.0, 0.0) == 2.0
    # a dip of the control polygon that the curve does not follow
    p = np.array([0.26, -1.0, 1.0])
    assert first_exit(to_bernstein(p), 1.0, 0.0) == 2.0


@pytest.mark.parametrize("width", [1e-2, 1e-5, 1e-7])
def test_first_exit_sees_a_double_crossing_of_any_width(width):
    p = polynomial.polyfromroots([0.3 - width, 0.3 + width])
    found = first_exit(to_bernstein(p), 1.0, 0.0)
    assert found == pytest.approx(0.3 - width, abs=1e-8)


def test_touching_without_crossing_is_no_exit():
    p = polynomial.polyfromroots([0.3, 0.3])
    assert first_exit(to_bernstein(p), 1.0, 1e-15) == 2.0


def test_first_exit_at_the_start_and_at_the_end():
    assert first_exit(np.array([-1.0, 1.0]), 1.0, 0.0) == 0.0
    assert first_exit(np.array([0.0, -1.0, -1.0]), 1.0, 0.0) <= 1e-14
    assert first_exit(np.array([1.0, -1e-9]), 1.0, 0.0) == pytest.approx(1.0, abs=2e-9)
    assert first_exit(np.array([1.0, -1e-9]), 1.0, 1e-8) == 2.0


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_first_exit_is_odd_in_the_sign(seed):
    coefficients = np.random.default_rng(seed).normal(size=6)
    left = first_exit(coefficients, 1.0, 0.0)
    assert left == first_exit(-coefficients, -1.0, 0.0)


# ---------------------------------------------------------------------- one step of all neurons


def setting(seed, hidden=False, n=5, d=3, m=9, mixed=True):
    """A problem, the start of a step with sliding and dead neurons, and forces at the nodes."""
    rng = np.random.default_rng(seed)
    data = rf.Dataset(rng.normal(size=(n, d)), rng.normal(size=n))
    problem = Problem(data, rf.losses.Square(), "hidden" if hidden else "both")
    net = rf.Network(rng.normal(size=m), rng.normal(size=(m, d)))
    state = start(problem, net)
    if mixed:
        state.mode[0] = 0
        state.w[1] -= (state.w[1] @ problem.X[2]) / problem.gram[2, 2] * problem.X[2]
        state.mode[1] = (state.w[1] @ problem.X.T > 0).astype(np.int8)
        state.mode[1, 0], state.mode[1, 2] = 1, 2
    at = collocation.begin(problem, state)
    return problem, at, 0.3 * rng.normal(size=(S, n))


def stretched(step, c):
    """A step as if solved, with forces ``c`` at the nodes."""
    return collocation.Stretch(step, np.zeros_like(c), c, 0.0, 0.0, 1, np.zeros_like(c))


def carried(problem, at, stretch, *, everybody=False, late=0.0, tail=1.0, leaves=2.0, patient=True):
    """The neurons at the end of a step; ``everybody`` says whether, or which of them, are light."""
    light = np.full(len(at.state.a), everybody) if np.ndim(everybody) == 0 else everybody.copy()
    log = np.empty((200, 4))
    a, w, mode, tau, point, met, used, whole = advance(
        at.neurons, at.classes, problem.points, tableau.TABLES, at.c, stretch.c, stretch.step,
        light, np.zeros_like(light), late, tail, problem.hidden, ON_PLANE,
        np.full(len(at.classes.point), leaves), 1e-9, 1e-9, 0.0, patient, log,
        np.zeros((S, problem.n)),
    )  # fmt: skip
    slides = collocation.Leaving(np.empty(0), np.empty(0), np.empty(0, dtype=bool))
    return collocation.Moved(a, w, mode, tau, point, met, log[:used], light, whole, slides)


def pulls_of(at, c, X):
    """``g`` (S, m, d) of every neuron, by least squares where it slides."""
    g = np.zeros((len(c), len(at.state.a), X.shape[1]))
    for j, row in enumerate(at.state.mode):
        if not (row == 1).any():
            continue
        for k, force in enumerate(c):
            g[k, j] = np.where(row == 1, force, 0.0) @ X
            held = X[row >= 2]
            if len(held):
                g[k, j] -= np.linalg.lstsq(held, held @ g[k, j], rcond=None)[0]
    return g


def carry_by_dense_solve(a, w, g, step, A, weights, hidden):
    """Collocation of ``a' = w.g, w' = a g`` with all stage values unknown: node and end values."""
    stages, d = g.shape
    size = 1 + d
    matrix = np.eye(stages * size)
    L = np.zeros((stages, size, size))
    for k in range(stages):
        if not hidden:
            L[k, 0, 1:] = g[k]
        L[k, 1:, 0] = g[k]
    for k in range(stages):
        for r in range(stages):
            block = slice(k * size, (k + 1) * size), slice(r * size, (r + 1) * size)
            matrix[block] -= step * A[k, r] * L[r]
    start_value = np.concatenate([[a], w])
    nodes = np.linalg.solve(matrix, np.tile(start_value, stages)).reshape(stages, size)
    slopes = np.einsum("kpq,kq->kp", L, nodes)
    return nodes, start_value + step * weights @ slopes


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("step", [0.01, 1.0, 6.0])
def test_node_outputs_equal_the_dense_solution(hidden, step):
    for seed in range(4):
        problem, at, c = setting(seed, hidden)
        g = pulls_of(at, c, problem.X)
        h = np.zeros((S, problem.n))
        for j in range(len(at.state.a)):
            nodes, _ = carry_by_dense_solve(
                at.state.a[j], at.state.w[j], g[:, j], step, tableau.RADAU_A,
                tableau.RADAU_A[-1], hidden,
            )  # fmt: skip
            z = nodes[:, 1:] @ problem.X.T
            h += np.where(at.state.mode[j] == 1, nodes[:, :1] * z, 0.0)
        np.testing.assert_allclose(
            collocation.outputs(problem, at, c, step), h, rtol=1e-10, atol=1e-10 * np.abs(h).max()
        )


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("step", [0.01, 0.5])
def test_end_states_equal_the_dense_solution(hidden, step):
    for seed in range(4):
        problem, at, c = setting(seed, hidden)
        stretch = stretched(step, c)
        moved = carried(problem, at, stretch)
        g = pulls_of(at, tableau.RADAU_TO_GAUSS @ c, problem.X)
        for j in range(len(at.state.a)):
            _, end = carry_by_dense_solve(
                at.state.a[j], at.state.w[j], g[:, j], step, tableau.GAUSS_A, tableau.GAUSS_B,
                hidden,
            )  # fmt: skip
            np.testing.assert_allclose(np.append(moved.a[j], moved.w[j]), end, rtol=0, atol=1e-12)


def test_end_states_conserve_balance_and_products_for_any_step():
    for step in (0.1, 2.0, 20.0):
        problem, at, c = setting(3, mixed=False)
        stretch = stretched(step, c)
        moved = carried(problem, at, stretch)
        for name in np.unique(at.classes.cid[at.classes.cid >= 0]):
            members = np.flatnonzero(at.classes.cid == name)
            products = [
                np.outer(a[members], a[members]) - w[members] @ w[members].T
                for a, w in ((at.state.a, at.state.w), (moved.a, moved.w))
            ]
            size = np.outer(np.abs(moved.a[members]), np.abs(moved.a[members])).max() + 1.0
            np.testing.assert_allclose(products[1], products[0], rtol=0, atol=1e-13 * size)


def test_constant_forces_give_the_matrix_exponential_at_order_eight():
    problem, at, c = setting(5, mixed=False)
    c = np.tile(c[0], (S, 1))
    c /= np.linalg.norm(pulls_of(at, c, problem.X), axis=2).max()
    gaps = []
    for step in (0.8, 0.4):
        stretch = stretched(step, c)
        moved = carried(problem, at, stretch)
        worst = 0.0
        for j in range(len(at.state.a)):
            g = pulls_of(at, c[:1], problem.X)[0, j]
            L = np.zeros((1 + len(g), 1 + len(g)))
            L[0, 1:] = L[1:, 0] = g
            exact = expm(step * L) @ np.append(at.state.a[j], at.state.w[j])
            worst = max(worst, np.abs(np.append(moved.a[j], moved.w[j]) - exact).max())
        gaps.append(worst)
    # local error of Gauss collocation with S = 4 stages: order 2 S + 1
    assert gaps[0] > 1e-12
    assert np.log2(gaps[0] / gaps[1]) == pytest.approx(9.0, abs=0.5)


# ---------------------------------------------------------------------- crossings inside a step


def follow(problem, a, w, row, forces, step):
    """One neuron in given force polynomials across its crossings, by DOP853 with events."""
    X = problem.X
    row, t, state, log = row.copy(), 0.0, np.append(a, w), []
    while True:

        def field(s, v, row=row):
            c = tableau.lagrange_matrix(tableau.START_RADAU, np.array([s / step]))[0] @ forces
            g = np.where(row == 1, c, 0.0) @ X
            return np.append(v[1:] @ g, v[0] * g)

        def plane(i):
            def value(_, v):
                return v[1:] @ X[i]

            value.terminal, value.direction = True, (-1.0 if row[i] == 1 else 1.0)
            return value

        run = solve_ivp(field, (t, step), state, method="DOP853", rtol=1e-12, atol=1e-13,
                        events=[plane(i) for i in range(len(row))])  # fmt: skip
        t, state = run.t[-1], run.y[:, -1]
        hit = [i for i, times in enumerate(run.t_events) if len(times)]
        if not hit or not (row == 1).any():
            return state, row, log
        row[hit[0]] = 1 - row[hit[0]]
        log.append((t / step, hit[0]))


def test_light_neurons_cross_inside_the_step():
    crossed = 0
    for seed in range(60):
        problem, at, _ = setting(seed, m=6, mixed=False)
        rng = np.random.default_rng(seed + 100)
        # a cubic, so that the interpolants with and without the start agree
        bend = 0.05 * rng.normal(size=(3, problem.n))
        c = at.c + (tableau.RADAU[:, None] ** np.arange(1, 4)) @ bend
        stretch = stretched(0.05, c)
        moved = carried(problem, at, stretch, everybody=True)
        forces = np.concatenate([at.c[None], c])
        for j in np.unique(moved.crossings[:, 1]).astype(int):
            mine = moved.crossings[moved.crossings[:, 1] == j]
            if moved.tau[j] <= 1.0 or (mine[:, 3] >= 2).any() or (moved.mode[j] >= 2).any():
                continue  # a slide begins
            end, row, log = follow(
                problem, at.state.a[j], at.state.w[j], at.state.mode[j], forces, 0.05
            )
            np.testing.assert_array_equal(moved.mode[j], row)
            assert mine[:, 2].astype(int).tolist() == [i for _, i in log]
            np.testing.assert_allclose(mine[:, 0], [tau for tau, _ in log], atol=1e-6)
            np.testing.assert_allclose(np.append(moved.a[j], moved.w[j]), end, atol=1e-7)
            crossed += len(log)
    assert crossed >= 10


def with_crossings():
    """Steps in which some neurons cross a plane."""
    for seed in range(60):
        problem, at, _ = setting(seed, m=6, mixed=False)
        stretch = stretched(0.05, np.tile(at.c, (S, 1)))
        plain = carried(problem, at, stretch)
        if len(plain.met) and (plain.point[plain.met] >= 0).all():
            yield problem, at, stretch, plain


def test_late_crossings_are_walked_as_those_of_light_neurons():
    compared = 0
    for problem, at, stretch, plain in with_crossings():
        walked = carried(problem, at, stretch, everybody=True)
        late = carried(problem, at, stretch, late=1e9)
        np.testing.assert_array_equal(late.light, np.isin(np.arange(6), plain.met))
        np.testing.assert_array_equal(late.mode, walked.mode)
        np.testing.assert_array_equal(late.w, walked.w)
        np.testing.assert_array_equal(np.sort(late.crossings, 0), np.sort(walked.crossings, 0))
        compared += len(late.crossings)
    assert compared >= 10


def test_lateness_is_size_times_the_square_of_the_share_left():
    for problem, at, stretch, plain in with_crossings():
        j = plain.met[0]
        size = at.neurons.weight[j] * (at.state.a[j] ** 2 + at.state.w[j] @ at.state.w[j])
        edge = size * (1.0 - plain.tau[j]) ** 2
        for factor, expected in ((0.99, False), (1.01, True)):
            moved = carried(problem, at, stretch, late=factor * edge)
            assert moved.light[j] == expected
            moved = carried(problem, at, stretch, late=1e9, tail=(1.0 - plain.tau[j]) * factor)
            assert moved.light[j] == expected


def test_light_neurons_wait_while_the_step_will_be_cut():
    seen = 0
    for problem, at, stretch, plain in with_crossings():
        early = plain.tau.min() < 1.0 - 1e-6
        assert carried(problem, at, stretch, patient=False).whole == (not early)
        assert carried(problem, at, stretch, everybody=True, patient=False).whole
        if early:
            light = np.arange(6) != plain.tau.argmin()
            hasty = carried(problem, at, stretch, everybody=light, patient=False)
            assert not hasty.whole
            assert not len(hasty.crossings)
            np.testing.assert_array_equal(hasty.w[light], at.state.w[light])
            seen += 1
    assert seen >= 10
