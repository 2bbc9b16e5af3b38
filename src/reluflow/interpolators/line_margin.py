r"""Global maximum margin on the line: rows (x, 1), networks of any width.

.. math:: \min \tfrac12|\theta|^2 \quad\text{s.t.}\quad
          y_i \sum_j v_j\,\mathrm{relu}(w_j x_i + b_j) \ge 1, \qquad y_i = \pm 1

The norm includes the biases. Balanced neurons make it a convex problem over the 2(2n - 1) pairs of
a pattern and a sign (see `planar`): minimise the sum of the lengths of vectors in the arcs. Its
dual maximises :math:`\sum_i \lambda_i` over :math:`\lambda \ge 0` with
:math:`|\sum_i \lambda_i y_i \mathrm{relu}(cx_i + s)| \le 1` for all unit (c, s). Setting: Safran,
Vardi & Lee (NeurIPS 2022).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.interpolators.dictionary import grow_dictionary
from reluflow.interpolators.margin_program import solve_margin_program
from reluflow.interpolators.optimum import GAP
from reluflow.interpolators.planar import Line, largest_sum, line
from reluflow.interpolators.polish import Atoms, merge_parallel, polish
from reluflow.interpolators.rays import refuse_other_labels

_ENOUGH = 1e-9


@dataclass(frozen=True)
class LineMargin:
    """Vectors of the best network, its multipliers on the points ``first``, the solver's word."""

    atoms: Atoms
    multipliers: Array
    first: NDArray[np.intp]
    status: str


def is_line(data: Dataset) -> bool:
    """Whether the rows are ``(x, 1)``."""
    return bool(data.d == 2 and (data.X[:, 1] == 1.0).all())


def line_margin(data: Dataset) -> LineMargin:
    """Solve the margin problem for rows ``(x, 1)`` and labels +-1.

    Numerics
    --------
    A sparse cone program with O(n) entries (sums over patterns telescope), then Newton on the
    support points: 0.3 s for n = 500 and a few label changes. Labels that change between very close
    points defeat it; linear programs over a growing dictionary take over (ten seconds for 500
    random labels). The bound is the exact supremum over directions, safe to rounding.
    """
    first = _distinct(data)
    problem = line(data.X[first, 0], data.y[first])
    status, atoms, lam = solve_margin_program(problem)
    best, lam = _improve(problem, atoms, lam, _connect_the_dots(problem), lam)
    if _relative_gap(problem, best, lam) > _ENOUGH:
        for k, (atoms, candidate) in enumerate(grow_dictionary(problem)):
            best, lam = _improve(problem, atoms, candidate, best, lam)
            if _relative_gap(problem, best, lam) <= (_ENOUGH if k < 6 else GAP / 2):
                break
    return LineMargin(best, lam / problem.norms, first, status)


def _distinct(data: Dataset) -> NDArray[np.intp]:
    """Indices of the distinct points, by increasing x, after checking the labels."""
    refuse_other_labels(data.y)
    order = np.argsort(data.X[:, 0], kind="stable")
    x, y = data.X[order, 0], data.y[order]
    new = np.append(True, np.diff(x) > 0)
    group_label = y[np.flatnonzero(new)][np.cumsum(new) - 1]
    clash = np.flatnonzero(y != group_label)
    if len(clash):
        start = np.flatnonzero(x == x[clash[0]])[0]
        raise InputError(
            f"points {order[start]} and {order[clash[0]]} are both at x = {x[clash[0]]:g} with "
            "opposite labels. No network separates them. Drop one."
        )
    return np.asarray(order[new])


def _relative_gap(problem: Line, atoms: Atoms, lam: Array) -> float:
    return 1.0 - float((lam / problem.norms).sum()) / atoms.cost


def _improve(
    problem: Line, atoms: Atoms, lam: Array, best: Atoms, bound: Array
) -> tuple[Atoms, Array]:
    """Polish a pair of answers and keep the better network and the better multipliers.

    On the support of the multipliers the margin constraints are equations, as in `min_norm`.
    """
    y = problem.y
    support = lam > 1e-6 * lam.max()
    merged = [merge_parallel(atoms, tol) for tol in (1e-5, 1e-7, 1e-9)]
    targets = (y / problem.norms)[support]
    primal, duals = polish(problem.points[support], targets, merged[-1], (y * lam)[support])
    multipliers = [bound, lam]
    for dual in duals:
        full = np.zeros(len(y))
        full[support] = np.maximum(y[support] * dual, 0.0)
        multipliers.append(full)
    shortest = _best_network(problem, [best, *merged, *primal])
    return shortest, _best_dual(problem, multipliers)


def _connect_the_dots(problem: Line) -> Atoms:
    """One constant neuron and kinks at the points: a network that certainly separates them."""
    x, y = problem.x, problem.y
    turns = np.diff(np.append(0.0, np.diff(y) / np.diff(x)))
    hinges = np.abs(turns)[:, None] * np.stack([np.ones_like(turns), -x[:-1]], axis=1)
    W = np.concatenate([[[0.0, 1.0]], hinges])
    signs = np.append(y[0], np.sign(turns))
    return Atoms(W[signs != 0], signs[signs != 0])


def _best_network(problem: Line, candidates: list[Atoms]) -> Atoms:
    """Scale every candidate to smallest margin 1 and take the shortest."""
    best, smallest = candidates[0], np.inf
    for candidate in candidates:
        outputs = candidate.signs @ np.maximum(candidate.W @ problem.points.T, 0.0)
        lowest = float((problem.y * outputs * problem.norms).min())
        if lowest > 0 and candidate.cost / lowest < smallest:
            best, smallest = Atoms(candidate.W / lowest, candidate.signs), candidate.cost / lowest
    return best


def _best_dual(problem: Line, candidates: list[Array]) -> Array:
    """Shrink every candidate to feasibility and take the largest."""
    options = []
    for candidate in candidates:
        top = largest_sum(problem.points, problem.y * candidate)
        options.append(candidate / top if top > 0 else candidate)
    return max(options, key=lambda option: float((option / problem.norms).sum()))
