"""Changes of the pattern on the way to the limit: dates, kinds, counts (HD-10)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reluflow as rf
from reluflow.engines.descent.limit import events, next
from reluflow.engines.descent.limit.events import EventLog
from reluflow.engines.descent.limit.modes import modes

HALF = rf.losses.Square("1/2")
STEPS = 1500


def problem(n, d, signs, seed, *, eps=0.005, constant=4.0):
    data = rf.datasets.bartlett(n, d, seed=seed)
    net = rf.networks.by_preactivations(data, eps, signs)
    top = np.linalg.eigvalsh(data.gram)[-1]
    return data, net, 1.0 / max(constant * d, 1.1 * top)


def loop_changes(data, net, lr, steps):
    """(iteration, neuron, point, kind) of a plain loop in weights."""
    W, a, found = net.flat().W, net.flat().a, []
    active = data.X @ W.T > 0
    for t in range(1, steps + 1):
        P = data.X @ W.T
        r = np.maximum(P, 0.0) @ a - data.y
        W = W - lr * a[:, None] * (((P > 0) * r[:, None]).T @ data.X)
        now = data.X @ W.T > 0
        for j, i in np.argwhere((now != active).T):
            found.append((t, j, i, "activate" if now[i, j] else "deactivate"))
        for j in np.flatnonzero(active.any(axis=0) & ~now.any(axis=0)):
            found.append((t, j, -1, "die"))
        active = now
    return sorted(found, key=lambda row: (row[0], row[1], row[2] < 0, row[2]))


def descend(data, net, lr, **options):
    return rf.descend(data, net, lr=lr, steps=np.inf, loss=HALF, train="hidden", **options)


@pytest.mark.parametrize(
    ("n", "d", "signs", "seed", "constant"),
    [
        (12, 4000, [1], 0, 2.0),
        (12, 4000, [1, -1], 1, 2.0),
        (20, 24, [1], 0, 4.0),
        (20, 22, [1, -1], 3, 4.0),
        (14, 16, [1, 1, -1], 1, 6.0),
        (10, 60, [1], 2, 200.0),
    ],
)
def test_events_are_those_of_the_plain_loop(n, d, signs, seed, constant):
    data, net, lr = problem(n, d, signs, seed, constant=constant)
    run = descend(data, net, lr)
    assert run.status in ("converged", "stationary")
    assert run.stats["frozen_from"] is not None
    plain = loop_changes(data, net, lr, run.stats["frozen_from"] + 300)
    assert run.events[["t", "neuron", "point", "kind"]].tolist() == plain
    times = np.unique(run.events["t"])
    assert run.stats["changes"] == len(times)
    assert run.stats["last_change"] == times[-1] <= run.stats["frozen_from"]
    assert run.stats["events_until"] is None
    np.testing.assert_array_equal(run.events["log_t"], np.log(run.events["t"]))


def test_in_high_dimension_all_changes_come_with_the_first_step():
    data, net, lr = problem(12, 10**6, [1], 0)
    run = descend(data, net, lr)
    assert set(run.events["t"]) == {1.0}
    assert set(run.events["kind"]) == {"deactivate"}
    np.testing.assert_array_equal(run.events["point"], np.flatnonzero(data.y < 0))


def test_a_neuron_kicked_off_every_point_dies():
    data = rf.Dataset(np.eye(3), [-1.0, -2.0, -1.5])
    run = descend(data, rf.Network([1.0], [[0.1, 0.1, -0.1]]), 0.5)
    assert run.events["kind"].tolist() == ["deactivate", "deactivate", "die"]
    assert run.events["point"].tolist() == [0, 1, -1]
    assert run.status == "stationary"


def test_events_survive_a_file(tmp_path):
    data, net, lr = problem(20, 24, [1], 0)
    run = descend(data, net, lr)
    run.save(tmp_path / "run.rf")
    np.testing.assert_array_equal(rf.load(tmp_path / "run.rf").events, run.events)


def test_a_stop_ends_the_events_too():
    data, net, lr = problem(20, 24, [1], 0)
    full = descend(data, net, lr)
    level = 0.2 * full.log_loss[0] + 0.8 * full.log_loss[-1]
    run = descend(data, net, lr, stop_log_loss=level)
    assert run.status == "stop_loss"
    before = full.events[full.events["t"] <= run.stats["iterations"]]
    assert 0 < len(before) < len(full.events)
    np.testing.assert_array_equal(run.events, before)


def test_more_changes_than_are_kept_are_counted(monkeypatch):
    data, net, lr = problem(20, 24, [1], 0)
    full = descend(data, net, lr)
    assert len(full.events) > 20
    monkeypatch.setattr(events, "MAX_EVENTS", 20)
    few = descend(data, net, lr)
    until = few.stats["events_until"]
    assert 0 < len(few.events) <= 20
    np.testing.assert_array_equal(few.events, full.events[full.events["t"] <= until])
    for name in ("changes", "last_change"):
        assert few.stats[name] == full.stats[name]


def test_a_pattern_that_differs_after_rounding_is_written_down():
    log = EventLog(np.array([[True, False]]))
    log.reach(4, np.array([[True, True]]))
    log.add(np.array([[7, 0, 0]]))
    log.reach(7, np.array([[False, True]]))
    assert log.events()[["t", "point"]].tolist() == [(4.0, 1), (7.0, 0)]
    assert (log.iterations, log.last) == (2, 7)


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6), closeness=st.floats(1e-9, 1e-3))
def test_a_close_approach_is_decided_without_walking_through_it(seed, closeness):
    """Pairs that come near zero: the curvature bound answers, and answers like the loop."""
    rng = np.random.default_rng(seed)
    data = rf.datasets.bartlett(6, 9, seed=seed)
    top = np.linalg.eigvalsh(data.gram)[-1]
    eta = 0.02 / top
    P = rng.uniform(0.05, 0.5, (1, 6)) * rng.choice([-1.0, 1.0], (1, 6), p=[0.3, 0.7])
    found = modes(data.gram, np.ones(1), P, np.abs(data.y), eta)
    path = np.stack([found.preactivations(float(t))[0] for t in range(1, STEPS)])
    low = np.where(found.active[0], path.min(axis=0), -path.max(axis=0))
    shift = np.where(found.active[0], 1.0, -1.0) * (closeness - low)
    close = found.__class__(**{**vars(found), "P": found.P + shift})
    asked = []
    original = next._keep_signs

    def counting(*arguments):
        asked.append(1)
        return original(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(next, "_keep_signs", counting)
        ahead, undecided = next.look_ahead(close)
    signs = (path + shift > 0) != found.active[0]
    first = 1.0 + np.argmax(signs.any(axis=1)) if signs.any() else np.inf
    assert ahead == first or (np.isinf(first) and ahead >= STEPS)
    assert undecided >= STEPS or np.isinf(undecided)
    assert len(asked) < 1500


def test_undecided_pairs_do_not_hide_an_earlier_change():
    """One pair ends on the boundary, another crosses it on the way there."""
    G, a = np.eye(2), np.ones(1)
    P, y = np.array([[1.0, 0.5]]), np.array([0.0, -0.5])
    found = modes(G, a, P, y, 0.25)
    for chunk in (1, 2**20):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(next, "CHUNK", chunk)
            assert next.look_ahead(found) == (3.0, np.inf)  # 0.5, 0.25, 0.06, below zero
    # alone, the first pair falls by a quarter each step: its sign is known down to 1e-12
    change, undecided = next.look_ahead(modes(G, a, P, np.array([0.0, 0.5]), 0.25))
    assert np.isinf(change)
    assert undecided == np.ceil(np.log(2e-12) / np.log(0.75))
    still = modes(G, a, P, y, 2.0)
    assert next.look_ahead(still) == (np.inf, 1.0)
