r"""The one-step lemmas and the invariant sets, evaluated along a loop.

Lemma 5 (a positive primal variable of the right sign stays positive) and Lemma 6 (a dual variable
that is negative enough is frozen) in versions without unknown constants; the conditions of Lemmas
9, 10 and 12 for a given owner of each point. Letters as in `gram`; ``g_i = G_ii`` and
``o_i = |G_{i,-i}|`` is the norm of the rest of the row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluflow.checks import Array
from reluflow.papers.highdim.gram import Loop, Pattern

MARGIN = 1e-10  # by which a premise must hold: the loop's values carry the rounding of its steps


@dataclass(frozen=True)
class Applications:
    """How often the premises of a lemma held along a loop, and how often its conclusion failed."""

    applied: int
    violated: int


def off_diagonal(G: Array) -> Array:
    """``o_i``."""
    scale = float(np.abs(G).max())  # the squares of huge entries could overflow
    rest = G / scale
    np.fill_diagonal(rest, 0.0)
    return np.asarray(scale * np.sqrt((rest**2).sum(axis=1)))


def _norm_without(values: Array) -> Array:
    """Norm of a row without each of its entries, from above: the difference may cancel."""
    total = (values**2).sum(axis=2, keepdims=True)
    return np.asarray(np.sqrt(np.maximum(total - values**2, 0.0) + 1e-15 * total))


def lemma5(
    G: Array, y: Array, s: Array, eta: float, loop: Loop, *, alone: bool = True
) -> Applications:
    r"""Lemma 5: ``p_ki > 0`` with ``s_k y_i > 0`` stays positive for one step.

    Premises: :math:`\eta g_i \le 1`, no other neuron of the same sign active on the point
    (``alone`` False drops this one, and the statement becomes false), and
    :math:`g_i |y_i| > o_i |(A_k \circ r)_{-i}|`.
    """
    g, o = np.diag(G), off_diagonal(G)
    A, P, r = loop.active[:-1], loop.P, loop.r[:-1]
    masked = np.where(A, r[:, None, :], 0.0)
    rest = _norm_without(masked)
    premise = (
        A & (s[:, None] * y > 0.0) & (eta * g <= 1.0) & (g * np.abs(y) > (1.0 + MARGIN) * o * rest)
    )
    if alone:
        same = np.stack([A[:, s == sign].sum(axis=1) for sign in s], axis=1)
        premise &= same == 1
    return Applications(int(premise.sum()), int((premise & ~(P[1:] > 0.0)).sum()))


def lemma6(G: Array, loop: Loop) -> Applications:
    r"""Lemma 6: :math:`g_i b_{ki} + o_i |b_{k,-i}| < 0` means off, and the dual does not move."""
    g, o = np.diag(G), off_diagonal(G)
    B = loop.B[:-1]
    own, rest = g * B, o * _norm_without(B)
    premise = own + rest < -MARGIN * (np.abs(own) + rest)
    fails = (loop.P[:-1] >= 0.0) | (loop.B[1:] != B)
    return Applications(int(premise.sum()), int((premise & fails).sum()))


@dataclass(frozen=True)
class Invariant:
    """The conditions of Lemmas 9, 10, 12 from the first step on; ratios replace their constants.

    Attributes
    ----------
    facts : dict of bool
        Which condition holds at every step.
    lowest, highest : float
        Least ``-b l1/y_min`` and largest ``-b l1/y_max`` on points of other owners.
    residual, dual : float
        Largest ``|p_own - s y_own|`` over ``sqrt(n) y_max``, largest ``|b|`` over
        ``sqrt(n) y_max/l1``.
    """

    facts: dict[str, bool]
    lowest: float
    highest: float
    residual: float
    dual: float


def invariant(y: Array, s: Array, l1: float, owner: Pattern, loop: Loop) -> Invariant:
    """Evaluate the conditions on the states 1, 2, ... of a loop."""
    P, B = loop.P[1:], loop.B[1:]
    size = np.abs(y)
    off = np.where(owner, np.nan, -B * l1)
    apart = np.where(owner, P - s[:, None] * y, 0.0)
    lengths = np.sqrt((apart**2).sum(axis=2))
    falling = np.diff(lengths, axis=0) <= 1e-12 * lengths.max(initial=0.0)
    scale = np.sqrt(len(y)) * size.max()
    other = bool((~owner).any())
    facts = {
        "own points stay active": bool((P[:, owner] > 0.0).all()),
        "duals of other points are negative": bool((B[:, ~owner] < 0.0).all()),
        "residuals of own points do not grow": bool(falling.all()),
        "duals of other points are frozen": bool((B[:, ~owner] == B[0, ~owner]).all()),
        "the pattern is the ownership": bool(((P > 0.0) == owner).all()),
    }
    return Invariant(
        facts,
        float(np.nanmin(off) / size.min()) if other else np.nan,
        float(np.nanmax(off) / size.max()) if other else np.nan,
        float(lengths.max(initial=0.0) / scale),
        float(np.sqrt((B**2).sum(axis=2)).max(initial=0.0) * l1 / scale),
    )
