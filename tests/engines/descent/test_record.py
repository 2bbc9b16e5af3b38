"""What a descent keeps, and recomputing what it did not keep."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reluflow as rf
from reluflow.engines.descent import record
from reluflow.engines.descent.record import schedule

from .reference import problem, same


@given(st.integers(2, 500), st.integers(0, 2**53))
def test_a_count_gives_a_geometric_grid(count, steps):
    grid = schedule(count, steps, 8)
    assert 1 <= len(grid) <= count
    assert (grid[0], grid[-1]) == (0, steps)
    assert (np.diff(grid) > 0).all()
    if steps > 10**6 and count > 50:
        ratios = grid[-20:] / grid[-21:-1]
        # geometric where the floor no longer matters
        np.testing.assert_allclose(ratios, steps ** (1 / (count - 2)), rtol=0.01)


def test_grids_are_floors_of_a_geometric_progression():
    exact = [0, *np.floor(1000 ** (np.arange(10) / 9) * (1 + 1e-12))]
    assert list(schedule(11, 1000, 8)) == sorted(set(exact))
    assert list(schedule(2, 1000, 8)) == [0, 1000]
    assert list(schedule(100, 3, 8)) == [0, 1, 2, 3]


def test_records_stay_below_256_megabytes():
    assert len(schedule(200, 10**9, 64 * 2**20)) == 4
    assert len(schedule(200, 10**9, 2**30)) == 2
    with pytest.raises(rf.errors.InputError, match=r"asks for 5 states of .* Ask for 4 at most"):
        schedule(np.arange(5), 10, 64 * 2**20)


def test_exact_iterations_are_recorded_as_asked():
    data, net = problem(8, 8, 30, rf.losses.Square(), seed=0)
    run = rf.descend(data, net, lr=0.1, steps=50, record=[7, 0, 7, 33])
    assert list(run.t) == [0, 7, 33]
    assert list(run.log_t) == [-np.inf, np.log(7), np.log(33)]
    assert run.stats["iterations"] == 50
    single = [rf.descend(data, net, lr=0.1, steps=k).final for k in (0, 7, 33, 50)]
    for k in range(3):
        assert same(run.network(k), single[k])
    assert same(run.final, single[3])


@pytest.mark.parametrize("train", ["both", "hidden"])
@pytest.mark.parametrize("sizes", [(8, 8, 30), (5, 2, 9), (4, 12, 6), (120, 40, 20)])
def test_any_iteration_is_recomputed_bitwise(train, sizes):
    data, net = problem(*sizes, rf.losses.Square(), seed=1)
    every = rf.descend(data, net, lr=0.2, steps=1500, train=train, record=np.arange(0, 1501, 3))
    few = rf.descend(data, net, lr=0.2, steps=1500, train=train, record=5)
    assert len(few.t) <= 5
    for t in (0, 1, 31, 32, 33, 500, 1023, 1024, 1025, 1499, 1500):
        k = t - t % 3
        assert same(few.at(k), every.network(k // 3)), t
        assert few.at(t) == every.at(t)


def test_recomputing_is_bitwise_at_a_tiny_scale():
    data, net = problem(8, 8, 30, rf.losses.Square(), seed=2)
    net = net.with_scale(-800.0)
    every = rf.descend(data, net, lr=0.5, steps=9000, record=np.arange(0, 9001, 100))
    few = rf.descend(data, net, lr=0.5, steps=9000, record=3)
    for k in range(0, 91, 13):
        assert same(few.at(100 * k), every.network(k)), k


def test_times_between_iterations_belong_to_the_one_before():
    data, net = problem(5, 2, 9, rf.losses.Square(), seed=3)
    run = rf.descend(data, net, lr=0.1, steps=20)
    assert run.at(7.9) == run.at(7)
    for k in (1, 7, 20):
        assert run.at(log_t=np.log(k)) == run.at(k)
    assert run.at(log_t=-np.inf) == net


def test_the_first_iteration_below_a_loss_is_found_between_records():
    data, net = problem(8, 8, 30, rf.losses.Square(), seed=7)
    every = rf.descend(data, net, lr=5.0, steps=400, record=np.arange(401))  # far from monotone
    assert (np.diff(every.log_loss) > 0).sum() > 50
    few = rf.descend(data, net, lr=5.0, steps=400, record=4)
    for level in np.quantile(every.log_loss, (0.0, 0.02, 0.3, 0.9, 1.0)):
        first = int(np.flatnonzero(every.log_loss <= level)[0])
        assert few.at(log_loss=level) == every.at(first)
    chosen = rf.descend(data, net, lr=5.0, steps=400, record=[3])  # nothing kept near the end
    level = every.log_loss.min()
    assert chosen.at(log_loss=level) == every.at(int(np.argmin(every.log_loss)))
    with pytest.raises(rf.errors.InputError, match=r"never falls to -1e\+06 \(least: -"):
        few.at(log_loss=-1e6)


def test_a_saved_run_recomputes_the_same(tmp_path):
    data, net = problem(4, 12, 6, rf.losses.Logistic(), seed=4)
    for train in ("both", "hidden"):
        run = rf.descend(
            data, net, lr=rf.LossBased(0.01), steps=300, train=train, loss=rf.losses.Logistic()
        )
        run.save(tmp_path / "run.zip")
        loaded = rf.load(tmp_path / "run.zip")
        assert loaded.status == run.status
        assert loaded.at(137) == run.at(137)
        assert loaded.final == run.final


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({"t": 21}, "iterations 0 to 20; 21 is outside"),
        ({"t": -1}, "-1 is outside"),
        ({"t": np.inf}, "inf is outside"),
        ({"log_t": 3.1}, "22.1.* is outside"),
    ],
)
def test_iterations_outside_the_run_are_refused(target, message):
    data, net = problem(5, 2, 9, rf.losses.Square(), seed=3)
    run = rf.descend(data, net, lr=0.1, steps=20)
    with pytest.raises(rf.errors.InputError, match=message):
        run.at(**target)


def test_memory_is_thinned_in_a_run(monkeypatch):
    data, net = problem(8, 8, 30, rf.losses.Square(), seed=0)
    monkeypatch.setattr(record, "MEMORY_BYTES", 30_000)
    run = rf.descend(data, net, lr=0.1, steps=10_000, record=200)
    assert 4 < len(run.t) < 10
    assert sum(array.nbytes for array in run.kept.values()) < 30_000
    assert (run.t[0], run.t[-1]) == (0, 10_000)
