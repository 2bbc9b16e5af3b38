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
from reluflow.interpolators.optimum import FIT, GAP, Optimum, balanced_network, optimum, proved
from reluflow.interpolators.polish import reduce_count
from reluflow.interpolators.rays import Rays, rays, too_close
from reluflow.interpolators.target import Exactly
from reluflow.network import Network


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
    best = optimum(problem.U, Exactly(problem.z))
    if best is None:
        raise InputError(too_close(problem))
    return _result(data, problem, best)


def _result(data: Dataset, problem: Rays, best: Optimum) -> MinNorm:
    """Translate the bounds to the original space and units."""
    atoms = reduce_count(problem.U, best.atoms)
    network = balanced_network(atoms, problem).with_bias(data.bias)
    dual = np.zeros(data.n)
    dual[problem.first] = proved(problem.U, Exactly(problem.z), best) / problem.norms
    value = network.squared_norm
    # a smaller lower bound is a lower bound too: rounding must not put it above the value
    lower = min(max(2.0 * float(dual @ data.y), 0.0), value)
    residual = float(np.abs(network.predict(data.X) - data.y).max())
    fits = max(atoms.residual(problem.U, problem.z), residual / np.abs(data.y).max()) <= FIT
    return MinNorm(
        network=network,
        value=value,
        lower_bound=lower,
        certified=bool(fits and value - lower <= GAP * value),
        dual=dual,
        residual=residual,
        is_exhaustive=best.is_exhaustive,
        solver_status=best.status,
    )
