"""The random problems of the robustness tests, so that runs of two processors can be compared.

    PYTHONPATH=src:tests python -m tests.numerics.processors --seeds 0:2000 --out plain.jsonl
    NUMBA_CPU_NAME=generic NUMBA_CACHE_DIR=other python ... --out generic.jsonl
    python -m tests.numerics.processors --compare plain.jsonl generic.jsonl

A line has the status, whether an independent residual check confirms it, and the outputs at the
end. A file is continued where it ends. Outputs farther apart than `SAME`, relative to the largest
label or output, are other limits.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path

import numpy as np

import reluflow as rf
from engines.flow.test_robustness import confirm, random_problem

from .own_time import own_seconds

SAME = 1e-6
SECONDS = 30.0  # of the CPU


def examine(seed):
    """The line of one problem."""
    data, net, loss, options = random_problem(seed)
    line = {"seed": seed, "loss": loss.name, "train": options.get("train", "both")}
    began = time.process_time()
    try:
        with own_seconds():
            run = rf.flow(data, net, loss=loss, **{**options, "max_seconds": SECONDS})
    except Exception as error:  # a raising flow is one of the findings
        return {**line, "status": "raised", "confirmed": False, "why": repr(error)[:300]}
    line |= {
        "status": str(run.status),
        "reason": run.reason,
        "confirmed": True,
        "limit_error": float(run.limit_error),
        "log_loss": float(run.log_loss[-1]),
        "log_t": float(run.log_t[-1]),
        "outputs": run.final.predict(data.X).tolist(),
        "size": float(np.abs(data.y).max()),
        "events": len(run.events),
        "branches": int(np.sum(run.events["kind"] == "branch")),
        "steps": run.stats["steps"],
        "seconds": round(time.process_time() - began, 3),
    }
    try:
        confirm(run)
    except AssertionError as error:
        line |= {"confirmed": False, "why": str(error)[:300]}
    return line


def read(file):
    """Lines by seed."""
    rows = map(json.loads, file.read_text().splitlines()) if file.exists() else []
    return {row["seed"]: row for row in rows}


def gap(one, other):
    """Largest difference of the outputs at the end, relative to labels and outputs."""
    outputs = [np.array(row.get("outputs", [np.nan])) for row in (one, other)]
    size = max(one.get("size", 0.0), *(np.abs(values).max() for values in outputs))
    return float(np.abs(outputs[0] - outputs[1]).max() / size)


def compare(one, other):
    """Print how two files differ, problem by problem."""
    both = sorted(set(one) & set(other))
    gaps = {seed: gap(one[seed], other[seed]) for seed in both}
    sizes = np.array(list(gaps.values()))
    statuses = [seed for seed in both if one[seed]["status"] != other[seed]["status"]]
    limits = [seed for seed in both if not gaps[seed] <= SAME and seed not in statuses]
    print(
        f"{len(both)} problems: {len(statuses)} other statuses {statuses}, "
        f"{len(limits)} other limits {limits}; "
        f"{(sizes == 0.0).sum()} with equal outputs, median difference {np.nanmedian(sizes):.2g}, "
        f"99 % {np.nanquantile(sizes, 0.99):.2g}, largest {np.nanmax(sizes):.2g}"
    )
    for seed in sorted({*statuses, *limits}):
        told = [{k: v for k, v in row[seed].items() if k != "outputs"} for row in (one, other)]
        print(f"{seed}: gap {gaps[seed]:.3g}\n  {told[0]}\n  {told[1]}")


def summary(rows):
    """One sentence on a file."""
    counts = Counter(row["status"] for row in rows)
    bad = [row["seed"] for row in rows if not row["confirmed"]]
    slowest = max(rows, key=lambda row: row.get("seconds", 0.0))
    return (
        f"{len(rows)} problems: {dict(counts)}; not confirmed {bad}; "
        f"{sum(row.get('branches', 0) > 0 for row in rows)} record a branch; "
        f"slowest {slowest['seed']}: {slowest.get('seconds')} s; "
        f"all {sum(row.get('seconds', 0.0) for row in rows):.0f} s"
    )


def main(arguments=None):
    """Run what the file does not have, or compare two files."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", default="0:2000", help="first:end")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--compare", type=Path, nargs=2)
    given = parser.parse_args(arguments)
    if given.compare:
        compare(*map(read, given.compare))
        return
    rows = read(given.out)
    for seed in range(*map(int, given.seeds.split(":"))):
        if seed not in rows:
            rows[seed] = examine(seed)
            with given.out.open("a") as file:
                file.write(json.dumps(rows[seed]) + "\n")
            if not rows[seed]["confirmed"]:
                print({k: v for k, v in rows[seed].items() if k != "outputs"}, flush=True)
    print(summary(list(rows.values())))


if __name__ == "__main__":
    main()
