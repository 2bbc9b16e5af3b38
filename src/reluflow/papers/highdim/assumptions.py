"""Assumptions A1 to A3 of the paper, the hypotheses on step and start, and what rows ask.

The constants of the paper are missing in the text at hand. A2 holds where its surrogate is below
1/4, as the proofs need; it is refuted where one of its ratios is below 1, whatever the constant;
between it is open. It is a regime ("high enough"): where it is not certain a conclusion that holds
passes and one that does not is unresolved.
"""

from __future__ import annotations

import numpy as np

from reluflow.papers.highdim.case import HOPELESS, LIMITS, SURE, HighDim
from reluflow.papers.highdim.paper import paper
from reluflow.theory.verdicts import Finding, Verdict, at_least, at_most, holds, together, undecided
from reluflow.trajectory import Status

SMALL_START = 0.25  # largest start pre-activation, in units of the first kick (eta l1) y_min
LARGEST_C = 8.0  # beyond, the first step is too short to switch points off
SIGN_DRAWS = 20
CORRELATED = 0.3  # mean |cosine| above which signs of pre-activations are far from independent


@paper.assumption("A1", "labels are bounded away from zero: smallest |y|")
def a1(case: HighDim) -> Finding:
    """Non-zero labels; the ratio of the largest to the smallest enters A2."""
    least, most = float(case.size.min()), float(case.size.max())
    if least == 0.0:
        zero = int(np.flatnonzero(case.size == 0.0)[0])
        return holds(False, 0.0, 0.0, f"the label of point {zero} is zero")
    return holds(True, least, 0.0, f"y_max/y_min = {most / least:.4g}")


@paper.assumption("A2", "dimension is high: |G - l1 I| sqrt(n) y_max/(l1 y_min)", needs=["A1"])
def a2(case: HighDim) -> Finding:
    """The surrogate: below 1/4 it holds; where a ratio is below 1 it fails; between it is open."""
    if case.dimension is Verdict.UNRESOLVED:
        return undecided(
            case.surrogate, SURE, "open: the constant of A2 is not known; a higher d decides"
        )
    passed = case.dimension is Verdict.PASS
    why = "a ratio of A2 is below 1" if case.ratios else f"above {HOPELESS:g}"
    return holds(passed, case.surrogate, SURE, "" if passed else why)


@paper.assumption("A2a", "d_2 over n^2 (y_max/y_min)^2, at least 1 (necessary)", needs=["A1"])
def a2a(case: HighDim) -> Finding:
    """First ratio of A2; below 1 it fails whatever the constant."""
    return _ratio(case, 0)


@paper.assumption("A2b", "d_inf over n^(3/2) y_max/y_min, at least 1 (necessary)", needs=["A1"])
def a2b(case: HighDim) -> Finding:
    """Second ratio of A2; below 1 it fails whatever the constant."""
    return _ratio(case, 1)


def _ratio(case: HighDim, which: int) -> Finding:
    if case.ratios is None:
        return undecided(note="the covariance is not known; data that know it decide")
    return at_least(case.ratios[which], 1.0, note="necessary; the paper's constant is not known")


@paper.assumption(
    "A3", "every point has a neuron of its own with the sign of its label (points without)"
)
def a3(case: HighDim) -> Finding:
    """For more than two neurons the start names an owner for each point."""
    claimed = (case.own & (case.P0 > 0.0)).sum(axis=0)
    note = f"{int((claimed == 0).sum())} points without, {int((claimed > 1).sum())} with several"
    return holds(bool((claimed == 1).all()), int((claimed != 1).sum()), 0.0, note)


@paper.assumption("step", "the step is 1/(C l1) with C of order one, and eta mu_max is at most 1")
def step(case: HighDim) -> Finding:
    """Two-sided: the proofs need a first step that switches wrong points off."""
    top = case.eta * float(case.spectrum[-1])
    if top > 1.0 + 1e-9:
        return holds(False, top, 1.0, "the step is too long: eta mu_max is above 1")
    return at_most(case.C, LARGEST_C, note=f"eta mu_max = {top:.4g}")


@paper.assumption(
    "start",
    "pre-activations at the start are positive and small beside the first kick",
    needs=["A1"],
)
def start(case: HighDim) -> Finding:
    """For one and two neurons: in units of ``(eta l1) y_min``."""
    if not (case.P0 > 0.0).all():
        off = int((case.P0 <= 0.0).sum())
        return holds(False, float(case.P0.min()), 0.0, f"{off} pairs start inactive")
    return at_most(float(case.P0.max()) * case.C / float(case.size.min()), SMALL_START)


