"""A neuron in the forces of a step, across and along planes, against small steps."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import lsq_linear

from kernels.flow.scene import (
    S,
    empty_log,
    limits_with,
    one_neuron,
    path_of,
    planes_at,
    planes_with,
    points_of,
    pulls_on,
    rows_in,
)
from reluflow.engines.flow.tableau import FOUR, lagrange_matrix
from reluflow.kernels.flow.collocation import at_points
from reluflow.kernels.flow.layout import ABOVE, BELOW, BRANCH, FLIP, GRAZES, SLIDE
from reluflow.kernels.flow.walk import PARTS, walk

NODES = FOUR.tables.nodes


def small_steps(a, w, planes, forces, count):
    """Explicit Euler with the smallest pull at every plane within reach of a step; final (a, w)."""
    at = (np.arange(count) + 0.5) / count
    path = lagrange_matrix(NODES, at) @ forces
    U = planes.U
    for c in path:
        low, high = pulls_on(c, planes)
        z = U @ w
        f = np.where(z > 0, high, low)
        reach = np.abs(a) * (np.abs(low) + np.abs(high)).sum() / count
        near = np.flatnonzero((np.abs(z) <= reach) & (a * (high - low) < 0))
        if len(near):
            # the plane is reached within the step: weights that keep the neuron on it, or let it go
            f[near] = low[near]
            rate = a * ((high - low)[near, None] * U[near]) @ U[near].T
            target = -(z[near] * count + a * U[near] @ (f @ U))
            if len(near) == 1:
                theta = np.clip(target / rate[0], 0.0, 1.0)
            else:
                theta = lsq_linear(rate.T, target, bounds=(0, 1)).x
            f[near] += theta * (high - low)[near]
        g = f @ U
        a, w = a + w @ g / count, w + a * g / count
    return a, w


def walked(a, w, planes, forces, weight=1.0):
    """One neuron through the unit step: ``(neuron, events, where it stopped, kinks)``."""
    low, high = pulls_on(forces, planes)
    neuron = one_neuron(a, w, planes, weight=weight)
    log, kinks = empty_log(), np.zeros((S, 2, len(planes.U)))
    tau = walk(neuron, path_of(low, high), planes, FOUR.tables, limits_with(), log, kinks)
    return neuron, rows_in(log), tau, kinks


def drawn(seed, shared=False):
    """A neuron, planes and forces that turn in the step."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 13)), int(rng.integers(2, 6))
    X = rng.normal(size=(n, d)) / np.sqrt(d)
    w = rng.normal(size=d)
    a = float(rng.choice([-1.0, 1.0])) * np.linalg.norm(w) * 1.2
    forces = (NODES[:, None] - 0.5) ** np.arange(3) @ (0.6 * rng.normal(size=(3, n)))
    planes = planes_at(X)
    if shared:  # half of the points lie on planes of the others, most of them opposite
        half = (n + 1) // 2
        owner = np.concatenate([np.arange(half), np.arange(n - half)])
        length = np.linalg.norm(X, axis=1)
        length[half:] *= rng.choice([-1.0, -1.0, 1.0], n - half)
        planes = planes_with(X[:half], owner=owner, length=length)
    pull = (np.abs(forces) @ np.abs(planes.length)).max()
    return a, w, planes, forces * min(1.0, 4.0 / pull)  # the flow takes no larger boosts


def follows(seed, shared=False):
    """Compare a walk with small steps; returns its modes and how many planes it ends on."""
    a, w, planes, forces = drawn(seed, shared)
    neuron, log, tau, _ = walked(a, w, planes, forces)
    if tau <= 1.0:
        return set(), 0  # left to the caller
    if (log[:, 4] == BRANCH).any():
        return set(), 0  # more than one solution
    coarse, fine = (np.append(*small_steps(a, w, planes, forces, k)) for k in (800, 1600))
    error = 5.0 * np.abs(fine - coarse).max() + 2e-3 * np.abs(fine).max()
    np.testing.assert_allclose(np.append(neuron.a, neuron.w), fine, atol=error)
    held, z = neuron.row == SLIDE, planes.U @ neuron.w
    np.testing.assert_allclose(z[held], 0.0, atol=1e-12)
    assert ((z > 0) == (neuron.row == ABOVE))[~held & (np.abs(z) > 1e-9)].all()
    assert (np.diff(log[:, 0]) >= 0).all()
    return set(log[:, 4].astype(int)), int(held.sum())


@pytest.mark.parametrize("shared", [False, True], ids=["points", "shared planes"])
def test_walks_follow_the_inclusion(shared):
    codes = [follows(seed, shared)[0] for seed in range(25)]
    assert set().union(*codes) >= {BELOW, ABOVE, SLIDE}


