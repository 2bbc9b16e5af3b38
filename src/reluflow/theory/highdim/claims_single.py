"""HD-11 to HD-17: problem (7), Theorem 1 with Lemma 9, and the distance of Theorem 2."""

from __future__ import annotations

import numpy as np

from reluflow.theory.highdim import hypotheses, minimum
from reluflow.theory.highdim.case import Case
from reluflow.theory.highdim.gram import Pattern, limit_by_owner, residual
from reluflow.theory.highdim.lemmas import invariant
from reluflow.theory.verdicts import Claims, NotApplicable, Outcome, at_most

CLAIMS = Claims()
ENUMERATED = 10  # negatives up to which all sets of tight points are tried
PROGRAMMED = 200  # points up to which a second solver is asked


def _signs(case: Case) -> list[int]:
    """One neuron of each sign that has labels."""
    kinds: dict[float, int] = {}
    for k, sign in enumerate(case.s.tolist()):
        if case.own[k].any():
            kinds.setdefault(sign, k)
    if not kinds:
        raise NotApplicable("no label has the sign of a neuron")
    return list(kinds.values())


@CLAIMS("HD-11", "problem (7): optimality conditions, and several solvers agree (relative)")
def hd11(case: Case) -> Outcome:
    """Conditions of the solution; a quadratic program; all sets of tight points where few."""
    worst, methods = 0.0, {"optimality"}
    for k in _signs(case):
        star, labels = case.stars[k], case.s[k] * case.y
        assert star is not None
        b = np.linalg.solve(case.G, case.data.X @ star.W[0])
        worst = max(worst, minimum.kkt_residual(case.G, labels, b))
        values = []
        if case.n <= PROGRAMMED:
            w = minimum.one_by_program(case.data.X, labels)
            values.append(float(w @ w))
            methods.add("quadratic program")
        if (labels <= 0.0).sum() <= ENUMERATED:
            values.append(minimum.one_by_enumeration(case.G, labels))
            methods.add("enumeration")
        worst = max([worst, *(abs(value / star.value - 1.0) for value in values)])
    return at_most(worst, 1e-7, note=", ".join(sorted(methods)))


@CLAIMS(
    "HD-12", "Lemma 3: the solution of (7) is the shortest linear fit on its support (relative)"
)
def hd12(case: Case) -> Outcome:
    """Negative labels of the support count as zero."""
    worst = 0.0
    for k in _signs(case):
        star, labels = case.stars[k], case.s[k] * case.y
        assert star is not None
        b = np.linalg.solve(case.G, case.data.X @ star.W[0])
        w = minimum.interpolation_on_support(case.G, labels, b) @ case.data.X
        gap = float(np.linalg.norm(w - star.W[0]) / np.linalg.norm(star.W[0]))
        worst = max(worst, gap)
    return at_most(worst, 1e-6)


def _theorem1(case: Case) -> None:
    if not case.is_one:
        raise NotApplicable("a statement about one neuron")
    hypotheses.theorem(case)
    hypotheses.need_positive_start(case)
    if not case.own[0].any():
        raise NotApplicable("no label has the neuron's sign")


@CLAIMS(
    "HD-13", "Theorem 1: one step makes the pattern, for ever; the limit in closed form (relative)"
)
def hd13(case: Case) -> Outcome:
    """Change at iteration 1 only; closed form; inactive elsewhere; least risk."""
    _theorem1(case)
    own = case.own[0]
    B = limit_by_owner(case.G, case.y, case.s, case.P0, case.B0, case.eta, case.own)
    closed = case.apart + B @ case.data.X
    gap = float(np.linalg.norm(case.W_inf - closed) / np.linalg.norm(closed))
    r = residual(case.s, case.P_inf, case.y)
    least = 0.5 * float((case.y[~own] ** 2).sum())
    facts = {
        "all changes come with the first step": case.limit.stats["last_change"] <= 1,
        "the pattern is certified to stay": case.limit.stats["frozen_from"] is not None,
        "active exactly on points of its sign": bool((case.active_inf[0] == own).all()),
        "inactive strictly": _strictly_off(case, ~own),
        "the risk is the least possible": abs(0.5 * float(r @ r) - least)
        <= 1e-9 * 0.5 * float(case.y @ case.y),
    }
    return hypotheses.conclude(case, facts, gap, 1e-9)


def _strictly_off(case: Case, points: Pattern) -> bool:
    """Whether the first neuron is off these points by more than the error of the limit."""
    reach = case.limit.limit_error * np.sqrt(np.diag(case.G)[points])
    return bool((case.P_inf[0, points] < -reach).all())