@paper.condition("start at 8", "the start is small for a step of 1/(8 l1) too", needs=["A1"])
def start_at_eight(case: HighDim) -> Finding:
    """In units of ``y_min/8``, the kick of the shortest step of the law."""
    return at_most(float(case.P0.max()) * LARGEST_C / float(case.size.min()), SMALL_START)


@paper.condition("assigned", "a start for Theorem 5: owners, neither too small nor too large")
def assigned(case: HighDim) -> Finding:
    """Section 3.5: pre-activations above the cross terms and far below the labels."""
    if not case.has_owners:
        return holds(False, note="the start does not give every point one owner, all else as asked")
    eps, least = np.abs(case.P0), float(case.size.min())
    unassigned = case.own & ~case.owner
    lowest = float(eps[unassigned].min()) if unassigned.any() else np.inf
    cross = case.delta * float(case.size.max())
    if lowest < cross:
        return holds(False, lowest, cross, "the start is too small beside the cross terms")
    return holds((case.m - 1) * float(eps.max()) < least, float(eps.max()), least)


# ---------------------------------------------------------------------- what single rows ask


@paper.condition("one", "one neuron")
def one(case: HighDim) -> Finding:
    """Theorems 1 and 2."""
    return holds(case.is_one, case.m, 1.0)


@paper.condition("two", "one neuron of each sign")
def two(case: HighDim) -> Finding:
    """Theorems 3 and 4."""
    return holds(case.is_two, case.m, 2.0)


@paper.condition("few", "one neuron, or one of each sign")
def few(case: HighDim) -> Finding:
    """Compared with problem (7) for one neuron of a sign only."""
    return holds(case.is_one or case.is_two, case.m, 2.0)


@paper.condition("many", "more than two neurons, of both signs")
def many(case: HighDim) -> Finding:
    """Theorems 5 and 6."""
    return holds(case.m > 2 and len(set(case.s.tolist())) == 2, case.m, 3.0)


@paper.condition("both signs", "labels of both signs")
def both_signs(case: HighDim) -> Finding:
    """Problem (8) and the laws of the distance."""
    return holds(bool((case.y > 0.0).any() and (case.y < 0.0).any()))


@paper.condition("own", "some label has the sign of a neuron")
def own(case: HighDim) -> Finding:
    """Otherwise nothing is fitted."""
    return holds(bool(case.own.any()))


@paper.condition("law", "C at most 4 and |G - l1 I|/l1 at most 0.3: the band of the law is known")
def law(case: HighDim) -> Finding:
    """Where the numbers of the two-sided law were measured."""
    return holds(case.C <= 4.0 and case.delta <= 0.3, case.delta, 0.3, f"C = {case.C:.3g}")


@paper.condition("covariance", "the covariance of the data is known")
def covariance(case: HighDim) -> Finding:
    """Corollary 1 is about it."""
    return holds(case.dimensions is not None)


@paper.condition("span", "the points do not span the space")
def span(case: HighDim) -> Finding:
    """Otherwise there is no orthogonal part."""
    return at_least(case.data.d, case.n + 1)


@paper.condition("off planes", "no pre-activation at the start is zero")
def off_planes(case: HighDim) -> Finding:
    """The risk is not differentiable there."""
    size = np.sqrt((case.W0**2).sum(axis=1))[:, None] * np.sqrt(np.diag(case.G))
    ratio = np.abs(case.P0) / np.where(size > 0.0, size, 1.0)
    return holds(bool((ratio > 1e-12).all()), float(ratio.min()), 1e-12)


@paper.condition("settles", "the pattern settles: the limit lies on no boundary")
def settles(case: HighDim) -> Finding:
    """The certificate of the run to the limit."""
    return holds(case.limit.stats["frozen_from"] is not None)


@paper.condition("short step", "eta mu_max(K) is at most 1 in the final phase", needs=["settles"])
def short_step(case: HighDim) -> Finding:
    """Then every mode of the residual shrinks without a change of sign."""
    return at_most(case.final_curvature, 1.0 + 1e-9)


@paper.condition("interpolates", "the limit has zero risk")
def interpolates(case: HighDim) -> Finding:
    """Theorem 6 compares interpolators."""
    return holds(case.limit.status is Status.CONVERGED, note=str(case.limit.status))


