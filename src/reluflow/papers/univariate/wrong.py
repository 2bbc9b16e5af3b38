"""A good subject for each row, and a wrong run for each claim that a run can contradict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from reluflow import densities, engines
from reluflow.dataset import Dataset
from reluflow.datasets import from_points, sample_1d, teacher_1d
from reluflow.losses import Exponential, Logistic
from reluflow.network import Network
from reluflow.networks import gaussian
from reluflow.papers.univariate.constants import (
    example_1,
    logistic_counterexample,
    optimisation_requirements,
)
from reluflow.papers.univariate.paper import paper
from reluflow.theory.wrong import Change, ending, forged, grown, recorded, scaled, stuck, turned
from reluflow.trajectory import Trajectory

LAW = densities.uniform(-1, 1)
ZEROS = (-1 / 3, 1 / 3)


def _flow(data: Dataset, net: Network, **options: Any) -> Trajectory:
    settings = {"loss": Exponential(), "stop_log_loss": -2e4, **options}
    run: Trajectory = engines.flow(data, net, **settings)
    return run


def _sample(n: int = 20, seed: int = 0) -> Dataset:
    return sample_1d(teacher_1d(list(ZEROS)), n, density=LAW, seed=seed)


@paper.example
def late() -> Any:
    """Twenty points, sixteen neurons, to log-loss -2e4."""
    net = gaussian(2, 16, sigma_hidden=1.0, sigma_output=0.1, seed=100)
    return _flow(_sample(), net), {"density": LAW}


@paper["U10"].passes_on
def wide() -> Trajectory:
    """More neurons than the bound of Theorem 4.2 allows regions."""
    net = gaussian(2, 120, sigma_hidden=1.0, sigma_output=0.1, seed=1)
    return _flow(from_points([-1.0, -0.4, 0.5, 1.2], [1.0, 1.0, -1.0, -1.0]), net)


@paper["U13"].passes_on
def first_example() -> Trajectory:
    """Example 1."""
    return _flow(*example_1())


@paper["U14"].passes_on
def logistic_example() -> Trajectory:
    """The logistic counterexample."""
    return _flow(*logistic_counterexample(), loss=Logistic(), stop_log_loss=None)


def _constants(end_to_end: bool) -> Any:
    """A start with the constants of Theorem 3.1, or 2.3, for two points and delta = 1/2.

    One run stands for sixteen draws: each has tens of thousands of neurons.
    """
    data = sample_1d(teacher_1d([0.0]), 2, density=LAW, seed=1)
    need = optimisation_requirements(2, 1, 1.0, 1.0, 0.5, 0.5, end_to_end=end_to_end)
    hidden, output = 1.01 * need.sigma_hidden, 0.9 * need.sigma_output
    width = int(need.width)
    net = gaussian(2, width, sigma_hidden=hidden, sigma_output=output, seed=3)
    run = _flow(data, net, stop_log_loss=-30.0, record=10, rtol=1e-6)
    options = {"density": LAW, "sigma_hidden": hidden, "sigma_output": output, "delta": 0.5}
    return [run] * 16, options


def _merged() -> Any:
    """The same, as if followed until the kinks have merged into the teacher's: -log L of 1e20."""
    runs, options = _constants(True)
    size = float(runs[0].net.log_squared_norm)
    levels = np.append(np.geomspace(1e2, 5e18, len(runs[0].t) - 1), 1e20)
    end = replace(runs[0], log_loss=-levels)
    last = grown(size)(teacher_1d([0.0], strict=True), 1.0)
    return [forged(end, lambda net, share: last)] * 16, options


paper["U15"].passes_on(lambda: _constants(False))
paper["U25"].passes_on(_merged)


@paper["U18"].passes_on
def positive() -> Any:
    """Positive inputs, and the generator of the start."""
    data = from_points([0.5, 1.0, 1.5, 2.0], [1.0, 1.0, -1.0, -1.0])

    def draw(k: int) -> tuple[Dataset, Network]:
        return data, gaussian(2, 20, sigma_hidden=1.0, sigma_output=0.1, seed=k)

    return draw(0), {"generator": draw}


