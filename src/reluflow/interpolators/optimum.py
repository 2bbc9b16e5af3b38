"""The best network for a target, over all widths, between two bounds.

Rounds of column generation give networks and dual vectors to the solver's eight digits; both are
polished to rounding, and the better of each is kept until they meet.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluflow.checks import Array
from reluflow.interpolators.columns import Round, generate_columns
from reluflow.interpolators.polish import Atoms
from reluflow.interpolators.rays import Rays
from reluflow.interpolators.supremum import bracket
from reluflow.interpolators.target import Target
from reluflow.network import Network

GAP = 1e-7  # bounds that agree to this are certified
FIT = 1e-9  # networks that fit to this share of the labels fit
_WORTH_POLISHING = 1e-4
_ENOUGH = 1e-9


@dataclass(frozen=True)
class Optimum:
    """Best network and dual vector so far (feasible as far as searched, see `proved`)."""

    atoms: Atoms
    lam: Array
    is_exhaustive: bool
    cost: float
    bound: float
    residual: float
    status: str

    @property
    def gap(self) -> float:
        """Distance of the bounds, as a share of the cost."""
        return (self.cost - self.bound) / self.cost


def optimum(U: Array, target: Target) -> Optimum | None:
    """Network and dual vector for the unit rows ``U`` (n, r); None if the solver cannot start.

    Numerics
    --------
    Stops at a gap of 1e-9, after three attempts at 5e-8, after ten whatever the gap.
    """
    best: Optimum | None = None
    attempts = 0
    for step in generate_columns(U, target):
        if best is None or step.gap <= _WORTH_POLISHING:
            best = _improve(U, target, step, best)
            attempts += 1
            if _is_enough(best, attempts):
                break
    return best


def proved(U: Array, target: Target, best: Optimum) -> Array:
    """The dual vector, shrunk by a relaxation where not every pattern could be searched."""
    if best.is_exhaustive:
        return best.lam
    slope = target.slope
    top = max(bracket(U, lam, slope=slope).upper for lam in (best.lam, -best.lam))
    return target.feasible(best.lam, top)


def feasible(U: Array, target: Target, lam: Array) -> tuple[Array, bool]:
    """Scale ``lam`` until its sums are at most 1 on all directions searched; whether on all."""
    sides = [bracket(U, side, slope=target.slope, relax=False) for side in (lam, -lam)]
    exhaustive = all(side.is_exhaustive for side in sides)
    top = max(side.upper if exhaustive else side.lower for side in sides)
    return target.feasible(lam, top), exhaustive


def balanced_network(atoms: Atoms, problem: Rays) -> Network:
    """Balanced neurons in the original space and units; one zero neuron if there are no vectors."""
    norms = np.sqrt(np.einsum("ij,ij->i", atoms.W, atoms.W))
    slope, signs, vectors, norms = (
        atoms.slope,
        atoms.signs[norms > 0],
        atoms.W[norms > 0],
        norms[norms > 0],
    )
    if not len(norms):
        return Network([0.0], np.zeros((1, problem.basis.shape[1])), slope=slope)
    root = np.sqrt(problem.scale * norms)
    W = (vectors / norms[:, None]) @ problem.basis * root[:, None]
    return Network(signs * root, W, slope=slope)


def _is_enough(best: Optimum, attempts: int) -> bool:
    """Whether further rounds are not worth their cost: the aim falls with the attempts."""
    aim = _ENOUGH if attempts < 3 else GAP / 2
    return attempts >= 10 or (best.gap <= aim and best.residual <= FIT / 1000)


def _improve(U: Array, target: Target, step: Round, best: Optimum | None) -> Optimum:
    """Polish a round and keep the better network and the better dual vector."""
    primal, duals = target.polished(U, step.atoms, step.lam)
    atoms = target.best(U, primal if best is None else [*primal, best.atoms])
    options = [feasible(U, target, lam) for lam in duals]
    if best is not None:
        options.append((best.lam, best.is_exhaustive))
    lam, exhaustive = max(options, key=lambda option: target.bound(option[0]))
    return Optimum(
        atoms=atoms,
        lam=lam,
        is_exhaustive=exhaustive,
        cost=target.cost(U, atoms),
        bound=target.bound(lam),
        residual=target.residual(U, atoms),
        status=step.status,
    )
