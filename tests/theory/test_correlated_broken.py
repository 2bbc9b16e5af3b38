"""One broken assumption at a time, and false statements about runs: each is caught."""

from dataclasses import replace

import numpy as np
import pytest

import reluflow as rf
from reluflow.theory import paper_named
from reluflow.theory.correlated.case import prepare
from reluflow.theory.correlated.hypotheses import ALL, is_met
from reluflow.theory.subject import subject_of
from reluflow.theory.verdicts import Verdict

ENGINES = {"flow": rf.flow, "descent": rf.descend}
PAPER = paper_named("correlated")
DEEP = -3e6
PHASES = ("L3a", "L4", "L5a", "B1", "S1", "T6a", "T6b", "PL")


@pytest.fixture(scope="module")
def data():
    return rf.datasets.cone(3, 3, half_angle=0.7, seed=17)


@pytest.fixture(scope="module")
def net():
    return rf.networks.balanced(3, 20, directions="sphere", seed=1017)


@pytest.fixture(scope="module")
def deep(data, net):
    return rf.flow(data, net.with_scale(DEEP), rtol=1e-11)


def case_of(subject, engines=ENGINES):
    return prepare(subject_of(subject, engines))


def row(case, id):
    rows = PAPER.claims if id in [claim.id for claim in PAPER.claims] else PAPER.assumptions
    return rows[id].check(case)


def assert_phases_stop(case, because):
    for id in PHASES:
        found = row(case, id)
        assert found.verdict is Verdict.NOT_APPLICABLE, id
        assert f"assumption {because} is not met" in found.note, id


# ---------------------------------------------------------------- assumptions


def test_a_point_beyond_a_quarter_of_pi(data, net):
    v = data.teacher
    across = np.linalg.svd(v[None])[2][1]
    X = np.vstack([data.X[:2], np.cos(0.9) * v + np.sin(0.9) * across])
    case = case_of((rf.Dataset(X, X @ v, teacher=v), net.with_scale(-9.0)))
    found = row(case, "data")
    assert found.verdict is Verdict.FAIL
    assert found.measured == pytest.approx(0.9)
    assert_phases_stop(case, "data")
    assert row(case, "T8a").verdict is Verdict.PASS  # up to pi/2 Theorem 8 holds


def test_a_negative_label(net):
    data = rf.Dataset([[1.0, 0.1, 0.0], [1.0, -0.1, 0.0], [1.0, 0.0, 0.1]], [1.0, 1.0, -1.0])
    case = case_of((data, net.with_scale(-9.0)))
    assert row(case, "data").verdict is Verdict.FAIL
    assert "label 2 is -1" in row(case, "data").note
    assert row(case, "T7").verdict is Verdict.NOT_APPLICABLE


def test_points_that_do_not_span(data, net):
    part = rf.Dataset(data.X[:2], data.y[:2], teacher=data.teacher)
    case = case_of((part, net.with_scale(-9.0)))
    assert row(case, "1(i)").verdict is Verdict.FAIL
    assert "span 2 dimensions" in row(case, "1(i)").note
    assert_phases_stop(case, "1(i)")


def test_a_teacher_of_norm_two(data, net):
    twice = rf.Dataset(data.X, 2 * data.y, teacher=2 * data.teacher)
    case = case_of((twice, net.with_scale(-9.0)))
    assert row(case, "1(i)").verdict is Verdict.FAIL
    assert_phases_stop(case, "1(i)")


def test_no_positive_neuron(data, net):
    negative = rf.Network(-np.abs(net.a), net.W, -9.0)
    case = case_of((data, negative))
    assert row(case, "1(ii)").verdict is Verdict.FAIL
    assert "loss stays" in row(case, "1(ii)").note
    assert_phases_stop(case, "1(ii)")
    assert case.run.status == "stationary"
    assert case.run.log_loss[-1] == pytest.approx(case.run.log_loss[0])


def test_a_neuron_that_starts_on_a_boundary(data, net):
    x = data.X[0]
    W = net.W.copy()
    W[0] = W[0] - (W[0] @ x) / (x @ x) * x
    case = case_of((data, rf.Network(net.signs * np.linalg.norm(W, axis=1), W, -9.0)))
    assert row(case, "1(ii)").verdict is Verdict.FAIL
    assert "neuron 0 starts on the boundary of 0" in row(case, "1(ii)").note


