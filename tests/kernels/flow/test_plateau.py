"""Neurons in constant forces: against expm with events, long chains, and mpmath at any depth."""

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.optimize import brentq

from kernels.flow.scene import (
    empty_log,
    neurons_with,
    planes_at,
    planes_with,
    points_of,
    pulls_on,
    rows_in,
)
from reluflow.kernels.flow.layout import ABOVE, BELOW, DIE, FLIP, SLIDE
from reluflow.kernels.flow.plateau import STALE, Forces, any_below, drift, drift_all

FREE = np.array([np.inf])  # work of one call


def forces_of(c, planes):
    low, high = pulls_on(c, planes)
    return Forces(low, high, float(np.abs(c * planes.length).sum()))


def drifted(a, W, planes, c, span, log_scale=0.0):
    """Run the kernel on all neurons; returns them and the rows of events."""
    neurons = neurons_with(a, W, planes, sigma=log_scale)
    log = empty_log()
    begin = np.zeros(len(neurons.a))
    moving = np.ones(len(neurons.a), dtype=bool)
    stopped = drift_all(
        neurons, moving, forces_of(c, planes), planes, begin, float(span), log, FREE
    )
    assert stopped == -1
    assert (begin == span).all()
    np.testing.assert_allclose(
        neurons.z, np.where(neurons.mode >= 2, 0.0, neurons.w @ planes.U.T), atol=1e-12
    )
    return neurons, rows_in(log)


def weights(neurons, j):
    return np.append(neurons.a[j], neurons.w[j]) * np.exp(neurons.sigma[j])


# ---------------------------------------------------------------------- chains of events


def boost(g):
    L = np.zeros((1 + len(g), 1 + len(g)))
    L[0, 1:] = L[1:, 0] = g
    return L


def follow(a, w, planes, c, span):
    """One neuron through ``span`` by matrix exponentials; planes found on a grid and by brentq.

    Returns the state, the row and events (time, plane, new mode); slides on one plane at a time.
    """
    low, high = pulls_on(c, planes)
    U, both = planes.U, planes.both
    row = (U @ w > 0).astype(int)
    state, t, log = np.append(a, w), 0.0, []
    while t < span and ((row != 0) | both).any():
        g = np.where(row == 1, high, np.where(row == 0, low, 0.0)) @ U
        held = U[row == 2]
        if len(held):
            g = g - np.linalg.lstsq(held, held @ g, rcond=None)[0]
        L = boost(g)

        def height(s, p, L=L, state=state):
            return (expm(s * L) @ state)[1:] @ U[p]

        grid = np.linspace(0.0, span - t, 4000)
        step = expm((grid[1] - grid[0]) * L)
        path = [state]
        for _ in grid[1:]:
            path.append(step @ path[-1])
        z = np.array(path)[:, 1:] @ U.T
        first, where = np.inf, -1
        for p in np.flatnonzero(row < 2):
            side = 1.0 if row[p] == 1 else -1.0
            out = np.flatnonzero(side * z[2:, p] < 0)
            if len(out):
                left, right = grid[out[0] + 1], grid[out[0] + 2]
                s = brentq(height, left, right, args=(p,), xtol=1e-15)
                if s < first:
                    first, where = s, p
        if where < 0:
            return expm((span - t) * L) @ state, row, log
        state, t = expm(first * L) @ state, t + first
        f = np.where(row == 1, high, np.where(row == 0, low, 0.0))
        f[where] = 0.0
        below = state[0] * (U[where] @ (f @ U) + low[where])
        above = state[0] * (U[where] @ (f @ U) + high[where])
        row[where] = 2 if above < 0 < below else int(above > 0 if row[where] == 0 else below > 0)
        log.append((t, int(where), int(row[where])))
    return state, row, log


def single(rng):
    return planes_at(rng.normal(size=(5, 3)))


