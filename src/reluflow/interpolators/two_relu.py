r"""Minimum-norm interpolation by one positive and one negative neuron: problem (8).

.. math:: \min |w_+|^2 + |w_-|^2 \quad\text{s.t.}\quad
          \mathrm{relu}(Xw_+) - \mathrm{relu}(Xw_-) = y

Write u for the product of a point with the neuron of its label's sign and v for the other one.
Fitting means :math:`u = |y| + \max(v, 0)`: two rays, "own only" (u = |y|, v <= 0) and "both"
(u - v = |y|, v >= 0). Their convex hull is :math:`u \ge |y|,\ u - v \ge |y|`; the shortest
vector under the hull constraints bounds the minimum from below and is the minimum when it fits.
Otherwise one branches on the worst point. A zero label means (u, v <= 0) or (u = v >= 0), whose
hull is no constraint at all.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reluflow import interrupts
from reluflow.checks import Array, whole
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.interpolators.fixed_signs import GAP, MinimumWeights, scaled, weights
from reluflow.interpolators.least_norm import Polyhedron, shortest
from reluflow.interpolators.rays import refuse_contradictions
from reluflow.interpolators.single_relu import solve_one

_OPEN, _OWN, _BOTH = 0, 1, 2
_FITS = 1e-10

States = NDArray[np.int8]


@interrupts.deferred()
def two_relu(data: Dataset, *, max_nodes: int = 2000) -> MinimumWeights:
    """Shortest weights of a positive and a negative neuron that together fit every label.

    Parameters
    ----------
    data : Dataset
        Points and labels.
    max_nodes : int
        Convex problems to solve before settling for a bound.

    Returns
    -------
    MinimumWeights
        Row 0 of ``W`` is the positive neuron.

    Examples
    --------
    >>> answer = two_relu(Dataset([[1.0, 0.0], [0.0, 1.0]], [3.0, -4.0]))
    >>> answer.value, answer.certified
    (25.0, True)

    Numerics
    --------
    Best-first branch and bound; every bound is a dual value, valid whatever the solver did. With
    d > n the root is usually tight; n = 50, d = 60 takes tens of nodes. Partitions are not
    unique (v = 0): compare values and predictions.
    """
    limit = whole(max_nodes, "max_nodes")
    problem = scaled(data)
    refuse_contradictions(problem.U @ problem.basis, problem.z)
    tree = search(problem.U, problem.z, limit)
    if tree.best is None:
        raise InputError(_refusal(data, problem.U.shape[1], tree))
    r = problem.U.shape[1]
    W = np.stack([tree.best[:r], tree.best[r:]])
    error = np.maximum(problem.U @ W[0], 0) - np.maximum(problem.U @ W[1], 0) - problem.z
    method = "convex hull" if tree.nodes == 1 else "branch and bound"
    signs = np.array([1.0, -1.0])
    bound = tree.lower_bound
    return weights(problem, W, signs, bound, method, float(np.abs(error).max()), tree.nodes)


def _refusal(data: Dataset, rank: int, tree: Tree) -> str:
    points = f"the {data.n} points (0 to {data.n - 1}, rank {rank})"
    if tree.heap:
        return (
            f"no fit of {points} by two neurons was found in {tree.nodes} nodes; whether one "
            "exists is open. Raise `max_nodes`, drop points, or use `min_norm` (any width)."
        )
    why = (
        f"points {tree.conflict} contradict each other"
        if tree.conflict
        else (f"all {tree.nodes} branches are infeasible")
    )
    return (
        f"no positive and negative neuron together fit {points}: {why}. "
        "Drop points, or use `min_norm` (any width)."
    )


@dataclass
class Tree:
    """State of the search: the best fitting vector (w+, w-), open nodes, bounds."""

    U: Array
    z: Array
    best: Array | None = None
    value: float = np.inf
    heap: list[tuple[float, int, States, Array]] = field(default_factory=list)
    closed: float = np.inf  # smallest bound among the nodes that need no branching
    nodes: int = 0
    conflict: list[int] = field(default_factory=list)  # points that contradict at the root

    @property
    def lower_bound(self) -> float:
        """A bound below every node, open or closed."""
        return min(self.heap[0][0] if self.heap else np.inf, self.closed, self.value)

    def offer(self, w: Array) -> None:
        """Keep ``w`` if it fits and is shorter."""
        if np.abs(self.misfit(w)).max() <= _FITS and w @ w < self.value:
            self.best, self.value = w, float(w @ w)

    def products(self, w: Array) -> tuple[Array, Array]:
        """Products u with the neuron of the label's sign (the positive one for zero), v."""
        r = self.U.shape[1]
        plus, minus = self.U @ w[:r], self.U @ w[r:]
        own = self.z >= 0
        return np.where(own, plus, minus), np.where(own, minus, plus)

    def misfit(self, w: Array) -> Array:
        """``relu(u) - relu(v) - |z|``, zero where the point is fitted."""
        u, v = self.products(w)
        return np.asarray(np.maximum(u, 0.0) - np.maximum(v, 0.0) - np.abs(self.z))


