r"""Minimum-norm solutions seen from several sides: enumeration, optimality, partitions.

Problem (7) is one neuron that fits the points of its own sign and is inactive on the others;
problem (8) one neuron of each sign. The solvers are those of `reluflow.interpolators`; what is
here holds them to account.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.interpolators import single_relu
from reluflow.interpolators.least_norm import Polyhedron, shortest


def unit_problem(X: Array, y: Array) -> tuple[Array, Array, float]:
    """Unit rows, labels of size one and the factor that brings weights back."""
    norms = np.sqrt((X**2).sum(axis=1))
    z = y / norms
    scale = float(np.abs(z).max())
    return X / norms[:, None], z / scale, scale


def one_by_program(X: Array, y: Array) -> tuple[float, float]:
    r"""Problem (7) as a quadratic program: an interval that holds its value.

    Below by the dual. Above by w, which misses constraints by v: relaxing them by v lowers the
    value by at most :math:`2 v |\mu|_1` with the multipliers mu.
    """
    U, z, scale = unit_problem(X, y)
    positive = z > 0.0
    zero = np.zeros(int((~positive).sum()))
    answer = shortest(Polyhedron(U[positive], z[positive], -U[~positive], zero))
    sizes = float(np.abs(answer.mu).sum() + answer.nu.sum())
    above = float(answer.w @ answer.w) + 2.0 * answer.violation * sizes
    return scale**2 * answer.lower_bound, scale**2 * above


def one_by_enumeration(G: Array, y: Array) -> float:
    """Value of problem (7): the shortest feasible interpolation over all sets of tight points."""
    positive, others = np.flatnonzero(y > 0.0), np.flatnonzero(y <= 0.0)
    best, slack = np.inf, 1e-9 * float(np.abs(y).max())
    for choice in product((False, True), repeat=len(others)):
        S = np.concatenate([positive, others[list(choice)]]).astype(np.intp)
        goal = np.maximum(y[S], 0.0)
        b = np.linalg.solve(G[np.ix_(S, S)], goal)
        if (G[np.ix_(others, S)] @ b <= slack).all():
            best = min(best, float(goal @ b))
    return best


def kkt_residual(G: Array, y: Array, w_dual: Array) -> float:
    """Largest violation of the optimality conditions of (7) by ``w = X^T b``, relative to labels.

    ``p = G b``: equal to the labels where positive, at most zero elsewhere; ``b <= 0`` elsewhere
    (in units of label over diagonal), and ``b_i p_i = 0``.
    """
    p, size = G @ w_dual, float(np.abs(y).max())
    b = w_dual * np.diag(G) / size
    p, goal, fit = p / size, y / size, y > 0.0
    parts = (np.abs(p - goal)[fit], p[~fit], b[~fit], np.abs(b * p)[~fit])
    return float(max(part.max(initial=0.0) for part in parts))


def interpolation_on_support(G: Array, y: Array, b: Array) -> Array:
    """Lemma 3: duals of the shortest linear fit of positives and tight points, negatives as 0."""
    tight = b * np.diag(G) < -1e-9 * float(np.abs(y).max())
    S = np.flatnonzero((y > 0.0) | tight)
    found = np.zeros(len(y))
    found[S] = np.linalg.solve(G[np.ix_(S, S)], np.maximum(y[S], 0.0))
    return found


def two_by_hull(X: Array, y: Array) -> tuple[float, Array, Array]:
    """The convex relaxation of (8): its value, and the products of own and other neuron."""
    U, z, scale = unit_problem(X, y)
    own, other = _roles(U, z)
    size = np.abs(z)
    region = Polyhedron(
        np.zeros((0, own.shape[1])),
        np.zeros(0),
        np.vstack([own, own - other]),
        np.concatenate([size, size]),
    )
    answer = shortest(region)
    return scale**2 * answer.lower_bound, own @ answer.w, other @ answer.w


def two_by_enumeration(X: Array, y: Array) -> float:
    """Value of (8) as the least of ``2^n`` quadratic programs, one a partition."""
    U, z, scale = unit_problem(X, y)
    own, other = _roles(U, z)
    size, best = np.abs(z), np.inf
    for choice in product((False, True), repeat=len(z)):
        both = np.array(choice)
        E = np.where(both[:, None], own - other, own)
        A = np.where(both[:, None], other, -other)
        answer = shortest(Polyhedron(E, size, A, np.zeros(len(z))))
        if answer.is_feasible:
            best = min(best, float(answer.w @ answer.w))
    return scale**2 * best


def _roles(U: Array, z: Array) -> tuple[Array, Array]:
    """Rows on (w+, w-) that give a point's product with its own neuron, and with the other."""
    positive, none = (z > 0.0)[:, None], np.zeros_like(U)
    plus, minus = np.hstack([U, none]), np.hstack([none, U])
    return np.where(positive, plus, minus), np.where(positive, minus, plus)


def nearest_copy(W: Array, other: Array, s: Array) -> float:
    """Distance between weights, least over permutations of neurons of equal sign."""
    from scipy.optimize import linear_sum_assignment

    square = 0.0
    for sign in (1.0, -1.0):
        mine, theirs = W[s == sign], other[s == sign]
        cost = ((mine[:, None, :] - theirs[None, :, :]) ** 2).sum(axis=2)
        rows, columns = linear_sum_assignment(cost)
        square += float(cost[rows, columns].sum())
    return float(np.sqrt(square))


def distance_to_shortest(data: Dataset, w: Array, sign: float = 1.0) -> float:
    """``|w - w*|`` for one neuron of this output sign and the solution w* of problem (7)."""
    star = single_relu(Dataset(data.X, sign * data.y))
    return float(np.linalg.norm(w - star.W[0]))
