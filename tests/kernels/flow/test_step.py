"""All neurons through a solved step: ends, invariants, walks, against independent solvers."""

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import reluflow as rf
from kernels.flow.scene import (
    S,
    begun,
    carry_by_dense_solve,
    empty_log,
    limits_with,
    nobody_sure,
    points_of,
    pulls_of,
    rows_in,
    system_of,
)
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.start import begin_at
from reluflow.engines.flow.state import start
from reluflow.engines.flow.tableau import FOUR, lagrange_matrix
from reluflow.kernels.flow.layout import ABOVE, SLIDE
from reluflow.kernels.flow.step import carry

EVERYBODY = 1e300  # all neurons are light
STEP = 0.3  # of a moderate boost: some neurons cross, most do not


def carried(at, c, step, *, patient=True, **limits):
    """The neurons at the end of a step of given forces, and the events on their way."""
    log = empty_log()
    sure = nobody_sure(at)
    moved = carry(system_of(at), c, step, FOUR.tables, limits_with(**limits), sure, patient, log)
    return moved, rows_in(log)


def random_forces(seed, at):
    return 0.3 * np.random.default_rng(seed).normal(size=(S, at.problem.n))


def without_events(at, c, step):
    """Neurons whose way is known without their events."""
    moved, _ = carried(at, c, step, patient=False)
    return moved, np.flatnonzero(moved.first > 1.0)


# ---------------------------------------------------------------------- ends of steps


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("shared", [False, True], ids=["points", "shared planes"])
@pytest.mark.parametrize("step", [0.01, 0.2])
def test_end_states_equal_the_dense_solution(hidden, shared, step):
    compared = 0
    for seed in range(6):
        at = begun(seed, hidden=hidden, shared=shared)
        c = random_forces(seed, at)
        moved, through = without_events(at, c, step)
        g = pulls_of(at, FOUR.tables.to_gauss @ c)
        for j in through:
            _, end = carry_by_dense_solve(
                at.state.a[j], at.state.w[j], g[:, j], step, FOUR.tables.gauss_a,
                FOUR.tables.gauss_b, hidden,
            )  # fmt: skip
            np.testing.assert_allclose(np.append(moved.a[j], moved.w[j]), end, rtol=0, atol=1e-12)
            compared += 1
    assert compared >= 20


def test_end_states_conserve_balance_and_products_for_any_step():
    for step in (0.1, 2.0, 20.0):
        at = begun(3, mixed=False, m=40)
        moved, through = without_events(at, random_forces(3, at), step)
        cid = np.where(np.isin(np.arange(40), through), at.classes.cid, -1)
        several = 0
        for name in np.unique(cid[cid >= 0]):
            members = np.flatnonzero(cid == name)
            products = [
                np.outer(a[members], a[members]) - w[members] @ w[members].T
                for a, w in ((at.state.a, at.state.w), (moved.a, moved.w))
            ]
            size = np.outer(np.abs(moved.a[members]), np.abs(moved.a[members])).max() + 1.0
            np.testing.assert_allclose(products[1], products[0], rtol=0, atol=1e-13 * size)
            several += len(members) > 1
        assert several or step > 0.1


def test_constant_forces_give_the_matrix_exponential_at_order_eight():
    at = begun(5, mixed=False)
    c = np.tile(random_forces(5, at)[0], (S, 1))
    c /= np.linalg.norm(pulls_of(at, c), axis=2).max()
    through = set(without_events(at, c, 0.8)[1].tolist())
    assert len(through) >= 3
    gaps = []
    for step in (0.8, 0.4):
        moved, _ = carried(at, c, step)
        worst = 0.0
        for j in through:
            g = pulls_of(at, c[:1])[0, j]
            L = np.zeros((1 + len(g), 1 + len(g)))
            L[0, 1:] = L[1:, 0] = g
            exact = expm(step * L) @ np.append(at.state.a[j], at.state.w[j])
            worst = max(worst, np.abs(np.append(moved.a[j], moved.w[j]) - exact).max())
        gaps.append(worst)
    # local error of Gauss collocation with S = 4 stages: order 2 S + 1
    assert gaps[0] > 1e-12
    assert np.log2(gaps[0] / gaps[1]) == pytest.approx(9.0, abs=0.5)


def test_slides_end_exactly_on_their_planes():
    found = 0
    for seed in range(60):
        at = begun(seed)
        moved, through = without_events(at, np.tile(at.c, (S, 1)), 0.3)
        held = moved.mode[1] == SLIDE
        if 1 in through and held.any():
            np.testing.assert_allclose(at.problem.planes.U[held] @ moved.w[1], 0.0, atol=1e-15)
            found += 1
    assert found >= 2


# ---------------------------------------------------------------------- events inside a step