def search(U: Array, z: Array, limit: int) -> Tree:
    """Branch and bound over the states of the points, at most ``limit`` nodes."""
    tree = Tree(U, z)
    _offer_decoupled(tree)
    _expand(tree, np.zeros(len(z), dtype=np.int8), 0.0)
    while tree.heap and tree.nodes < limit and not _hopeless(tree, tree.heap[0][0]):
        bound, _, states, w = heapq.heappop(tree.heap)
        worst = int(np.where(states == _OPEN, np.abs(tree.misfit(w)), -1.0).argmax())
        for state in (_OWN, _BOTH):
            child = states.copy()
            child[worst] = state
            _expand(tree, child, bound)
    return tree


def _hopeless(tree: Tree, bound: float) -> bool:
    return bound >= tree.value * (1 - GAP / 2)


def _expand(tree: Tree, states: States, parent: float) -> None:
    """Bound a node; leave it open unless it is infeasible, fits, or cannot improve."""
    tree.nodes += 1
    answer = shortest(_region(tree.U, tree.z, states))
    if answer.status == "infeasible":
        if tree.nodes == 1:
            tree.conflict = _conflict(tree.z, answer.nu)
        return
    bound = max(parent, answer.lower_bound)
    tree.offer(answer.w)
    fits = answer.is_feasible and np.abs(tree.misfit(answer.w)).max() <= _FITS
    if not fits and not _hopeless(tree, bound):
        _offer_rounded(tree, states, answer.w)
    if fits or _hopeless(tree, bound) or not (states == _OPEN).any():
        tree.closed = min(tree.closed, bound)
    else:
        heapq.heappush(tree.heap, (bound, tree.nodes, states, answer.w))


def _conflict(z: Array, nu: Array) -> list[int]:
    """Points with weight in the proof that the hull constraints contradict each other."""
    weight = nu.reshape(2, -1).sum(axis=0)
    return [int(i) for i in np.flatnonzero(z)[weight > 1e-6 * weight.max(initial=0.0)]]


def _offer_rounded(tree: Tree, states: States, w: Array) -> None:
    """Fix every open point on the ray nearest to its products and solve."""
    v = tree.products(w)[1]
    rounded = np.where(states == _OPEN, np.where(v > 0, _BOTH, _OWN), states).astype(np.int8)
    if (rounded != states).any():
        answer = shortest(_region(tree.U, tree.z, rounded))
        if answer.is_feasible:
            tree.offer(answer.w)


def _offer_decoupled(tree: Tree) -> None:
    """Each neuron alone on its own labels: feasible when both exist, optimal in high dimension."""
    plus, minus = solve_one(tree.U, tree.z), solve_one(tree.U, -tree.z)
    if not isinstance(plus, list) and not isinstance(minus, list):
        tree.offer(np.concatenate([plus.w, minus.w]))


def _region(U: Array, z: Array, states: States) -> Polyhedron:
    """Constraints of a node on (w+, w-): hull where open, one ray where decided."""
    r = U.shape[1]
    positive = (z >= 0)[:, None]
    own = np.where(positive, np.hstack([U, 0 * U]), np.hstack([0 * U, U]))
    other = np.where(positive, np.hstack([0 * U, U]), np.hstack([U, 0 * U]))
    size, zero = np.abs(z), z == 0
    opened, alone, both = ((states == state) & ~zero for state in (_OPEN, _OWN, _BOTH))
    silent, equal = (states == _OWN) & zero, (states == _BOTH) & zero
    joint = both | equal
    E = np.vstack([own[alone], (own - other)[joint]])
    f = np.concatenate([size[alone], size[joint]])
    A = np.vstack(
        [own[opened], (own - other)[opened], -other[alone | silent], other[joint], -own[silent]]
    )
    still = int((alone | silent).sum() + joint.sum() + silent.sum())
    b = np.concatenate([size[opened], size[opened], np.zeros(still)])
    return Polyhedron(E.reshape(-1, 2 * r), f, A.reshape(-1, 2 * r), b)
