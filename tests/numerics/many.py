"""Many random flow problems of every generator, in a process that is replaced when it hangs.

There are four generators: problems whose planes coincide or meet, problems in general position,
problems that begin at the origin or are aimed at it, and problems followed to their limit. `quick`
takes some 20 ms a problem and confirms what the status claims: the invariants of the flow and a
loss that never rises, or the Clarke residual of the limit. `decayed` does the same with weight
decay and leaky networks, every other one to its limit. `judged` takes half a second and holds the
first three against descent with small steps.
"""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter

import numpy as np

import reluflow as rf
from engines.flow.test_decay import unrest
from engines.flow.test_robustness import confirm, random_problem

from . import degenerate, survey
from .own_time import answers, own_seconds

SECONDS = 20.0  # of the CPU, as below
PATIENCE_S = 120.0  # of judging
FIRST = 16  # problems that compile what all others need
SMALL = (3, 6, 8)  # d, n, m of the quick limits
ROUNDING = 1e-13  # of the outputs
UNREST = 1e-4  # of what decay alone would do; limits without a bound are as far from rest as 1e-5
BALANCE = 1e-9  # of the largest weights; `properties.py` holds it to 1e-12 along the whole run


def at_random(seed):
    """A degenerate problem as it is drawn; `degenerate.problem` takes the liveliest of five."""
    rng = np.random.default_rng([seed, 18])
    return degenerate.draw(
        rng, str(rng.choice(degenerate.DATA)), str(rng.choice(degenerate.STARTS))
    )


def near_origin(seed):
    """A neuron starts at w = 0, slides towards it or is aimed at it."""
    rng = np.random.default_rng([seed, 19])
    start = str(rng.choice(["origin", "aimed", "plane"]))
    return degenerate.draw(rng, str(rng.choice([*degenerate.DATA, "line", "around"])), start)


DRAWN = {"problem": at_random, "generic": degenerate.generic, "origin": near_origin}


def quick(number, seconds=SECONDS):
    """The line of the problem of a number: run it, and confirm what its status claims."""
    names = 5 * [*DRAWN] + ["limit"]  # which takes ten times as long as the others
    name = names[number % len(names)]
    if name == "limit":
        return confirmed(number, seconds, SMALL)
    problem = DRAWN[name](number)
    line = {"seed": number, "generator": name, "kind": problem.kind}
    return {
        **line,
        **_ended(lambda: problem.flow(max_seconds=seconds), lambda run: kept(run, problem)),
    }


def decayed(number, seconds=SECONDS):
    """The line of the problem of a number, with weight decay; every other one to its limit."""
    rng = np.random.default_rng([number, 71])
    name = [*DRAWN][number % len(DRAWN)]
    drawn, to_limit = DRAWN[name](number), number % 2 == 0
    decay, slope = 10.0 ** rng.uniform(-4.0, 0.5), float(rng.choice([0.0, 0.0, 0.01, 0.3, 0.9]))
    start = drawn.net.flat()
    net = rf.Network(start.a, start.W, slope=slope)
    options = {"decay": decay, "max_seconds": seconds}
    if not to_limit:
        options["t_end"] = drawn.t_end
    line = {"seed": number, "generator": name, "kind": drawn.kind}
    flow = lambda: rf.flow(drawn.data, net, loss=drawn.loss, **options)  # noqa: E731
    return {**line, **_ended(flow, lambda run: kept_with_decay(run, decay, to_limit))}


def judged(number, seconds=SECONDS):
    """The line of the problem of a number, held against small steps."""
    names = [*survey.GENERATORS, "limit"]
    name, seed = names[number % len(names)], number // len(names)
    return confirmed(seed, seconds) if name == "limit" else survey.examine(name, seed, seconds)


def confirmed(seed, seconds, largest=(8, 20, 60)):
    """The line of a problem that is followed to its limit."""
    data, net, loss, options = random_problem(seed, largest)
    options = {**options, "max_seconds": seconds}
    line = {"seed": seed, "generator": "limit", "kind": loss.name}
    return {**line, **_ended(lambda: rf.flow(data, net, loss=loss, **options), confirm)}