def follow(at, j, forces, step):
    """One neuron in given force polynomials across its crossings, by DOP853 with events."""
    planes = at.problem.planes
    X, U = points_of(planes), planes.U
    row, t, state = at.state.mode[j].copy(), 0.0, np.append(at.state.a[j], at.state.w[j])
    log = []
    while True:

        def field(s, v, row=row):
            c = lagrange_matrix(FOUR.tables.nodes, np.array([s / step]))[0] @ forces
            own = row[planes.owner]
            active = np.where(planes.length > 0, own == 1, own == 0)
            g = np.where(active, c, 0.0) @ X
            return np.append(v[1:] @ g, v[0] * g)

        def plane(p):
            def value(_, v):
                return v[1:] @ U[p]

            value.terminal, value.direction = True, (-1.0 if row[p] == 1 else 1.0)
            return value

        run = solve_ivp(field, (t, step), state, method="DOP853", rtol=1e-12, atol=1e-13,
                        events=[plane(p) for p in range(len(row))])  # fmt: skip
        t, state = run.t[-1], run.y[:, -1]
        hit = [p for p, times in enumerate(run.t_events) if len(times)]
        if not hit or not ((row == 1) | planes.both).any():
            return state, row, log
        row[hit[0]] = 1 - row[hit[0]]
        log.append((t / step, hit[0]))


@pytest.mark.parametrize("shared", [False, True], ids=["points", "shared planes"])
def test_light_neurons_cross_inside_the_step(shared):
    crossed = 0
    for seed in range(40):
        at = begun(seed, m=6, mixed=False, shared=shared)
        rng = np.random.default_rng(seed + 100)
        # a cubic, so that the interpolants with and without the start agree
        bend = 0.05 * rng.normal(size=(3, at.problem.n))
        c = at.c + (FOUR.tables.radau[:, None] ** np.arange(1, 4)) @ bend
        moved, events = carried(at, c, STEP, light=EVERYBODY)
        forces = np.concatenate([at.c[None], c])
        for j in np.unique(events[:, 1]).astype(int):
            mine = events[(events[:, 1] == j) & (events[:, 2] >= 0)]
            if moved.stopped[j] <= 1.0 or (mine[:, 3:] >= SLIDE).any() or not len(mine):
                continue  # a slide begins
            end, row, log = follow(at, j, forces, STEP)
            np.testing.assert_array_equal(moved.mode[j], row)
            assert mine[:, 2].astype(int).tolist() == [p for _, p in log]
            np.testing.assert_allclose(mine[:, 0], [tau for tau, _ in log], atol=1e-6)
            np.testing.assert_allclose(np.append(moved.a[j], moved.w[j]), end, atol=1e-7)
            crossed += len(log)
    assert crossed >= 10


def with_crossings():
    """Steps in which some neurons cross a plane: ``(at, forces, moved)``, nobody being light."""
    for seed in range(60):
        at = begun(seed, m=6, mixed=False)
        c = np.tile(at.c, (S, 1))
        plain, _ = carried(at, c, STEP, patient=False)
        if (plain.first <= 1.0).any():
            yield at, c, plain


def test_late_crossings_are_walked_as_those_of_light_neurons():
    compared = 0
    for at, c, plain in with_crossings():
        walked, events = carried(at, c, STEP, light=EVERYBODY)
        late, late_events = carried(at, c, STEP, late=1e9, patient=False)
        assert late.whole
        np.testing.assert_array_equal(late.first, plain.first)
        np.testing.assert_array_equal(late.mode, walked.mode)
        np.testing.assert_array_equal(late.w, walked.w)
        np.testing.assert_array_equal(np.sort(late_events, 0), np.sort(events, 0))
        # kinks are those of light neurons only
        assert not late.kinks.any()
        compared += len(events)
    assert compared >= 10


def test_lateness_is_size_times_the_square_of_the_share_left():
    for at, c, plain in with_crossings():
        j = int(plain.first.argmin())
        others = np.arange(6) != j
        at.neurons.weight[others] = 0.0  # light at any limit
        size = at.neurons.weight[j] * (at.state.a[j] ** 2 + at.state.w[j] @ at.state.w[j])
        left = 1.0 - plain.first[j]
        for factor, expected in ((0.99, False), (1.01, True)):
            for limits in (
                {"light": factor * size},
                {"light": 1e-300, "late": factor * size * left**2},
                {"light": 1e-300, "late": 1e9, "tail": factor * left},
            ):
                if limits.get("tail", 0.0) > 1.0:
                    continue
                assert carried(at, c, STEP, patient=False, **limits)[0].whole == expected


def test_neurons_wait_while_the_step_will_be_cut():
    seen = 0
    for at, c, plain in with_crossings():
        assert not carried(at, c, STEP, patient=False)[0].whole
        assert carried(at, c, STEP, light=EVERYBODY, patient=False)[0].whole
        at.neurons.weight[:] = 1e-9
        at.neurons.weight[plain.first.argmin()] = 1e9
        hasty, events = carried(at, c, STEP, light=1.0, patient=False)
        assert not hasty.whole
        assert not (events[:, 2] >= 0).any()
        waiting = plain.first <= 1.0
        np.testing.assert_array_equal(hasty.w[waiting], at.state.w[waiting])
        patient, _ = carried(at, c, STEP, light=1.0, patient=True)
        assert not patient.whole
        np.testing.assert_array_equal(
            patient.w[waiting], carried(at, c, STEP, light=EVERYBODY)[0].w[waiting]
        )
        seen += 1
    assert seen >= 10


