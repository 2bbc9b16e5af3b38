r"""Which activation patterns enter the program of `atoms`: all of them, or those that matter.

Column generation solves the program over some patterns, asks for directions that violate its
dual, :math:`\pm\sum_i \lambda_i \varphi(u_i \cdot w) > |w|`, and adds their patterns.
Columns that are not used, or share their solution with a neighbour, are dropped on the way:
interior-point methods lose digits on cones whose solution is the tip or a common face.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.interpolators.atoms import AtomicSolution, solve_columns
from reluflow.interpolators.patterns import Patterns, all_patterns, chamber_bound, pattern_of
from reluflow.interpolators.polish import Atoms, merge_parallel
from reluflow.interpolators.supremum import ascend, relu_sum, violators
from reluflow.interpolators.target import Target

_ROUNDS = 60
_ADDED = 20
_VIOLATION = 1e-9
_NEARLY = 1e-3  # local search finding no more than this is checked on all patterns
Column = tuple[NDArray[np.bool_], float]

_USABLE = ("solved", "almost_solved")
_ALL_AT_ONCE = 12_000  # rows of the program up to which every pattern enters from the start


@dataclass(frozen=True)
class Round:
    """One round: vectors of the network, the dual vector, the solver's status, estimated gap."""

    atoms: Atoms
    lam: Array
    status: str
    gap: float


def generate_columns(U: Array, target: Target) -> Iterator[Round]:
    """Better and better networks; the caller stops when one is good enough.

    None at all if the solver fails from the start (nearly contradictory points).

    Numerics
    --------
    Small problems start from all patterns and both signs, others from a few. At most 60 rounds
    of at most 20 directions a sign, or until four rounds in a row improve neither bound.
    Solutions are good to the solver's 1e-7 to 1e-9.
    """
    rng = np.random.default_rng(0)  # starts of the local search: any choice is valid
    small = 2 * chamber_bound(*U.shape) * (sum(U.shape) + 1) <= _ALL_AT_ONCE
    columns, signs = (
        _both_signs(all_patterns(U), target) if small else _first_columns(U, target, rng)
    )
    answer = solve_columns(U, target, columns, signs)
    if answer.status not in _USABLE:
        return
    atoms, idle, lowest, highest = Atoms(answer.W, signs, target.slope), 0, np.inf, 0.0
    cost = target.cost(U, atoms)
    pool: list[Column] = []
    for k in range(_ROUNDS):
        fresh, top = _violated(U, answer, rng, target.slope)
        bound = target.bound(answer.lam, top)
        yield Round(atoms, answer.lam, answer.status, 1.0 - bound / cost)
        cheaper = cost < lowest * (1 - 1e-12)
        # While the cost falls, old columns are ballast. Once it does not, only the dual moves
        # and every cut counts.
        pool = fresh if cheaper else pool + fresh
        idle = 0 if fresh and (cheaper or bound > highest * (1 + 1e-10)) else idle + 1
        lowest, highest = min(lowest, cost), max(highest, bound)
        columns, signs = _with(U, merge_parallel(atoms, max(1e-4 * 0.3**k, 1e-9)), pool)
        answer = solve_columns(U, target, columns, signs, atoms.cost)
        if answer.status not in _USABLE:  # merging cost feasibility
            columns, signs = _with(U, atoms, pool)
            answer = solve_columns(U, target, columns, signs, atoms.cost)
        if idle >= 4 or answer.status not in _USABLE:
            return
        atoms = Atoms(answer.W, signs, target.slope)
        cost = target.cost(U, atoms)


def _both_signs(rows: Patterns, target: Target) -> tuple[Patterns, Array]:
    useful = rows if target.slope else rows[rows.any(axis=1)]
    return np.concatenate([useful, useful]), np.repeat([1.0, -1.0], len(useful))


def _with(U: Array, atoms: Atoms, fresh: list[Column]) -> tuple[Patterns, Array]:
    """Columns of the atoms followed by the fresh ones, each once."""
    columns: dict[tuple[bytes, float], NDArray[np.bool_]] = {}
    for w, sign in zip(atoms.W, atoms.signs, strict=True):
        row = pattern_of(U, w)
        columns[row.tobytes(), float(sign)] = row
    for row, sign in fresh:
        columns.setdefault((row.tobytes(), sign), row)
    return np.array(list(columns.values())), np.array([sign for _, sign in columns])


def _violated(
    U: Array, answer: AtomicSolution, rng: np.random.Generator, slope: float
) -> tuple[list[Column], float]:
    """Patterns of violated directions, with both choices on boundaries; largest sum met."""
    threshold = 1.0 + _VIOLATION
    n, r = U.shape
    probes = np.concatenate([answer.W, U, -U, rng.normal(size=(2 * (n + r), r))])
    rows, top = [], 1.0
    for sign in (1.0, -1.0):
        lam = sign * answer.lam
        found = ascend(U, lam, probes, threshold, slope=slope)
        if relu_sum(U, lam, found, slope).max(initial=0.0) < 1.0 + _NEARLY:
            found = np.concatenate([violators(U, lam, threshold, slope), found])
        top = max(top, float(relu_sum(U, lam, found, slope).max(initial=0.0)))
        for w in found[:_ADDED]:
            rows += [(pattern_of(U, w, boundary=side), sign) for side in (False, True)]
    return rows, top


def _first_columns(U: Array, target: Target, rng: np.random.Generator) -> tuple[Patterns, Array]:
    r"""Columns that can fit any consistent labels.

    Independent points: the points of each label sign alone. In general: for each point a
    direction v on its boundary and the patterns on both sides, since
    :math:`h_{v+\epsilon u_i} + h_{v-\epsilon u_i} - 2h_v` is non-zero on the line of
    :math:`u_i` only; opposite patterns of one direction add the linear functions.
    """
    (n, r), z = U.shape, target.z
    if n == r:
        return _both_signs(np.array([z > 0, z < 0, np.ones(n, dtype=bool)]), target)
    v = rng.normal(size=(n, r))
    v -= np.einsum("ij,ij->i", v, U)[:, None] * U
    products = v @ U.T
    on = np.abs(products) <= 1e-9  # the point itself and its opposite
    toward = U @ U.T > 0
    above = np.where(on, toward, products > 0)
    below = np.where(on, ~toward, products > 0)
    rows = np.concatenate([above, below, ~above[:1], [z > 0, z < 0]])
    return _both_signs(np.unique(rows, axis=0), target)
