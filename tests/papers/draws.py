"""Verdicts on subjects that nobody chose: drawn at random, hypotheses satisfied, some barely.

    python -m tests.papers.draws --out draws.jsonl                  300 of every paper, resumable
    python -m tests.papers.draws --out draws.jsonl --only separable --count 20
    python -m tests.papers.draws --out draws.jsonl --table          what has been found

Every subject is a line of the file: its seed, what it is, its time, and the rows that are not PASS.
Subjects are judged in a process of their own, which ends where one takes too much processor time:
the line then says so. What the file has is not repeated. ``--seed 7 --only highdim`` shows one
subject.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import signal
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np

import reluflow as rf
from reluflow import theory
from reluflow.papers.highdim.draws import Problem, deal, step_size
from reluflow.theory import Verdict

COUNT, LIMIT_S = 300, 120.0
WIDEST = 2000
ENGINES = {"flow": rf.flow, "descent": rf.descend}


def width_of(rng, least=1):
    """Widths of every order of magnitude."""
    return max(least, int(np.exp(rng.uniform(0.0, np.log(WIDEST + 0.9)))))


def barely(rng, share=0.3):
    """A small number, of any order down to 1e-6, for a hypothesis that only just holds."""
    return 10.0 ** rng.uniform(-6.0, -1.0) if rng.random() < share else None


def first(make, accept, tries=1000):
    """The first draw that satisfies the hypotheses."""
    for _ in range(tries):
        found = make()
        if accept(*found):
            return found
    raise AssertionError(f"no draw of {tries} satisfies the hypotheses")


# ---------------------------------------------------------------------- one function a paper


def separable(rng):
    """Two classes with positive labelled products, the least of them tiny in some draws."""
    paper = rf.papers.named("separable")
    n, d, width = int(rng.integers(2, 13)), int(rng.integers(2, 9)), width_of(rng, 2)
    tiny = barely(rng)

    def make():
        y = rng.permuted(np.where(np.arange(n) % 2 == 0, 1.0, -1.0))
        Z = 0.05 + np.abs(rng.standard_normal((n, d)))
        if tiny is not None:  # two points on two axes, so nearly orthogonal
            Z[:2] = tiny
            Z[0, 0] = Z[1, 1] = 1.0
        data = rf.Dataset(y[:, None] * Z * np.exp(rng.uniform(-0.7, 0.7, (n, 1))), y)
        return data, rf.networks.balanced(
            d, width, log_scale=-np.exp(rng.uniform(1.5, 6.0)), directions="sphere", seed=rng
        )

    def accept(data, net):
        case = paper.prepare(theory.subject_of((data, net), None))
        return case.met("A1") and case.met("A5")

    data, net = first(make, accept)
    loss = rf.losses.Exponential() if rng.random() < 0.5 else rf.losses.Logistic()
    return rf.flow(data, net, loss=loss, stop_log_loss=-1e4), {}


def correlated(rng):
    """Points within pi/4 of a teacher, at a scale that Assumption 2 allows, some just."""
    d = int(rng.integers(2, 6))
    n, width = d + int(rng.integers(0, 4)), width_of(rng)
    tiny = barely(rng)
    half_angle = np.pi / 4 * ((1.0 - tiny) if tiny is not None else rng.uniform(0.3, 0.95))

    def make():
        data = rf.datasets.cone(d, n, half_angle=half_angle, seed=rng)
        X = data.X * np.exp(rng.uniform(-0.3, 0.3, (n, 1)))
        data = rf.Dataset(X, X @ data.teacher, teacher=data.teacher)
        return data, rf.networks.balanced(d, width, seed=rng)

    def allowed(pair):  # the logarithm of the largest scale; -inf where a hypothesis fails
        sticks = rf.limits.yardsticks(*pair)
        proper = len(sticks.positive) and sticks.valid and not sticks.ties
        return sticks.log_scale_bound(0.25) if proper else -np.inf

    # any start, or the one of thirty whose scale may be largest: bounds of wide ones are absurd
    pairs = [make() for _ in range(1 if rng.random() < 0.05 else 30)]
    data, net = (
        max(pairs, key=allowed) if len(pairs) > 1 else first(make, lambda *p: allowed(p) > -1e18)
    )
    bound = allowed((data, net))
    assert bound > -np.inf
    deeper = 1.0 + (0.0 if rng.random() < 0.3 else rng.exponential(1.0))
    run = rf.flow(data, net.with_scale(bound * deeper), rtol=1e-11, record=400)
    seeds = np.random.default_rng(rng.integers(2**32))
    return run, {
        "generator": lambda k: (data, rf.networks.balanced(d, width, seed=seeds)),
    }


def orthogonal(rng):
    """Orthonormal points in any basis, labels of one sign or both, near ties in some draws."""
    paper = rf.papers.named("orthogonal")
    n, width = int(rng.integers(1, 17)), width_of(rng)
    tiny = barely(rng)
    signs = "random" if rng.random() < 0.7 else np.ones(width)

    def labels():
        sizes = rng.uniform(0.4, 2.0, n)
        if tiny is not None and n > 1:
            sizes[1] = sizes[0] * (1.0 + tiny)  # what a race of single points nearly ties on
        return sizes * (rng.choice([-1.0, 1.0], n) if isinstance(signs, str) else 1.0)

    def make():
        basis = np.eye(n) if rng.random() < 0.5 else rf.datasets.orthonormal(n, seed=rng).X
        log_scale = -np.exp(rng.uniform(3.0, 9.0))
        net = rf.networks.balanced(
            n, width, log_scale=log_scale, directions="sphere", signs=signs, seed=rng
        )
        return rf.Dataset(basis, labels()), net

    def accept(data, net):
        case = paper.prepare(theory.subject_of((data, net), None))
        return case.met("A1") and case.met("jumps") and case.met("A4(ii)")

    data, net = first(make, accept)
    base = int(rng.integers(2**31))

    def again(k):
        other = np.random.default_rng([base, k])
        sizes = other.uniform(0.4, 2.0, n)
        start = rf.networks.balanced(
            n, width, log_scale=-100.0, directions="sphere", signs=signs, seed=other
        )
        return rf.Dataset(data.X, np.sign(data.y) * sizes), start

    return rf.flow(data, net, rtol=1e-9), {"generator": again, "draws": 100}


def highdim(rng):
    """One, two or many neurons, so many dimensions that A2 holds, in some draws just."""
    paper = rf.papers.named("highdim")
    n = int(rng.integers(2, 13))
    kind = ("one", "two", "many")[int(rng.integers(3))]
    constant = float(rng.uniform(2.0, 4.0))
    spread = float(np.exp(rng.uniform(0.0, np.log(10.0))))  # of labels
    # |G - I d|/d is about 2 sqrt(n/d), and A2 asks for delta sqrt(n) y_max/y_min below 1/4
    surrogate = rng.uniform(0.15, 0.3) if rng.random() < 0.3 else 10.0 ** rng.uniform(-2.0, -0.8)
    d = max(n + 1, int((2.0 * n * spread / surrogate) ** 2))
    part = 0.25 if rng.random() < 0.3 else rng.uniform(0.0, 0.25)  # of the first kick
    width = width_of(rng, 3)
    signs = {"one": [1.0], "two": [1.0, -1.0], "many": np.where(np.arange(width) % 2, -1.0, 1.0)}
    positive = int(rng.integers(1, n)) if kind == "one" else None

    def problem(seed):
        data = rf.datasets.bartlett(n, d, n_positive=positive, y_range=(1.0, spread), seed=seed)
        s = np.asarray(signs[kind])
        owners = deal(data.y, s) if kind == "many" else None
        eps = min(0.1, 0.5 / width) if kind == "many" else part / constant
        net = rf.networks.by_preactivations(data, eps * np.abs(data.y).min(), s, assignment=owners)
        return Problem(data, net, step_size(data, constant))

    def make():
        return (problem(int(rng.integers(2**31))),)

    def accept(made):
        case = paper.prepare(theory.subject_of((made.data, made.net), None))
        return case.met("A2")

    (made,) = first(make, accept)
    loss = rf.losses.Square("1/2")
    run = rf.descend(made.data, made.net, lr=made.lr, steps=np.inf, loss=loss, train="hidden")
    base = int(rng.integers(2**30))

    def again(k):
        other = problem(base + k)
        return other.data, other.net

    return run, {"generator": again}


def univariate(rng):
    """Points on the line with a teacher, some nearly equal; normal starts of any size."""
    n, width = int(rng.integers(2, 21)), width_of(rng, 2)
    tiny = barely(rng)
    zeros = np.sort(rng.uniform(-0.9, 0.9, int(rng.integers(0, 4))))
    law = rf.densities.uniform(-1, 1)
    teacher = rf.datasets.teacher_1d(zeros, first_label=int(rng.choice([-1, 1])))
    loss = rf.losses.Exponential() if rng.random() < 0.5 else rf.losses.Logistic()

    def make():
        data = rf.datasets.sample_1d(teacher, n, density=law, seed=rng)
        if tiny is not None:
            X = data.X.copy()
            X[1, 0] = X[0, 0] + 0.1 * tiny
            y = np.where(teacher.predict(X) > 0, 1.0, -1.0)
            data = rf.Dataset(X, y, teacher=teacher)
        hidden, output = np.exp(rng.uniform(-3.0, 1.0)), np.exp(rng.uniform(-4.0, 0.0))
        net = rf.networks.gaussian(2, width, sigma_hidden=hidden, sigma_output=output, seed=rng)
        run = rf.flow(data, net, loss=loss, stop_log_loss=-100.0)
        return (run,)

    def accept(run):  # Theorem 4.1 asks for a loss below loss(0)/n
        return run.log_loss[-1] <= -100.0 and len(np.unique(run.data.X[:, 0])) == n

    while True:
        try:
            (run,) = first(make, accept, tries=30)
        except AssertionError:  # so few neurons cannot separate so many switches
            width *= 2
        else:
            return rf.flow(run, stop_log_loss=-2e4), {"density": law}


DRAWS = {f.__name__: f for f in (separable, correlated, orthogonal, highdim, univariate)}


# ---------------------------------------------------------------------- judging


def described(run):
    """What a subject is, in numbers."""
    return {
        "n": run.data.n,
        "d": run.data.ambient_dim or run.data.d,
        "width": run.net.width,
        "log_scale": float(np.max(run.net.log_norms)),
        "loss": run.loss_function.name,
        "status": str(run.status),
        "branches": len(run.branches),
    }


def judged(name, seed):
    """A line of the file: the subject and the verdicts of all rows on it.

    Rows whose hypotheses fail are counted, not measured: that is half of the time.
    """
    began = time.process_time()
    rng = np.random.default_rng([sum(map(ord, name)), seed])
    subject, options = DRAWS[name](rng)
    trained = time.process_time() - began
    paper, generator = rf.papers.named(name), options.pop("generator", None)
    case = paper.prepare(theory.subject_of(subject, ENGINES, generator), **options)
    counts, bad, passed = Counter(), {}, []
    for row in paper.claims:
        hypotheses = [paper.judged(case, id).verdict for id in row.needs]
        if Verdict.FAIL in hypotheses or Verdict.NOT_APPLICABLE in hypotheses:
            counts["NOT_APPLICABLE"] += 1
            continue
        found = row.check(case)
        counts[found.verdict.value] += 1
        if found.verdict is Verdict.PASS:
            passed.append(row.id)
        elif found.verdict is not Verdict.NOT_APPLICABLE:
            bad[row.id] = [found.verdict.value, found.measured, found.bound, found.note]
    return {
        "paper": name,
        "seed": seed,
        **described(subject),
        "train_s": round(trained, 2),
        "check_s": round(time.process_time() - began - trained, 2),
        "counts": dict(counts),
        "bad": bad,
        "passed": passed,
    }


def _work(name, pipe, limit_s):
    while (seed := pipe.recv()) is not None:
        # at SIGPROF the system ends the process, compiled code or not, loaded machine or not
        signal.setitimer(signal.ITIMER_PROF, limit_s)
        try:
            line = judged(name, seed)
        except Exception:
            line = {"paper": name, "seed": seed, "error": traceback.format_exc()}
        pipe.send(line)


class Worker:
    """A process that judges subjects of one paper, made anew after one that took too long."""

    def __init__(self, name, limit_s):
        self.name, self.limit_s, self.process = name, limit_s, None

    def ask(self, seed):
        """The line of a subject, or one that says that it took too long."""
        if self.process is None:
            self.pipe, other = multiprocessing.Pipe()
            context = multiprocessing.get_context("spawn")
            self.process = context.Process(
                target=_work, args=(self.name, other, self.limit_s), daemon=True
            )
            self.process.start()
            other.close()
        self.pipe.send(seed)
        try:
            return self.pipe.recv()
        except EOFError:
            self.process.join()
        late = self.process.exitcode == -signal.SIGPROF
        self.process = None
        found = {"timeout": self.limit_s} if late else {"error": "the process died"}
        return {"paper": self.name, "seed": seed, **found}

    def close(self):
        """End the process."""
        if self.process is not None:
            self.pipe.send(None)
            self.process.join()


def campaign(out, names, seeds, limit_s=LIMIT_S):
    """Judge what the file does not have yet, papers in turn, so that all advance alike."""
    done = {(line["paper"], line["seed"]) for line in lines(out)}
    workers = {name: Worker(name, limit_s) for name in names}
    for seed in seeds:
        for name in names:
            if (name, seed) not in done:
                line = workers[name].ask(seed)
                with out.open("a") as file:
                    file.write(json.dumps(line) + "\n")
    for worker in workers.values():
        worker.close()


def lines(out):
    """The lines of a file; none if there is no file."""
    return [json.loads(text) for text in out.read_text().splitlines()] if out.exists() else []


def table(found):
    """What was found, a line a paper, then the rows that are not decided or fail."""
    for name in DRAWS:
        mine = [line for line in found if line["paper"] == name]
        good = [line for line in mine if "counts" in line]
        total = Counter()
        for line in good:
            total.update(line["counts"])
        applicable = sum(total[v] for v in ("PASS", "FAIL", "UNRESOLVED"))
        part = total["UNRESOLVED"] / max(applicable, 1)
        print(
            f"{name}: {len(mine)} subjects, {sum('timeout' in x for x in mine)} too long, "
            f"{sum('error' in x for x in mine)} errors; rows {dict(total)}, "
            f"UNRESOLVED {part:.1%} of {applicable}; "
            f"check {max((x['check_s'] for x in good), default=0):.1f} s at most"
        )
        rows = Counter((id, bad[0]) for line in good for id, bad in line["bad"].items())
        for (id, verdict), count in rows.most_common():
            at = [x["seed"] for x in good if x["bad"].get(id, [None])[0] == verdict]
            print(f"    {id} {verdict} {count}: seeds {at[:8]}")


def main():
    """Read the arguments and do what they ask."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("draws.jsonl"))
    parser.add_argument("--only", choices=DRAWS, action="append")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int)
    parser.add_argument(
        "--limit", type=float, default=LIMIT_S, help="processor seconds for a subject"
    )
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    names = asked.only or list(DRAWS)
    if asked.table:
        table(lines(asked.out))
    elif asked.seed is not None:
        for name in names:
            print(json.dumps(judged(name, asked.seed), indent=1))
    else:
        campaign(asked.out, names, range(asked.count), asked.limit)


if __name__ == "__main__":
    main()