# ---------------------------------------------------------------------- what a step begins with


def test_a_step_begins_with_outputs_forces_and_speeds():
    for hidden in (False, True):
        at = begun(2, hidden=hidden, shared=True, mixed=False)
        problem = at.problem
        net = problem.net
        outputs = net.predict(problem.data.X) / 2.0**problem.units.label
        np.testing.assert_allclose(at.h, outputs, rtol=1e-12)
        np.testing.assert_allclose(at.c, problem.forces(at.h), rtol=1e-13)
        g = pulls_of(at, at.c[None])[0]
        np.testing.assert_allclose(
            at.speeds[at.classes.cid], np.linalg.norm(g, axis=1), rtol=1e-12
        )  # fmt: skip
        bound = problem.kappa * np.linalg.eigvalsh(at.kernel).max()
        assert bound <= at.stiffness <= 5.0 * problem.n * bound


def on_a_ray(sign, log_balance, across, p=1.0):
    """A neuron far below every output that one point pulls along a ray; balance as given."""
    data = rf.Dataset([[1.0, 0.0], [-1.0, 0.5]], [1.0, 1.0])
    net = rf.Network([-1.0], [[1.0, 0.0]], log_scale=-1000.0)
    problem = Problem(data, net, rf.losses.Square(), "both")
    problem.sign[0], problem.log_balance[0] = sign, log_balance - 2000.0
    state = start(problem)
    state.a[0], state.w[0] = -1.0, [p, across]
    return problem, state


@pytest.mark.parametrize(
    ("sign", "log_balance", "across"),
    [(0.0, -np.inf, 0.0), (-1.0, -120.0, 0.0), (-1.0, -60.0, 1e-25), (-1.0, -60.0, 0.0)],
)
def test_steps_that_shrink_a_neuron_far_below_rounding_keep_its_invariants(
    sign, log_balance, across
):
    # down by e^-60 in the forces of the data: some of them have turned by then
    problem, state = on_a_ray(sign, log_balance, across)
    step, moment = 0.25 / float(problem.kappa * problem.planes.length[0] * problem.y[0]), 0.0
    pull = None
    for _ in range(320):
        at = begin_at(problem, state)
        pull = float(at.speeds[0])
        moved, events = carried(at, np.tile(at.c, (S, 1)), step)
        assert (events[:, 2] < 0).all()
        state.a[:], state.w[:] = moved.a, moved.w
        moment += step * pull
    assert pull == pytest.approx(0.25 / step)
    with mp.workdps(200):
        balance = sign * mp.exp(log_balance) if sign else mp.mpf(0)
        a = -mp.sqrt(1 + mp.mpf(across) ** 2 + balance)
        plus, minus = (1 + a) * mp.exp(moment), (1 - a) * mp.exp(-moment)
        size = max(abs(plus), abs(minus), mp.mpf(across))
        scale = mp.exp(mp.mpf(float(state.sigma[0])) + 1000) / size
        for mine, true in (
            (state.a[0], (plus - minus) / 2),
            (state.w[0, 0], (plus + minus) / 2),
            (state.w[0, 1], mp.mpf(across)),
        ):
            assert float(mine * scale - true / size) == pytest.approx(0.0, abs=1e-9)
    assert state.mode[0, 0] == ABOVE


def test_the_part_across_a_ray_is_noted_when_it_is_joined_and_held_after():
    problem, state = on_a_ray(0.0, -np.inf, 1e-20)
    begin_at(problem, state)
    np.testing.assert_array_equal(state.still[0], [0.0, 1e-20])
    assert state.still_sigma[0] == state.sigma[0]
    state.w[0, 1] = 3e-17  # rounding of a step
    begin_at(problem, state)
    assert state.w[0, 1] == 1e-20
    # off the ray (both points pull) it is forgotten
    state.mode[0] = 1
    begin_at(problem, state)
    assert np.isnan(state.still_sigma[0])


def test_with_fixed_output_weights_scales_stay_and_zeros_do_not_move():
    rng = np.random.default_rng(0)
    data = rf.Dataset(rng.normal(size=(4, 2)), rng.normal(size=4))
    net = rf.Network([1.0, 0.0, 2.0], 1e-3 * rng.normal(size=(3, 2)))
    problem = Problem(data, net, rf.losses.Square(), "hidden")
    state = start(problem)
    at = begin_at(problem, state)
    assert at.classes.cid[1] == -1
    assert (state.sigma == 0.0).all()