@pytest.mark.parametrize("shared", [False, True], ids=["points", "shared planes"])
def test_walks_along_two_planes_and_off_them_follow_the_inclusion(shared):
    found = {"two": 0, "released": 0}
    for seed in range(600):
        neuron, log, _, _ = walked(*drawn(seed, shared))
        two, released = (neuron.row == SLIDE).sum() >= 2, (log[:, 3] == SLIDE).any()
        if (two and found["two"] < 6) or (released and found["released"] < 6):
            follows(seed, shared)
            found["two"] += two
            found["released"] += released
    assert min(found.values()) >= 4, found


@pytest.mark.parametrize("seed", range(12))
def test_crossings_of_shared_planes_are_those_of_an_adaptive_solver(seed):
    a, w, planes, forces = drawn(seed, shared=True)
    forces = 0.4 * forces  # a step of a moderate boost
    neuron, log, tau, _ = walked(a, w, planes, forces)
    X = points_of(planes)
    if tau <= 1.0 or (log[:, 4] >= SLIDE).any():
        return

    def field(s, v):
        c = lagrange_matrix(NODES, np.array([s]))[0] @ forces
        g = (c * (X @ v[1:] > 0)) @ X
        return np.append(v[1:] @ g, v[0] * g)

    run = solve_ivp(field, (0, 1), np.append(a, w), rtol=1e-9, atol=1e-11, max_step=1e-3)
    np.testing.assert_allclose(np.append(neuron.a, neuron.w), run.y[:, -1], atol=1e-5)


def test_walks_keep_the_balance_to_rounding():
    for seed in range(30):
        a, w, planes, forces = drawn(seed, shared=bool(seed % 2))
        neuron, _, tau, _ = walked(a, w, planes, forces)
        if tau > 1.0:
            size = neuron.a[0] ** 2 + neuron.w @ neuron.w
            after = neuron.a[0] ** 2 - neuron.w @ neuron.w
            assert after == pytest.approx(a * a - w @ w, abs=4e-15 * size)


def test_a_change_of_sign_between_the_planes_is_listed():
    found = 0
    for seed in range(40):
        a, w, planes, forces = drawn(seed)
        neuron, log, tau, _ = walked(0.05 * a, w, planes, forces)
        flips = int((log[:, 4] == FLIP).sum())
        if tau > 1.0:
            assert (np.sign(neuron.a[0]) != np.sign(a)) == (flips % 2 == 1)
            found += flips
    assert found >= 5


def test_kinks_are_the_outputs_beyond_those_of_the_first_row():
    at_nodes = lagrange_matrix(NODES, np.linspace(0.0, 1.0, 4001)[:-1] + 0.5 / 4000)
    compared = 0
    for seed in range(24):
        a, w, planes, forces = drawn(seed, shared=bool(seed % 2))
        _, log, tau, kinks = walked(a, w, planes, forces, weight=0.5)
        if tau <= 1.0 or not len(log):
            continue
        X, mine = points_of(planes), at_points(kinks, planes)
        for k, node in enumerate(FOUR.tables.radau):
            # up to the node alone, in its row and in the first
            part = lagrange_matrix(NODES, node * NODES) @ forces * node
            # time is rescaled to the unit step: pulls shrink with it
            there, *_ = walked(a, w, planes, part)
            b, v = np.float64(a), w.copy()
            first = X @ w > 0
            for c in at_nodes @ part:
                g = (c * first) @ X
                mid_b, mid_v = b + 0.5 * v @ g / 4000, v + 0.5 * b * g / 4000
                b, v = b + mid_v @ g / 4000, v + mid_b * g / 4000
            own = there.a[0] * np.maximum(X @ there.w, 0.0)
            smooth = b * np.where(first, X @ v, 0.0)
            error = 1e-3 * (np.abs(own).max() + np.abs(smooth).max())
            np.testing.assert_allclose(mine[k], 0.5 * (own - smooth), atol=error)
        compared += 1
    assert compared >= 8


@pytest.mark.parametrize("theta", [0.3, 0.7])
def test_a_walk_that_flips_in_a_slide_leaves_its_plane(theta):
    # slides on e_1, pulled along e_2 with |w| > |a|: a changes sign, the plane then repels
    planes = planes_at(np.array([[1.0, 0.0], [-theta, 1.0]]))
    low, high = pulls_on(np.tile([1.0, 1.0], (S + 1, 1)), planes)
    neuron = one_neuron(-0.3, [0.0, 1.0], planes, row=[2, 1])
    log, kinks = empty_log(), np.zeros((S, 2, 2))
    path = path_of(low, high)
    assert walk(neuron, path, planes, FOUR.tables, limits_with(), log, kinks) == 2.0
    events = rows_in(log)
    assert events[:, 4].astype(int).tolist() == [FLIP, BRANCH, int(theta > 0.5)]
    # a' = w_2, w_2' = a along the plane
    np.testing.assert_allclose(events[:, 0], np.arctanh(0.3), rtol=1e-9)
    assert neuron.a[0] > 0.0


