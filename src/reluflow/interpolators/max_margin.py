r"""Global maximum margin of univariate two-layer ReLU classifiers, any width.

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

from reluflow import interrupts
from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.interpolators.dictionary import grow_dictionary
from reluflow.interpolators.margin_program import solve_margin_program
from reluflow.interpolators.planar import Line, largest_sum, line
from reluflow.interpolators.polish import Atoms, merge_parallel, polish
from reluflow.network import Network, row_norms

_GAP = 1e-7
_ENOUGH = 1e-9


@dataclass(frozen=True)
class MaxMargin:
    r"""The global optimum of the margin problem, and its certificate.

    Attributes
    ----------
    network : Network
        Balanced classifier with smallest margin exactly 1 (to rounding).
    value : float
        :math:`|\theta|^2`, an upper bound on the minimum.
    margin : float
        Normalised margin :math:`\min_i y_i h(x_i)/|\theta|^2`, the inverse of ``value``.
    lower_bound : float
        :math:`2\sum_i \lambda_i`, a lower bound on the minimum.
    certified : bool
        Whether the bounds agree to 1e-7 (relative).
    multipliers : (n,) array
        Dual feasible :math:`\lambda`; zero on slack points and on repeated ones.
    solver_status : str
        What the cone solver said; the certificate does not rely on it.
    """

    network: Network
    value: float
    margin: float
    lower_bound: float
    certified: bool
    multipliers: Array
    solver_status: str

    @property
    def gap(self) -> float:
        """``value - lower_bound``."""
        return self.value - self.lower_bound


@interrupts.deferred()
def max_margin(data: Dataset) -> MaxMargin:
    r"""Network of any width with the largest normalised margin on 1-D inputs with bias.

    Parameters
    ----------
    data : Dataset
        Rows ``(x, 1)`` and labels +-1. Repeated points are merged; one x with both labels is an
        error.

    Returns
    -------
    MaxMargin
        The network, its margin, and the certificate.

    Examples
    --------
    >>> best = max_margin(Dataset([[4.0, 1.0], [-4.0, 1.0]], [1.0, 1.0]))
    >>> bool(abs(best.value - 4 / np.sqrt(17)) < 1e-9), best.certified
    (True, True)

    Numerics
    --------
    A sparse cone program with O(n) entries (sums over patterns telescope), then Newton on the
    support points: 0.3 s for n = 500 and a few label changes. Labels that change between very close
    points defeat it; linear programs over a growing dictionary take over (ten seconds for 500
    random labels). The value is recomputed from the network's own outputs, the bound from the exact
    supremum over directions; both are safe to rounding.
    """
    first = _distinct(data)
    problem = line(data.X[first, 0], data.y[first])
    status, atoms, lam = solve_margin_program(problem)
    best, lam = _improve(problem, atoms, lam, _connect_the_dots(problem), lam)
    if _relative_gap(problem, best, lam) > _ENOUGH:
        for k, (atoms, candidate) in enumerate(grow_dictionary(problem)):
            best, lam = _improve(problem, atoms, candidate, best, lam)
            if _relative_gap(problem, best, lam) <= (_ENOUGH if k < 6 else _GAP / 2):
                break
    root = np.sqrt(row_norms(best.W))
    network = Network(best.signs * root, best.W / root[:, None], bias=data.bias)
    multipliers = np.zeros(data.n)
    multipliers[first] = lam / problem.norms
    value = network.squared_norm
    lower = min(2.0 * float(multipliers.sum()), value)
    return MaxMargin(
        network=network,
        value=value,
        margin=1.0 / value,
        lower_bound=lower,
        certified=bool(value - lower <= _GAP * value),
        multipliers=multipliers,
        solver_status=status,
    )


def _distinct(data: Dataset) -> NDArray[np.intp]:
    """Indices of the distinct points, by increasing x, after checking every hypothesis."""
    if data.d != 2 or not (data.X[:, 1] == 1.0).all():
        row = 0 if data.d != 2 else int(np.flatnonzero(data.X[:, 1] != 1.0)[0])
        raise InputError(
            f"`X` has {data.d} columns and row {row} is {data.X[row].tolist()}; rows (x, 1) are "
            "needed. The problem is one-dimensional with a bias. Build it with `from_points`."
        )
    wrong = np.flatnonzero(np.abs(data.y) != 1.0)
    if len(wrong):
        raise InputError(
            f"label {wrong[0]} is {data.y[wrong[0]]:g}; margins need labels 1 or -1. Use the sign."
        )
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
