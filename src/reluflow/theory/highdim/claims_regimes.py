"""HD-29 to HD-33: moderate dimension, random starts, small steps and orthogonal points."""

from __future__ import annotations

import numpy as np

from reluflow.dataset import Dataset
from reluflow.network import Network
from reluflow.networks import by_preactivations
from reluflow.theory.highdim.case import HALF, LIMITS, Case
from reluflow.theory.highdim.claims_scaling import slope
from reluflow.theory.highdim.claims_two import some_points
from reluflow.theory.highdim.draws import Problem, positive_start, random_start
from reluflow.theory.highdim.gram import residual
from reluflow.theory.highdim.minimum import distance_to_shortest
from reluflow.theory.verdicts import Claims, NotApplicable, Outcome, Unresolved, Verdict, at_most
from reluflow.trajectory import Trajectory

CLAIMS = Claims()
MODERATE = 6  # draws in moderate dimension
RANDOM = 100  # draws of a random start
SCALES = (0.5, 5.0)  # sigma_p sqrt(d) of the two collapses
CORRELATED = 0.3  # mean |cosine| above which signs of pre-activations are far from independent
STEPS = tuple(float(C) for C in np.geomspace(64.0, 4096.0, 9))


def risk_identity(run: Trajectory) -> float:
    """Error of ``R = 1/2 sum y^2`` over points that are off, relative to the risk of zero.

    In a limit of one neuron every active point is fitted, so the risk is that of the others: the
    points of the other sign, and its own that are dead.
    """
    data, net = run.data, run.final.flat()
    r = residual(net.a, net.W @ data.X.T, data.y)
    off = ~run.active(-1)[0]
    gap = 0.5 * float(r @ r) - 0.5 * float((data.y[off] ** 2).sum())
    return abs(gap) / (0.5 * float(data.y @ data.y))


