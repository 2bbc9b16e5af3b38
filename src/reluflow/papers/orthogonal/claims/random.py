"""Proposition 2 and Theorem 3: over draws of the subject's own generator, and on its start."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.limits import SaddleToSaddle, hypotheses, saddle_to_saddle_from_masks
from reluflow.network import Network
from reluflow.papers.orthogonal import probability
from reluflow.papers.orthogonal.case import Orthogonal
from reluflow.papers.orthogonal.claims import LIMIT, PROCESS
from reluflow.papers.orthogonal.paper import paper
from reluflow.theory.fits import CONFIDENCE, share, share_at_least
from reluflow.theory.verdicts import (
    Finding,
    NotApplicable,
    Unresolved,
    at_most,
    holds,
    together,
)

CONSTANT = 2.0 * (np.sqrt(2.0) / (1.0 - np.sqrt(0.5)) + 2.0)  # 13.66, of one sign
TIE = 1e-12  # of the waiting time
RANDOM = (*PROCESS, "random")


@paper.claim(
    "O19", "Proposition 2: chance of A4(i) over draws, against the exact one", needs=RANDOM
)
def o19(case: Orthogonal) -> Finding:
    """Share of the generator's draws with its exact interval; also the stated lower bound.

    Labels may be drawn too, so the exact value is taken for the signs of each draw. Where whole
    numbers are too long (n m above 20,000) it is enclosed.
    """
    drawn = case.draw(case.draws)
    m, matched, known = case.net.width, are_matched(case, drawn), {}
    proper, expected, bounds = 0, [], []
    for data, net in drawn:
        parts = int((data.y > 0).sum()), int((data.y < 0).sum()), m
        if parts not in known:
            known[parts] = probability.enclosed(*parts, matched=matched)
        bound, highest = probability.lower_bound(*parts, matched=matched), known[parts][1]
        if bound > highest + 1e-12:
            return holds(False, bound, highest, "the lower bound exceeds the exact value")
        proper += probability.is_proper(*masks_of(data, net))
        expected.append(known[parts])
        bounds.append(bound)
    found, (low, high) = share(proper, len(expected)), np.mean(expected, axis=0)
    exact = f"exact {low:.6g}" if low == high else f"between {low:.6g} and {high:.6g}"
    note = f"{found.text}; {exact}, lower bound {np.mean(bounds):.4g}"
    return holds(found.low <= high and low <= found.high, found.value, float(high), note)


@paper.claim("O20", "Proposition 2(ii): no ties for labels with a density (ties)", needs=RANDOM)
def o20(case: Orthogonal) -> Finding:
    """Ties over draws of labels and starts: a margin of 1e-12 of the waiting time."""
    count = 0
    for process in random_processes(case):
        waits = np.diff(process.times, prepend=0.0)
        count += int((process.margins <= TIE * waits).sum())
    return holds(count == 0, count, 0.0, f"{case.draws} draws")


@paper.claim(
    "O21",
    "identity: Theorem 3 on this start: squared norm over ymax (sqrt n+ + sqrt n-), at most 13.66",
    needs=[*LIMIT, "halving"],
)
def o21(case: Orthogonal) -> Finding:
    """Reconstructed: the constant of the text at hand is missing; this one follows its proof."""
    y, found = case.data.y, case.limit.squared_norm
    sizes = np.sqrt((y > 0).sum()) + np.sqrt((y < 0).sum())
    return together(
        at_most(found / probability.set_bound(case.limit), 1.0 + 1e-12, note="by measured |U_k|"),
        at_most(found / (np.abs(y).max() * sizes), CONSTANT, 1e-9),
    )


@paper.claim(
    "O22",
    "ratio of squared norm to its minimum over draws: at least 1, mean below 2.5",
    needs=[*RANDOM, "interpolates"],
)
def o22(case: Orthogonal) -> Finding:
    """Interpolating draws only, and this start; meant for m = O(log n), and smaller beyond."""
    kept = [process for process in [case.process, *random_processes(case)] if process.interpolates]
    if len(kept) < 10:
        raise Unresolved(f"only {len(kept)} of {case.draws} draws interpolate; draw more")
    ratios = np.array([process.squared_norm / process.minimal_squared_norm for process in kept])
    if ratios.min() < 1.0 - 1e-12:
        return holds(False, float(ratios.min()), 1.0, "below the minimum norm")
    spread = max(float(ratios.std()), 1e-12)
    own = (float(ratios[0]) - float(ratios.mean())) / spread
    note = f"{len(kept)} of them, ratios {ratios.min():.3g} to {ratios.max():.3g}"
    if own > 6.0:
        return holds(False, ratios[0], 2.5, f"this start is {own:.3g} deviations above; {note}")
    error = 3.0 * spread / np.sqrt(len(ratios))
    return at_most(float(ratios.mean()), 2.5, error, note=note)


@paper.claim(
    "O32",
    "Theorem 3: the halving event has probability at least 1 - p_fail (share)",
    needs=[*RANDOM, "promised"],
)
def o32(case: Orthogonal) -> Finding:
    """Over draws of the generator."""
    allowed = probability.failure_of_signs(case.data.y, case.net.width)
    drawn = random_processes(case)
    good = sum(probability.worst_halving(one) <= 1.0 for one in drawn)
    return share_at_least(good, len(drawn), 1.0 - allowed, f"p_fail = {allowed:.3g}")


def are_matched(case: Orthogonal, drawn: Sequence[tuple[Dataset, Network]]) -> bool:
    """Whether the generator gives every neuron the sign of all labels; fair signs if not.

    The start alone cannot tell: fair signs of m neurons agree with labels of one sign in
    :math:`2^{-m}` of all starts.
    """
    start = case.data, case.unit_start
    found = all((net.signs[:, None] * data.y > 0.0).all() for data, net in (start, *drawn))
    coins = case.net.width * (1 + len(drawn))
    if found and 0.5**coins > 1.0 - CONFIDENCE:
        raise Unresolved(f"{coins} signs agree with the labels, perhaps by chance; draw more")
    return found


def masks_of(data: Dataset, net: Network) -> tuple[NDArray[np.bool_], Array]:
    """Sign-matched masks (m, n) and signs of a drawn problem."""
    active = net.directions @ data.X.T > 0.0
    return active & (net.signs[:, None] * data.y > 0.0), net.signs


def _process(case: Orthogonal, data: Dataset, net: Network) -> SaddleToSaddle:
    """The jump process of a draw; its masks say all but the constants of sharp times."""
    reasons = hypotheses.imbalance(net)
    if not np.array_equal(data.X, case.subject.data.X):  # those are A1's business
        reasons += hypotheses.not_orthonormal(data, net)
    if reasons:
        raise NotApplicable(f"a draw of the generator is outside the theory: {reasons[0]}")
    return saddle_to_saddle_from_masks(*masks_of(data, net), data.y, kappa=case.kappa)


def random_processes(case: Orthogonal) -> list[SaddleToSaddle]:
    """Jump processes of the generator's draws; computed once for all claims."""
    if "random_processes" not in case.cache:
        made = [_process(case, *pair) for pair in case.draw(case.draws)]
        case.cache["random_processes"] = made
    found: list[SaddleToSaddle] = case.cache["random_processes"]
    if not found:
        raise NotApplicable("no draws were asked for")
    return found
