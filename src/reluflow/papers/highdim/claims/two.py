"""HD-21 to HD-24: problem (8), Theorem 3 with Lemma 10, and the distances of Theorem 4."""

from __future__ import annotations

import numpy as np

from reluflow.dataset import Dataset
from reluflow.interpolators import single_relu, two_relu
from reluflow.papers.highdim import minimum
from reluflow.papers.highdim.case import HighDim
from reluflow.papers.highdim.claims import THEOREM, concluded, one_step
from reluflow.papers.highdim.claims.single import two_sided
from reluflow.papers.highdim.gram import residual
from reluflow.papers.highdim.lemmas import invariant
from reluflow.papers.highdim.paper import paper
from reluflow.theory.verdicts import Finding, Unresolved, at_most, together

ENUMERATED = 7  # points for which all partitions are solved
SOLVED = 100  # points for which the relaxation is solved


def some_points(data: Dataset, count: int) -> Dataset:
    """At most so many points, both signs in turn, in the order they have."""
    rank = np.zeros(data.n)  # of each point among those of its sign
    for sign in np.unique(np.sign(data.y)):
        mine = np.sign(data.y) == sign
        rank[mine] = np.arange(int(mine.sum()))
    keep = np.sort(np.argsort(rank, kind="stable")[:count])
    return Dataset(data.X[keep], data.y[keep])


@paper.claim(
    "HD-21",
    "identity: problem (8): relaxation <= all partitions <= decoupled; branching finds the least",
    needs=["A1", "both signs"],
)
def hd21(case: HighDim) -> Finding:
    """On up to seven of the points, one quadratic program a partition."""
    data = some_points(case.compact, ENUMERATED)
    hull, _, _ = minimum.two_by_hull(data.X, data.y)
    least = minimum.two_by_enumeration(data.X, data.y)
    answer = two_relu(data)
    decoupled = single_relu(data).value + single_relu(Dataset(data.X, -data.y)).value
    worst = max(
        hull / least - 1.0,
        least / decoupled - 1.0,
        abs(answer.value / least - 1.0),
        answer.lower_bound / least - 1.0,
    )
    return at_most(worst, 1e-7, note=f"{2**data.n} partitions of {data.n} points")


@paper.claim(
    "HD-22",
    "identity: problem (8) in high dimension decouples into two problems (7) (relative)",
    needs=["A1", "both signs"],
    regime=["A2"],
)
def hd22(case: HighDim) -> Finding:
    """Tight relaxation, nobody active on a point of the other sign."""
    data = case.compact if case.n <= SOLVED else some_points(case.compact, SOLVED)
    hull, own, other = minimum.two_by_hull(data.X, data.y)
    decoupled = single_relu(data).value + single_relu(Dataset(data.X, -data.y)).value
    _, size, _ = minimum.unit_problem(data.X, data.y)
    fit = np.abs(own - np.abs(size) - np.maximum(other, 0.0)).max()
    facts = {
        "the relaxation is tight": bool(fit <= 1e-7),
        "no neuron is active on the other sign": bool(other.max() <= 1e-7),
    }
    note = f"{data.n} points"
    return concluded(facts, abs(decoupled / hull - 1.0), 1e-7, note)


@paper.claim(
    "HD-23",
    "Theorem 3, Lemma 10: one step separates the neurons, for ever; closed form (relative)",
    needs=[*THEOREM, "two", "start", "certified"],
    regime=["A2"],
)
def hd23(case: HighDim) -> Finding:
    """Each neuron ends active exactly on its own sign; zero risk."""
    facts, gap = one_step(case, case.own)
    left = float(np.abs(residual(case.s, case.P_inf, case.y)).max())
    found = invariant(case.y, case.s, case.l1, case.own, case.loop)
    facts |= {"the risk is zero": left <= 1e-9 * float(case.size.max())} | found.facts
    return concluded(facts, gap, 1e-9)


@paper.claim(
    "HD-24",
    "Theorem 4: distances to problem (8) are of order sqrt(n_other/l1) (C x distance)",
    needs=[*THEOREM, "two", "start", "certified", "law"],
    regime=["A2"],
)
def hd24(case: HighDim) -> Finding:
    """As HD-16 for each neuron, with the number of points of the other sign.

    Where (8) decouples its solution is that of two problems (7); otherwise it is solved itself.
    """
    if case.met("both signs") and case.n <= SOLVED and case.surrogate > 0.25:
        answer = two_relu(case.compact)
        apart = single_relu(case.compact).value + single_relu(_mirrored(case)).value
        if not answer.certified or answer.value < apart * (1.0 - 1e-6):
            raise Unresolved(
                "problem (8) does not decouple here, or is not certified; "
                "a higher dimension decides"
            )
    return together(*(two_sided(case, k) for k in range(2)))


def _mirrored(case: HighDim) -> Dataset:
    return Dataset(case.compact.X, -case.y)
