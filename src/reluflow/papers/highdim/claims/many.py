"""HD-25 to HD-28: more than two neurons; Theorem 5 with Lemma 12, Theorem 6, problem (45)."""

from __future__ import annotations

import numpy as np

from reluflow.dataset import Dataset
from reluflow.interpolators import multi_relu, single_relu
from reluflow.papers.highdim.case import HighDim
from reluflow.papers.highdim.claims import concluded, one_step
from reluflow.papers.highdim.claims.two import some_points
from reluflow.papers.highdim.gram import residual
from reluflow.papers.highdim.lemmas import invariant
from reluflow.papers.highdim.minimum import nearest_copy
from reluflow.papers.highdim.paper import paper
from reluflow.theory.verdicts import Finding, Unresolved, at_most, holds, undecided

LARGEST = 60  # points for which the problem of several neurons is solved


@paper.claim(
    "HD-25",
    "Theorem 5, Lemma 12: the assignment is the pattern from step 1 on (relative)",
    needs=["A1", "step", "many", "A3", "assigned", "certified"],
    regime=["A2"],
)
def hd25(case: HighDim) -> Finding:
    """Each neuron ends with the closed form on its own points; interpolation."""
    facts, gap = one_step(case, case.owner)
    left = float(np.abs(residual(case.s, case.P_inf, case.y)).max())
    found = invariant(case.y, case.s, case.l1, case.owner, case.loop)
    facts |= {"every label is fitted": left <= 1e-9 * float(case.size.max())} | found.facts
    return concluded(facts, gap, 1e-9)


@paper.claim(
    "HD-26",
    "a start too small may lose its assignment but still interpolates (largest residual)",
    needs=["A1", "many", "tiny", "gentle", "certified"],
    regime=["A2"],
)
def hd26(case: HighDim) -> Finding:
    """On the subject itself; how many points changed hands is noted."""
    lost = int((case.active_inf != case.owner).any(axis=0).sum())
    left = float(np.abs(residual(case.s, case.P_inf, case.y)).max() / case.size.max())
    return at_most(left, 1e-9, note=f"{lost} of {case.n} points changed hands")


@paper.claim(
    "HD-27",
    "Theorem 6: |Theta - Theta*| over y_max sqrt(m n/l1), at most 4 (constant reconstructed)",
    needs=["A1", "step", "many", "A3", "assigned", "certified", "interpolates"],
    regime=["A2"],
)
def hd27(case: HighDim) -> Finding:
    r"""Against the shortest weights of these signs; copies of a sign are matched.

    The limit is that of Theorem 5: a neuron fits its own points and keeps one kick of the others.
    From an assigned start outputs are below :math:`y_{min}`, so kicks are below
    :math:`2 y_{max} / C`, hence :math:`|w_k| \le 2 y_{max} \sqrt{n/l_1}`, and the distance is at
    most :math:`2 |\Theta|`. Where the assignment is lost, M neurons of a sign overshoot together,
    :math:`M \eta l_1` times as far.
    """
    if case.n > LARGEST:
        raise Unresolved(
            f"the minimum over {case.n} points is not computed; {LARGEST} would decide"
        )
    star = multi_relu(case.data, case.s)
    if not star.certified:
        raise Unresolved("the shortest weights of these signs are not certified; fewer points help")
    W = case.W_inf - case.apart
    gap = nearest_copy(W, star.W, case.s)
    scale = float(case.size.max()) * np.sqrt(case.m * case.n / case.l1)
    longer = float(np.linalg.norm(W)) / np.sqrt(star.value)
    return at_most(gap / scale, 4.0, note=f"|Theta| is {longer:.3g} |Theta*|")


@paper.claim(
    "HD-28",
    "identity: problem (45): the even split is never shorter than the minimum, equal in high d",
    needs=["A1", "many", "both signs", "patterns"],
    regime=["A2"],
)
def hd28(case: HighDim) -> Finding:
    """All patterns of as many points as n m <= 12 allows."""
    data = some_points(case.compact, 12 // case.m)
    least = multi_relu(data, case.s)
    up, down = single_relu(data), single_relu(Dataset(data.X, -data.y))
    split = up.value / (case.s > 0.0).sum() + down.value / (case.s < 0.0).sum()
    excess = float(split / least.value - 1.0)
    note = f"{data.n} points; split over minimum - 1 = {excess:.3g}"
    if excess < -1e-6:
        return holds(False, -excess, 1e-6, note)
    if not least.certified:
        return undecided(-excess, 1e-6, f"{note}; not certified, fewer neurons would decide")
    return at_most(abs(excess), 1e-6, note=note)
