"""Sweeps over which layers train, over rates, batches and momentum."""

import numpy as np

import reluflow as rf
from reluflow.sweeps import Plan, Store, execute, measures

from .helpers import SWEEP

DESCENT = SWEEP.partition("[sweep.grid]")[0]
FLOW = DESCENT.replace('name = "descent"\nlr = 0.05\nsteps = 30', 'name = "flow"\nt_end = 1.0')


def swept(text, folder):
    plan, store = Plan.parse(text), Store(folder)
    summary = execute(plan, store, workers=0)
    assert summary.failed == 0
    return [store.load(point).run for point in plan.points]


def test_a_sweep_over_batches_and_momentum(tmp_path):
    grid = '[sweep.grid]\n"engine.momentum" = [0.0, 0.9]\n"engine.batch" = [1, 3]\n'
    runs = swept(DESCENT + grid, tmp_path)
    found = {(run.options["momentum"], run.options["batch"]) for run in runs}
    assert found == {(0.0, 1), (0.0, 3), (0.9, 1), (0.9, 3)}
    assert len({run.options["seed"] for run in runs}) == len(runs)  # every point has its own
    assert all(np.isfinite(run.log_loss).all() for run in runs)


def test_a_sweep_over_layers_and_rates(tmp_path):
    grid = (
        '[sweep.grid]\n"engine.train" = ["both", "linearised"]\n"engine.rates" = [[1, 1], [1, 2]]\n'
    )
    runs = swept(FLOW + grid, tmp_path)
    assert {run.options["train"] for run in runs} == {"both", "linearised"}
    assert {tuple(run.options.get("rates", ())) for run in runs} == {(), (1.0, 2.0)}


def test_a_sweep_over_slopes_of_the_activation(tmp_path):
    runs = swept(DESCENT + '[sweep.grid]\n"network.slope" = [0.0, 0.3]\n', tmp_path)
    assert {run.net.slope for run in runs} == {run.final.slope for run in runs} == {0.0, 0.3}


def test_a_sweep_over_decay(tmp_path):
    runs = swept(FLOW + '[sweep.grid]\n"engine.decay" = [0.0, 0.1]\n', tmp_path)
    plain, *_, decayed = runs
    assert (plain.decay, decayed.decay) == (0.0, 0.1)
    assert measures.MEASURES["objective"](plain) == plain.loss[-1]
    assert measures.MEASURES["objective"](decayed) > decayed.loss[-1]
    above = measures.MEASURES["above_optimum"]
    assert measures.value(above, decayed) == rf.interpolators.excess(decayed).at_most > 0.0
    assert np.isnan(measures.value(above, plain))  # not at a fit