def test_a_walk_into_the_origin_stops_there():
    # three planes; the pull along w brings a neuron with a < -|w| straight to w = 0
    X = np.array([[1.0, 0.2], [1.0, -0.2], [1.0, 0.1]])
    planes = planes_at(X)
    c = np.linalg.lstsq(X.T, np.array([2.0, 0.0]), rcond=None)[0]
    neuron, log, tau, _ = walked(-1.0, np.array([0.5, 0.0]), planes, np.tile(c, (S + 1, 1)))
    # w = w_0 cosh 2t + a_0 sinh 2t
    assert tau == pytest.approx(0.5 * np.arctanh(0.5), rel=1e-7)
    assert neuron.row.tolist() == [1, 1, 1]
    assert len(log) == 0


def grown(strength, turn):
    """A neuron that crosses into a row whose pull is ``strength`` times that of its first."""
    # e_1 pulls always; across the plane of e_2, which it is about to meet, e_2 pulls as well
    planes = planes_at(np.eye(2))
    low, high = pulls_on(np.tile([0.1, strength], (S + 1, 1)), planes)
    low[:, 1] = 0.1  # below, too, towards the plane
    neuron = one_neuron(1.0, [np.sqrt(1.0 - 1e-4), -0.01], planes)
    log, kinks = empty_log(), np.zeros((S, 2, 2))
    limits = limits_with(turn=turn)
    tau = walk(neuron, path_of(low, high), planes, FOUR.tables, limits, log, kinks)
    return neuron, rows_in(log), tau


@pytest.mark.parametrize("strength", [5.0, 20.0, 40.0])
def test_a_neuron_that_crosses_into_a_strong_pull_is_carried_as_far_as_that_takes_it(strength):
    neuron, events, tau = grown(strength, turn=0.8)
    assert tau == 2.0
    assert events[:, 4].astype(int).tolist() == [ABOVE]
    # by closed form: constant pulls boost (a, w) along themselves
    a, w, left = 1.0, np.array([np.sqrt(1.0 - 1e-4), -0.01]), 1.0
    for pull, part in ((np.array([0.1, 0.1]), events[0, 0]), (np.array([0.1, strength]), None)):
        rate = np.linalg.norm(pull)
        unit, q = pull / rate, rate * (left if part is None else part)
        along = w @ unit
        w = w + (np.sinh(q) * a + (np.cosh(q) - 1.0) * along) * unit
        a = np.cosh(q) * a + np.sinh(q) * along
        left -= part or 0.0
    # the error of Gauss collocation at this boost, over all parts
    np.testing.assert_allclose(neuron.a[0], a, rtol=1e-8 * strength)
    np.testing.assert_allclose(neuron.w, w, rtol=1e-8 * strength)
    assert abs(grown(strength, turn=np.inf)[0].a[0] / a - 1.0) > 1e-4 * (strength > 5.0)


def test_a_neuron_that_would_grow_without_bound_stops_in_time():
    neuron, _, tau = grown(1e5, turn=0.8)
    assert 0.0 < tau < 1.0
    assert abs(neuron.a[0]) < np.exp(0.8 * PARTS)


@pytest.mark.parametrize("hidden", [True, False])
@pytest.mark.parametrize(("deep", "undecided"), [(5e-7, True), (5e-6, False)])
def test_a_crossing_that_would_have_turned_back_at_once_is_undecided(deep, undecided, hidden):
    # z = (t - 0.6)^2 - deep on the side above, whose plane repels
    planes = planes_at(np.eye(2))
    push = 2.0 * (NODES - 0.6)
    low, high = np.zeros((S + 1, 2)), np.zeros((S + 1, 2))
    high[:, 0], low[:, 0] = push, -3.0
    high[:, 1] = low[:, 1] = 0.0
    # a large output weight: that of both layers hardly moves, and z as in the formula
    a = 1.0 if hidden else 1e4
    neuron = one_neuron(a, [0.36 - deep, np.sqrt(0.75)], planes)
    log, kinks = empty_log(), np.zeros((S, 2, 2))
    limits = limits_with(known=1e-6 / np.hypot(1.0 if hidden else a, 1.0))
    path = path_of(low / a, high / a, hidden=hidden)
    assert walk(neuron, path, planes, FOUR.tables, limits, log, kinks) == 2.0
    events = rows_in(log)
    told = [(int(before), int(after)) for before, after in events[:, 3:]]
    assert told == [(GRAZES, BRANCH)] * undecided + [(ABOVE, BELOW)]
    np.testing.assert_allclose(events[:, 0], 0.6 - np.sqrt(deep), atol=1e-5)