def shared(rng):
    owner, length = [0, 1, 2, 3, 0, 1, 1], [1.0, 0.8, 1.2, 0.7, -0.9, -0.5, 0.3]
    return planes_with(rng.normal(size=(4, 3)), owner=owner, length=length)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("draw", [single, shared])
def test_drift_equals_matrix_exponentials_event_by_event(seed, draw):
    rng = np.random.default_rng(seed)
    planes = draw(rng)
    c = rng.normal(size=len(planes.owner)) / len(planes.owner)
    a, W = rng.normal(size=3), rng.normal(size=(3, 3))
    neurons, log = drifted(a, W, planes, c, 3.0)
    for j in range(3):
        state, row, events = follow(a[j], W[j], planes, c, 3.0)
        mine = log[(log[:, 1] == j) & (log[:, 4] <= SLIDE)]
        if (row == 2).sum() > 1 or (mine[:, 3] == SLIDE).any():
            continue  # the twin releases no slide when a second plane is met
        assert mine[:, [2, 4]].astype(int).tolist() == [[p, new] for _, p, new in events]
        np.testing.assert_allclose(mine[:, 0], [t for t, _, _ in events], rtol=1e-9)
        np.testing.assert_allclose(weights(neurons, j), state, rtol=1e-9, atol=1e-10)
        np.testing.assert_array_equal(neurons.mode[j], row)


