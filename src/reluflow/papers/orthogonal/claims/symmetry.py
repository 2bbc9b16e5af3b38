"""Symmetries of the process and of the flow, and the greedy prediction (O27 to O30)."""

from __future__ import annotations

import numpy as np

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.limits import SaddleToSaddle, saddle_to_saddle
from reluflow.losses import Square
from reluflow.network import Network
from reluflow.papers.orthogonal.case import RTOL, Orthogonal
from reluflow.papers.orthogonal.claims import LIMIT
from reluflow.papers.orthogonal.measure import half_times
from reluflow.papers.orthogonal.paper import paper
from reluflow.theory.verdicts import Finding, at_most, holds


@paper.claim(
    "O27",
    "rotating the points changes neither process nor half times (relative gap)",
    needs=LIMIT,
)
def o27(case: Orthogonal) -> Finding:
    """The points and neurons in another orthonormal basis."""
    process = case.limit
    rng = np.random.default_rng(case.seed)
    Q, _ = np.linalg.qr(rng.standard_normal((case.data.d, case.data.d)))
    data, net = Dataset(case.data.X @ Q, case.data.y), _turned(case.unit_start, Q)
    rotated = saddle_to_saddle(data, net, kappa=case.kappa)
    if not _same_sets(process, rotated):
        return holds(False, note="the rotated process fits other points or in another order")
    deep = Network(*net.mantissa, net.log_scale + (case.L - case.deep))
    run = case.flow(data, deep, rtol=RTOL)
    gaps = [
        _gap(rotated.times, process.times),
        _gap(rotated.norms, process.norms),
        _gap(half_times(run, process), case.deep_half_times),
    ]
    return at_most(max(gaps), 1e-9)


@paper.claim("O28", "kappa times c: times over c, norms unchanged (relative gap)", needs=LIMIT)
def o28(case: Orthogonal) -> Finding:
    """The process for c = 3; the flow with another factor of the loss."""
    process = case.limit
    faster = saddle_to_saddle(case.data, case.unit_start, kappa=3.0 * case.kappa)
    if not _same_sets(process, faster):
        return holds(False, note="another kappa fits other points or in another order")
    other = Square("1/n" if getattr(case.loss, "factor", "") != "1/n" else "1/2n")
    c = other.kappa(case.data.n) / case.kappa
    run = case.flow(case.data, case.start_at(case.deep), loss=other, rtol=RTOL)
    gaps = [
        _gap(3.0 * faster.times, process.times),
        _gap(faster.norms, process.norms),
        _gap(c * half_times(run, process), case.deep_half_times),
    ]
    # a power of two repeats the same steps; another factor integrates anew, to the run's tolerance
    return at_most(max(gaps), 1e-10 if c in (0.5, 2.0) else 1e-9)


@paper.claim(
    "O29",
    "identity: labels times c: times over c, squared norms times c (relative gap)",
    needs=LIMIT,
)
def o29(case: Orthogonal) -> Finding:
    """Exactly so for the limit process."""
    process, c = case.limit, 3.7
    scaled = saddle_to_saddle(
        Dataset(case.data.X, c * case.data.y), case.unit_start, kappa=case.kappa
    )
    if not _same_sets(process, scaled):
        return holds(False, note="scaled labels are fitted in another order")
    gaps = [_gap(c * scaled.times, process.times), _gap(scaled.norms / c, process.norms)]
    return at_most(max(gaps), 1e-12)


@paper.claim(
    "O30",
    "identity: the greedy (alternating) prediction is the jump process (relative gap)",
    needs=LIMIT,
)
def o30(case: Orthogonal) -> Finding:
    """Order, fitted points, times, plateau losses and final norm."""
    from reluflow.limits import alternating

    process = case.limit
    case.subject.may_start()  # the prediction runs the flow
    found = alternating(case.data, case.unit_start, kappa=case.kappa)
    if not _same_sets(process, found):
        return holds(False, note="the greedy prediction fits other points or in another order")
    gaps = [
        _gap(found.times, process.times),
        float(np.abs(found.losses - process.losses).max() / process.losses[0]),
        abs(found.network.squared_norm / process.squared_norm - 1.0),
    ]
    return at_most(max(gaps), 1e-6, note=f"{len(found.times)} jumps")


def _turned(net: Network, Q: Array) -> Network:
    return Network(net.mantissa.a, net.mantissa.W @ Q, net.log_scale)


def _same_sets(process: SaddleToSaddle, other: object) -> bool:
    """Whether the same groups fit the same points in the same order."""
    theirs = other.fitted, other.groups  # type: ignore[attr-defined]
    return all(
        len(mine) == len(other_sets)
        and all(np.array_equal(a, b) for a, b in zip(mine, other_sets, strict=True))
        for mine, other_sets in zip((process.fitted, process.groups), theirs, strict=True)
    )


def _gap(found: Array, expected: Array) -> float:
    return float(np.abs(found / expected - 1.0).max(initial=0.0))
