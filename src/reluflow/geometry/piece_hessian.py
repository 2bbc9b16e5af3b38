r"""The Hessian of the loss on a piece of constant activation pattern, and its extreme eigenvalues.

On such a piece :math:`h_i = \sum_j s_{ij} a_j\, w_j \cdot x_i` with constant :math:`s_{ij}`, so

.. math:: \nabla^2 L = \sum_i b_i \nabla h_i \nabla h_i^T - \sum_i c_i \nabla^2 h_i

with the forces :math:`c_i = -dL/dh_i` and :math:`b_i = d^2L/dh_i^2`. The second sum couples
:math:`a_j` to :math:`w_j` by the pull :math:`\sum_i s_{ij} c_i x_i`. The rank is at most the number
of points plus twice that of neurons: all other eigenvalues are exactly zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from reluflow.checks import Array

LARGEST = 1500  # parameters up to which the matrix is formed and decomposed
WORK = 2e9  # products up to which it is decomposed on its range
_TOLERANCE = 1e-10  # of the largest eigenvalue, for Lanczos
_RESTARTS = 200


@dataclass(frozen=True)
class PieceHessian:
    """Second derivatives in ``(a_j, w_j)``, neuron by neuron; formed only on request.

    Attributes
    ----------
    X : (n, d) array
        Points.
    a, z : (m,), (m, n) arrays
        Output weights and pre-activations.
    on : (m, n) array
        The numbers ``s_ij``: 1 where a neuron is active, elsewhere the slope of the activation.
    pull : (m, d) array
        Sums of ``s_ij c_i x_i`` for each neuron.
    bend : (n,) array
        The numbers ``b_i``.
    held : dict
        Orthonormal columns (d, k) for neurons that may not move along them.
    """

    X: Array
    a: Array
    z: Array
    on: Array
    pull: Array
    bend: Array
    held: dict[int, Array] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Number of parameters."""
        return len(self.a) * (int(self.X.shape[1]) + 1)

    @property
    def rank(self) -> int:
        """Largest possible rank; all other eigenvalues are zero."""
        return min(len(self.X) + 2 * len(self.a), self.size)

    def dense(self) -> Array:
        """The matrix, O((m d)^2 n)."""
        m, d = len(self.a), self.X.shape[1]
        flat = self._jacobian()
        matrix = np.asarray((flat * self.bend[:, None]).T @ flat)
        for j in range(m):
            block = slice(j * (d + 1) + 1, (j + 1) * (d + 1))
            matrix[j * (d + 1), block] -= self.pull[j]
            matrix[block, j * (d + 1)] -= self.pull[j]
        for j, planes in self.held.items():
            block = slice(j * (d + 1) + 1, (j + 1) * (d + 1))
            matrix[block] -= planes @ (planes.T @ matrix[block])
            matrix[:, block] -= (matrix[:, block] @ planes) @ planes.T
        return matrix

    def on_range(self) -> Array:
        """The matrix in an orthonormal basis of a space that holds its range, (rank, rank)."""
        m, d = len(self.a), self.X.shape[1]
        own = np.zeros((2, m, m, d + 1))  # of each neuron: its output weight, its pull
        own[0, np.arange(m), np.arange(m), 0] = 1.0
        own[1, np.arange(m), np.arange(m), 1:] = self.pull
        spanning = np.concatenate([self._jacobian(), own.reshape(2 * m, -1)])
        for row in spanning:
            self._keep_on_planes(row.reshape(m, -1))
        basis = np.linalg.qr(spanning.T)[0].T
        images = np.array([self.times(row) for row in basis])
        matrix = images @ basis.T
        return np.asarray(0.5 * (matrix + matrix.T))

    def times(self, vector: Array) -> Array:
        """Its product with a vector, O(m n d)."""
        step = np.array(vector, dtype=np.float64).reshape(len(self.a), -1)
        self._keep_on_planes(step)
        along = self.on * (step[:, :1] * self.z + self.a[:, None] * (step[:, 1:] @ self.X.T))
        force = self.on * (self.bend * along.sum(axis=0))
        found = np.empty_like(step)
        found[:, 0] = (force * self.z).sum(axis=1) - (self.pull * step[:, 1:]).sum(axis=1)
        found[:, 1:] = self.a[:, None] * (force @ self.X) - step[:, :1] * self.pull
        self._keep_on_planes(found)
        return found.ravel()

    def _jacobian(self) -> Array:
        """Gradients of the outputs (n, m (d + 1))."""
        (n, d), m = self.X.shape, len(self.a)
        rows = np.empty((n, m, d + 1))
        rows[:, :, 0] = (self.on * self.z).T
        rows[:, :, 1:] = (self.on * self.a[:, None]).T[:, :, None] * self.X[:, None, :]
        return rows.reshape(n, -1)

    def _keep_on_planes(self, step: Array) -> None:
        for j, planes in self.held.items():
            step[j, 1:] -= planes @ (planes.T @ step[j, 1:])