@CLAIMS("HD-14", "Lemma 9: the invariant set from the first step on (|b| l1/(sqrt(n) y_max))")
def hd14(case: Case) -> Outcome:
    """Conditions (a) to (f); the ratios stand for their constants."""
    _theorem1(case)
    found = invariant(case.y, case.s, case.l1, case.own, case.loop)
    note = (
        f"duals of other points from {found.lowest:.3g} y_min/l1 to {found.highest:.3g} y_max/l1, "
        f"residual {found.residual:.3g} sqrt(n) y_max"
    )
    return hypotheses.conclude(case, found.facts, found.dual, 4.0, note)


@CLAIMS("HD-15", "Theorem 2: |X(w - w*)|/sqrt(mu) encloses |w - w*| (largest excess)")
def hd15(case: Case) -> Outcome:
    """The sandwich of the proof for each neuron, and the identity when the freeze is at 1."""
    if not (case.is_one or case.is_two):
        raise NotApplicable("compared with problem (7) for one neuron of a sign only")
    worst = 0.0
    for k in range(case.m):
        D, star = case.distance(k), case.stars[k]
        assert star is not None
        apart = case.P_inf[k] - case.data.X @ star.W[0]
        length = float(np.linalg.norm(apart))
        low, high = length / np.sqrt(case.spectrum[-1]), length / np.sqrt(case.spectrum[0])
        size = float(np.linalg.norm(star.W[0]))
        worst = max(worst, (low - D) / size, (D - high) / size)
        right = bool((case.active_inf[k] == case.own[k]).all())
        if case.limit.stats["last_change"] <= 1 and right:
            worst = max(worst, abs(D - _by_schur(case, k)) / size)
    return at_most(worst, 1e-10)


def _by_schur(case: Case, k: int) -> float:
    r"""``|w - w*|`` by duals of other points: :math:`\sqrt{D^T S D}`, S their Schur complement."""
    star, G = case.stars[k], case.G
    assert star is not None
    up, down = np.flatnonzero(case.own[k]), np.flatnonzero(~case.own[k])
    cross = G[np.ix_(up, down)]
    S = G[np.ix_(down, down)] - cross.T @ np.linalg.solve(G[np.ix_(up, up)], cross)
    b = np.linalg.solve(G, case.P_inf[k] - case.data.X @ star.W[0])[down]
    return float(np.sqrt(max(float(b @ S @ b), 0.0)))


def two_sided(case: Case, k: int) -> tuple[float, float]:
    """``C`` times the distance over ``sqrt(n_off/l1)``, in units of ``y_min`` and of ``y_max``."""
    off = int((~case.own[k]).sum())
    if off == 0:
        raise NotApplicable("all labels have the neuron's sign: descent finds the shortest fit")
    scaled = case.C * case.distance(k) / np.sqrt(off / case.l1)
    return float(scaled / case.size.min()), float(scaled / case.size.max())


def need_law(case: Case) -> None:
    """Where the numbers of the two-sided law were measured."""
    if case.C > 4.0:
        raise NotApplicable(f"C is {case.C:.3g}; the expected band is known for C <= 4")
    if case.ambient < 100 * case.n:
        raise NotApplicable(f"d is {case.ambient / case.n:.3g} n; the band is known from 100 n on")


@CLAIMS(
    "HD-16", "Theorem 2: the distance is of order sqrt(n_-/l1) from both sides (C x, over y_min)"
)
def hd16(case: Case) -> Outcome:
    """At least 0.7 y_min and at most 1.1 y_max in units of ``sqrt(n_-/l1)/C``."""
    _theorem1(case)
    need_law(case)
    low, high = two_sided(case, 0)
    return both_sides(case, low, high)


def both_sides(case: Case, low: float, high: float) -> Outcome:
    """The outcome of the two inequalities."""
    facts = {"at least 0.7 y_min": low >= 0.7, "at most 1.1 y_max": high <= 1.1}
    verdict = hypotheses.conclude(case, facts, 0.0, 0.0).verdict
    note = f"in units of y_max: {high:.4g}, at most 1.1"
    return Outcome(verdict, low, 0.7, note)


@CLAIMS("HD-17", "Theorem 2: |distance over its leading-order law - 1|")
def hd17(case: Case) -> Outcome:
    """The law is the first kick; corrections are of order ``C sqrt(n/d)``."""
    _theorem1(case)
    if not (~case.own[0]).any():
        raise NotApplicable("all labels have the neuron's sign")
    ratio = case.distance(0) / case.kick(0)
    band = case.C * np.sqrt(case.n / case.ambient) + 0.02
    return hypotheses.conclude(case, {}, abs(ratio - 1.0), float(band), f"ratio {ratio:.5g}")
