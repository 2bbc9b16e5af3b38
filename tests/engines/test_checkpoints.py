"""Runs that are saved on their way, interrupted there and gone on with."""

import math
import os
import signal
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

import reluflow as rf
from reluflow.engines import checkpoints, resume
from reluflow.engines.checkpoints import saving
from reluflow.errors import FileError, ReluflowWarning

PROBLEM = {
    "data": rf.datasets.centred(d=4, seed=0),
    "net": rf.networks.balanced(4, width=8, log_scale=-3.0, seed=1),
}
WIDE = {  # more dimensions than points: trained by duals
    "data": rf.datasets.gaussian(6, 30, seed=0),
    "net": rf.networks.gaussian(30, 7, sigma_hidden=0.1, sigma_output=1.0, seed=1),
}
DESCENT = {"lr": 0.05, "steps": 3000, "record": 40, "loss": rf.losses.Square(), "train": "both"}
NOTHING = {"stop_loss": None, "stop_log_loss": None, "max_seconds": None, "progress": False}
DESCENTS = {
    "weights": (PROBLEM, DESCENT),
    "chosen iterations": (PROBLEM, {**DESCENT, "record": [10, 700, 2999]}),
    "until a loss": (PROBLEM, {**DESCENT, "steps": math.inf, "stop_loss": 1e-3}),
    "duals": (WIDE, {**DESCENT, "lr": 1e-3, "train": "hidden"}),
    "to the limit": (WIDE, {**DESCENT, "lr": 1e-3, "train": "hidden", "steps": math.inf}),
}


def interrupt_at_offer(monkeypatch, number):
    """Send Ctrl-C when the engine offers to save for the so-many-th time."""
    offers = []

    def offer(so_far):
        offers.append(so_far)
        if len(offers) == number:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(checkpoints, "offer", offer)


def stopped(monkeypatch, path, number, start):
    """Start a run and stop it; what was saved of it, None if it ended before."""
    with monkeypatch.context() as patch:
        interrupt_at_offer(patch, number)
        saved = []
        with saving(math.inf, lambda run: saved.append(run) or run.save(path)):
            try:
                start()
            except KeyboardInterrupt:
                run = rf.load(path)
                assert (run.status, run.reason) == ("interrupted", "a signal stopped it")
                return run
    return None


@pytest.mark.parametrize("name", DESCENTS)
def test_a_descent_interrupted_again_and_again_ends_in_the_same_bits(name, tmp_path, monkeypatch):
    problem, options = DESCENTS[name]
    options = NOTHING | options
    calm = rf.descend(**problem, **options)
    path, times = tmp_path / "x.rf", []
    run = stopped(monkeypatch, path, 3, lambda: rf.descend(**problem, **options))
    while run is not None and len(times) < 20:
        times.append(float(run.t[-1]))
        last = run
        run = stopped(monkeypatch, path, 2, partial(resume, last, **options))
    assert len(times) >= 2
    assert times == sorted(times)
    again = resume(last, **options)
    assert again.t.tolist() == calm.t.tolist()
    for stored in ("a", "W", "log_scale", "log_scale_out"):
        assert again.kept[stored].tobytes() == calm.kept[stored].tobytes(), stored
    assert again.final.W.tobytes() == calm.final.W.tobytes()
    assert again.log_loss.tobytes() == calm.log_loss.tobytes()
    assert again.events.tolist() == calm.events.tolist()
    assert (again.status, again.stats) == (calm.status, calm.stats)
    assert again.at(t=float(calm.t[1])).W.tobytes() == calm.at(t=float(calm.t[1])).W.tobytes()


@pytest.mark.parametrize("record", [30, [0.5, 5.0, 60.0]])
def test_a_flow_interrupted_again_and_again_ends_within_its_tolerance(
    record, tmp_path, monkeypatch
):
    options = {"t_end": 80.0, "record": record, "max_events": 10_000, "train": "both"}
    options |= {"loss": rf.losses.Square(), "rtol": 1e-8}
    calm = rf.flow(**PROBLEM, **options)
    path, times = tmp_path / "x.rf", []
    run = stopped(monkeypatch, path, 3, lambda: rf.flow(**PROBLEM, **options))
    while run is not None and len(times) < 5:
        times.append(float(run.t[-1]))
        last = run
        run = stopped(monkeypatch, path, 4, partial(resume, last, **options))
    assert len(times) >= 3
    assert times == sorted(times)
    again = resume(last, **options)
    assert (again.status, again.t[-1]) == ("t_end" if record == 30 else again.status, calm.t[-1])
    assert len(again.t) <= 30
    assert again.events[["neuron", "point", "kind"]].tolist() == (
        calm.events[["neuron", "point", "kind"]].tolist()
    )
    np.testing.assert_allclose(again.events["t"], calm.events["t"], rtol=1e-6)
    np.testing.assert_allclose(again.final.W, calm.final.W, rtol=1e-6, atol=1e-9)
    assert again.stats["steps"] >= calm.stats["steps"]


@pytest.mark.parametrize("start", [rf.flow, rf.descend])
def test_saving_takes_nothing_from_a_run(start, tmp_path):
    options = {"t_end": 50.0} if start is rf.flow else {"lr": 0.05, "steps": 2000}
    calm, saved = start(**PROBLEM, **options), []
    with saving(0.0, saved.append):
        watched = start(**PROBLEM, **options)
    assert len(saved) > 3
    assert {run.status for run in saved} == {"interrupted"}
    assert all(a.t[-1] < b.t[-1] for a, b in pairwise(saved))
    calm.save(tmp_path / "calm.rf")
    watched.save(tmp_path / "watched.rf")
    assert (tmp_path / "calm.rf").read_bytes() == (tmp_path / "watched.rf").read_bytes()


def test_a_checkpoint_that_cannot_be_written_is_a_warning_and_the_run_goes_on():
    def full(run):
        raise FileError("cannot write x.rf (no space left on device)")

    with saving(0.0, full), pytest.warns(ReluflowWarning, match="no checkpoint: cannot write x.rf"):
        run = rf.descend(**PROBLEM, lr=0.05, steps=10)
    assert run.status == "steps"


def test_a_last_save_that_cannot_be_written_is_told(monkeypatch):
    def full(run):
        raise FileError("cannot write x.rf (no space left on device)")

    interrupt_at_offer(monkeypatch, 1)
    with (
        saving(math.inf, full),
        pytest.warns(ReluflowWarning, match="is lost: cannot write x.rf"),
        pytest.raises(KeyboardInterrupt),
    ):
        rf.descend(**PROBLEM, lr=0.05, steps=10_000)


def test_outside_of_a_block_nothing_is_saved():
    with saving(0.0, lambda run: None):
        pass
    checkpoints.offer(lambda reason: pytest.fail("nobody asked"))
    checkpoints.offer_last(lambda reason: pytest.fail("nobody asked"))