@CLAIMS(
    "HD-29", "d near n: several changes, a late freeze, and the risk of the dead points (relative)"
)
def hd29(case: Case) -> Outcome:
    """Draws with d = 1.2 n, and the subject where it is one neuron."""
    n, worst, changes, freezes, dead = min(max(case.n, 10), 20), 0.0, [], [], 0
    for seed in range(MODERATE):
        problem = positive_start(n, (6 * n) // 5, constant=4.0, eps=0.005, seed=seed)
        run = case.run_of(problem)
        worst = max(worst, risk_identity(run))
        dead += int((~run.active(-1) & (problem.data.y > 0.0)).sum())
        changes.append(int(run.stats["changes"]))
        freezes.append(int(run.stats["last_change"]))
    if case.is_one:
        worst = max(worst, risk_identity(case.limit))
    note = f"changes {changes}, freezes {freezes}, {dead} dead points"
    if min(changes) <= 1 or min(freezes) <= 1:
        return Outcome(Verdict.FAIL, worst, 1e-9, f"a draw freezes at once; {note}")
    return at_most(worst, 1e-9, note=note)


def revival(run: Trajectory) -> tuple[int, int]:
    """Positive points that start inactive, and those of them that end active."""
    asleep = (run.data.y > 0.0) & ~run.active(t=0.0)[0]
    return int(asleep.sum()), int((asleep & run.active(-1)[0]).sum())


@CLAIMS(
    "HD-30", "random start: the share of revived points depends on sigma sqrt(d) alone (difference)"
)
def hd30(case: Case) -> Outcome:
    """Two dimensions at equal ``sigma sqrt(d)``; the risk identity in every draw."""
    worst, identity, shares = 0.0, 0.0, []
    for scale in SCALES:
        pair = []
        for d in (1000, 16_000):
            asleep = awake = 0
            for seed in range(RANDOM):
                problem = random_start(10, d, scale / np.sqrt(d), n_positive=6, seed=seed)
                run = case.run_of(problem)
                before, after = revival(run)
                asleep, awake = asleep + before, awake + after
                identity = max(identity, risk_identity(run))
            pair.append(awake / asleep)
        shares.append(pair)
        worst = max(worst, abs(pair[0] - pair[1]))
    listed = "; ".join(
        f"{a:.3f} and {b:.3f} at {scale:g}" for scale, (a, b) in zip(SCALES, shares, strict=True)
    )
    if identity > 1e-9:
        return Outcome(Verdict.FAIL, identity, 1e-9, "the risk identity fails")
    return at_most(worst, 0.08, note=f"d = 1000 and 16000, {RANDOM} draws each: {listed}")


def expected_coverage(k: int, n: int) -> float:
    """Probability that independent signs give each of n points one of k neurons."""
    return float((1.0 - 2.0**-k) ** n)


@CLAIMS(
    "HD-31",
    "random start: P(every point covered) is (1 - 2^-k)^n for k neurons a sign (difference)",
)
def hd31(case: Case) -> Outcome:
    """Draws of the start on the subject's points."""
    k, draws = max(1, int(np.ceil(np.log2(case.n)))), 4000
    norms = np.sqrt(np.diag(case.G))
    cosines = (case.G / norms[:, None] / norms)[~np.eye(case.n, dtype=bool)]
    if case.n > 1 and float(np.abs(cosines).mean()) > CORRELATED:
        raise NotApplicable("the points are far from orthogonal, so their signs depend")
    expected = expected_coverage(k, case.n)
    work = draws * k * case.n * case.data.d
    draws = int(max(400, draws * min(1.0, 2e9 / work)))
    rng, covered = np.random.default_rng(0), 0
    factor = np.linalg.cholesky(case.G)
    for _ in range(draws):
        P = rng.standard_normal((k, case.n)) @ factor.T
        covered += bool((P > 0.0).any(axis=0).all())
    share = covered / draws
    noise = 2.0 * float(np.sqrt(expected * (1.0 - expected) / draws))
    note = f"{share:.4f} of {draws} draws, {expected:.4f} expected, k = {k}"
    gap = abs(share - expected)
    return at_most(gap, 0.05, error=noise if gap > 0.05 else 0.0, note=note)


@CLAIMS("HD-32", "small steps: the limit tends to that of the flow, error times 1/4 a quarter step")
def hd32(case: Case) -> Outcome:
    """One neuron on up to 40 of the points; steps 1/(64 l1) to 1/(4096 l1)."""
    data, net = _one_neuron(case)
    flow = next((run for run in case.subject.runs if run.engine == "flow" and case.is_one), None)
    if flow is None or flow.status not in LIMITS:
        flow = case.subject.flow(data, net, loss=HALF, train="hidden", record=2)
    if flow.status not in LIMITS:
        raise NotApplicable(f"the flow ended as `{flow.status}`: {flow.ending}")
    data, net = flow.data, flow.net
    goal, sign = flow.final.flat().W, float(net.flat().a[0])
    errors = []
    for C in STEPS:
        run = case.run_of(Problem(data, net, 1.0 / (C * case.l1)))
        errors.append(float(np.linalg.norm(run.final.flat().W - goal)))
    size = float(np.linalg.norm(goal))
    # a step that lands elsewhere (another point dead) says nothing about small steps
    near = [k for k, error in enumerate(errors) if error < 0.05 * size]
    if len(near) < 5:
        raise Unresolved(f"only {len(near)} of {len(STEPS)} steps end near the flow")
    ratio = 4.0 ** slope([STEPS[k] for k in near], [max(errors[k], 1e-300) for k in near])
    star = distance_to_shortest(data, goal[0], sign) / size
    note = f"error x {ratio:.3f}; the flow ends {star:.2g} (relative) from the shortest fit"
    return at_most(abs(4.0 * ratio - 1.0), 0.4, note=note)


def _one_neuron(case: Case) -> tuple[Dataset, Network]:
    data = some_points(case.data, 40)
    if case.is_one and case.n == data.n and (case.P0 > 0.0).all():
        return data, case.subject.net
    return data, by_preactivations(data, 0.01 * float(np.abs(data.y).min()), [1.0])


@CLAIMS(
    "HD-33", "orthogonal points: the flow ends at w*, descent at the distance of its first step"
)
def hd33(case: Case) -> Outcome:
    """Up to 40 of the subject's points, or orthogonal ones of the same norms and labels."""
    some = some_points(case.data, 40)
    if not some.y.all():
        raise NotApplicable("A1 fails: a label is zero")
    norms = np.sqrt(np.diag(some.gram))
    apart = np.abs(some.gram / np.outer(norms, norms) - np.eye(some.n)).max()
    data = some if apart <= 1e-12 else Dataset(np.diag(norms), some.y)
    net = by_preactivations(data, 0.005 * float(np.abs(data.y).min()), [1.0])
    lr = 0.5 / float(norms.max() ** 2)
    flow = case.subject.flow(data, net, loss=HALF, train="hidden", record=2, rtol=1e-11)
    run = case.run_of(Problem(data, net, lr))
    P, off = net.W @ data.X.T, data.y < 0.0
    first = P[0] - lr * norms**2 * (P[0] - data.y)
    if (first[off] >= 0.0).any():
        raise NotApplicable("norms differ so much that one step does not switch all negatives off")
    law = float(np.sqrt((first[off] ** 2 / norms[off] ** 2).sum()))
    gaps = (
        distance_to_shortest(data, flow.final.flat().W[0]) / law,
        abs(distance_to_shortest(data, run.final.flat().W[0]) - law) / law,
    )
    note = f"flow {gaps[0]:.2g}, descent {gaps[1]:.2g} (relative to the gap of descent)"
    return at_most(max(gaps), 1e-10, note=note)
