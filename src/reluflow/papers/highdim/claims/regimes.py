"""HD-29 to HD-33, HD-36, HD-37: moderate d, random starts, small steps, orthogonal points."""

from __future__ import annotations

import numpy as np

from reluflow.papers.highdim.accepted import HALF
from reluflow.papers.highdim.case import LIMITS, HighDim
from reluflow.papers.highdim.claims import THEOREM
from reluflow.papers.highdim.draws import Problem, step_size
from reluflow.papers.highdim.gram import residual
from reluflow.papers.highdim.minimum import distance_to_shortest
from reluflow.papers.highdim.paper import paper
from reluflow.theory.fits import line, share, share_at_least
from reluflow.theory.verdicts import (
    Finding,
    Unresolved,
    at_most,
    holds,
    together,
    undecided,
)
from reluflow.trajectory import Trajectory

DRAWS = 100
MANY_DRAWS = 400
TAIL, DEVIANTS = 0.05, 80  # the probability at which Lemma 8 is held, and draws that decide it
STEPS = tuple(float(C) for C in np.geomspace(64.0, 4096.0, 24))
BLOCK = 8  # steps whose largest error counts


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


@paper.claim(
    "HD-29",
    "d near n: patterns change several times and freeze late, in some of the draws (share)",
    needs=["one", "both signs", "start", "moderate", "certified"],
)
def hd29(case: HighDim) -> Finding:
    """Draws of the subject's generator; the risk is that of the dead points in each of them.

    "Some" is read as one in ten: the least share that was seen is one in five, for two points.
    """
    runs = [_trained(case, *pair) for pair in case.draw(DRAWS)]
    several = sum(run.stats["changes"] > 1 and run.stats["last_change"] > 1 for run in runs)
    worst = max(risk_identity(run) for run in (case.limit, *runs))
    return together(
        at_most(worst, 1e-9, note="risk of the dead points, relative"),
        share_at_least(several, len(runs), 0.1),
    )


def _trained(case: HighDim, data: object, net: object) -> Trajectory:
    lr = step_size(data, case.C)  # type: ignore[arg-type]
    return case.run_of(Problem(data, net, lr))  # type: ignore[arg-type]


@paper.claim(
    "HD-30",
    "random start: what is not fitted is dead, and the risk is that of dead points (relative)",
    needs=["one", "asleep", "certified"],
)
def hd30(case: HighDim) -> Finding:
    """On the subject; how many sleeping points woke up is noted."""
    before = case.own[0] & (case.P0[0] <= 0.0)
    awake = int((before & case.active_inf[0]).sum())
    note = f"{awake} of {int(before.sum())} sleeping points woke up"
    return at_most(risk_identity(case.limit), 1e-9, note=note)


def expected_coverage(y: np.ndarray, s: np.ndarray) -> float:
    """Probability that independent signs give each point an active neuron of its sign."""
    chance = 1.0
    for sign in (1.0, -1.0):
        chance *= float((1.0 - 0.5 ** int((s == sign).sum())) ** int((sign * y > 0.0).sum()))
    return chance


@paper.claim(
    "HD-31",
    "random start: P(every point covered) is (1 - 2^-k)^n for k neurons a sign (share)",
    needs=["A1", "nearly orthogonal", "random"],
)
def hd31(case: HighDim) -> Finding:
    """Over draws of the subject's generator; products of points change it by order n^2/d."""
    covered, expected = 0, []
    for data, net in case.draw(MANY_DRAWS):
        P, s = net.mantissa.W @ data.X.T, net.signs
        own = s[:, None] * data.y > 0.0
        covered += bool((own & (P > 0.0)).any(axis=0).all())
        expected.append(expected_coverage(data.y, s))
    found, wanted = share(covered, MANY_DRAWS), float(np.mean(expected))
    note = f"{found.text}; {wanted:.4f} expected"
    gap, slack = max(found.low - wanted, wanted - found.high), case.n**2 / case.ambient
    if 0.0 < gap <= slack:
        told = f"products of points may change it by {slack:.2g}; a higher dimension decides"
        return undecided(found.value, wanted, f"{note}; {told}")
    return holds(gap <= 0.0, found.value, wanted, note)


