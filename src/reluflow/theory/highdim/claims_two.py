"""HD-21 to HD-24: problem (8), Theorem 3 with Lemma 10, and the distances of Theorem 4."""

from __future__ import annotations

import numpy as np

from reluflow.dataset import Dataset
from reluflow.interpolators import single_relu, two_relu
from reluflow.theory.highdim import hypotheses, minimum
from reluflow.theory.highdim.case import Case
from reluflow.theory.highdim.claims_single import both_sides, need_law, two_sided
from reluflow.theory.highdim.gram import limit_by_owner, residual
from reluflow.theory.highdim.lemmas import invariant
from reluflow.theory.verdicts import Claims, NotApplicable, Outcome, at_most

CLAIMS = Claims()
ENUMERATED = 7  # points for which all partitions are solved
SOLVED = 100  # points for which the relaxation is solved


def some_points(data: Dataset, count: int) -> Dataset:
    """At most so many points, both signs in turn, in the order they have."""
    if not ((data.y > 0.0).any() and (data.y < 0.0).any()):
        raise NotApplicable("labels of both signs are needed")
    rank = np.zeros(data.n)  # of each point among those of its sign
    for sign in np.unique(np.sign(data.y)):
        mine = np.sign(data.y) == sign
        rank[mine] = np.arange(int(mine.sum()))
    keep = np.sort(np.argsort(rank, kind="stable")[:count])
    return Dataset(data.X[keep], data.y[keep])


@CLAIMS(
    "HD-21", "problem (8): relaxation <= all partitions <= decoupled; branching finds the least"
)
def hd21(case: Case) -> Outcome:
    """On up to seven of the points, one quadratic program a partition."""
    data = some_points(case.data, ENUMERATED)
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


@CLAIMS("HD-22", "problem (8) in high dimension decouples into two problems (7) (relative)")
def hd22(case: Case) -> Outcome:
    """Tight relaxation, nobody active on a point of the other sign."""
    hypotheses.need_labels(case)
    hypotheses.need_dimension(case)
    data = case.data if case.n <= SOLVED else some_points(case.data, SOLVED)
    if not ((data.y > 0.0).any() and (data.y < 0.0).any()):
        raise NotApplicable("labels of both signs are needed")
    hull, own, other = minimum.two_by_hull(data.X, data.y)
    decoupled = single_relu(data).value + single_relu(Dataset(data.X, -data.y)).value
    _, size, _ = minimum.unit_problem(data.X, data.y)
    fit = np.abs(own - np.abs(size) - np.maximum(other, 0.0)).max()
    facts = {
        "the relaxation is tight": bool(fit <= 1e-7),
        "no neuron is active on the other sign": bool(other.max() <= 1e-7),
    }
    note = f"{data.n} points"
    return hypotheses.conclude(case, facts, abs(decoupled / hull - 1.0), 1e-7, note)


def _theorem3(case: Case) -> None:
    if not case.is_two:
        raise NotApplicable("a statement about one neuron of each sign")
    hypotheses.theorem(case)
    hypotheses.need_positive_start(case)


@CLAIMS(
    "HD-23", "Theorem 3, Lemma 10: one step separates the neurons, for ever; closed form (relative)"
)
def hd23(case: Case) -> Outcome:
    """Each neuron ends active exactly on its own sign; zero risk."""
    _theorem3(case)
    B = limit_by_owner(case.G, case.y, case.s, case.P0, case.B0, case.eta, case.own)
    closed = case.apart + B @ case.data.X
    gap = float(np.linalg.norm(case.W_inf - closed) / np.linalg.norm(closed))
    left = float(np.abs(residual(case.s, case.P_inf, case.y)).max())
    found = invariant(case.y, case.s, case.l1, case.own, case.loop)
    facts = {
        "all changes come with the first step": case.limit.stats["last_change"] <= 1,
        "the pattern is certified to stay": case.limit.stats["frozen_from"] is not None,
        "each active exactly on its sign": bool((case.active_inf == case.own).all()),
        "the risk is zero": left <= 1e-9 * float(case.size.max()),
    } | found.facts
    return hypotheses.conclude(case, facts, gap, 1e-9)


@CLAIMS("HD-24", "Theorem 4: both distances are of order sqrt(n_other/l1) (C x, over y_min, least)")
def hd24(case: Case) -> Outcome:
    """As HD-16 for each neuron with the number of points of the other sign."""
    _theorem3(case)
    need_law(case)
    pairs = [two_sided(case, k) for k in range(2)]
    return both_sides(case, min(low for low, _ in pairs), max(high for _, high in pairs))