@dataclass(frozen=True)
class Extremes:
    """Smallest (increasing) and largest (decreasing) eigenvalues, and how they were found.

    ``error`` is the largest residual of an eigenpair: each value is within it of an eigenvalue.
    ``is_complete`` says whether the search converged at both ends.
    """

    smallest: Array
    largest: Array
    error: float
    is_complete: bool
    method: str


def extremes(hessian: PieceHessian, k: int) -> Extremes:
    """The k eigenvalues at either end, at most as many as there are.

    Numerics
    --------
    Dense up to 1500 parameters, and beyond on the range while that is small: good to 1e-15 of the
    largest. Then by Lanczos, O(m n d) a step, to 1e-10 of it; values that it does not find in 200
    restarts are nan.
    """
    whole = hessian.size <= max(LARGEST, 4 * k)
    if whole or hessian.size * hessian.rank**2 <= WORK:
        matrix = hessian.dense() if whole else hessian.on_range()
        values: Array = np.asarray(np.linalg.eigvalsh(matrix), dtype=np.float64)
        if not whole:
            values = np.sort(np.append(values, np.zeros(min(k, hessian.size - hessian.rank))))
        rounding = 2.3e-16 * len(values) * float(np.abs(values).max())
        return Extremes(values[:k], values[::-1][:k], rounding, True, "dense")
    return _lanczos(hessian, k)


def _lanczos(hessian: PieceHessian, k: int) -> Extremes:
    """Both ends, shifted so that tolerances refer to the size of the matrix.

    Where k eigenvalues are zero for certain the searches start, and stay, in the range: the many
    zeros would be slow to resolve, and are known.
    """
    known = np.zeros(k if hessian.size - hessian.rank >= k else 0)
    rng = np.random.default_rng(0)

    def start() -> Array:
        vector = rng.normal(size=hessian.size)
        return hessian.times(hessian.times(vector)) if len(known) else vector

    scale = float(np.linalg.norm(_some(hessian.times, start(), 1, "LM").values))
    if not scale > 0.0:
        nothing = np.zeros(k)
        return Extremes(nothing, nothing, 0.0, True, "lanczos")
    low = _top(lambda v: v - hessian.times(v) / scale, start, k, 1.0 if len(known) else -np.inf)
    high = _top(lambda v: v + hessian.times(v) / scale, start, k, 1.0 if len(known) else -np.inf)
    lost = np.full(k, np.nan)  # for those that did not converge; sorting puts them last
    small, large = scale * (1.0 - low.values), scale * (high.values - 1.0)
    pairs = [*zip(small, low.vectors.T, strict=True), *zip(large, high.vectors.T, strict=True)]
    errors = [float(np.linalg.norm(hessian.times(v) - value * v)) for value, v in pairs]
    return Extremes(
        smallest=np.sort(np.concatenate([small, known, lost]))[:k],
        largest=-np.sort(np.concatenate([-large, known, lost]))[:k],
        error=max(errors, default=0.0),
        is_complete=low.is_complete and high.is_complete,
        method="lanczos",
    )


@dataclass(frozen=True)
class _Pairs:
    values: Array
    vectors: Array
    is_complete: bool


def _top(
    product: Callable[[Array], Array], start: Callable[[], Array], k: int, enough: float
) -> _Pairs:
    """The k largest eigenvalues, those below ``enough`` left out at will.

    Lanczos sees one vector of an eigenspace, and neurons with one pattern share eigenvalues. So
    what was found is projected out and the search repeated, until it brings nothing larger.
    """
    found = _some(product, start(), k, "LA")
    while found.is_complete:
        vectors = found.vectors

        def projected(v: Array, vectors: Array = vectors) -> Array:
            image = product(v - vectors @ (vectors.T @ v))
            return np.asarray(image - vectors @ (vectors.T @ image))

        fresh = start()
        left = fresh - vectors @ (vectors.T @ fresh)
        if np.linalg.norm(left) <= 1e-9 * np.linalg.norm(fresh):  # the whole range was found
            break
        more = _some(projected, left, 1, "LA")
        least = max(enough, float(np.sort(found.values)[-k]))
        if more.is_complete and not more.values[0] > least + _TOLERANCE:
            break
        found = _Pairs(
            np.append(found.values, more.values),
            np.concatenate([vectors, more.vectors], axis=1),
            more.is_complete,
        )
    return found


def _some(product: Callable[[Array], Array], start: Array, k: int, which: str) -> _Pairs:
    """Eigenpairs at one end; those that converged if not all did."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    if not start.any():
        return _Pairs(np.zeros(k), np.zeros((len(start), k)), True)
    operator = LinearOperator((len(start), len(start)), matvec=product, dtype=np.float64)
    basis = min(len(start), max(40, 4 * k))
    try:
        values, vectors = eigsh(
            operator, k, which=which, v0=start, ncv=basis, tol=_TOLERANCE, maxiter=_RESTARTS
        )
    except ArpackNoConvergence as error:
        return _Pairs(error.eigenvalues, error.eigenvectors, False)
    return _Pairs(values, vectors, True)