def test_a_negative_neuron_along_gamma_shrinks_forever(data, net):
    gamma = data.y @ data.X / data.n
    W = np.vstack([net.W, gamma / np.linalg.norm(gamma)])
    signs = np.append(net.signs, -1.0)
    case = case_of((data, rf.Network(signs * np.linalg.norm(W, axis=1), W, -9.0)))
    assert row(case, "1(ii)").verdict is Verdict.FAIL
    assert "neuron 20 of J- is parallel to gamma" in row(case, "1(ii)").note


def test_a_teacher_orthogonal_to_an_eigenvector(net):
    case = case_of((rf.datasets.negative_family(3, 0.4), net.with_scale(-9.0)))
    assert row(case, "1(iii)").verdict is Verdict.FAIL
    assert "delta = 0" in row(case, "1(iii)").note
    assert row(case, "2").verdict is Verdict.FAIL
    assert row(case, "2").bound == -np.inf
    for id in ("S1", "S2", "T6a", "T6b", "PL", "B1"):
        assert "assumption 1(iii)" in row(case, id).note
    assert row(case, "L3a").verdict is Verdict.PASS  # the first phase does not need it


def test_two_points_of_one_direction(data, net):
    X = np.vstack([data.X, 2 * data.X[:1]])
    case = case_of((rf.Dataset(X, X @ data.teacher, teacher=data.teacher), net.with_scale(-9.0)))
    assert row(case, "1(iii)").verdict is Verdict.FAIL
    assert "same direction" in row(case, "1(iii)").note


def test_a_neuron_that_meets_two_points_at_once():
    X = np.array([[1.0, 0.3, 0.0], [1.0, -0.3, 0.0], [1.0, 0.0, 0.4]])
    data = rf.Dataset(X, X[:, 0], teacher=[1.0, 0.0, 0.0])
    net = rf.Network([1.0], [[-0.2, 0.0, 0.9]], -9.0)
    net = rf.Network([np.linalg.norm(net.W)], net.W, -9.0)
    case = case_of((data, net))
    assert row(case, "1(iv)").verdict is Verdict.FAIL
    assert "neuron 0 meets points 0 and 1" in row(case, "1(iv)").note
    assert "1(iv)" in row(case, "P2").note
    assert "1(iv)" in row(case, "L3a").note


def test_a_dead_neuron_that_moves(deep):
    dead = ~(deep.net.W @ deep.data.X.T > 0).any(axis=1)
    W = deep.final.W.copy()
    W[dead] = np.roll(W[dead], 1, axis=1)
    final = rf.Network(deep.final.a, W, deep.final.log_scale)
    assert row(case_of(deep), "1(v)").verdict is Verdict.PASS
    assert row(case_of(replace(deep, final=final)), "1(v)").verdict is Verdict.FAIL


def test_a_scale_that_is_too_large(data, net):
    case = case_of((data, net.with_scale(-20.0)))
    found = row(case, "2")
    assert found.verdict is Verdict.FAIL
    assert found.bound == pytest.approx(rf.limits.yardsticks(data, net).log_scale_bound(0.25))
    padded = row(case, "S2")
    assert padded.verdict is Verdict.NOT_APPLICABLE
    assert padded.measured < padded.bound


def test_more_points_than_dimensions():
    data = rf.datasets.cone(2, 3, half_angle=0.7, seed=11)
    case = case_of((data, rf.networks.balanced(2, 10, log_scale=-9.0, seed=0)))
    assert row(case, "3").verdict is Verdict.FAIL
    for id in ("T8a", "T8b", "T8c", "Z"):
        assert "assumption 3 is not met: n = 3, d = 2" in row(case, id).note


def test_beyond_the_exact_dimension_theorem_8_is_undecided():
    data = rf.datasets.cone(13, 13, half_angle=0.3, seed=0)
    case = case_of((data, rf.networks.balanced(13, 10, log_scale=-9.0, seed=0)))
    assert row(case, "3").verdict is Verdict.UNRESOLVED
    assert row(case, "T8a").verdict is Verdict.NOT_APPLICABLE


def test_an_unbalanced_start(data):
    net = rf.networks.gaussian(3, 10, sigma_hidden=0.1, sigma_output=0.1, seed=0)
    case = case_of((data, net))
    for id in ("P1", "P2", "1(ii)", "T7"):
        found = row(case, id)
        assert found.verdict is Verdict.NOT_APPLICABLE
        assert "not balanced" in found.note


# ---------------------------------------------------------------- the two families of Theorem 8


