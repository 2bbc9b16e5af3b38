"""Explicit steps with their kinks put right: forced upon small problems, and where they belong."""

import numpy as np
import pytest

import reluflow as rf
from numerics import problems
from reluflow.engines.flow import clock
from reluflow.engines.flow import crowd as crowd_module
from reluflow.engines.flow import problem as problem_module
from reluflow.engines.flow.crowd import Crowd
from reluflow.engines.flow.driver import Flow
from reluflow.engines.flow.explicit import Field, slides_of
from reluflow.engines.flow.pairs import LEAN, STABLE
from reluflow.engines.flow.paths import Paths
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.start import begin_at
from reluflow.engines.flow.state import start
from reluflow.engines.flow.tableau import FOUR
from reluflow.kernels.flow.classes import group
from reluflow.kernels.flow.layout import ABOVE, BELOW, SLIDE


def crowds(monkeypatch, least):
    monkeypatch.setattr(problem_module, "CROWD", least)
    monkeypatch.setattr(problem_module, "CHEAP", 0.0)
    monkeypatch.setattr(problem_module, "CHEAP_IF_SMALL", 0.0)


def weights(run):
    net = run.final.flat()
    return np.column_stack([net.a, net.W])


def regression(n, d, m, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.maximum(X[:, 0], 0.0) + 0.1 * rng.normal(size=n)
    start = 0.1 * rng.normal(size=(m, d + 1))
    return rf.Dataset(X, y), rf.Network(start[:, 0].copy(), start[:, 1:].copy())


@pytest.mark.parametrize("seed", [0, 1, 4, 7])
def test_small_hidden_weights_alone_are_as_accurate_in_explicit_steps(seed, monkeypatch):
    """They move by a part of what they will come to: one step passed over all their kinks."""
    rng = np.random.default_rng(seed)
    n, d, m = 250, int(rng.integers(2, 6)), int(rng.integers(2, 12))
    X = rng.normal(size=(n, d))
    y = np.maximum(X @ rng.normal(size=(d, 3)), 0.0) @ rng.normal(size=3)
    data = rf.Dataset(X, y + 0.3 * rng.normal(size=n))
    net = rf.Network(1e-3 * rng.normal(size=m), 1e-3 * rng.normal(size=(m, d)))
    crowds(monkeypatch, 10**9)
    exact = weights(rf.flow(data, net, train="hidden", t_end=3.0, rtol=1e-11))
    crowds(monkeypatch, 1)
    run = rf.flow(data, net, train="hidden", t_end=3.0, rtol=1e-8)
    assert len(run.events) > 0
    assert np.abs(weights(run) - exact).max() <= 1e-8 * np.abs(exact).max()


# ---------------------------------------------------------------------- the method


def begun_with_slides(seed):
    """A problem and its start, with neurons that slide and some that are dead."""
    rng = np.random.default_rng(seed)
    data, net = regression(9, 4, 30, seed)
    problem = Problem(data, net, rf.losses.Square(), "both")
    state = start(problem)
    state.mode[:] = rng.choice([BELOW, ABOVE], size=state.mode.shape)
    state.mode[rng.random(state.mode.shape) < 0.15] = SLIDE
    state.mode[rng.random(len(state.mode)) < 0.2] = BELOW
    return problem, begin_at(problem, state)


@pytest.mark.parametrize("seed", range(5))
def test_pairs_of_a_neuron_and_its_slides_are_those_of_the_modes(seed):
    _, at = begun_with_slides(seed)
    state, rows = at.state, at.classes
    neuron, slide = slides_of(rows)
    found = set(zip(neuron.tolist(), rows.plane[slide].tolist(), strict=True))
    assert found == set(zip(*map(np.ndarray.tolist, np.nonzero(state.mode == SLIDE)), strict=True))
    assert len(found) == len(neuron)


@pytest.mark.parametrize("seed", range(5))
def test_a_neuron_that_slides_feels_a_plane_along_its_slides_only(seed):
    problem, at = begun_with_slides(seed)
    U, mode = problem.planes.U, at.state.mode
    neuron, plane = np.nonzero((mode != SLIDE) & (at.classes.cid >= 0)[:, None])
    normal = Field(problem).across(at, neuron, plane)
    for j, p, found in zip(neuron, plane, normal, strict=True):
        own = U[mode[j] == SLIDE]
        expected = U[p] - np.linalg.pinv(own) @ (own @ U[p]) if len(own) else U[p]
        np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_pulls_answer_a_change_of_weights_by_the_bound_at_most(loss):
    """Of two neurons: one changes the outputs of its points, the other feels them on its own."""
    rng = np.random.default_rng(0)
    data, net = regression(30, 4, 6)
    data = rf.Dataset(data.X, np.where(data.X[:, 1] > 0.0, 1.0, -1.0))
    problem = Problem(data, net, problems.LOSSES[loss], "both")
    at = begin_at(problem, start(problem))
    field = Field(problem)
    X = problem.planes.length[:, None] * problem.planes.U[problem.planes.owner]
    jacobian = problem.force_jacobian(at.h)
    sizes = []
    for _ in range(50):
        one, other = (rng.random((2, problem.n)) < rng.random((2, 1))).astype(float)
        between = (X * one[:, None]).T @ jacobian @ (X * other[:, None])
        sizes.append(np.linalg.norm(between, 2))
    assert max(sizes) <= field.answer(at) <= 20.0 * max(sizes)


@pytest.mark.parametrize("depth", [0, 3, 52, 60])
def test_panels_below_the_rounding_of_a_step_have_a_width(depth):
    """A loss that falls by millions in a step passes all its time there, without a warning."""
    at, log_weights = clock.panels(depth)
    assert np.isfinite(log_weights).all()
    assert np.exp(log_weights).sum() == pytest.approx(1.0, abs=1e-14)
    assert (np.diff(at) >= 0.0).all()
    assert 0.0 < at[0] <= at[-1] <= 1.0


def test_moments_of_a_step_are_dated_together_as_one_by_one():
    slowness = np.array([0.3, 1.0, 9.0, 40.0, 70.0])
    shares = np.array([0.0, 1e-9, 0.01, 0.3, 0.7, 1.0])
    together = clock.log_elapsed_at(FOUR, slowness, 2.0, shares)
    one_by_one = [clock.log_elapsed(FOUR, slowness, 2.0, tau) for tau in shares]
    assert together[0] == -np.inf
    np.testing.assert_allclose(together[1:], one_by_one[1:], rtol=1e-14)
    assert together[1] == pytest.approx(np.log(2e-9) + 0.3, abs=1e-6)


def test_moments_of_a_known_way():
    """``z = (t - 0.2)(t - 0.7)`` from above: below its plane in between."""
    t = np.array([0.0, 0.3, 0.8, 1.0])
    way = Paths(
        np.array([0.14]), (2.0 * t - 0.9)[:, None], np.zeros((4, 1)), np.array([False]), 1.0, LEAN
    )
    leaves, back, real = way.excursions()
    assert real.all()
    np.testing.assert_allclose([leaves[0], back[0]], [0.2, 0.7], atol=1e-9)
    speed, _ = way.at(leaves)
    np.testing.assert_allclose(speed, -0.5, atol=1e-8)
    near = way._replace(start=np.array([0.14 + 0.07]))  # lifted: it does not reach the plane
    assert not near.excursions()[2].any()


@pytest.mark.parametrize("pair", [LEAN, STABLE], ids=["lean", "stable"])
def test_outputs_inside_a_step_are_those_of_the_flow(pair, monkeypatch):
    """At the Radau nodes of a step without kinks, by runs that end there."""
    data = rf.Dataset([[1.0, 0.2], [0.3, 1.0], [0.8, 0.9]], [1.0, 2.0, -0.5])
    net = rf.Network([0.4, 0.3], [[0.5, 0.6], [0.7, 0.2]])
    crowds(monkeypatch, 1)
    problem = problem_module.Problem(data, net, rf.losses.Square(), "both")
    at, gaps = begin_at(problem, start(problem)), []
    for step in (0.2, 0.1):
        field = Field(problem)
        inside, _ = field.nodes(at, pair, field.stages(at, pair, step), step)
        for node, h in zip(FOUR.tables.radau, inside, strict=True):
            t = problem.units.to_time(node * step)
            run = rf.flow(data, net, t_end=float(t), rtol=1e-12)
            gaps.append(np.abs(np.ldexp(h, problem.units.label) - run.final.predict(data.X)).max())
    assert max(gaps) < 1e-6
    assert max(gaps[4:7]) < max(gaps[:3]) / 16  # order four inside, so 32 for half the step


# ---------------------------------------------------------------------- against other methods


@pytest.mark.parametrize("seed", range(24))
def test_small_problems_agree_with_implicit_steps(seed, monkeypatch):
    small = problems.draw(seed)
    fine = small.flow(rtol=1e-11)
    crowds(monkeypatch, 1)
    for rtol in (1e-4, 1e-7):
        run = small.flow(rtol=rtol)
        assert run.status == fine.status
        gap = np.abs(weights(run) - weights(fine)).max() / np.abs(weights(fine)).max()
        assert gap <= 100.0 * rtol


@pytest.mark.parametrize("loss", ["square", "exponential", "logistic"])
@pytest.mark.parametrize("train", ["both", "hidden"])
def test_a_crowd_agrees_with_implicit_steps(loss, train, monkeypatch):
    """Points in pairs on one line, on either side, among them."""
    data, net = regression(60, 3, 12)
    X = data.X.copy()
    X[1], X[3] = 2.0 * X[0], -0.5 * X[2]
    y = data.y if loss == "square" else np.where(X[:, 0] + 0.3 > 0.0, 1.0, -1.0)
    data = rf.Dataset(X, y)
    kind = problems.LOSSES[loss]
    options = {"loss": kind, "train": train, "t_end": 4.0}
    fine = rf.flow(data, net, rtol=1e-10, **options)
    crowds(monkeypatch, 1)
    for rtol in (1e-5, 1e-7):
        run = rf.flow(data, net, rtol=rtol, **options)
        assert (
            np.abs(weights(run) - weights(fine)).max() <= 50.0 * rtol * np.abs(weights(fine)).max()
        )
    pairs = [
        {(int(e["neuron"]), int(e["point"]), str(e["kind"])) for e in one.events}
        for one in (run, fine)
    ]
    assert len(pairs[0] ^ pairs[1]) <= 2  # one that touches a plane may be seen or not


def test_where_points_are_many_errors_follow_the_tolerance(monkeypatch):
    data, net = regression(220, 5, 20, seed=1)
    runs = {rtol: rf.flow(data, net, t_end=5.0, rtol=rtol) for rtol in (1e-4, 1e-6)}
    crowds(monkeypatch, 10**9)
    fine = weights(rf.flow(data, net, t_end=5.0, rtol=1e-9))
    for rtol, run in runs.items():
        assert np.abs(weights(run) - fine).max() <= 50.0 * rtol * np.abs(fine).max()


def test_slides_that_go_on_are_held_by_their_projections_and_others_walk(monkeypatch):
    plain, held, walking = Crowd._rough, [], []

    def watched(self, at, *given):
        rough = plain(self, at, *given)
        slides = (at.state.mode == SLIDE).any(axis=1)
        held.append(int((slides & ~rough).sum()))
        walking.append(int((slides & rough).sum()))
        return rough

    monkeypatch.setattr(Crowd, "_rough", watched)
    data, net = regression(120, 6, 40)
    run = rf.flow(data, net, t_end=20.0, rtol=1e-6)
    assert sum(held) > 5 * sum(walking)
    assert sum(walking) >= 3  # slides that end are seen to, by their weights
    crowds(monkeypatch, 10**9)
    fine = rf.flow(data, net, t_end=20.0, rtol=1e-9)
    ended = [
        sorted((int(e["neuron"]), int(e["point"])) for e in one.events if e["kind"] == "release")
        for one in (run, fine)
    ]
    assert ended[0] == ended[1]
    assert len(ended[0]) >= 2
    assert np.abs(weights(run) - weights(fine)).max() <= 2e-5 * np.abs(weights(fine)).max()


# ---------------------------------------------------------------------- which steps


def taken(monkeypatch):
    """Count explicit and implicit steps."""
    counts = {"explicit": 0, "implicit": 0}
    explicit, implicit = Crowd.advance, Flow._implicit

    def first(self, at, limit):
        counts["explicit"] += 1
        return explicit(self, at, limit)

    def second(self, at, limit):
        counts["implicit"] += 1
        return implicit(self, at, limit)

    monkeypatch.setattr(Crowd, "advance", first)
    monkeypatch.setattr(Flow, "_implicit", second)
    return counts


def test_few_points_take_no_explicit_step(monkeypatch):
    counts = taken(monkeypatch)
    data, net = regression(40, 3, 8)
    rf.flow(data, net, t_end=1.0)
    assert counts == {"explicit": 0, "implicit": 0}


def test_stiff_outputs_are_left_to_implicit_steps(monkeypatch):
    """Late in training the fastest rate is far above the pace: the run ends at its limit."""
    crowds(monkeypatch, 1)
    counts = taken(monkeypatch)
    data, net = regression(12, 20, 40)
    run = rf.flow(data, net, rtol=1e-6)
    assert run.status == "converged"
    assert counts["implicit"] > 0
    assert counts["explicit"] > 0
    crowds(monkeypatch, 10**9)
    fine = rf.flow(data, net, rtol=1e-9)
    assert np.abs(weights(run) - weights(fine)).max() <= 1e-4 * np.abs(weights(fine)).max()


@pytest.mark.parametrize(("scale", "explicit"), [(0.0, True), (-6.0, False), (-1e5, False)])
def test_where_neurons_and_inputs_are_many_too_the_start_decides(scale, explicit):
    """From a small one neurons cross few planes for long, and implicit steps go far."""
    data, net = regression(200, 200, 200)
    assert Problem(data, net.with_scale(scale), rf.losses.Square(), "both").is_crowd == explicit
    few = regression(200, 2, 20)
    assert Problem(few[0], few[1].with_scale(scale), rf.losses.Square(), "both").is_crowd


def test_explicit_steps_are_not_for_where_they_cost_more():
    data, net = regression(100, 100, 1000)
    wide = Problem(data, net, rf.losses.Exponential(), "both")
    assert wide.is_crowd == (wide.price >= problem_module.CHEAP)
    assert not Problem(*regression(99, 2, 20), rf.losses.Square(), "both").is_crowd


def test_rows_alike_are_one_class_whatever_their_number():
    """Against a dictionary of rows; classes are numbered as they appear."""
    rng = np.random.default_rng(0)
    for size in (1, 7, 300):
        mode = rng.choice(np.array([BELOW, ABOVE, SLIDE], np.int8), (200, size))
        mode[rng.integers(0, 200, 100)] = mode[rng.integers(0, 200, 100)]
        mode[:, 0] = ABOVE  # alive
        seen = {}
        expected = [seen.setdefault(row.tobytes(), len(seen)) for row in mode]
        cid, first = group(mode, np.zeros(size, np.bool_), np.zeros(200, np.bool_))
        np.testing.assert_array_equal(cid, expected)
        np.testing.assert_array_equal(mode[first].tobytes(), b"".join(seen))


def test_implicit_steps_are_looked_at_now_and_then_and_stay_if_they_are_worth_it(monkeypatch):
    crowds(monkeypatch, 1)
    counts = taken(monkeypatch)
    monkeypatch.setattr(crowd_module, "PATIENCE", 10**9)  # stability is no reason
    monkeypatch.setattr(crowd_module, "LOOK", 5)
    data, net = regression(12, 20, 40)  # late: implicit steps are ever longer
    rf.flow(data, net, rtol=1e-6)
    price = Problem(data, net, rf.losses.Square(), "both").stiff_price
    assert 5 <= counts["explicit"] <= 5 * max(price, 1.0) + 1
    assert counts["implicit"] > 20


def test_implicit_steps_that_are_not_worth_it_are_left_again(monkeypatch):
    crowds(monkeypatch, 1)
    counts = taken(monkeypatch)
    monkeypatch.setattr(crowd_module, "LOOK", 5)
    dear = property(lambda self: 1.0, lambda self, value: None)
    monkeypatch.setattr(Problem, "stiff_price", dear, raising=False)
    monkeypatch.setattr(Crowd, "gained", lambda self, at, taken: -1.0)
    data, net = regression(60, 3, 20)
    rf.flow(data, net, rtol=1e-6, t_end=20.0)
    # five after five explicit steps, after twenty, eighty, eighty ...
    assert 5 <= counts["implicit"] < counts["explicit"]


def test_implicit_steps_are_tried_again_however_often_in_vain(monkeypatch):
    crowds(monkeypatch, 1)
    counts = taken(monkeypatch)
    monkeypatch.setattr(crowd_module, "LOOK", 2)
    monkeypatch.setattr(crowd_module, "RARELY", 4)
    cheap = property(lambda self: 1.0, lambda self, value: None)
    monkeypatch.setattr(Problem, "stiff_price", cheap, raising=False)
    monkeypatch.setattr(Crowd, "gained", lambda self, at, taken: -1.0)
    data, net = regression(60, 3, 20)
    rf.flow(data, net, rtol=1e-6, t_end=20.0)
    # five after two explicit steps, then after eight, again and again
    assert counts["implicit"] >= 5 * (counts["explicit"] // 8)
    assert counts["explicit"] >= 40


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_many_points_in_the_plane_reach_their_end(seed):
    """Explicit steps alone would take days: stability holds them at t = 1e5 and the end is 1e10."""
    data, net = regression(300, 2, 100, seed)
    run = rf.flow(data, net, rtol=1e-6, max_seconds=300.0)
    assert run.status in ("converged", "stationary")


def test_a_first_step_far_too_long_is_shortened_in_silence(monkeypatch):
    crowds(monkeypatch, 1)
    data, net = regression(30, 2, 6)
    net = rf.Network(30.0 * net.flat().a, 30.0 * net.flat().W)
    with np.errstate(all="raise"):
        run = rf.flow(data, net, t_end=0.1, rtol=1e-6)
    assert run.status == "t_end"
    crowds(monkeypatch, 10**9)
    fine = rf.flow(data, net, t_end=0.1, rtol=1e-9)
    assert np.abs(weights(run) - weights(fine)).max() <= 1e-4 * np.abs(weights(fine)).max()


def test_dead_neurons_stay_dead(monkeypatch):
    """One that dies on a plane lies on either side of it to rounding."""
    crowds(monkeypatch, 1)
    data = rf.Dataset(np.array([[1.0, 0.2], [0.3, 1.0]]), np.array([1.0, 1.0]))
    net = rf.Network([-0.6, 0.5], [[0.3, 0.1], [0.2, 0.4]])
    run = rf.flow(data, net, t_end=20.0)
    deaths = run.events[run.events["kind"] == "die"]
    assert len(deaths) == 1
    after = run.events[(run.events["neuron"] == 0) & (run.events["t"] > deaths["t"][0])]
    assert not len(after)


def test_a_time_inside_is_recomputed(monkeypatch):
    data, net = regression(210, 3, 6)
    run = rf.flow(data, net, t_end=3.0, rtol=1e-7)
    direct = rf.flow(data, net, t_end=1.234, rtol=1e-7)
    again = run.at(1.234).flat()
    np.testing.assert_allclose(
        np.column_stack([again.a, again.W]),
        weights(direct),
        atol=20e-7 * np.abs(weights(run)).max(),
    )


def test_a_run_stops_at_a_loss(monkeypatch):
    data, net = regression(210, 3, 6)
    run = rf.flow(data, net, stop_loss=0.05, rtol=1e-7)
    assert run.status == "stop_loss"
    assert run.loss[-1] == pytest.approx(0.05, rel=1e-8)