def _at_rate(power: float) -> Any:
    """Networks for three sample sizes, twenty each, whose population error falls like n^-power."""
    base, runs = late()[0], []
    for n in (10, 40, 160):
        for k in range(20):
            shift = (0.8 + 0.02 * k) * 0.5 * n**-power
            half = np.linspace(1.1 * shift, 1.0, n // 2)
            teacher = teacher_1d([0.0], strict=True)
            X = np.column_stack([np.concatenate([-half, half]), np.ones(2 * len(half))])
            data = Dataset(X, np.where(X[:, 0] > 0.0, 1.0, -1.0), teacher=teacher)
            runs.append(replace(base, data=data, final=teacher_1d([shift], strict=True)))
    return runs, {"density": LAW}


# ---------------------------------------------------------------------- wrong runs


def _of(change: Any) -> Any:
    """Change the run of a pair (run, options)."""
    return lambda given: (change(given[0]), given[1])


def _rotating(net: Network, share: float) -> Network:
    """A direction that turns more and more, for ever."""
    return turned(1.5 * np.sqrt(share))(turned(0.6, -1.0)(net, share), share)


def _rising(log_loss: Any) -> Any:
    log_loss[50] += 2 * (log_loss[49] - log_loss[50])
    return log_loss


def _earlier(net: Network, share: float) -> Network:
    """Late networks with a smaller margin."""
    return turned(0.3 * share)(net, share)


def _many_kinks(width: int) -> Change:
    """As many kinks as neurons, equal and far apart."""
    places = np.linspace(-1.0, 1.0, width)
    W = np.column_stack([np.ones(width), -places])
    a = np.where(np.arange(width) % 2 == 0, 1.0, -1.0)
    return lambda net, share: Network(1e3 * a, 1e3 * W)


def _moved(run: Trajectory) -> Trajectory:
    """A dead neuron that moves."""
    dead = ~run.active(t=0.0).any(axis=1)
    W = run.final.mantissa.W.copy()
    W[dead] *= 1.1
    net = Network(
        run.final.mantissa.a, W, run.final.log_scale, log_scale_out=run.final.log_scale_out
    )
    return replace(run, final=net)


paper["U1"].fails_on(_of(lambda run: recorded(run, a=lambda a: a * _ramp(a))))
paper["U2"].fails_on(_of(lambda run: recorded(run, a=lambda a: a * 1.01)))
paper["U3"].fails_on(_of(lambda run: recorded(run, log_loss=_rising)))
paper["U5"].fails_on(_of(lambda run: forged(run, _earlier)))
paper["U16"].fails_on(_of(_moved))
paper["U7"].fails_on(_of(lambda run: forged(run, _rotating)))
paper["U8"].fails_on(_of(lambda run: forged(run, turned(0.6))))
paper["U10"].fails_on(lambda run: forged(run, _many_kinks(120)))
paper["U13"].fails_on(lambda run: ending(run, scaled(1.1)))
paper["U14"].fails_on(lambda run: recorded(run, log_loss=lambda x: np.append(x[:-1], -9.0)))
paper["U15"].fails_on(_of(lambda runs: [stuck(run, 0.0) for run in runs]))
paper["U25"].fails_on(_of(lambda runs: [stuck(run, 0.0) for run in runs]))
paper["U18"].fails_on(
    lambda given: (
        given[0],
        {"generator": lambda k: (given[0][0], Network([1.0] * 20, [[1.0, 1.0]] * 20))},
    )
)
paper["U20"].passes_on(lambda: _at_rate(1.0))
paper["U20"].fails_on(lambda given: _at_rate(0.3))
paper["U23"].fails_on(_of(lambda run: ending(run, scaled(1.5))))
paper["U24"].fails_on(_of(lambda run: replace(run, log_t=run.log_t + 5.0)))


def _ramp(a: Any) -> Any:
    return (1.0 + 1e-3 * np.arange(len(a)))[:, None]
