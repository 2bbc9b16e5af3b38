"""HD-11 to HD-17: problem (7), Theorem 1 with Lemma 9, and the distance of Theorem 2."""

from __future__ import annotations

import numpy as np

from reluflow.papers.highdim import minimum
from reluflow.papers.highdim.case import HighDim
from reluflow.papers.highdim.claims import THEOREM, concluded, one_step
from reluflow.papers.highdim.gram import Pattern, residual
from reluflow.papers.highdim.law import kick, kick_error
from reluflow.papers.highdim.lemmas import invariant
from reluflow.papers.highdim.paper import paper
from reluflow.theory.verdicts import Finding, at_least, at_most, together, undecided

ENUMERATED = 10  # negatives up to which all sets of tight points are tried
PROGRAMMED = 200  # points up to which a second solver is asked


def _signs(case: HighDim) -> list[int]:
    """One neuron of each sign that has labels."""
    kinds: dict[float, int] = {}
    for k, sign in enumerate(case.s.tolist()):
        if case.own[k].any():
            kinds.setdefault(sign, k)
    return list(kinds.values())


def rounding(case: HighDim) -> float:
    """What solving with the Gram matrix is good for, relative."""
    return 1e3 * float(np.finfo(float).eps) * float(case.spectrum[-1] / case.spectrum[0])


@paper.claim(
    "HD-11",
    "identity: problem (7): optimality conditions, and several solvers agree (relative)",
    needs=["own"],
)
def hd11(case: HighDim) -> Finding:
    """Conditions of the solution; a quadratic program; all sets of tight points where few."""
    worst, methods = 0.0, {"optimality"}
    for k in _signs(case):
        star, labels = case.stars[k], case.s[k] * case.y
        assert star is not None
        b = np.linalg.solve(case.G, case.data.X @ star.W[0])
        worst = max(worst, minimum.kkt_residual(case.G, labels, b))
        if case.n <= PROGRAMMED:
            low, high = minimum.one_by_program(case.compact.X, labels)
            worst = max(worst, low / star.value - 1.0, 1.0 - high / star.value)
            methods.add("quadratic program")
        if (labels <= 0.0).sum() <= ENUMERATED:
            value = minimum.one_by_enumeration(case.G, labels)
            worst = max(worst, abs(value / star.value - 1.0))
            methods.add("enumeration")
    return at_most(worst, rounding(case), note=", ".join(sorted(methods)))


@paper.claim(
    "HD-12",
    "identity: Lemma 3: the solution of (7) is the shortest linear fit on its support (relative)",
    needs=["own"],
)
def hd12(case: HighDim) -> Finding:
    """Negative labels of the support count as zero."""
    worst = 0.0
    for k in _signs(case):
        star, labels = case.stars[k], case.s[k] * case.y
        assert star is not None
        b = np.linalg.solve(case.G, case.data.X @ star.W[0])
        w = minimum.interpolation_on_support(case.G, labels, b) @ case.data.X
        gap = float(np.linalg.norm(w - star.W[0]) / np.linalg.norm(star.W[0]))
        worst = max(worst, gap)
    return at_most(worst, rounding(case))


@paper.claim(
    "HD-13",
    "Theorem 1: one step makes the pattern, for ever; the limit in closed form (relative)",
    needs=[*THEOREM, "one", "start", "certified"],
    regime=["A2"],
)
def hd13(case: HighDim) -> Finding:
    """Change at iteration 1 only; closed form; inactive elsewhere; least risk."""
    own, (facts, gap) = case.own[0], one_step(case, case.own)
    r = residual(case.s, case.P_inf, case.y)
    least = 0.5 * float((case.y[~own] ** 2).sum())
    facts |= {
        "inactive strictly": _strictly_off(case, ~own),
        "the risk is the least possible": abs(0.5 * float(r @ r) - least)
        <= 1e-9 * 0.5 * float(case.y @ case.y),
    }
    return concluded(facts, gap, 1e-9)


def _strictly_off(case: HighDim, points: Pattern) -> bool:
    """Whether the first neuron is off these points by more than the error of the limit."""
    reach = case.limit.limit_error * np.sqrt(np.diag(case.G)[points])
    return bool((case.P_inf[0, points] < -reach).all())


@paper.claim(
    "HD-14",
    "Lemma 9: the invariant set from the first step on (|b| l1/(sqrt(n) y_max))",
    needs=[*THEOREM, "one", "start", "certified"],
    regime=["A2"],
)
def hd14(case: HighDim) -> Finding:
    """Conditions (a) to (f); the ratios stand for their constants."""
    found = invariant(case.y, case.s, case.l1, case.own, case.loop)
    note = (
        f"duals of other points from {found.lowest:.3g} y_min/l1 to {found.highest:.3g} y_max/l1, "
        f"residual {found.residual:.3g} sqrt(n) y_max"
    )
    facts = {"the run ends with that pattern": bool((case.active_inf == case.own).all())}
    return concluded(facts | found.facts, found.dual, 4.0, note)


