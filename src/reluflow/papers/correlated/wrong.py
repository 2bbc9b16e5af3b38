"""A good subject for each row, and a wrong run for each claim that a run can contradict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from reluflow import engines
from reluflow.datasets import cone
from reluflow.network import Network
from reluflow.networks import balanced
from reluflow.papers.correlated.paper import paper
from reluflow.theory.wrong import (
    bent,
    ending,
    forged,
    grown,
    hidden,
    recorded,
    same,
    scaled,
    stuck,
    turned,
)
from reluflow.trajectory import Trajectory

DEEP, ABOVE = -3e6, -4e7


def _flow(half_angle: float, seed: int, width: int, log_scale: float) -> Trajectory:
    data = cone(3, 3, half_angle=half_angle, seed=seed)
    net = balanced(3, width, log_scale=log_scale, directions="sphere", seed=1000 + seed)
    run: Trajectory = engines.flow(data, net, rtol=1e-11, record=400)
    return run


@paper.example
def deep() -> Trajectory:
    """Three points within 0.7, twenty neurons, a scale that satisfies Assumption 2."""
    return _flow(0.7, 17, 20, DEEP)


@paper["L3b"].passes_on
@paper["L5c"].passes_on
def practical() -> Trajectory:
    """At a practical scale the bounds of Lemmas 3 and 5 are above the error of the run."""
    return _flow(0.7, 17, 20, -13.0)


@paper["T8b"].passes_on
@paper["T8c"].passes_on
def above() -> Trajectory:
    """Data on which rank 1 has not the least norm."""
    from reluflow import spec

    document = {key: value for key, value in (paper.preset or {}).items() if key != "study"}
    task = spec.build(document)
    run: Trajectory = engines.flow(task.data, task.net.with_scale(ABOVE), rtol=1e-11, record=400)
    return run


@paper["T6c"].passes_on
def at_the_bound() -> Trajectory:
    """The scale that Assumption 2 with eps = 1/4 just allows."""
    from reluflow.limits import yardsticks

    run = deep()
    bound = yardsticks(run.data, run.net).log_scale_bound(0.25)
    again: Trajectory = engines.flow(run.data, run.net.with_scale(bound), rtol=1e-8)
    return again


def _orthogonal() -> Any:
    from reluflow.dataset import Dataset

    v = np.array([2.0, 1.0, 1.0]) / np.sqrt(6.0)
    return Dataset(np.eye(3), v, teacher=v), balanced(3, 6, log_scale=-9.0, seed=1)


paper["T8e"].passes_on(_orthogonal)
paper["Z"].passes_on(_orthogonal)


@paper["T9"].passes_on
def drawn() -> Any:
    """Three neurons, so that a hundred draws decide, and the generator of their start."""
    data = cone(3, 3, half_angle=0.7, seed=17)
    return (data, balanced(3, 3, seed=0)), {"generator": lambda k: (data, balanced(3, 3, seed=k))}


# ---------------------------------------------------------------------- wrong runs


def _swapped(run: Trajectory) -> Trajectory:
    """The first two crossings of a neuron in the other order."""
    events = run.events.copy()
    for j in range(run.net.width):
        mine = np.flatnonzero((events["neuron"] == j) & (events["point"] >= 0))
        if len(mine) >= 2 and events["point"][mine[0]] != events["point"][mine[1]]:
            events["point"][mine[:2]] = events["point"][mine[:2]][::-1]
            break
    return replace(run, events=events)


def _late(run: Trajectory) -> Trajectory:
    """Crossings of the deep run half a unit of time late."""
    events = deep().events.copy()
    events["t"] += 0.5
    events["log_t"] = np.log(events["t"])
    return replace(deep(), events=events)


def _asleep(run: Trajectory) -> Trajectory:
    """Half of J+ without activity, so that the gradient is too small."""
    active = run.active(-1)
    dead = int(np.flatnonzero(~active.any(axis=1))[0])
    alive = np.flatnonzero(active.all(axis=1))[::2]

    def put_out(mode: Any) -> Any:
        mode[:, alive] = mode[-1:, dead][:, None]
        return mode

    return recorded(run, mode=put_out)


paper["P1"].fails_on(lambda run: recorded(run, a=lambda a: a * 1.001))
paper["L3a"].fails_on(_swapped)
paper["L3b"].fails_on(_late)
paper["L4"].fails_on(lambda run: forged(run, grown(0.2, -1.0, late=True)))
paper["L5a"].fails_on(lambda run: forged(run, grown(1e6)))
paper["L5b"].fails_on(lambda run: forged(run, turned(0.5)))
paper["L5c"].fails_on(lambda run: forged(deep(), grown(0.7)))
paper["B1"].fails_on(lambda run: forged(run, same, angle=lambda t, true: 0.0))
paper["B2"].fails_on(lambda run: forged(run, _uneven))
paper["B3"].fails_on(lambda run: forged(run, same, angle=lambda t, true: true + np.log1p(t)))
for _id in ("S1", "S2", "S3"):
    paper[_id].fails_on(lambda run: forged(run, turned(2.5)))
paper["T6a"].fails_on(lambda run: forged(run, grown(-20.0)))
paper["T6c"].fails_on(lambda run: forged(run, grown(-20.0)))
for _id in ("T6b", "PL", "T7", "T8c", "F1"):
    paper[_id].fails_on(stuck)
paper["T7b"].fails_on(lambda run: ending(run, turned(0.3)))
paper["R1"].fails_on(_asleep)
paper["L3c"].fails_on(lambda run: (run, {"engines": {"flow": _hasty}}))
paper["GD"].fails_on(
    lambda run: (run, {"engines": {"descent": bent(engines.descend, scaled(1.5))}})
)
paper["T9"].fails_on(lambda given: (given[0], {"generator": lambda k: _negative(given[0][0], k)}))


def _negative(data: Any, k: int) -> Any:
    """A start without a positive neuron."""
    return data, balanced(3, 3, signs=-np.ones(3), seed=k)


def _hasty(*problem: Any, **options: Any) -> Trajectory:
    """A flow whose crossings come early, at every scale by the same share."""
    run: Trajectory = engines.flow(*problem, **options)
    events = run.events.copy()
    events["t"] *= 0.999
    return replace(run, events=events)


def _uneven(net: Network, share: float) -> Network:
    """Output weights that grow beside the hidden ones."""
    return scaled(1.0 + share)(hidden(1.0)(net, share), share)