@pytest.mark.parametrize("d", [3, 5])
def test_positive_family(d):
    data = rf.datasets.positive_family(d, 11.0)
    case = case_of((data, rf.networks.balanced(d, 10, log_scale=-9.0, seed=1)))
    assert [row(case, id).verdict for id in ("T8a", "T8b", "T8c")] == [Verdict.PASS] * 3
    assert row(case, "T8a").measured < 2
    assert row(case, "T8c").measured == pytest.approx(2.0, abs=1e-6)
    assert row(case, "Z").verdict is Verdict.NOT_APPLICABLE


def test_negative_family():
    data = rf.datasets.negative_family(4, 0.3)
    case = case_of((data, rf.networks.balanced(4, 10, log_scale=-9.0, seed=1)))
    assert row(case, "T8a").verdict is row(case, "Z").verdict is Verdict.PASS
    assert row(case, "T8a").measured == pytest.approx(2.0, abs=1e-6)
    assert row(case, "T8b").verdict is Verdict.NOT_APPLICABLE


@pytest.mark.parametrize("seed", range(6))
def test_the_counterexample_beats_rank_one_exactly_when_v_exceeds_one(seed):
    data = rf.datasets.cone(4, 4, half_angle=0.75, seed=seed)
    case = case_of((data, rf.networks.balanced(4, 4, seed=0)))
    beaten = row(case, "T8b")
    assert (case.rank.V > 1) == (beaten.verdict is Verdict.PASS)
    assert row(case, "T8a").verdict is Verdict.PASS
    assert (row(case, "T8a").measured < 2 - 1e-9) == (case.rank.V > 1)


# ---------------------------------------------------------------- false statements


def altered(run, **changes):
    """The run with functions applied to its recorded arrays."""
    return replace(run, states={**run.states, **{k: f(run.states[k]) for k, f in changes.items()}})


