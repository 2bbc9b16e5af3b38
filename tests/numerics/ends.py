"""True ends of twenty deep problems on which tolerances disagreed, computed in 200 digits.

``decided_ends.json`` holds, for each, the inputs (points, labels, mantissas of the weights, log
scale) and the end (weights, time, events) of `numerics.deep`. To compute it again (missing entries
only; remove the file to compute all; hours of one core without gmpy2, minutes an entry with it):

    PYTHONPATH=src python -m tests.numerics.ends

The start is balanced to all digits: |a_j| = |w_j|. The floats of the start agree with that to
rounding only, and to the flow this matters: a neuron that slides and shrinks by more than
ln(1e16) / 2 = 18 e-folds would meet the origin, or change the sign of a, by its rounding alone.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from .decided import problem
from .deep import Deep

FILE = Path(__file__).with_name("decided_ends.json")
DIGITS = 200

# (kind, log scale, neurons, seed)
CHOSEN = [
    ("line", -100.0, 2, 59),
    ("line", -100.0, 2, 205),
    ("line", -100.0, 2, 227),
    ("line", -100.0, 2, 260),
    ("line", -100.0, 3, 105),
    ("line", -100.0, 3, 287),
    ("line", -100.0, 3, 295),
    ("line", -100.0, 4, 78),
    ("line", -100.0, 4, 189),
    ("line", -100.0, 4, 214),
    ("line", -100.0, 4, 253),
    ("line", -100.0, 5, 31),
    ("line", -100.0, 5, 38),
    ("line", -100.0, 5, 53),
    ("line", -100.0, 5, 77),
    ("line", -100.0, 5, 182),
    ("line", -100.0, 5, 195),
    ("line", -100.0, 5, 44),
    ("line", -100.0, 5, 91),
    ("line", -100.0, 5, 175),
]


def start(given, digits=DIGITS):
    """The reference at the start of a problem."""
    mantissa = getattr(given.net, "mantissa", given.net)
    return Deep(
        given.data.X,
        given.data.y,
        mantissa.a,
        mantissa.W,
        given.net.log_scale,
        loss=given.loss,
        balanced=True,
        digits=digits,
    )


def entry(kind, log_scale, neurons, seed, digits=DIGITS):
    """Inputs and end of one problem."""
    given = problem(kind, seed, neurons, log_scale)
    flow, begin = start(given, digits), time.process_time()
    status = flow.run(**given.end)
    return {
        "kind": kind,
        "log_scale": log_scale,
        "neurons": neurons,
        "seed": seed,
        "X": flow.X.tolist(),
        "y": flow.y.tolist(),
        "a": np.asarray(flow.a).tolist(),
        "W": np.asarray(flow.W).tolist(),
        "digits": digits,
        "status": status,
        "time": flow.time,
        "steps": flow.steps,
        "seconds": round(time.process_time() - begin),
        "log_sizes": flow.log_sizes.round(3).tolist(),
        "end": flow.state.tolist(),
        "events": flow.events,
    }


def load(file=FILE):
    """Stored entries by (kind, log scale, neurons, seed)."""
    rows = json.loads(file.read_text()) if file.exists() else []
    return {(row["kind"], row["log_scale"], row["neurons"], row["seed"]): row for row in rows}


def save(entries, file=FILE):
    """Write the entries in the order of ``CHOSEN``, one a line."""
    order = {key: at for at, key in enumerate(CHOSEN)}
    rows = [entries[key] for key in sorted(entries, key=lambda key: order.get(key, len(order)))]
    file.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")


def main(arguments=None):
    """Compute what is missing, in order."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--digits", type=int, default=DIGITS)
    parser.add_argument("--part", default="0:20", help="first:end of the list")
    parser.add_argument("--out", type=Path, default=FILE)
    given = parser.parse_args(arguments)
    first, end = map(int, given.part.split(":"))
    for key in CHOSEN[first:end]:
        if key not in load(given.out):
            row = entry(*key, digits=given.digits)
            save(load(given.out) | {key: row}, given.out)
            print(*key, row["status"], row["steps"], "steps", row["seconds"], "s", flush=True)


if __name__ == "__main__":
    main()