@paper.condition("tiny", "an assigned start below the cross terms", needs=["many"])
def tiny(case: HighDim) -> Finding:
    """What HD-26 is about."""
    if not case.has_owners:
        return holds(False, note="the start does not give every point one owner")
    eps = np.abs(case.P0)[case.own & ~case.owner]
    largest = float(eps.max(initial=0.0))
    return at_most(largest, 0.1 * case.delta * float(case.size.max()))


@paper.condition("gentle", "neurons of one sign that share a point do not overshoot: M eta l1")
def gentle(case: HighDim) -> Finding:
    """M neurons of a sign move a point they share M times as far; beyond 1 they lose it."""
    copies = max(int((case.s > 0.0).sum()), int((case.s < 0.0).sum()))
    return at_most(copies / case.C, 1.0 + 1e-9)


@paper.condition("proper", "the start is that of the theorem for so many neurons")
def proper(case: HighDim) -> Finding:
    """Theorems 1 and 3 ask for "start", Theorem 5 for "assigned"."""
    asked = "start" if case.m <= 2 else "assigned"
    return holds(case.met(asked), note="" if case.met(asked) else f"{asked} is not met")


@paper.condition("patterns", "two points of these neurons have at most 2^12 patterns (2 m)")
def patterns(case: HighDim) -> Finding:
    """Cost of going through all of them."""
    return at_most(2 * case.m, 12.0)


@paper.condition("several d", "runs in three dimensions or more, all else equal (dimensions)")
def several_d(case: HighDim) -> Finding:
    """A slope against d."""
    return at_least(len(case.gaps_by("d")), 3.0)


@paper.condition("several n", "runs with three numbers of points or more, all else equal (numbers)")
def several_n(case: HighDim) -> Finding:
    """A slope against n."""
    return at_least(len(case.gaps_by("n")), 3.0)


@paper.condition("each", "every run given is one of Theorem 2, all with one C (largest over least)")
def each(case: HighDim) -> Finding:
    """The distance is proportional to the step: slopes compare runs of one constant."""
    cases = [case.on(run) for run in case.subject.runs]
    if not cases:
        return holds(False, note="no run is given")
    asked = ("A1", "step", "own", "one", "start")
    missed = sorted({id for one in cases for id in asked if not one.met(id)})
    spread = max(one.C for one in cases) / min(one.C for one in cases)
    note = f"a run does not meet {', '.join(missed)}" if missed else ""
    return holds(not missed and spread <= 1.01, spread, 1.01, note)


@paper.condition("each high", "A2 holds for every run given", needs=["each"])
def each_high(case: HighDim) -> Finding:
    """The least certain one decides."""
    return together(*(case.paper["A2"](case.on(run)) for run in case.subject.runs))


@paper.condition("moderate", "the dimension is below twice the number of points")
def moderate(case: HighDim) -> Finding:
    """Where patterns change many times."""
    return at_most(case.ambient, 2 * case.n)


@paper.condition("asleep", "some point of the neuron's sign starts inactive", needs=["one"])
def asleep(case: HighDim) -> Finding:
    """Which may wake up, or never."""
    return at_least(int((case.own[0] & (case.P0[0] <= 0.0)).sum()), 1.0)


@paper.condition("orthogonal", "the points are orthogonal (largest cosine)")
def orthogonal(case: HighDim) -> Finding:
    """Then cross terms vanish."""
    return at_most(case.largest_cosine, 1e-12)


@paper.condition("nearly orthogonal", "signs of pre-activations are nearly independent")
def nearly_orthogonal(case: HighDim) -> Finding:
    """Mean |cosine| between points."""
    norms = np.sqrt(np.diag(case.G))
    off = np.abs(case.G / np.outer(norms, norms))[~np.eye(case.n, dtype=bool)]
    return at_most(float(off.mean()) if off.size else 0.0, CORRELATED)


@paper.condition("random", "signs at the start look like fair coins (p-value)")
def random_signs(case: HighDim) -> Finding:
    """A start chosen by its pre-activations is no random one; draws of the generator count too."""
    from scipy.stats import binomtest

    drawn = case.draw(SIGN_DRAWS) if case.subject.drawer is not None else []
    signs = [case.P0, *(net.mantissa.W @ data.X.T for data, net in drawn)]
    on, count = sum(int((P > 0.0).sum()) for P in signs), sum(P.size for P in signs)
    return at_least(float(binomtest(on, count).pvalue), 1e-3, note="two-sided sign test")


@paper.condition("certified", "the run has a certified limit")
def certified(case: HighDim) -> Finding:
    """A limit of descent, not a moment of it."""
    return holds(case.limit.status in LIMITS, note=str(case.limit.status))
