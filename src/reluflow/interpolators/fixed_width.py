r"""The margin problem for networks of a given width: a search over the patterns of the neurons.

Once every neuron has a pattern and a sign (a column of `atoms`), the problem is convex; only the
choice of at most m columns is not. Any dual vector bounds all choices at once: with
:math:`t_k(\lambda)` the largest of :math:`s_k \sum_i \Theta_{ki} \lambda_i\,u_i \cdot w` over unit
w in the cone of column k, no network of columns S costs less than
:math:`\lambda \cdot z / \max_{k \in S} t_k(\lambda)`. So the choice of the smallest bound is
solved, its dual vector bounds the others, and most are never looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.errors import InputError
from reluflow.geometry.nonnegative import nnls
from reluflow.interpolators.atoms import solve_columns
from reluflow.interpolators.optimum import GAP
from reluflow.interpolators.patterns import Patterns, all_patterns, enumerable
from reluflow.interpolators.polish import Atoms
from reluflow.interpolators.target import AtLeast
from reluflow.network import gates

_MOST = 300_000
_TINY = 1e-12  # a column whose sums are below this share of the dual vector has none


@dataclass(frozen=True)
class FixedWidth:
    """Vectors of the best network, a lower bound on its cost, programs solved; None if none."""

    atoms: Atoms | None
    bound: float
    solved: int


def best_of_width(U: Array, target: AtLeast, width: int, lam: Array) -> FixedWidth:
    """Least cost of at most ``width`` vectors, from a dual vector ``lam`` to bound choices with.

    Numerics
    --------
    Bounds are norms computed from non-negative multipliers, safe whatever the solvers did. One cone
    program a choice looked at, at most all C(columns, width); refused beyond 300,000 of them.
    """
    patterns, signs = _columns(U, target)
    choices = _choices(patterns, signs, target, width)
    bounds = np.zeros(len(choices))
    is_open = np.ones(len(choices), dtype=bool)
    best: Atoms | None = None
    value, solved = np.inf, 0
    duals = [lam]
    while True:
        for dual in duals:
            tops = _tops(U, gates(patterns, target.slope), patterns, signs, dual)
            along = float(dual @ target.z)
            if along > 0.0:
                bounds = np.maximum(bounds, along / tops[choices].max(axis=1, initial=_TINY))
        live = np.flatnonzero(is_open & (bounds < value * (1.0 - GAP / 4)))
        if not len(live):
            break
        chosen = live[bounds[live].argmin()]
        is_open[chosen] = False
        atoms, duals = _solved(U, target, patterns[choices[chosen]], signs[choices[chosen]], value)
        solved += 1
        if target.residual(U, atoms) < 1.0 and atoms.cost < value:
            best, value = atoms, atoms.cost
    return FixedWidth(best, min(float(bounds.min(initial=np.inf)), value), solved)


def _solved(
    U: Array, target: AtLeast, patterns: Patterns, signs: Array, value: float
) -> tuple[Atoms, list[Array]]:
    """The best network of these columns and dual vectors; polished if it may be the best of all."""
    answer = solve_columns(U, target, patterns, signs)
    lam = np.nan_to_num(answer.lam)
    lam = np.where(lam * target.z > 0, lam, 0.0)
    rough = Atoms(np.nan_to_num(answer.W), signs, target.slope)
    separates = answer.status in ("solved", "almost_solved") and lam.any()
    if not separates or rough.cost > value * (1 + 1e-6):
        return target.best(U, [rough]), [lam]
    primal, duals = target.polished(U, rough, lam)
    return target.best(U, [rough, *primal]), duals


def _columns(U: Array, target: AtLeast) -> tuple[Patterns, Array]:
    """Patterns and signs that can help some point."""
    if not enumerable(U):
        raise InputError(
            f"{len(U)} points in {U.shape[1]} dimensions have more activation patterns than can be "
            "listed. A given width needs them all. Ask without `width`: that bound holds for all."
        )
    rows = all_patterns(U)
    useful = {sign: rows[_helped(rows, sign, target).any(axis=1)] for sign in (1.0, -1.0)}
    signs = np.repeat([1.0, -1.0], [len(useful[1.0]), len(useful[-1.0])])
    return np.concatenate([useful[1.0], useful[-1.0]]), signs


def _helped(patterns: Patterns, sign: Array | float, target: AtLeast) -> NDArray[np.bool_]:
    """Which points a column can help: active on those of its sign, leaking on the others."""
    own = sign * target.z > 0
    return np.asarray(patterns & own | (~patterns & ~own if target.slope else False))


def _choices(patterns: Patterns, signs: Array, target: AtLeast, width: int) -> NDArray[np.intp]:
    """Sets of columns, one a row, of which every point is helped by one."""
    m = min(width, len(patterns))
    count = comb(len(patterns), m)
    if count > _MOST:
        raise InputError(
            f"{m} neurons on {len(patterns)} patterns and signs can be chosen in {count} ways; at "
            f"most {_MOST} are searched. Ask without `width`: that bound holds for all."
        )
    rows = np.array(list(combinations(range(len(patterns)), m)), dtype=np.intp).reshape(-1, m)
    right = _helped(patterns, signs[:, None], target)
    reached = np.zeros((len(rows), len(target.z)), dtype=bool)
    for column in rows.T:
        reached |= right[column]
    return rows[reached.all(axis=1)]


def _tops(U: Array, passed: Array, patterns: Patterns, signs: Array, lam: Array) -> Array:
    """For each column an upper bound on its largest sum over unit vectors of its cone."""
    tops = np.empty(len(patterns))
    for k, (row, sign) in enumerate(zip(patterns, signs, strict=True)):
        slope = sign * (lam * passed[k]) @ U
        inward = np.where(row, 1.0, -1.0)[:, None] * U
        # the projection on the cone: slope plus the inward normals of the sides it leaves by
        peak = slope + nnls(inward.T, -slope).x @ inward
        tops[k] = min(np.sqrt(peak @ peak), np.sqrt(slope @ slope))
    return np.asarray(np.maximum(tops, _TINY * np.abs(lam).sum()))
