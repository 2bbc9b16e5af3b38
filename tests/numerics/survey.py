"""Run many degenerate problems, one JSON line each, with a limit of CPU seconds on every one.

    python -m tests.numerics.survey --first 0 --count 500 --out survey.jsonl [--seconds 60]
    python -m tests.numerics.survey --only 17 41 --generator problem

A run that hangs in compiled code is ended with its process; the next problem gets a new one. Lines
are appended, and seeds that the file already has are not run again.
"""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing
import pathlib
import time

import numpy as np

from . import degenerate, origins, small_steps
from .own_time import answers, own_seconds

GENERATORS = {
    "problem": degenerate.problem,
    "generic": degenerate.generic,
    "origin": origins.problem,
}
RECORDS = 61  # evenly spaced: where a neuron rests is seen between two of them


def examine(generator, seed, seconds=60.0):
    """The line of one problem: run the flow, then judge it."""
    problem = GENERATORS[generator](seed)
    line = {"seed": seed, "generator": generator, "kind": problem.kind}
    began = time.process_time()
    try:
        times = np.linspace(0.0, problem.t_end, RECORDS)
        with own_seconds():
            run = problem.flow(max_seconds=seconds, record=times)
    except Exception as error:  # the survey goes on: a raising flow is one of its findings
        text = f"{type(error).__name__}: {error}"
        return {**line, "verdict": "raised", "status": text[:300], "good": False}
    line["seconds"] = round(time.process_time() - began, 3)
    kinds = collections.Counter(run.events["kind"].tolist())
    line.update(status=str(run.status), events=dict(kinds))
    if run.status in ("failed", "budget"):
        return {**line, "verdict": str(run.status), "good": False}
    verdict = small_steps.judge(problem, small_steps.weights(run.final), kinds["branch"] > 0)
    stuck = origins.stays(problem, run)
    return {
        **line,
        "verdict": "stuck at origin" if stuck else verdict.outcome,
        "good": verdict.good and not stuck,
        "difference": verdict.differences[-1],
        "differences": [float(f"{gap:.3g}") for gap in verdict.differences],
        "spread": float(f"{verdict.spread:.3g}"),
        "judged": round(time.process_time() - began - line["seconds"], 3),
    }


def _work(pipe, seconds):
    while True:
        generator, seed = pipe.recv()
        pipe.send(examine(generator, seed, seconds))


class Worker:
    """A process that examines problems; replaced when one takes too long."""

    def __init__(self, seconds):
        self.seconds = seconds
        self._begin()

    def _begin(self):
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, self.seconds), daemon=True)
        self.process.start()

    def __call__(self, generator, seed):
        self.pipe.send((generator, seed))
        # judging takes a few seconds more at most
        if answers(self.pipe, self.process, self.seconds + 60.0):
            try:
                return self.pipe.recv()
            except EOFError:
                verdict = "crashed"
        else:
            verdict = "hangs"
        self.process.kill()
        self.process.join()
        self._begin()
        kind = GENERATORS[generator](seed).kind
        found = {"verdict": verdict, "good": False}
        return {"seed": seed, "generator": generator, "kind": kind, **found}


def main():
    """Read the command line, run, and print the counts of verdicts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--only", type=int, nargs="*")
    parser.add_argument("--generator", choices=list(GENERATORS), default="problem")
    parser.add_argument("--seconds", type=float, default=20.0, help="limit of one flow")
    parser.add_argument("--out", type=pathlib.Path)
    given = parser.parse_args()
    seeds = given.only or range(given.first, given.first + given.count)
    lines = {}
    if given.out and given.out.exists():
        read = (json.loads(text) for text in given.out.read_text().splitlines())
        lines = {line["seed"]: line for line in read if line["generator"] == given.generator}
    # compiled in this process, inherited by every worker
    for seed in range(8):
        examine("generic", seed, 1000.0)
    worker = Worker(given.seconds)
    for seed in seeds:
        if seed in lines:
            continue
        lines[seed] = worker(given.generator, seed)
        text = json.dumps(lines[seed], default=float)
        if given.out:
            with given.out.open("a") as file:
                file.write(text + "\n")
        if not given.out or not lines[seed]["good"]:
            print(text, flush=True)
    worker.process.kill()
    counts = collections.Counter(line["verdict"] for line in lines.values())
    good = np.mean([line["good"] for line in lines.values()])
    print(f"{len(lines)} problems, {good:.1%} right:", dict(counts))


if __name__ == "__main__":
    main()