@paper.claim(
    "HD-15",
    "identity of Theorem 2: |X(w - w*)|/sqrt(mu) encloses |w - w*| (largest excess)",
    needs=["few", "own", "certified"],
)
def hd15(case: HighDim) -> Finding:
    """The sandwich of the proof for each neuron, and the identity when the freeze is at 1."""
    worst = 0.0
    for k in range(case.m):
        D, star = case.distance(k), case.stars[k]
        if star is None:
            continue
        apart = case.P_inf[k] - case.data.X @ star.W[0]
        length = float(np.linalg.norm(apart))
        low, high = length / np.sqrt(case.spectrum[-1]), length / np.sqrt(case.spectrum[0])
        size = float(np.linalg.norm(star.W[0]))
        worst = max(worst, (low - D) / size, (D - high) / size)
        right = bool((case.active_inf[k] == case.own[k]).all())
        if case.limit.stats["last_change"] <= 1 and right:
            worst = max(worst, abs(D - _by_schur(case, k)) / size)
    return at_most(worst, 1e-10)


def _by_schur(case: HighDim, k: int) -> float:
    r"""``|w - w*|`` by duals of other points: :math:`\sqrt{D^T S D}`, S their Schur complement."""
    star, G = case.stars[k], case.G
    assert star is not None
    up, down = np.flatnonzero(case.own[k]), np.flatnonzero(~case.own[k])
    cross = G[np.ix_(up, down)]
    S = G[np.ix_(down, down)] - cross.T @ np.linalg.solve(G[np.ix_(up, up)], cross)
    b = np.linalg.solve(G, case.P_inf[k] - case.data.X @ star.W[0])[down]
    return float(np.sqrt(max(float(b @ S @ b), 0.0)))


def two_sided(case: HighDim, k: int) -> Finding:
    """At least 0.7 y_min and at most 1.1 y_max in units of ``sqrt(n_off/l1)/C``.

    A start of pre-activations eps lowers the kick of y by ``(C - 1) eps`` and raises it by eps.
    Products of points move the distance by at most `kick_error`: within that nothing fails.
    """
    off = int((~case.own[k]).sum())
    if off == 0:
        small = case.distance(k) * np.sqrt(case.l1) / float(case.size.max())
        return at_most(small, 1e-6, note="all labels have the neuron's sign: the shortest fit")
    scaled = float(case.C * case.distance(k) / np.sqrt(off / case.l1))
    eps, least, most = float(case.P0[k].max()), float(case.size.min()), float(case.size.max())
    floor = 0.7 * (least - (case.C - 1.0) * eps)
    ceiling = 1.1 * (most + eps)
    reach = float(case.C * kick_error(case, k) / np.sqrt(off / case.l1))
    if 0.0 < max(floor - scaled, scaled - ceiling) <= reach:
        note = f"products of points may move it by {reach:.3g}; a higher dimension would decide"
        return undecided(scaled, floor, f"ceiling {ceiling:.4g}; {note}")
    return together(
        at_least(scaled, floor, note=f"ceiling {ceiling:.4g}"),
        at_most(scaled, ceiling, note=f"floor {floor:.4g}"),
    )


@paper.claim(
    "HD-16",
    "Theorem 2: the distance is of order sqrt(n_-/l1) from both sides (C x distance)",
    needs=[*THEOREM, "one", "start", "certified", "both signs", "law"],
    regime=["A2"],
)
def hd16(case: HighDim) -> Finding:
    """At least 0.7 y_min and at most 1.1 y_max in units of ``sqrt(n_-/l1)/C``."""
    return two_sided(case, 0)


@paper.claim(
    "HD-17",
    "Theorem 2: |distance over its leading-order law - 1|",
    needs=[*THEOREM, "one", "start", "certified", "both signs"],
    regime=["A2"],
)
def hd17(case: HighDim) -> Finding:
    """The law is the first kick; `kick_error` bounds what products of points add."""
    ratio = case.distance(0) / kick(case, 0)
    band = kick_error(case, 0) / kick(case, 0) + 1e-6
    if band >= 1.0:  # any distance below the law would do
        return undecided(abs(ratio - 1.0), 1.0, "products hide the law; a higher dimension decides")
    return at_most(abs(ratio - 1.0), band, note=f"ratio {ratio:.5g}")