def turned(W, angle=0.4):
    """Hidden weights rotated in the first coordinate plane."""
    rotation = np.eye(W.shape[-1])
    rotation[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    return W @ rotation


def swapped(events):
    """The first two activations of one neuron in the other order."""
    events = events.copy()
    for j in np.unique(events["neuron"]):
        own = np.flatnonzero((events["neuron"] == j) & (events["point"] >= 0))
        if len(own) > 1:
            events["point"][own[:2]] = events["point"][own[:2]][::-1]
            return events
    raise AssertionError("no neuron crosses twice")


def delayed(events):
    events = events.copy()
    events["t"] += 1e-3
    return events


def unlike(W):
    """Every second neuron rotated: the bundle opens."""
    W = W.copy()
    W[:, ::2] = turned(W[:, ::2], 0.01)
    return W


FALSE = {
    "P1": lambda run: altered(run, a=lambda a: a * (1 + 1e-6)),
    "L3a": lambda run: replace(run, events=swapped(run.events)),
    "L3b": lambda run: replace(run, events=delayed(run.events)),
    "L4": lambda run: altered(run, log_scale=lambda s: s + np.linspace(0, 1, len(s))[:, None]),
    "L5a": lambda run: altered(run, log_scale=lambda s: s + 2, log_scale_out=lambda s: s + 2),
    "L5c": lambda run: altered(run, log_scale=lambda s: s + 0.1, log_scale_out=lambda s: s + 0.1),
    "S1": lambda run: altered(run, W=turned),
    "S2": lambda run: altered(run, W=turned),
}


@pytest.mark.parametrize("id", FALSE)
def test_a_false_run_fails_the_row(deep, id):
    assert row(case_of(FALSE[id](deep)), id).verdict is Verdict.FAIL


def test_a_bundle_that_opens_fails(deep):
    opened = altered(deep, W=unlike)
    assert row(case_of(opened), "B1").verdict is Verdict.FAIL


def test_products_that_change_fail(data, net):
    run = rf.flow(data, net.with_scale(-9.0), rtol=1e-11, record=400)
    first = int(np.searchsorted(run.t, rf.limits.yardsticks(data, net).T0))

    def later(W):
        return np.concatenate([W[:first], unlike(W[first:])])

    assert row(case_of(run), "B2").verdict is Verdict.PASS
    assert row(case_of(altered(run, W=later)), "B2").verdict is Verdict.FAIL


def test_alignment_with_another_vector_fails(deep, monkeypatch):
    case = case_of(deep)
    wrong = replace(case.sticks, gamma=turned(case.sticks.gamma[None], 1e-4)[0])
    monkeypatch.setattr(case, "sticks", wrong)
    assert row(case, "L5b").verdict is Verdict.FAIL


def test_another_rate_fails(deep, monkeypatch):
    case = case_of(deep)
    monkeypatch.setattr(case, "H", 1.01 * case.H)
    assert row(case, "R1").verdict is Verdict.FAIL


def test_a_false_yardstick_fails(deep, monkeypatch):
    case = case_of(deep)
    wrong = replace(case.sticks, times=tuple(t * (1 + 1e-6) for t in case.sticks.times))
    monkeypatch.setattr(case, "sticks", wrong)
    assert row(case, "P2").verdict is Verdict.FAIL


@pytest.mark.parametrize("id", ["T6a", "T6b", "PL"])
def test_false_constants_fail_the_bounds_of_theorem_6(deep, id, monkeypatch):
    case = case_of(deep)
    for assumption in (*ALL, "2"):  # they are read before the constants are falsified
        assert is_met(case, assumption)
    if id == "PL":
        monkeypatch.setattr(case, "spectrum", (case.eta * [1.0, 1.0, 100.0], case.spectrum[1]))
    else:
        monkeypatch.setattr(case, "sticks", replace(case.sticks, delta=1.0 if id == "T6b" else 30))
    assert row(case, id).verdict is Verdict.FAIL


def biased(change):
    """Engines whose flow ends at a network that ``change`` has falsified."""

    def flow(data, net, **options):
        run = rf.flow(data, net, **options)
        return replace(run, final=change(run.final))

    return {**ENGINES, "flow": flow}


def test_limits_that_do_not_shrink_with_the_scale_fail(data, net):
    engines = biased(lambda final: rf.Network(final.a, turned(final.W, 1e-3), final.log_scale))
    case = case_of((data, net.with_scale(-9.0)), engines)
    assert row(case, "T7").verdict is Verdict.FAIL
    assert row(case, "T7b").verdict is Verdict.FAIL


def test_a_flow_that_reaches_the_least_norm_fails(net):
    data = rf.datasets.positive_family(3, 11.0)
    case = case_of((data, net.with_scale(-9.0)), biased(lambda final: final.with_scale(-0.05)))
    assert row(case, "T8c").verdict is Verdict.FAIL


def test_a_counterexample_that_does_not_fit_fails(net, monkeypatch):
    data = rf.datasets.positive_family(3, 11.0)
    case = case_of((data, net))
    wrong = case.rank.counterexample
    wrong = rf.Network(wrong.a * 0.9, wrong.W * 0.9)
    monkeypatch.setattr(case, "rank", replace(case.rank, counterexample=wrong))
    assert row(case, "T8b").verdict is Verdict.FAIL
    monkeypatch.setattr(case, "rank", replace(case.rank, V=0.5))
    assert row(case, "T8a").verdict is Verdict.FAIL


def test_a_z_matrix_with_v_above_one_fails(net, monkeypatch):
    case = case_of((rf.datasets.negative_family(3, 0.4), net))
    monkeypatch.setattr(case, "rank", replace(case.rank, V=1.5))
    assert row(case, "Z").verdict is Verdict.FAIL


def test_descent_towards_elsewhere_fails(data, net):
    def descend(data, net, **options):
        return rf.descend(data, rf.Network(1.1 * net.a, 1.1 * net.W, net.log_scale), **options)

    case = case_of((data, net.with_scale(-3.0)), {**ENGINES, "descent": descend})
    assert row(case, "GD").verdict is Verdict.FAIL


def test_times_that_do_not_scale_fail(data, net):
    def flow(data, net, **options):
        run = rf.flow(data, net, **options)
        return replace(run, events=delayed(run.events))

    case = case_of((data, net.with_scale(-9.0)), {**ENGINES, "flow": flow})
    assert row(case, "L3c").verdict is Verdict.FAIL


def test_angles_that_follow_another_power_fail(data, net):
    slope = rf.limits.bundle(data, net).angle_slope
    runs = [rf.flow(data, net.with_scale(np.log(1e-3 / slope) - 2.0 * k)) for k in range(3)]
    false = [replace(run, net=run.net.with_scale(run.net.log_scale * 0.9)) for run in runs]
    assert row(case_of(runs), "F1").verdict is Verdict.PASS
    assert row(case_of(false), "F1").verdict is Verdict.FAIL