def test_drift_follows_the_neuron_equation_across_its_events():
    rng = np.random.default_rng(3)
    m, span = 6, 1.5
    planes = single(rng)
    X, c = points_of(planes), rng.normal(size=5)
    W = rng.normal(size=(m, 3))
    A = rng.choice([-1.0, 1.0], m) * np.linalg.norm(W, axis=1)
    neurons, log = drifted(A, W, planes, c, span)
    assert len(log)
    crossing_only = [j for j in range(m) if SLIDE not in log[log[:, 1] == j, 4].tolist()]
    assert len(crossing_only) >= 3

    def field(_, v):
        g = (c * (X @ v[1:] > 0)) @ X
        return np.concatenate([[v[1:] @ g], v[0] * g])

    for j in crossing_only:
        start = np.concatenate([[A[j]], W[j]])
        exact = solve_ivp(field, (0, span), start, rtol=1e-10, atol=1e-13, max_step=1e-3).y[:, -1]
        assert weights(neurons, j) == pytest.approx(exact, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_a_long_chain_of_crossings_equals_one_summed_anew_at_each(seed):
    # all planes repel (a > 0, c > 0): more crossings than pulls are carried along for
    rng = np.random.default_rng(seed)
    n, d, span = 300, 200, 6.0
    X, c = rng.normal(size=(n, d)) / np.sqrt(d), rng.uniform(0.5, 1.5, n) / 20.0
    a, w = 1.0, 0.9 * rng.normal(size=d) / np.sqrt(d)
    neurons, log = drifted([a], [w], planes_at(X), c, span)
    row, t, times = X @ w > 0, 0.0, []
    while True:
        g = (c * row) @ X
        speed = np.linalg.norm(g)
        u = g / speed
        p, z, xi = u @ w, X @ w, X @ u
        # z + xi (p (cosh q - 1) + a sinh q) = 0, a quadratic in e^q
        roots = np.array([
            np.roots([xi[i] * (p + a) / 2, z[i] - xi[i] * p, xi[i] * (p - a) / 2]) for i in range(n)
        ])  # fmt: skip
        ahead = (np.abs(roots.imag) < 1e-12) & (roots.real > 1.0 + 1e-11)
        first = np.where(ahead, roots.real, np.inf).min(axis=1)
        q = min(np.log(first.min()), (span - t) * speed)
        t += q / speed
        w = w + u * (p * (np.cosh(q) - 1.0) + a * np.sinh(q))
        a = a * np.cosh(q) + p * np.sinh(q)
        if t >= span:
            break
        row[first.argmin()] ^= True
        times.append((t, int(first.argmin())))
    assert len(times) > STALE
    assert log[:, 2].astype(int).tolist() == [i for _, i in times]
    np.testing.assert_allclose(log[:, 0], [t for t, _ in times], rtol=1e-9)
    np.testing.assert_allclose(weights(neurons, 0)[1:], w, rtol=1e-8, atol=1e-9 * abs(a))
    assert weights(neurons, 0)[0] == pytest.approx(a, rel=1e-9)


def test_drift_depends_on_the_log_scale_only_through_it():
    rng = np.random.default_rng(3)
    planes, c = single(rng), rng.normal(size=5)
    a, W = rng.normal(size=4), rng.normal(size=(4, 3))
    base, log = drifted(a, W, planes, c, 2.0)
    deep, deep_log = drifted(a, W, planes, c, 2.0, log_scale=-1e6)
    # balances are kept in logs: at -2e6 they are known to 1e-10
    np.testing.assert_allclose(deep.a, base.a, rtol=1e-9)
    np.testing.assert_allclose(deep.w, base.w, rtol=1e-8, atol=1e-9)
    np.testing.assert_array_equal(base.mode, deep.mode)
    np.testing.assert_allclose(deep.sigma + 1e6, base.sigma, atol=1e-9)
    np.testing.assert_array_equal(deep_log[:, 1:], log[:, 1:])
    np.testing.assert_allclose(deep_log[:, 0], log[:, 0], rtol=1e-8)


def test_long_drift_grows_at_the_rate_of_the_pull():
    # one point, aligned: log size grows by |g| span, far beyond the range of floats
    planes, c = planes_at(np.array([[0.6, 0.8]])), np.array([2.0])
    neurons, log = drifted([1.0], [[0.6, 0.8]], planes, c, 5e5, log_scale=-1e6)
    assert len(log) == 0
    assert neurons.mode[0, 0] == ABOVE
    a, w = neurons.a[0], neurons.w[0]
    size = neurons.sigma[0] + 0.5 * np.log(a**2 + w @ w) - 0.5 * np.log(2.0)
    assert size == pytest.approx(0.0, abs=1e-9)


def test_drift_conserves_balance_and_shared_products():
    rng = np.random.default_rng(4)
    planes = planes_at(np.abs(rng.normal(size=(4, 3))))
    c = np.abs(rng.normal(size=4))
    W = np.abs(rng.normal(size=(3, 3)))
    a = rng.uniform(0.5, 1.5, size=3)
    neurons, log = drifted(a, W, planes, c, 1.0)
    assert len(log) == 0
    factor = np.exp(neurons.sigma[:, None] + neurons.sigma[None, :])
    before = np.outer(a, a) - W @ W.T
    squares = np.outer(neurons.a, neurons.a)
    after = (squares - neurons.w @ neurons.w.T) * factor
    np.testing.assert_allclose(after, before, atol=1e-13 * (squares * factor).max())


def test_a_list_that_is_too_short_counts_on():
    rng = np.random.default_rng(0)
    planes, c = single(rng), rng.normal(size=5)
    a, W = rng.normal(size=6), rng.normal(size=(6, 3))
    whole = drifted(a, W, planes, c, 3.0)[1]
    assert len(whole) > 1
    neurons, short = neurons_with(a, W, planes), empty_log(1)
    forces = forces_of(c, planes)
    drift_all(neurons, np.ones(6, dtype=bool), forces, planes, np.zeros(6), 3.0, short, FREE)
    assert short.used[0] == len(whole)
    np.testing.assert_array_equal(short.rows[0], whole[0])


def test_only_the_moving_neurons_move():
    rng = np.random.default_rng(1)
    planes, c = single(rng), rng.normal(size=5)
    neurons = neurons_with(rng.normal(size=3), rng.normal(size=(3, 3)), planes)
    still = neurons.w[1].copy()
    moving, begin = np.array([True, False, True]), np.array([0.0, 0.0, 2.0])
    last = neurons.w[2].copy()
    log = empty_log()
    assert drift_all(neurons, moving, forces_of(c, planes), planes, begin, 2.0, log, FREE) == -1
    np.testing.assert_array_equal(neurons.w[1], still)
    np.testing.assert_array_equal(neurons.w[2], last)  # it has reached the end already
    assert begin.tolist() == [2.0, 0.0, 2.0]


def test_a_neuron_without_active_points_dies_and_rests():
    planes = planes_at(np.eye(2))
    neurons, log = drifted([1.0], [[-1.0, 0.5]], planes, np.array([1.0, -1.0]), 3.0)
    assert log[:, [2, 3, 4]].astype(int).tolist() == [[1, 1, 0], [-1, 0, DIE]]
    # w_2' = -a, a' = -w_2: w_2 = cosh t / 2 - sinh t vanishes where tanh t = 1/2
    assert log[0, 0] == log[1, 0] == pytest.approx(np.arctanh(0.5), rel=1e-12)
    np.testing.assert_allclose(weights(neurons, 0)[1:], [-1.0, 0.0], atol=1e-15)


def test_sizes_below_a_level_are_noticed():
    a, w, sigma = np.array([3.0, 0.5]), np.array([[4.0], [0.0]]), np.array([0.0, -700.0])
    living = np.array([0, 1])
    assert any_below(a, w, sigma, living, -1000.0)
    assert not any_below(a, w, sigma, living, -1402.0)
    assert not any_below(a, w, sigma, np.array([0, -1]), np.log(25.0) - 1e-9)
    assert any_below(a, w, sigma, np.array([0, -1]), np.log(25.0) + 1e-9)


# ---------------------------------------------------------------------- crossroads


@pytest.mark.parametrize("balance", [0.5, 1e-3, 1e-6])
def test_a_neuron_that_comes_to_the_origin_stops_there(balance):
    # three planes; all points active, the pull along w: a < 0 brings it straight to w = 0
    X = np.array([[1.0, 0.2], [1.0, -0.2], [1.0, 0.1]])
    planes = planes_at(X)
    c = np.linalg.lstsq(X.T, np.array([1.0, 0.0]), rcond=None)[0]
    a = -np.sqrt(1.0 + balance)
    neurons, log = neurons_with([a], [[1.0, 0.0]], planes), empty_log()
    begin = np.zeros(1)
    span = 100.0
    forces = forces_of(c, planes)
    assert drift_all(neurons, np.ones(1, bool), forces, planes, begin, span, log, FREE) == 0
    # p + a = (p + a)_0 e^t, p - a = (p - a)_0 e^-t: p = 0 where e^2t = (p - a)_0 / -(p + a)_0
    expected = 0.5 * np.log((1.0 - a) ** 2 / balance)
    assert begin[0] == pytest.approx(expected, rel=1e-10)
    np.testing.assert_array_equal(neurons.mode[0], [1, 1, 1])
    assert np.abs(neurons.w).max() <= 1e-12 * abs(neurons.a[0])
    assert len(log.rows[: log.used[0]]) == 0


# ---------------------------------------------------------------------- light-cone coordinates


class Exact:
    """A neuron on a ray in as many digits as it takes: ``p`` along it, ``across`` beside it.

    ``a`` follows from the balance ``sign exp(log_balance)``.
    """

    def __init__(self, turn, p, across, sign, log_balance):
        self.across = mp.mpf(across)
        balance = sign * mp.exp(mp.mpf(log_balance)) if sign else mp.mpf(0)
        a = turn * mp.sqrt(mp.mpf(p) ** 2 + self.across**2 + balance)
        self.plus, self.minus = mp.mpf(p) + a, mp.mpf(p) - a

    def move(self, pull, time):
        q = mp.mpf(pull) * mp.mpf(time)
        self.plus, self.minus = self.plus * mp.exp(q), self.minus * mp.exp(-q)

    @property
    def a(self):
        return (self.plus - self.minus) / 2

    @property
    def p(self):
        return (self.plus + self.minus) / 2


@pytest.fixture
def many_digits():
    with mp.workdps(3000):
        yield


DEPTH = 1600.0  # twice 800: the invariant is a square

# (sign of the balance, its logarithm, part across the ray)
INVARIANTS = {
    "balanced": (0.0, -np.inf, 0.0),
    "positive": (1.0, -DEPTH, 0.0),
    "negative": (-1.0, -DEPTH, 0.0),
    "ordinary": (-1.0, -2.0, 0.0),
    "across": (0.0, -np.inf, 1e-300),
    "across and positive": (1.0, -1400.0, 1e-300),
    "across and negative": (-1.0, -1300.0, 1e-300),
}


def on_ray(name, both=False):
    """A neuron above the plane of (1, 0), which repels it downwards if its force is positive."""
    sign, log_balance, across = INVARIANTS[name]
    owner, length = ([0, 0], [1.0, -1.0]) if both else ([0], [1.0])
    planes = planes_with([[1.0, 0.0]], owner=owner, length=length)
    neurons = neurons_with([-1.0], [[1.0, across]], planes)
    neurons.sign[0], neurons.log_balance[0] = sign, log_balance
    if name == "ordinary":
        neurons.a[0] = -np.sqrt(1.0 - np.exp(-2.0))
    return planes, neurons, Exact(-1, 1.0, across, sign, log_balance)


def agrees(neurons, exact, rtol=1e-9):
    """Weights equal those of the reference; at any depth, so in logs and relative."""
    scale = mp.exp(mp.mpf(float(neurons.sigma[0])))
    size = max(abs(exact.a), abs(exact.p), abs(exact.across))
    for mine, true in (
        (neurons.a[0], exact.a), (neurons.w[0, 0], exact.p), (neurons.w[0, 1], exact.across),
    ):  # fmt: skip
        assert float(mp.mpf(float(mine)) * scale / size - true / size) == pytest.approx(
            0.0, abs=rtol
        )


@pytest.mark.parametrize("name", INVARIANTS)
@pytest.mark.usefixtures("many_digits")
def test_a_neuron_that_shrinks_and_is_turned_back_is_exact(name):
    # down by e^-600, before the invariant shows, and back up by as much or more
    planes, neurons, exact = on_ray(name)
    down, up = Forces(np.zeros(1), np.array([1.0]), 1.0), Forces(np.zeros(1), np.array([-0.5]), 0.5)
    span = 600.0 if name != "ordinary" else 1.0
    log = empty_log()
    for forces, pull, time in ((down, 1.0, span), (up, -0.5, 2.0 * span), (up, -0.5, 50.0)):
        assert drift(neurons, 0, forces, planes, 0.0, time, log, FREE) == time
        exact.move(pull, time)
        agrees(neurons, exact)
    assert log.used[0] == 0
    assert neurons.mode[0, 0] == ABOVE


@pytest.mark.parametrize("name", ["negative", "ordinary", "across and negative"])
@pytest.mark.usefixtures("many_digits")
def test_a_neuron_that_shrinks_by_800_e_folds_turns_its_output_and_grows_again(name):
    planes, neurons, exact = on_ray(name)
    down, log = Forces(np.zeros(1), np.array([1.0]), 1.0), empty_log()
    for time in (500.0, 700.0, 300.0):
        before = Exact(-1, 1.0, 0.0, 0.0, 0.0)
        before.plus, before.minus = exact.plus, exact.minus
        assert drift(neurons, 0, down, planes, 0.0, time, log, FREE) == time
        exact.move(1.0, time)
        agrees(neurons, exact)
        if exact.a > 0 > before.a:
            # a = 0 where (p + a) e^q = (p - a) e^-q
            expected = mp.log(before.minus / before.plus) / 2
            flips = rows_in(log)[rows_in(log)[:, 4] == FLIP]
            assert len(flips) == 1
            assert flips[0, 0] == pytest.approx(float(expected), rel=1e-12)
    assert exact.a > 0
    assert log.used[0] == 1
    assert neurons.mode[0, 0] == ABOVE


@pytest.mark.parametrize("name", ["positive", "across", "across and positive"])
@pytest.mark.usefixtures("many_digits")
def test_a_neuron_that_shrinks_by_800_e_folds_comes_to_its_plane_on_time(name):
    planes, neurons, exact = on_ray(name)
    down, log = Forces(np.zeros(1), np.array([1.0]), 1.0), empty_log()
    # p = 0 where (p + a) e^q = -(p - a) e^-q; then no point is active
    expected = float(mp.log(-exact.minus / exact.plus) / 2)
    assert 600.0 < expected < 900.0
    for _ in range(3):
        drift(neurons, 0, down, planes, 0.0, 400.0, log, FREE)
    events = rows_in(log)
    assert events[:, 4].astype(int).tolist() == [BELOW, DIE]
    part = expected % 400.0
    assert events[0, 0] == pytest.approx(part, rel=1e-11)
    exact.move(1.0, expected)
    assert neurons.w[0, 0] == 0.0
    size = float(mp.log(max(abs(exact.a), abs(exact.across))))
    mine = neurons.sigma[0] + np.log(max(abs(neurons.a[0]), abs(neurons.w[0, 1])))
    assert mine == pytest.approx(size, abs=1e-9)


@pytest.mark.parametrize("name", ["positive", "across", "across and positive"])
@pytest.mark.usefixtures("many_digits")
def test_a_neuron_that_passes_a_shared_plane_after_800_e_folds_grows_on_its_other_side(name):
    planes, neurons, exact = on_ray(name, both=True)
    high, low = 1.0, 0.7  # pulls along u of the points above and below
    forces, log = Forces(np.array([low]), np.array([high]), 1.7), empty_log()
    moment = float(mp.log(-exact.minus / exact.plus) / 2)
    spans = (400.0, 500.0, 600.0)
    for span in spans:
        assert drift(neurons, 0, forces, planes, 0.0, span, log, FREE) == span
    exact.move(high, mp.log(-exact.minus / exact.plus) / 2)
    exact.move(low, sum(spans) - moment)
    assert rows_in(log)[:, 4].astype(int).tolist() == [BELOW]
    agrees(neurons, exact)


@pytest.mark.parametrize(("sign", "log_balance"), [(0.0, -np.inf), (1.0, -1900.0), (-1.0, -1900.0)])
@pytest.mark.usefixtures("many_digits")
def test_a_slide_in_space_keeps_the_part_across_its_ray(sign, log_balance):
    # slides on e_3, pulled along e_1 within it; e_2 lies across
    planes = planes_with([[1.0, 0.0, 0.5], [0.0, 0.0, 1.0]])
    across = 3e-280
    neurons = neurons_with([-1.0], [[1.0, across, 0.0]], planes, mode=[[ABOVE, SLIDE]])
    neurons.sign[0], neurons.log_balance[0] = sign, log_balance
    exact, log = Exact(-1, 1.0, across, sign, log_balance), empty_log()
    for pull, span in ((1.0, 450.0), (-1.0, 300.0), (1.0, 350.0), (-1.0, 700.0)):
        # the plane attracts a neuron with a < 0 from both sides: its own force is positive
        forces = Forces(np.zeros(2), np.array([pull, 1.0 - 2.0 * pull]), 4.0)
        assert drift(neurons, 0, forces, planes, 0.0, span, log, FREE) == span
        exact.move(pull * float(planes.U[0, 0]), span)
        agrees(neurons, exact)
        assert neurons.w[0, 2] == 0.0
    assert log.used[0] == 0
