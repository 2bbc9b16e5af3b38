r"""Shortest vector in a polyhedron, with a lower bound that needs no trust in the solver.

.. math:: \min |w|^2 \quad\text{s.t.}\quad E w = f,\; A w \ge b

For any :math:`\mu` free and :math:`\nu \ge 0`, with :math:`g = E^T\mu + A^T\nu`,
:math:`|w|^2 \ge 2(\mu\cdot f + \nu\cdot b) - |g|^2`; equality at the optimum, where w = g.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluflow.checks import Array
from reluflow.interpolators.cone_program import Cones, solve

_ACTIVE = (1e-5, 1e-7, 1e-9)  # multipliers that count, relative to the largest


@dataclass(frozen=True)
class Polyhedron:
    """``{w : E w = f, A w >= b}``."""

    E: Array
    f: Array
    A: Array
    b: Array

    def violation(self, w: Array) -> float:
        """Largest violation of a constraint."""
        equal = np.abs(self.E @ w - self.f).max(initial=0.0)
        return float(max(equal, (self.b - self.A @ w).max(initial=0.0)))

    def dual_value(self, mu: Array, nu: Array) -> float:
        """Lower bound on the squared distance, for any ``mu`` and ``nu >= 0``."""
        g = self.E.T @ mu + self.A.T @ nu
        return float(2 * (mu @ self.f + nu @ self.b) - g @ g)


@dataclass(frozen=True)
class Shortest:
    """Shortest vector, the lower bound on its squared length, the multipliers, the violation.

    ``status`` is the solver's; ``infeasible`` means that no point exists.
    """

    status: str
    w: Array
    lower_bound: float
    mu: Array
    nu: Array
    violation: float

    @property
    def is_feasible(self) -> bool:
        """Whether ``w`` satisfies the constraints to 1e-9."""
        return self.status != "infeasible" and self.violation <= 1e-9


def shortest(region: Polyhedron) -> Shortest:
    """Shortest vector of a polyhedron (data of order one).

    Numerics
    --------
    Interior point, then the exact solution for the active constraints it points to, kept if it
    is feasible and has non-negative multipliers: violations and gaps are then at rounding.
    """
    k, e = region.E.shape[1], len(region.f)
    matrix = np.concatenate([region.E, -region.A])
    right = np.concatenate([region.f, -region.b])
    from scipy import sparse

    answer = solve(sparse.identity(k), np.zeros(k), matrix, right, Cones(e, len(region.b)))
    # A solver that failed may leave anything behind: zero multipliers give the bound zero. They
    # belong to |w|^2/2 there; in the convention above the numbers are the same.
    z = np.nan_to_num(answer.z, posinf=0.0, neginf=0.0)
    z = z if np.abs(z).max(initial=0.0) < 1e100 else np.zeros_like(z)
    w = np.nan_to_num(answer.x, posinf=0.0, neginf=0.0)
    mu, nu = -z[:e], np.maximum(z[e:], 0.0)
    if answer.status == "infeasible":
        return Shortest("infeasible", np.full(k, np.nan), np.inf, mu, nu, np.inf)
    rough = Shortest(answer.status, w, region.dual_value(mu, nu), mu, nu, region.violation(w))
    best = rough
    for threshold in _ACTIVE:
        exact = _on_active(region, rough, threshold)
        fits = exact.violation <= max(best.violation, 1e-12)
        if fits and exact.lower_bound >= best.lower_bound - 1e-14 * max(1.0, exact.lower_bound):
            best = exact
    return best


def _on_active(region: Polyhedron, rough: Shortest, threshold: float) -> Shortest:
    """Solve with the constraints of positive multiplier as equations."""
    active = rough.nu > threshold * float(np.abs(np.append(rough.mu, rough.nu)).max(initial=0.0))
    matrix = np.concatenate([region.E, region.A[active]])
    right = np.concatenate([region.f, region.b[active]])
    w = np.linalg.lstsq(matrix, right, rcond=1e-13)[0] if len(right) else np.zeros_like(rough.w)
    multipliers = np.linalg.lstsq(matrix.T, w, rcond=1e-13)[0] if len(right) else right
    mu, nu = multipliers[: len(region.f)], np.zeros(len(region.b))
    nu[active] = np.maximum(multipliers[len(region.f) :], 0.0)
    return Shortest(rough.status, w, region.dual_value(mu, nu), mu, nu, region.violation(w))