@paper.claim(
    "HD-32",
    "small steps: the limit tends to that of the flow, error times 1/4 a quarter step",
    needs=["A1", "one", "own", "both signs"],
)
def hd32(case: HighDim) -> Finding:
    """The subject's data and start; steps 1/(64 l1) to 1/(4096 l1).

    A point dies within a step: how far beyond its plane is a matter of chance, from nothing to a
    whole step. So the largest error of eight steps is compared with that of the next eight; its
    logarithm is known to about 1/8.
    """
    given = next((run for run in case.subject.runs if run.engine == "flow"), None)
    flow = (
        given
        if given is not None and given.status in LIMITS
        else case.flow(case.data, case.net, loss=HALF, train="hidden", record=2)
    )
    if flow.status not in LIMITS:
        raise Unresolved(
            f"the flow ended as `{flow.status}`: {flow.ending}; its limit would decide"
        )
    goal, sign = flow.final.flat().W, float(case.s[0])
    errors = []
    for C in STEPS:
        run = case.run_of(Problem(case.data, case.net, 1.0 / (C * case.l1)))
        errors.append(float(np.linalg.norm(run.final.flat().W - goal)))
    size = float(np.linalg.norm(goal))
    if max(errors) <= 1e-9 * size:
        return holds(True, max(errors), note="every step ends where the flow does")
    # a step that lands elsewhere (another point dead) says nothing about small steps
    near = [k for k, error in enumerate(errors) if error < 0.05 * size]
    blocks = [near[k : k + BLOCK] for k in range(len(near) % BLOCK, len(near), BLOCK)]
    if len(blocks) < 2:
        raise Unresolved(f"only {len(near)} of {len(STEPS)} steps end near the flow; others decide")
    middles = [float(np.mean(np.log([STEPS[k] for k in block]))) for block in blocks]
    # errors in steps: a slope of zero is an error of order one
    logs = [np.log(max(STEPS[k] * errors[k] for k in block)) for block in blocks]
    ratio = 0.25 * 4.0 ** line(middles, logs).slope
    star = distance_to_shortest(case.data, goal[0] - case.apart[0], sign) / size
    note = f"error x {ratio:.3f}; the flow ends {star:.2g} (relative) from the shortest fit"
    return at_most(abs(4.0 * ratio - 1.0), 0.4, 0.1, note=note)


@paper.claim(
    "HD-33",
    "orthogonal points: the flow ends at w*, descent at the distance of its first step",
    needs=["A1", "one", "own", "both signs", "orthogonal", "start", "certified"],
)
def hd33(case: HighDim) -> Finding:
    """The subject's points and start; the law of its own first step."""
    norms, own = np.sqrt(np.diag(case.G)), case.own[0]
    first = case.P0[0] - case.eta * norms**2 * (case.P0[0] - case.s[0] * case.y)
    if (first[~own] >= 0.0).any():
        raise Unresolved(
            "norms differ so much that one step does not switch all others off; "
            "norms closer to each other decide"
        )
    flow = case.flow(case.data, case.net, loss=HALF, train="hidden", record=2, rtol=1e-11)
    law = float(np.sqrt((first[~own] ** 2 / norms[~own] ** 2).sum()))
    sign = float(case.s[0])
    ends = distance_to_shortest(case.data, flow.final.flat().W[0] - case.apart[0], sign) / law
    gap = abs(case.distance(0) - law) / law
    note = f"flow {ends:.2g}, descent {gap:.2g} (relative to the gap of descent)"
    return at_most(max(ends, gap), 1e-9, note=note)


@paper.claim(
    "HD-36",
    "Theorems 1, 3, 5: probability that one step makes the pattern for ever (share of draws)",
    needs=[*THEOREM, "proper", "certified"],
    regime=["A2"],
)
def hd36(case: HighDim) -> Finding:
    """Over draws of the subject's generator; "high" is read as 9 of 10, the text has no number."""
    good = 0
    for data, net in case.draw(DRAWS):
        run = _trained(case, data, net)
        own = net.signs[:, None] * data.y > 0.0
        claimed = own & (net.mantissa.W @ data.X.T > 0.0) if case.m > 2 else own
        good += run.stats["last_change"] <= 1 and bool((run.active(-1) == claimed).all())
    return share_at_least(good, DRAWS, 0.9)


@paper.claim(
    "HD-37",
    "Lemma 8: |G - l1 I| is below the bound of its tail for 1/20 (share of draws)",
    needs=["covariance"],
)
def hd37(case: HighDim) -> Finding:
    r"""Over draws of the subject's generator, with constants for normal coordinates.

    By the tail of weighted chi-squares on a net of :math:`9^n` directions,
    :math:`P[|G - l_1 I| > 4 (|\lambda|_2 \sqrt s + |\lambda|_\infty s)] \le 2 \cdot 9^n e^{-s}`.
    """
    assert case.dimensions is not None
    l1, n = case.dimensions.trace, case.n
    s = n * np.log(9.0) + np.log(2.0 / TAIL)
    bound = 4.0 * l1 * (np.sqrt(s / case.dimensions.d_2) + s / case.dimensions.d_inf)
    gaps = [float(np.linalg.norm(data.gram - l1 * np.eye(n), 2)) for data, _ in case.draw(DEVIANTS)]
    inside = sum(gap <= bound for gap in gaps)
    return share_at_least(inside, DEVIANTS, 1.0 - TAIL, f"largest {max(gaps) / bound:.3g} of it")
