"""Many random flow problems of every generator, in a process that is replaced when it hangs.

Seeds go round the generators: problems whose planes coincide or meet, problems in general position,
problems aimed at the origin (judged by small-step descent), and problems followed to their limit
(judged by the Clarke residual of the final network).
"""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter

import reluflow as rf

from . import survey

SECONDS = 20.0
PATIENCE_S = 120.0  # of judging, on a busy machine


def confirmed(seed, seconds):
    """The line of a problem that is followed to its limit."""
    from engines.flow.test_robustness import confirm, random_problem

    data, net, loss, options = random_problem(seed)
    line = {"seed": seed, "generator": "limit", "kind": loss.name}
    try:
        run = rf.flow(data, net, loss=loss, **{**options, "max_seconds": seconds})
    except Exception as error:  # a raising flow is one of the findings
        return {**line, "verdict": "raised", "status": f"{type(error).__name__}: {error}"[:300]}
    line["status"] = str(run.status)
    if run.status in ("failed", "budget"):
        return {**line, "verdict": str(run.status), "reason": run.reason[:200]}
    try:
        confirm(run)
    except AssertionError as error:
        return {**line, "verdict": "not confirmed", "why": str(error)[:200]}
    return {**line, "verdict": "confirmed", "good": True}


def examine(number, seconds=SECONDS):
    """The line of the problem of a number."""
    names = [*survey.GENERATORS, "limit"]
    name, seed = names[number % len(names)], number // len(names)
    if name == "limit":
        return confirmed(seed, seconds)
    return survey.examine(name, seed, seconds)


def _work(pipe):
    while True:
        pipe.send(examine(pipe.recv()))


class Worker:
    """A process that examines problems; replaced when it dies or hangs."""

    def __init__(self):
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def ask(self, number):
        """The line of a problem, or how the process ended."""
        self.pipe.send(number)
        if not self.pipe.poll(SECONDS + PATIENCE_S):
            return {"number": number, "verdict": "hangs"}
        try:
            return {**self.pipe.recv(), "number": number}
        except EOFError:
            return {"number": number, "verdict": "crashed"}

    def close(self):
        """End the process."""
        self.process.kill()
        self.process.join()


def examine_all(numbers):
    """Counts of the verdicts, and the lines of all that is not good."""
    began = time.perf_counter()
    for number in range(8):  # compiled in this process, inherited by every worker
        examine(number, 1000.0)
    worker, counts, bad = Worker(), Counter(), []
    for number in numbers:
        line = worker.ask(number)
        counts[line["verdict"]] += 1
        if not line.get("good"):
            bad.append(line)
        if line["verdict"] in ("hangs", "crashed"):
            worker.close()
            worker = Worker()
    worker.close()
    print(f"{len(numbers)} problems in {time.perf_counter() - began:.0f} s: {dict(counts)}")
    return {**counts, "bad": bad}
