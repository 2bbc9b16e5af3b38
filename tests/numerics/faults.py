"""Flows with a fault in them, to see that small steps notice it.

    python -m tests.numerics.faults --first 0 --count 200

prints, by the distance of the wrong end from the right one, how many wrong ends the judge lets
pass. A fault is of one of these kinds:

* ``turned``: a neuron that crosses a plane goes on as if it had been thrown back;
* ``held``: it is held on the plane for a while and then let go;
* ``labels``: one label is another (for classification one point is longer).
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np

import reluflow as rf

from . import degenerate, small_steps

KINDS = ("turned", "held", "labels")


def planted(problem, run, kind, rng):
    """Weights at the end of a faulty flow, or None if this flow has no place for such a fault."""
    size = 10.0 ** rng.uniform(-4.0, -0.5)
    if kind == "labels":
        return small_steps.weights(_other_data(problem, size).flow().final)
    events = run.events
    crossed = events[np.isin(events["kind"], ["activate", "deactivate"]) & (events["t"] > 0.0)]
    if not len(crossed):
        return None
    event = crossed[rng.integers(len(crossed))]
    t = event["t"] + size * (problem.t_end - event["t"])
    net = run.at(t).flat()
    x = problem.data.X[event["point"]]
    j, W = event["neuron"], net.W.copy()
    W[j] -= (2.0 if kind == "turned" else 1.0) * (W[j] @ x) / (x @ x) * x
    rest = problem._replace(net=rf.Network(net.a, W), t_end=problem.t_end - t)
    return small_steps.weights(rest.flow().final)


def _other_data(problem, size):
    X, y = problem.data.X.copy(), problem.data.y.copy()
    if problem.loss.name == "square":
        y[0] += size * np.abs(y).max()
    else:
        X[0] *= 1.0 + size
    return problem._replace(data=rf.Dataset(X, y))


def examine(seed):
    """Kind of each fault planted in a problem, how far it is off, and whether it passes.

    Off by more than descent misses itself: within that of the bar it cannot tell.
    """
    problem = degenerate.problem(seed)
    run = problem.flow()
    begin, right = small_steps.start(problem), small_steps.weights(run.final)
    _, gaps, agrees = small_steps.nearing(problem, begin, right)
    if not agrees:
        return []
    rng = np.random.default_rng([seed, 20])
    wrong = ((kind, planted(problem, run, kind, rng)) for kind in KINDS)
    return [
        (
            kind,
            max(0.0, small_steps.distance(end, right) - gaps[-1]),
            small_steps.nearing(problem, begin, end)[-1],
        )
        for kind, end in wrong
        if end is not None
    ]


def main():
    """Read the command line, plant faults, and print what passes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    given = parser.parse_args()
    planted_at, passed = Counter(), Counter()
    for seed in range(given.first, given.first + given.count):
        for kind, off, passes in examine(seed):
            decade = kind, int(np.floor(2.0 * np.log10(max(off, 1e-9)))) / 2.0
            planted_at[decade] += 1
            passed[decade] += passes
            if off > small_steps.NOTICED and passes:
                print(seed, kind, f"{off:.3g}", flush=True)
    for decade in sorted(planted_at):
        print(decade, f"{planted_at[decade]} planted, {passed[decade]} pass")


if __name__ == "__main__":
    main()
