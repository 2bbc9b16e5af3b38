r"""What the outputs at the rays have to be: equal to z, at least z, or near z at a price.

With :math:`h_i` the output at ray i and vectors :math:`w_k` as in `polish`, the three problems are

.. math:: \min \sum_k |w_k| \;\text{ s.t. } h = z, \qquad
          \min \sum_k |w_k| \;\text{ s.t. } h_i z_i \ge z_i^2, \qquad
          \min \sum_k |w_k| + \sum_i \frac{(h_i - z_i)^2}{2 c_i}

Their duals maximise :math:`\lambda \cdot z - \frac12 \sum_i c_i \lambda_i^2` (c = 0 for the first
two) over vectors whose sums :math:`\sum_i \lambda_i \varphi(u_i \cdot w)` of activations are at
most :math:`|w|` in size; the second also asks that :math:`\lambda_i z_i \ge 0`. At the optimum of
the third :math:`h_i = z_i - c_i \lambda_i`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace

import numpy as np

from reluflow.checks import Array
from reluflow.interpolators.polish import Atoms, polish

_SUPPORT = 1e-6  # multipliers below this share of the largest belong to slack points


@dataclass(frozen=True)
class Target(ABC):
    """Outputs ``z`` (n,) that a network has to reach, and what it minimises on the way.

    ``slope`` is that of its activation. A subclass says which networks will do: how far one is from
    it, how to pick the best of several and how to improve one together with its dual vector.
    """

    z: Array
    slope: float = field(default=0.0, kw_only=True)

    @abstractmethod
    def polished(self, U: Array, rough: Atoms, lam: Array) -> tuple[list[Atoms], list[Array]]:
        """Better networks and dual vectors near these, unsorted."""

    @abstractmethod
    def best(self, U: Array, candidates: list[Atoms]) -> Atoms:
        """The cheapest network that will do, scaled if that makes it one."""

    @abstractmethod
    def residual(self, U: Array, atoms: Atoms) -> float:
        """How far the network is from one that will do."""

    def cost(self, U: Array, atoms: Atoms) -> float:
        """What is minimised; the network is taken to fit."""
        return atoms.cost

    def bound(self, lam: Array, top: float = 1.0) -> float:
        """Dual value of ``lam`` after `feasible`."""
        return float(lam @ self.z) / top

    def feasible(self, lam: Array, top: float) -> Array:
        """The best multiple of ``lam`` whose sums, now at most ``top``, are at most 1."""
        return lam / top if top > 0 else lam


@dataclass(frozen=True)
class Exactly(Target):
    """Outputs equal to ``z``."""

    def polished(self, U: Array, rough: Atoms, lam: Array) -> tuple[list[Atoms], list[Array]]:
        """Newton's method on the conditions of the optimum."""
        return polish(U, self.z, rough, lam)

    def best(self, U: Array, candidates: list[Atoms]) -> Atoms:
        """Cheapest of those that fit to rounding; a worse fit would understate the norm."""
        errors = [atoms.residual(U, self.z) for atoms in candidates]
        allowed = max(1e-13, 10 * min(errors))
        fits = [atoms for atoms, error in zip(candidates, errors, strict=True) if error <= allowed]
        return min(fits, key=lambda atoms: (round(atoms.cost, 12), len(atoms.W)))

    def residual(self, U: Array, atoms: Atoms) -> float:
        """Largest difference."""
        return atoms.residual(U, self.z)


@dataclass(frozen=True)
class AtLeast(Target):
    """Outputs at least as large as ``z`` in size, and of its signs; none of ``z`` is zero."""

    def polished(self, U: Array, rough: Atoms, lam: Array) -> tuple[list[Atoms], list[Array]]:
        """On the support of the dual vector the constraints are equations, as in `Exactly`."""
        on = np.abs(lam) > _SUPPORT * np.abs(lam).max()
        primal, found = polish(U[on], self.z[on], rough, lam[on])
        duals = [lam]
        for part in found:
            full = np.zeros(len(lam))
            full[on] = np.where(part * self.z[on] > 0, part, 0.0)
            duals.append(full)
        return [rough, *primal], duals

    def best(self, U: Array, candidates: list[Atoms]) -> Atoms:
        """Shortest after scaling to smallest margin 1; the first as it is if none separates."""
        best, smallest = candidates[0], np.inf
        for atoms in candidates:
            lowest = float((atoms.outputs(U) / self.z).min())
            if lowest > 0 and atoms.cost / lowest < smallest:
                best, smallest = replace(atoms, W=atoms.W / lowest), atoms.cost / lowest
        return best

    def residual(self, U: Array, atoms: Atoms) -> float:
        """By how much the worst output falls short, as a share of what is asked of it."""
        return max(1.0 - float((atoms.outputs(U) / self.z).min()), 0.0)


@dataclass(frozen=True)
class Near(Target):
    """Outputs near ``z``, at the price ``(h - z)^2 / (2 softness)`` for each."""

    softness: Array

    def cost(self, U: Array, atoms: Atoms) -> float:
        """What is minimised, price included."""
        error = atoms.outputs(U) - self.z
        return atoms.cost + 0.5 * float((error**2 / self.softness).sum())

    def bound(self, lam: Array, top: float = 1.0) -> float:
        """Dual value of ``lam`` after `feasible`."""
        lam = self.feasible(lam, top)
        return float(lam @ self.z - 0.5 * (self.softness * lam) @ lam)

    def feasible(self, lam: Array, top: float) -> Array:
        """The best multiple of ``lam``: the top of a parabola, or as far as its sums allow."""
        curved, along = float((self.softness * lam) @ lam), float(lam @ self.z)
        if not (curved > 0 and along > 0):
            return np.zeros_like(lam)
        return lam * (min(along / curved, 1.0 / top) if top > 0 else along / curved)

    def polished(self, U: Array, rough: Atoms, lam: Array) -> tuple[list[Atoms], list[Array]]:
        """Newton's method on the conditions of the optimum."""
        primal, duals = polish(U, self.z, rough, lam, self.softness)
        return [rough, *primal], duals

    def best(self, U: Array, candidates: list[Atoms]) -> Atoms:
        """The cheapest."""
        return min(candidates, key=lambda atoms: self.cost(U, atoms))

    def residual(self, U: Array, atoms: Atoms) -> float:
        """Zero: any network will do, at its price."""
        return 0.0
