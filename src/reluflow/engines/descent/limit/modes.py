r"""Hidden-layer descent under the square loss while the activation pattern stays the same.

With the pattern ``A`` (m, n) fixed, residuals ``r = y - h`` and ``eta`` the step times the factor
kappa of the loss, ``r(t) = (I - eta M)^t r`` on the points S some neuron is active on, where

.. math:: M_{ik} = G_{ik} \sum_j a_j^2 A_{ji} A_{jk}, \qquad G = X X^T.

In the eigenvectors ``u_e`` of ``M``, with values ``kappa_e``, ``rho_e = 1 - eta kappa_e`` and
``q_e = u_e . r``, duals and pre-activations move by

.. math:: b_j(t) - b_j = a_j A_j \circ \sum_e u_e \frac{q_e}{\kappa_e} (1 - \rho_e^t), \qquad
          p_j(t) - p_j = G\, (b_j(t) - b_j),

so the next change of the pattern (`next`), and the limit if there is none, are found
without iterating.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array

EPS = 2.0**-52


@dataclass(frozen=True)
class Modes:
    """The modes of one pattern from one state; ``t`` counts steps from there, inf included."""

    a: Array
    P: Array
    active: NDArray[np.bool_]
    points: NDArray[np.int64]
    U: Array
    kappa: Array
    rho: Array
    amplitudes: Array
    still: float
    classes: NDArray[np.int64]
    Q: Array

    def progress(self, t: float) -> Array:
        """``1 - rho_e^t``, without cancellation."""
        slow = self.rho > 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            result = -np.expm1(
                t * np.log1p(self.rho - 1.0, where=slow, out=np.zeros_like(self.rho))
            )
            return np.where(slow, result, 1.0 - np.where(slow, 0.0, self.rho) ** t)

    def duals(self, t: float) -> Array:
        """``b(t) - b`` (m, n)."""
        moved = np.zeros(self.P.shape[1])
        moved[self.points] = self.U @ (self.amplitudes / self.kappa * self.progress(t))
        return np.asarray(self.a[:, None] * self.active * moved)

    def preactivations(self, t: float) -> Array:
        """``p(t)`` (m, n)."""
        return self.P + self.a[:, None] * (self.Q @ self.progress(t))[self.classes]

    @property
    def slowest(self) -> float:
        """The largest ``|rho_e|``; 0 if nothing moves."""
        return float(np.abs(self.rho).max(initial=0.0))


def modes(G: Array, a: Array, P: Array, y: Array, eta: float) -> Modes:
    """Diagonalise the motion from pre-activations P.

    Numerics
    --------
    Eigenvalues below ``n eps`` times the largest count as zero: residuals there do not move.
    ``still`` is the norm of all residuals that no mode carries. O(|S|^3) plus O(n^2 |S|) a class.
    """
    active = P > 0.0
    shared = active.T @ (a[:, None] ** 2 * active)
    points = np.flatnonzero(np.diag(shared) > 0.0)
    inner = np.ix_(points, points)
    kappa, U = np.linalg.eigh(G[inner] * shared[inner])
    keep = kappa > len(y) * EPS * kappa.max(initial=0.0)
    r = y - a @ np.maximum(P, 0.0)
    q = U.T @ r[points]
    still = float(np.sqrt((q[~keep] ** 2).sum() + (np.delete(r, points) ** 2).sum()))
    kappa, U, q = kappa[keep], U[:, keep], q[keep]
    rows, classes = np.unique(active, axis=0, return_inverse=True)
    Q = np.stack([G[:, points] @ (row[points, None] * U) * (q / kappa) for row in rows])
    return Modes(a, P, active, points, U, kappa, 1.0 - eta * kappa, q, still, classes.ravel(), Q)
