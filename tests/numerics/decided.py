"""Deep starts whose end must not depend on the tolerance: the problems, and a survey of them.

Six points on a line (``line``), eight in the plane (``plane``), the same with labels +-1 and the
exponential or logistic loss; balanced neurons at any log scale. The survey runs the flow at several
tolerances and compares the function it ends in:

    PYTHONPATH=src python -m tests.numerics.decided --scale -100 --seeds 0:100 --neurons 50 \
        --out line-100.jsonl

writes one JSON line a seed and ends with a summary; an existing file is continued. Kinds:
``line``, ``plane``, each also with ``-exponential`` or ``-logistic``. (A scale such as -1e5 is
written ``--scale=-1e5``.)
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

import reluflow as rf

from .own_time import own_seconds

LOSSES = {
    "square": rf.losses.Square(),
    "exponential": rf.losses.Exponential(),
    "logistic": rf.losses.Logistic(),
}
KINDS = [
    f"{shape}{loss}" for loss in ("", "-exponential", "-logistic") for shape in ("line", "plane")
]
TOLERANCES = (1e-6, 1e-8, 1e-10)
ENDS = ("converged", "stationary", "stop_loss", "t_end")
# functions farther apart than this share of max |y| are different ends
SAME = 1e-4
# these losses have no end, and where a point stays out of reach not even its logarithm has:
# runs are compared where log L first is this, or at a time past the usual saddles
END_LOG_LOSS = -10.0


def end_time(log_scale):
    """When a run of a classification loss is over at the latest: rates of saddles are about 0.1."""
    return 300.0 + 30.0 * abs(log_scale)


@dataclass(frozen=True)
class Problem:
    """Data, balanced start and loss of one problem; ``grid`` covers the range of the data."""

    data: rf.Dataset
    net: rf.Network
    loss: str
    grid: np.ndarray
    end: dict

    def flow(self, rtol, **options):
        """The engine's run to the end."""
        loss = LOSSES[self.loss]
        return rf.flow(self.data, self.net, loss=loss, rtol=rtol, **{**self.end, **options})

    def gap(self, one, other):
        """Largest difference of two functions on the grid, relative to the data's size."""
        size = np.abs(self.data.y).max()
        if self.loss != "square":
            size = max(size, np.abs(one).max(), np.abs(other).max())
        return float(np.abs(one - other).max() / size)


def problem(kind, seed, neurons, log_scale):
    """Problem ``seed`` of a kind: inputs uniform on [-2, 2], labels on [-1, 1] or their signs."""
    rng = np.random.default_rng(seed)
    shape, _, loss = kind.partition("-")
    n, inputs = (6, 1) if shape == "line" else (8, 2)
    points = rng.uniform(-2.0, 2.0, (n, inputs))
    y = rng.uniform(-1.0, 1.0, n)
    if loss:
        y = np.sign(y)
    if shape == "line":
        data = rf.datasets.from_points(points[:, 0], y)
    else:
        data = rf.Dataset(np.column_stack([points, np.ones(n)]), y)
    net = rf.networks.balanced(data.d, neurons, log_scale=float(log_scale), seed=seed)
    end = {"t_end": end_time(log_scale), "stop_log_loss": END_LOG_LOSS} if loss else {}
    return Problem(data, net, loss or "square", grid(points), end)


def grid(points):
    """Rows (x, 1) over the range of the points: 401 on a line, 31 x 31 in the plane."""
    count = 401 if points.shape[1] == 1 else 31
    lines = [
        np.linspace(low, high, count)
        for low, high in zip(points.min(0), points.max(0), strict=True)
    ]
    axes = [axis.ravel() for axis in np.meshgrid(*lines)]
    return np.column_stack([*axes, np.ones(axes[0].size)])


def survey(kind, seed, neurons, log_scale, seconds):
    """The flow of one problem at all tolerances: how each ended, and how far the ends differ."""
    given = problem(kind, seed, neurons, log_scale)
    ends, rows = {}, []
    for rtol in TOLERANCES:
        begin = time.process_time()
        row = {"rtol": rtol, "status": "raised", "reason": None, "loss": None, "branches": 0}
        try:
            with own_seconds():
                run = given.flow(rtol, max_seconds=seconds)
        except Exception as error:  # a survey notes what a run raises and goes on
            row["reason"] = f"{type(error).__name__}: {error}"
        else:
            ends[rtol] = run.final.predict(given.grid)
            row |= {
                "status": str(run.status),
                "reason": getattr(run, "reason", None),
                "loss": float(run.loss[-1]),
                "limit_error": float(run.limit_error),
                "branches": int(np.sum(run.events["kind"] == "branch")),
                "events": len(run.events),
            }
        rows.append(row | {"seconds": round(time.process_time() - begin, 3)})
    gaps = [given.gap(ends[one], ends[other]) for one, other in combinations(ends, 2)]
    gap = max(gaps, default=math.nan) if len(ends) == len(TOLERANCES) else math.nan
    ended = all(row["status"] in ENDS for row in rows)
    return {
        "kind": kind,
        "seed": seed,
        "neurons": neurons,
        "log_scale": log_scale,
        "gap": gap,
        "same": bool(ended and gap <= SAME),
        "branch": any(row["branches"] for row in rows),
        "runs": rows,
    }


def summary(rows):
    """One sentence on a survey: how many are decided, which are not, the slowest run."""
    different = [row["seed"] for row in rows if not row["same"]]
    silent = [row["seed"] for row in rows if not row["same"] and not row["branch"]]
    slowest = max(run["seconds"] for row in rows for run in row["runs"])
    return (
        f"{len(rows)} problems: {len(rows) - len(different)} end in the same function, "
        f"{len(different)} do not (seeds {different}), of these without `branch` {silent}; "
        f"{sum(row['branch'] for row in rows)} record a branch; slowest run {slowest:.1f} s"
    )


def main(arguments=None):
    """Survey a range of seeds; seeds already in the file are not run again."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kind", choices=KINDS, default="line")
    parser.add_argument("--scale", type=float, required=True, help="log scale of the start")
    parser.add_argument("--seeds", default="0:100", help="first:end")
    parser.add_argument("--neurons", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0, help="CPU seconds of a run")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    first, end = map(int, given.seeds.split(":"))
    key = (given.kind, given.neurons, given.scale)
    rows = []
    if given.out.exists():
        rows = [json.loads(line) for line in given.out.read_text().splitlines()]
        rows = [row for row in rows if (row["kind"], row["neurons"], row["log_scale"]) == key]
    known = {row["seed"] for row in rows}
    for seed in range(first, end):
        if seed not in known:
            row = survey(given.kind, seed, given.neurons, given.scale, given.seconds)
            rows.append(row)
            with given.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(seed, "same" if row["same"] else f"gap {row['gap']:.3g}", flush=True)
    print(summary([row for row in rows if first <= row["seed"] < end]))


if __name__ == "__main__":
    main()
