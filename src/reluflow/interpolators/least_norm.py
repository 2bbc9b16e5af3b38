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

_ACTIVE = 1e-7


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
    # its dual for |w|^2/2; multipliers of |w|^2 in the convention above are the same numbers
    mu, nu = -answer.z[:e], np.maximum(answer.z[e:], 0.0)
    if answer.status == "infeasible":
        return Shortest("infeasible", np.full(k, np.nan), np.inf, mu, nu, np.inf)
    rough = Shortest(
        answer.status,
        answer.x,
        region.dual_value(mu, nu),
        mu,
        nu,
        region.violation(answer.x),
    )
    exact = _on_active(region, rough)
    better = exact.violation <= max(rough.violation, 1e-12)
    return exact if better and exact.lower_bound >= rough.lower_bound - 1e-12 else rough


def _on_active(region: Polyhedron, rough: Shortest) -> Shortest:
    """Solve with the constraints of positive multiplier as equations."""
    active = rough.nu > _ACTIVE * max(1.0, float(rough.nu.max(initial=0.0)))
    matrix = np.concatenate([region.E, region.A[active]])
    right = np.concatenate([region.f, region.b[active]])
    w = np.linalg.lstsq(matrix, right, rcond=1e-13)[0] if len(right) else np.zeros_like(rough.w)
    multipliers = np.linalg.lstsq(matrix.T, w, rcond=1e-13)[0] if len(right) else right
    mu, nu = multipliers[: len(region.f)], np.zeros(len(region.b))
    nu[active] = np.maximum(multipliers[len(region.f) :], 0.0)
    return Shortest(rough.status, w, region.dual_value(mu, nu), mu, nu, region.violation(w))
