r"""The race between dormant groups: the combinatorial core of the saddle-to-saddle limit.

Groups g with masks :math:`A_g` and exponents :math:`r_g`, starting at -1; unfitted points U. On a
plateau :math:`\dot r_g = v_g = \kappa |y_{A_g \cap U}|`; the first group to reach 0 jumps and fits
:math:`F = A_g \cap U`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array

TIE_TOLERANCE = 1e-9
_BLOCK = 2**20


@dataclass(frozen=True)
class Tie:
    """Two groups that reach the jump together, before jump number ``jump``.

    ``overlap`` says whether they share unfitted points. If not, both jump and the order does not
    matter; if so, the limit is not determined by the masks and the process chose one of them.
    """

    jump: int
    groups: tuple[int, int]
    overlap: bool


@dataclass(frozen=True, eq=False)
class Race:
    """Record of the race: K jumps of G groups.

    ``times``, ``jumpers``, ``norms`` (Y), ``margins`` (K,); ``fitted``: points of each jump;
    ``knots`` (K + 1, G): exponents at time 0 and at the jumps; ``slopes`` (K + 1, G): rates after
    them; ``overlaps`` (K, G): ``kappa |y_{A_g & F_k}|``; ``touched`` (K, G): whether that set has a
    point; ``left``: points never fitted.
    """

    times: Array
    jumpers: NDArray[np.intp]
    norms: Array
    margins: Array
    fitted: tuple[NDArray[np.intp], ...]
    knots: Array
    slopes: Array
    overlaps: Array
    touched: NDArray[np.bool_]
    left: NDArray[np.intp]
    ties: tuple[Tie, ...]


def race(masks: NDArray[np.bool_], y: Array, kappa: float) -> Race:
    """Run the race of groups with masks (n, G), one column a group, no column empty.

    Numerics
    --------
    Sums of squares are taken afresh on the unfitted points at every jump (a difference would leave
    rounding noise that keeps an exhausted group alive) and emptiness is decided on the masks. Cost
    O(G |U_k|) at jump k, at most O(G n min(G, n)); memory n G bytes.
    """
    points, G = np.arange(len(y)), masks.shape[1]
    r, dormant, t = np.full(G, -1.0), np.ones(G, dtype=bool), 0.0
    knots, slopes = [r], [_rates(masks, y, kappa)]
    jumps: list[tuple[float, int, float, float]] = []
    fitted, overlaps, touched, ties = [], [], [], []
    while True:
        v = slopes[-1]
        runners = np.flatnonzero(dormant & (v > 0.0))
        if not len(runners):
            break
        waits = -r[runners] / v[runners]
        first = int(np.argmin(waits))
        g, wait = int(runners[first]), float(waits[first])
        others = np.delete(waits, first)
        t += wait
        ties += _ties(masks, runners, waits, first, t, len(jumps))
        jumps.append((t, g, v[g] / kappa, float(others.min() - wait) if len(others) else np.inf))
        r = np.where(dormant, np.minimum(r + v * wait, 0.0), r)
        r[g] = 0.0
        dormant[g] = False
        now = masks[:, g].copy()
        fitted.append(points[now])
        overlaps.append(_rates(masks[now], y[points[now]], kappa))
        touched.append(masks[now].any(axis=0))
        points, masks = points[~now], masks[~now]
        knots.append(r)
        slopes.append(np.where(dormant, _rates(masks, y[points], kappa), 0.0))
    columns = np.array(jumps, dtype=float).reshape(-1, 4)
    return Race(
        times=columns[:, 0],
        jumpers=columns[:, 1].astype(np.intp),
        norms=columns[:, 2],
        margins=columns[:, 3],
        fitted=tuple(fitted),
        knots=np.array(knots),
        slopes=np.array(slopes),
        overlaps=np.array(overlaps).reshape(len(jumps), G),
        touched=np.array(touched, dtype=bool).reshape(len(jumps), G),
        left=points,
        ties=tuple(ties),
    )


def _rates(masks: NDArray[np.bool_], y: Array, kappa: float) -> Array:
    """``kappa |y_{A_g}|`` for the columns of masks; zero only for an empty column."""
    total = np.zeros(masks.shape[1])
    if not len(y):
        return total
    top = float(np.abs(y).max())
    squares = (y / top) ** 2
    height = max(1, _BLOCK // max(masks.shape[1], 1))
    for start in range(0, len(y), height):
        block = slice(start, start + height)
        total += squares[block] @ masks[block].astype(np.float64)
    rates = kappa * top * np.sqrt(total)
    # squares below 1e-308 of the largest one are lost in the sum: take such columns alone
    for g in np.flatnonzero((total < 1e-280) & masks.any(axis=0)):
        mine = np.abs(y[masks[:, g]])
        rates[g] = kappa * mine.max() * np.linalg.norm(mine / mine.max())
    return np.asarray(rates)


def _ties(
    masks: NDArray[np.bool_],
    runners: NDArray[np.intp],
    waits: Array,
    first: int,
    t: float,
    jump: int,
) -> list[Tie]:
    # the second part is the rounding of the waits left after a tie between disjoint groups
    slack = TIE_TOLERANCE * waits[first] + 4 * np.finfo(float).eps * t
    g = int(runners[first])
    return [
        Tie(jump, (g, int(runners[k])), bool((masks[:, g] & masks[:, runners[k]]).any()))
        for k in np.flatnonzero(waits - waits[first] <= slack)
        if k != first
    ]
