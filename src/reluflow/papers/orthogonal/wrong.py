"""A good subject for each row, and a wrong run for each claim that a run can contradict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from reluflow import engines
from reluflow.dataset import Dataset
from reluflow.datasets import orthonormal
from reluflow.losses import Square
from reluflow.network import Network
from reluflow.networks import balanced
from reluflow.papers.orthogonal.paper import paper
from reluflow.theory.wrong import (
    bent,
    ending,
    forged,
    grown,
    hidden,
    recorded,
    scaled,
    turned,
    without_events,
)
from reluflow.trajectory import Trajectory

DEEP = -1000.0
LABELS = (1.0, 1.4, 0.6, -1.2)
START = (
    (0.7, 0.6, -0.4, 0.3),
    (-0.5, 0.5, 0.6, -0.3),
    (0.4, -0.3, 0.5, 0.6),
    (-0.6, 0.3, -0.2, 0.7),
)


def _net(rows: Any, signs: Any) -> Network:
    W = np.asarray(rows, dtype=float)
    W = W / np.linalg.norm(W, axis=1)[:, None]
    return Network(np.asarray(signs) * np.linalg.norm(W, axis=1), W, DEEP)


def _flow(data: Dataset, net: Network) -> Trajectory:
    run: Trajectory = engines.flow(data, net, rtol=1e-9)
    return run


@paper.example
def proper() -> Trajectory:
    """Four labels of both signs, four neurons: A4 holds."""
    return _flow(Dataset(np.eye(4), LABELS), _net(START, [1.0, 1.0, 1.0, -1.0]))


@paper["O16"].passes_on
def cover() -> Trajectory:
    """A neuron that covers each sign."""
    return _flow(Dataset(np.eye(4), LABELS), _net(np.abs(START), [1.0, 1.0, 1.0, -1.0]))


@paper["O17"].passes_on
def uncovered() -> Trajectory:
    """No negative neuron: one point is never fitted."""
    return _flow(Dataset(np.eye(4), LABELS), _net(START, np.ones(4)))


@paper["O18"].passes_on
def shared() -> Trajectory:
    """Two neurons of one mask."""
    rows = [*START, (0.5, 0.9, -0.1, 0.2)]
    return _flow(Dataset(np.eye(4), LABELS), _net(rows, [1.0, 1.0, 1.0, -1.0, 1.0]))


def _drawn(k: int) -> tuple[Dataset, Network]:
    data = orthonormal(20, labels="mixed", seed=k)
    return data, balanced(20, 20, log_scale=DEEP, directions="sphere", seed=1000 + k)


@paper["O19"].passes_on
@paper["O20"].passes_on
@paper["O22"].passes_on
def random() -> Any:
    """A start that covers every point, and where it was drawn from."""
    return _drawn(3), {"generator": _drawn, "draws": 200}


def _many(k: int) -> tuple[Dataset, Network]:
    data = Dataset(np.eye(1024), np.random.default_rng(k).uniform(0.5, 2.0, 1024))
    signs = np.ones(40)
    return data, balanced(1024, 40, log_scale=DEEP, directions="sphere", signs=signs, seed=k)


@paper["O32"].passes_on
def large() -> Any:
    """So many points that the probability of the halving event is promised."""
    return _many(0), {"generator": _many, "draws": 80}


# ---------------------------------------------------------------------- wrong runs


def _permuted(run: Trajectory) -> Trajectory:
    """The run of neurons in another order, given as that of these."""
    order = np.array([3, 1, 2, 0])
    net = Network(run.net.mantissa.a[order], run.net.mantissa.W[order], run.net.log_scale[order])
    return replace(_flow(run.data, net), net=run.net)


def _flipped(a: Any) -> Any:
    a[-1, 0] *= -1.0
    return a


def _rising(log_loss: Any) -> Any:
    log_loss[5] += 1.0
    return log_loss


def _uneven(net: Network, share: float) -> Network:
    """One neuron takes more than its share."""
    a = net.mantissa.a.copy()
    a[0] *= 1.5
    return Network(a, net.mantissa.W, net.log_scale, log_scale_out=net.log_scale_out)


def _with(generator: Any) -> Any:
    return lambda given: (given[0], {**given[1], "generator": generator})


def _full(k: int) -> tuple[Dataset, Network]:
    """Every neuron active everywhere: masks repeat."""
    data, net = _drawn(k)
    return data, Network(net.mantissa.a, np.abs(net.mantissa.W), net.log_scale)


def _tied(k: int) -> tuple[Dataset, Network]:
    """Equal labels and single masks: every group jumps at once."""
    return Dataset(np.eye(16), np.ones(16)), _net(2.0 * np.eye(16) - 1.0, np.ones(16))


def _narrow(k: int) -> tuple[Dataset, Network]:
    """Neurons that see one point each: nothing is halved."""
    data, _ = _many(k)
    return data, _net(2.0 * np.eye(1024)[:40] - 1.0, np.ones(40))


paper["O1"].fails_on(lambda run: recorded(run, a=lambda a: a * np.linspace(1, 2, len(a))[:, None]))
paper["O2"].fails_on(lambda run: recorded(run, a=_flipped))
paper["O3"].fails_on(lambda run: recorded(run, log_loss=_rising))
paper["O4"].fails_on(without_events)
paper["O31"].fails_on(lambda run: ending(run, scaled(1.1)))
paper["O6"].fails_on(lambda run: forged(run, hidden(1.5)))
for _id in ("O7", "O8", "O9", "O10", "O11", "O35"):
    paper[_id].fails_on(_permuted)
paper["O34"].fails_on(lambda run: forged(run, hidden(1.3)))
paper["O12"].fails_on(lambda run: ending(run, turned(0.3)))
paper["O13"].fails_on(lambda run: forged(run, turned(0.3)))
paper["O17"].fails_on(lambda run: recorded(run, log_loss=lambda x: x - 100.0))
paper["O18"].fails_on(lambda run: forged(run, _uneven))
paper["O19"].fails_on(_with(_full))
paper["O20"].fails_on(_with(_tied))
paper["O22"].fails_on(_with(_tied))
paper["O32"].fails_on(_with(_narrow))


def _wrongly(**wrong: Any) -> Any:
    """The subject with engines that compute wrongly."""
    return lambda run: (run, {"engines": wrong})


def _only(unlike: Any) -> Any:
    """A flow that is forged where something is unlike the subject's."""

    def flow(data: Dataset, net: Network, **options: Any) -> Trajectory:
        run: Trajectory = engines.flow(data, net, **options)
        return forged(run, grown(0.1, late=True)) if unlike(data, options) else run

    return flow


for _id in ("O23", "O24"):
    paper[_id].fails_on(_wrongly(flow=bent(engines.flow, hidden(1.001))))
paper["O25"].fails_on(_wrongly(descent=bent(engines.descend, hidden(1.0 + 1e-9))))
paper["O26"].fails_on(_wrongly(descent=bent(engines.descend, grown(0.1, late=True))))
paper["O27"].fails_on(_wrongly(flow=_only(lambda data, _: not np.array_equal(data.X, np.eye(4)))))
paper["O28"].fails_on(_wrongly(flow=_only(lambda _, options: options["loss"] != Square())))
