r"""Whether the accuracy of the flow depends on units: errors at other sizes over those at size one.

Small random problems with a solution in 40 digits, each put in other units by a factor c = 2^k:

- ``points``: (c X, y), ``labels``: (X, c y) (square loss), with weights and time in the same units,
  so that the solution is the old one times a power of c. Even k are exact in floats and give the
  same bits; odd k have weights times sqrt(2) and round everything differently.
- ``start``: the weights of the start alone times c <= 1. That is another problem: it is compared
  with the flow at rtol 1e-12.

    PYTHONPATH=src:tests python -m tests.numerics.scales --out scales.jsonl

writes one JSON line for a problem, a family, an exponent and a tolerance, and ends with a table:
medians and the worst of error / rtol, and of its ratio to that of the same problem at c = 1. Errors
below `ROUNDING` count as that.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import reluflow as rf
from numerics.problems import LOSSES, draw, weights

EXPONENTS = (-40, -39, -20, -19, 0, 19, 20, 39, 40)
TOLERANCES = (1e-6, 1e-8, 1e-10)
FAMILIES = ("points", "labels", "start")
ROUNDING = 1e-14
NEEDED = 20


def size(family, exponent):
    """Factors of points, labels, weights and time."""
    c, root = 2.0**exponent, 2.0 ** (exponent / 2)
    return {
        "points": (c, 1.0, 1.0 / root, 1.0 / c),
        "labels": (1.0, c, root, 1.0 / c),
        # small starts take longer to grow
        "start": (1.0, 1.0, c, 1.0 - 0.5 * exponent * np.log(2.0)),
    }[family]


def flow(problem, family, exponent, rtol):
    """The run of a problem in other units, and its final weights in the old ones."""
    points, labels, weight, time = size(family, exponent)
    run = rf.flow(
        rf.Dataset(points * problem.X, labels * problem.y),
        rf.Network(weight * problem.a, weight * problem.W),
        loss=LOSSES[problem.loss],
        t_end=time * problem.t_end,
        rtol=rtol,
        max_seconds=60.0,
    )
    return run, weights(run.final) / (1.0 if family == "start" else weight)


def lines(seed):
    """All errors of one problem, or none if it has no reference or is solved by rounding."""
    problem = draw(seed)
    try:
        exact = problem.reference().state
    except RuntimeError:  # a neuron comes to rest at the origin: the reference does not pass
        return
    if np.array_equal(exact, np.column_stack([problem.a, problem.W])):  # all dead
        return
    for family in FAMILIES:
        if family == "labels" and problem.loss != "square":
            continue
        for k in EXPONENTS if family != "start" else (-40, -20, 0):
            aim = flow(problem, family, k, 1e-12)[1] if family == "start" else exact
            for rtol in TOLERANCES:
                run, end = flow(problem, family, k, rtol)
                error = float(np.linalg.norm(end - aim) / np.linalg.norm(aim))
                yield {
                    "seed": seed,
                    "loss": problem.loss,
                    "family": family,
                    "k": k,
                    "rtol": rtol,
                    "error": error,
                    "status": str(run.status),
                    "events": len(run.events),
                    "branches": int(np.sum(run.events["kind"] == "branch")),
                }


def table(rows):
    """Medians and worst values, one line for a family, a tolerance and an exponent."""
    told = []
    share = {
        (row["family"], row["rtol"], row["k"], row["seed"]): max(row["error"], ROUNDING)
        / row["rtol"]
        for row in rows
    }
    for family, rtol, k in sorted({key[:3] for key in share}):
        mine = {key[3]: value for key, value in share.items() if key[:3] == (family, rtol, k)}
        ratios = [value / share[family, rtol, 0, seed] for seed, value in mine.items()]
        values = list(mine.values())
        told.append(
            f"{family:7s} rtol {rtol:.0e} k {k:4d}: error/rtol median {np.median(values):.3g} "
            f"worst {max(values):.3g}; to k = 0 median of all "
            f"{np.median(values) / _median(share, family, rtol):.3g}, of one problem: median "
            f"{np.median(ratios):.3g}, {min(ratios):.3g} to {max(ratios):.3g}; {len(mine)} problems"
        )
    return "\n".join(told)


def _median(share, family, rtol):
    return np.median([value for key, value in share.items() if key[:3] == (family, rtol, 0)])


def main(arguments=None):
    """Measure until there are enough problems."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, default=NEEDED)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    rows, seed, found = [], 0, 0
    given.out.write_text("")
    while found < given.problems:
        mine = list(lines(seed))
        rows, seed, found = rows + mine, seed + 1, found + bool(mine)
        with given.out.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in mine)
    print(table(rows))


if __name__ == "__main__":
    main()