def kept(run, problem):
    """Assert what holds at the end of every flow that reached its end time."""
    first, last = problem.net.flat(), run.final.flat()
    assert run.status == "t_end", f"ended in {run.status}"
    assert run.t[-1] == problem.t_end
    assert np.isfinite(last.W).all()
    roots = np.exp(
        0.5 * run.log_loss
    )  # residuals are differences of outputs: they round like those
    assert (np.diff(roots) <= 1e-8 * roots[1:] + ROUNDING * max(1.0, roots[0])).all(), "loss rises"
    if problem.train == "hidden":
        np.testing.assert_array_equal(last.a, first.a)
        return
    balances = [net.a**2 - (net.W**2).sum(axis=1) for net in (first, last)]
    size = max((net.a**2 + (net.W**2).sum(axis=1)).max() for net in (first, last))
    assert np.abs(balances[1] - balances[0]).max() <= BALANCE * size, "balance is lost"


def kept_with_decay(run, decay, to_limit):
    """Assert what holds with weight decay: a balance that fades, an objective that falls, rest."""
    assert run.status == ("stationary" if to_limit else "t_end"), f"ended in {run.status}"
    objective = run.objective
    slack = 1e-8 * objective[1:] + ROUNDING * max(1.0, objective[0])
    assert (np.diff(objective) <= slack).all(), "objective rises"
    left = np.exp(-2.0 * decay * run.t[-1])
    first, last = (net.a**2 + (net.W**2).sum(axis=1) for net in (run.net, run.final))
    gap = np.abs(run.final.balance - left * run.net.balance).max()
    assert gap <= BALANCE * max(left * first.max(), last.max()), "balance is lost"
    if to_limit:
        left = unrest(run.data, run.final, run.loss_function, decay)
        assert left <= UNREST, f"unrest {left:.1e}"


def _ended(run_it, confirm_it):
    """How a run ended, and whether its status was confirmed."""
    try:
        with own_seconds():
            run = run_it()
    except Exception as error:  # a raising flow is one of the findings
        return {"verdict": "raised", "status": f"{type(error).__name__}: {error}"[:300]}
    line = {"status": str(run.status)}
    if run.status in ("failed", "budget"):
        return {**line, "verdict": str(run.status), "reason": run.reason[:200]}
    try:
        confirm_it(run)
    except AssertionError as error:
        return {**line, "verdict": "not confirmed", "why": str(error)[:200]}
    return {**line, "verdict": "confirmed", "good": True}


def _work(pipe, examine):
    while True:
        number, began = pipe.recv(), time.process_time()
        line = {**examine(number), "number": number}
        pipe.send({**line, "took_s": time.process_time() - began})


class Worker:
    """A process that examines problems; replaced when it dies or hangs."""

    def __init__(self, examine):
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, examine), daemon=True)
        self.process.start()
        theirs.close()

    def ask(self, number):
        """The line of a problem, or how the process ended."""
        self.pipe.send(number)
        if not answers(self.pipe, self.process, SECONDS + PATIENCE_S):
            return {"number": number, "verdict": "hangs"}
        try:
            return self.pipe.recv()
        except EOFError:
            return {"number": number, "verdict": "crashed"}

    def close(self):
        """End the process."""
        self.process.kill()
        self.process.join()


def examine_all(examine, numbers):
    """Counts of the verdicts, the slowest problem, and the lines of all that is not good."""
    for number in range(FIRST):  # compiled in this process, inherited by every worker
        examine(number, 1000.0)
    worker, counts, bad, slowest = Worker(examine), Counter(), [], 0.0
    for number in numbers:
        line = worker.ask(number)
        counts[line["verdict"]] += 1
        slowest = max(slowest, line.pop("took_s", SECONDS))
        if not line.get("good"):
            bad.append(line)
        if line["verdict"] in ("hangs", "crashed"):
            worker.close()
            worker = Worker(examine)
    worker.close()
    return {**counts, "slowest_s": round(slowest, 2), "bad": bad}
