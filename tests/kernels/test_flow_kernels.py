"""The kernels of the flow against readable twins and independent solvers."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.optimize import lsq_linear

from reluflow.engines.flow import tableau
from reluflow.kernels.boundaries import box_weights, settle, slide_forces
from reluflow.kernels.collocation import first_exit, node_outputs
from reluflow.kernels.frozen import NEVER, drift, exit_boost


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
    theta = box_weights(X @ g, c, X @ X.T)
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
    c_nodes = np.tile(c, (tableau.STAGES, 1))
    rho = np.where(active[:, None, :], c_nodes, 0.0)
    gx = rho @ X
    gam = gx @ X.T
    out = node_outputs(a, W @ X.T, weight, cid, active, rho, gx, gam, step, tableau.RADAU_A, hidden)
    h = np.zeros(n)
    for j in range(m):
        g = gx[cid[j], 0]
        if hidden:
            end = np.concatenate([[a[j]], W[j] + step * a[j] * g])
        else:
            A = np.zeros((d + 1, d + 1))
            A[0, 1:], A[1:, 0] = g, g
            end = expm(step * A) @ np.concatenate([[a[j]], W[j]])
        h += weight[j] * end[0] * np.where(active[cid[j]], X @ end[1:], 0.0)
    assert out[-1] == pytest.approx(h, rel=1e-11)
