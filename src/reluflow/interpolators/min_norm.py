r"""Minimum-norm interpolation by networks of any width, with a certificate.

.. math:: \min |\theta|^2 = \sum_j a_j^2 + |w_j|^2 \quad\text{s.t.}\quad
          \sum_j a_j\,\mathrm{relu}(w_j \cdot x_i) = y_i

Balanced neurons turn it into a convex problem over activation patterns (Pilanci & Ergen, ICML
2020), whose dual is

.. math:: \max_\lambda\; 2\,\lambda \cdot y \quad\text{s.t.}\quad
          \Bigl|\sum_i \lambda_i\,\mathrm{relu}(x_i \cdot w)\Bigr| \le |w| \;\text{ for all } w.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluflow import interrupts
from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.interpolators.columns import Round, generate_columns
from reluflow.interpolators.polish import Atoms, polish, reduce_count
from reluflow.interpolators.rays import Rays, rays
from reluflow.interpolators.supremum import bracket
from reluflow.network import Network

_GAP = 1e-7
_FIT = 1e-9
_WORTH_POLISHING = 1e-4
_ENOUGH = 1e-9


@dataclass(frozen=True)
class MinNorm:
    r"""A network that fits, and how far from the smallest norm it can be.

    Attributes
    ----------
    network : Network
        Balanced interpolator, at most n neurons when its norm is certified.
    value : float
        Its squared norm :math:`|\theta|^2`, an upper bound on the minimum.
    lower_bound : float
        ``2 dual . y``, a lower bound on the minimum.
    certified : bool
        Whether the bounds agree to 1e-7 (relative) and the network fits to 1e-9.
    dual : (n,) array
        Feasible dual vector; the bound can be checked from it alone.
    residual : float
        Largest ``|h(x_i) - y_i|``.
    is_exhaustive : bool
        Whether dual feasibility was checked on every activation pattern (otherwise by a
        relaxation, which may leave a gap).
    solver_status : str
        What the cone solver said last; the certificate does not rely on it.
    """

    network: Network
    value: float
    lower_bound: float
    certified: bool
    dual: Array
    residual: float
    is_exhaustive: bool
    solver_status: str

    @property
    def gap(self) -> float:
        """``value - lower_bound``."""
        return self.value - self.lower_bound


@interrupts.deferred()
def min_norm(data: Dataset) -> MinNorm:
    r"""Network of smallest squared norm, over all widths, that fits the data exactly.

    Parameters
    ----------
    data : Dataset
        Points and labels of any signs. Points on one ray must agree, and opposite points must
        differ by a linear function; otherwise nothing fits and the message names them.

    Returns
    -------
    MinNorm
        ``.network .value .lower_bound .certified`` and the dual certificate.

    Examples
    --------
    >>> best = min_norm(Dataset([[1.0, 0.0], [0.0, 1.0]], [3.0, -4.0]))
    >>> round(best.value, 6), best.certified
    (14.0, True)

    Numerics
    --------
    All patterns in one cone program while that is small, column generation beyond. Newton's
    method polishes the solver's answer; the fit is then exact to rounding and the gap typically
    1e-14. The lower bound is checked on every pattern of the points of one dual sign while
    these can be listed (up to 16 independent points a sign, 100 in three dimensions), beyond by a
    relaxation.
    """
    problem = rays(data)
    if not problem.z.any():
        zero = Network([0.0], np.zeros((1, data.d)), bias=data.bias)
        return MinNorm(zero, 0.0, 0.0, True, np.zeros(data.n), 0.0, True, "solved")
    best: _Bounds | None = None
    attempts = 0
    for step in generate_columns(problem.U, problem.z):
        if best is None or step.gap <= _WORTH_POLISHING:
            best = _improve(problem.U, problem.z, step, best)
            attempts += 1
            if _is_enough(best, attempts):
                break
    if best is None:
        raise InputError(_too_close(problem))
    return _result(data, problem, best)


def _is_enough(best: _Bounds, attempts: int) -> bool:
    """Whether further rounds are not worth their cost: the aim falls with the attempts."""
    aim = _ENOUGH if attempts < 3 else _GAP / 2
    return attempts >= 10 or (best.gap <= aim and best.residual <= _FIT / 1000)


def _too_close(problem: Rays) -> str:
    """Name the pair of rays that makes the labels nearly contradictory."""
    apart = np.sqrt(((problem.U[:, None] - problem.U) ** 2).sum(axis=2))
    jump = np.abs(problem.z[:, None] - problem.z) / np.where(apart > 0, apart, np.inf)
    i, j = sorted(int(problem.first[k]) for k in np.unravel_index(jump.argmax(), jump.shape))
    return (
        f"points {i} and {j} differ by {apart.flat[jump.argmax()]:.1e} in direction but have "
        "different labels. A fit needs weights beyond the solver's range. Drop one of them."
    )


@dataclass(frozen=True)
class _Bounds:
    """Best network and dual vector so far (feasible as far as searched, see `_proved`)."""

    atoms: Atoms
    lam: Array
    is_exhaustive: bool
    bound: float
    residual: float
    status: str

    @property
    def gap(self) -> float:
        return (self.atoms.cost - self.bound) / self.atoms.cost


def _improve(U: Array, z: Array, step: Round, best: _Bounds | None) -> _Bounds:
    """Polish a round and keep the better network and the better dual vector."""
    primal, duals = polish(U, z, step.atoms, step.lam)
    atoms = _best_fit(U, z, primal if best is None else [*primal, best.atoms])
    options = [_feasible(U, lam) for lam in duals]
    if best is not None:
        options.append((best.lam, best.is_exhaustive))
    lam, exhaustive = max(options, key=lambda option: float(option[0] @ z))
    return _Bounds(atoms, lam, exhaustive, float(lam @ z), atoms.residual(U, z), step.status)


def _result(data: Dataset, problem: Rays, best: _Bounds) -> MinNorm:
    """Translate the bounds to the original space and units."""
    atoms = reduce_count(problem.U, best.atoms)
    network = _network(atoms, problem).with_bias(data.bias)
    dual = np.zeros(data.n)
    dual[problem.first] = _proved(problem.U, best) / problem.norms
    value = network.squared_norm
    # a smaller lower bound is a lower bound too: rounding must not put it above the value
    lower = min(max(2.0 * float(dual @ data.y), 0.0), value)
    residual = float(np.abs(network.predict(data.X) - data.y).max())
    fits = max(atoms.residual(problem.U, problem.z), residual / np.abs(data.y).max()) <= _FIT
    return MinNorm(
        network=network,
        value=value,
        lower_bound=lower,
        certified=bool(fits and value - lower <= _GAP * value),
        dual=dual,
        residual=residual,
        is_exhaustive=best.is_exhaustive,
        solver_status=best.status,
    )


def _best_fit(U: Array, z: Array, candidates: list[Atoms]) -> Atoms:
    """Cheapest of those that fit to rounding; a worse fit would understate the norm."""
    errors = [atoms.residual(U, z) for atoms in candidates]
    allowed = max(1e-13, 10 * min(errors))
    fitting = [atoms for atoms, error in zip(candidates, errors, strict=True) if error <= allowed]
    return min(fitting, key=lambda atoms: (round(atoms.cost, 12), len(atoms.W)))


def _feasible(U: Array, lam: Array) -> tuple[Array, bool]:
    """Shrink ``lam`` until its sums are at most 1 on all directions searched; whether on all."""
    sides = [bracket(U, lam, relax=False), bracket(U, -lam, relax=False)]
    exhaustive = all(side.is_exhaustive for side in sides)
    top = max(side.upper if exhaustive else side.lower for side in sides)
    return (lam / top if top > 0 else lam), exhaustive


def _proved(U: Array, best: _Bounds) -> Array:
    """The dual vector, shrunk by a relaxation where not every pattern could be searched."""
    if best.is_exhaustive:
        return best.lam
    return best.lam / max(bracket(U, best.lam).upper, bracket(U, -best.lam).upper)


def _network(atoms: Atoms, problem: Rays) -> Network:
    """Balanced neurons in the original space and units."""
    norms = np.sqrt(np.einsum("ij,ij->i", atoms.W, atoms.W))
    root = np.sqrt(problem.scale * norms)
    W = (atoms.W / norms[:, None]) @ problem.basis * root[:, None]
    return Network(atoms.signs * root, W)
