"""Runs of both engines, of every form, are read back and saved again bit for bit."""

import math

import numpy as np
import pytest

import reluflow as rf
from test_trajectory import assert_same

LOSSES = (
    rf.losses.Square(),
    rf.losses.Square("1/2"),
    rf.losses.Exponential(),
    rf.losses.Logistic(),
)


def drawn(seed):
    """A short run of a small random problem: flow, descent of every form."""
    rng = np.random.default_rng(seed)
    n, d, m = (int(k) for k in rng.integers(1, 6, size=3))
    loss = LOSSES[rng.integers(4)]
    form = ("flow", "weights", "hidden", "limit", "batches")[seed % 5]
    loss = LOSSES[0] if form == "limit" else loss
    y = rng.normal(size=n) if loss.name == "square" else rng.choice([-1.0, 1.0], n)
    data = rf.Dataset(rng.normal(size=(n, d)), y, name=rng.choice([None, "drawn", "µ"]))
    scale = 0.0 if form in ("hidden", "limit") else float(rng.choice([0.0, -3.0, -1e3]))
    net = rf.Network(rng.normal(size=m), rng.normal(size=(m, d)), scale)
    train = "both" if form in ("flow", "weights", "batches") else "hidden"
    record = int(rng.integers(2, 7))
    if form == "flow":
        return rf.flow(data, net, loss=loss, t_end=float(rng.uniform(0.01, 2.0)), record=record)
    steps = math.inf if form == "limit" else int(rng.integers(1, 9))
    options = {"max_seconds": 5.0} if form == "limit" else {}
    if form == "batches":
        options = {"batch": 1, "momentum": float(rng.choice([0.0, 0.9])), "seed": seed}
    lr = 1e-2 / n
    return rf.descend(
        data, net, lr=lr, steps=steps, loss=loss, train=train, record=record, **options
    )


@pytest.mark.parametrize("count", [25, pytest.param(10_000, marks=pytest.mark.long)])
def test_runs_come_back_as_they_were(tmp_path, count):
    forms = set()
    for seed in range(count):
        run = drawn(seed)
        forms.add(run.stats.get("form", "flow"))
        run.save(tmp_path / "one.rf")
        loaded = rf.load(tmp_path / "one.rf")
        assert_same(run, loaded)
        loaded.save(tmp_path / "two.rf")
        assert (tmp_path / "one.rf").read_bytes() == (tmp_path / "two.rf").read_bytes()
    assert forms == {"flow", "weights", "gram", "frozen", "batches"}
