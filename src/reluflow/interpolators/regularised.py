r"""The optimum under weight decay, over all widths.

.. math:: \min_\theta\; \frac\kappa2 \sum_i (h(x_i) - y_i)^2 + \frac\mu2 |\theta|^2

With balanced neurons, :math:`|\theta|^2 = 2\sum_k |w_k|`, this is the third problem of `target`
with :math:`c_i = \mu/(\kappa |x_i|^2)`. Points on one ray need not agree: the loss of all is
that of their weighted mean, up to a constant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.interpolators.optimum import Optimum, balanced_network, feasible, optimum, proved
from reluflow.interpolators.polish import Atoms, reduce_count
from reluflow.interpolators.rays import MeanRays, mean_rays
from reluflow.interpolators.target import Near
from reluflow.network import Network


@dataclass(frozen=True)
class Regularised:
    """Network, dual vector ``nu`` (n,) of the data, whether all patterns were searched, status."""

    network: Network
    dual: Array
    is_exhaustive: bool
    status: str


def regularised(data: Dataset, decay: float, kappa: float, slope: float = 0.0) -> Regularised:
    r"""Solve for weight decay ``decay`` > 0 and an activation of this slope below zero.

    ``dual`` satisfies :math:`|\sum_i \nu_i \varphi(x_i \cdot w)| \le \mu |w|`, which makes
    :math:`\nu \cdot y - |\nu|^2/(2\kappa)` a lower bound.

    Numerics
    --------
    Never raises: the zero network and its dual vector are there if the solver fails. The program is
    as well conditioned for vanishing decay as that of exact fits, which it becomes.
    """
    problem = mean_rays(data)
    softness = decay / (kappa * problem.rays.norms**2 * problem.rays.scale)
    target = Near(problem.rays.z, softness, slope=slope)
    U = problem.rays.U
    best = _zero_network(U, target)
    if best.cost > best.bound:
        found = optimum(U, target)
        best = found if found is not None and found.cost < best.cost else best
    atoms = reduce_count(U, best.atoms)
    network = balanced_network(atoms, problem.rays).with_bias(data.bias)
    dual = _of_points(data, problem, proved(U, target, best), decay, kappa)
    return Regularised(network, dual, best.is_exhaustive, best.status)


def _zero_network(U: Array, target: Near) -> Optimum:
    """The best network under strong decay, with the forces at zero for a dual vector."""
    none = Atoms(np.zeros((0, U.shape[1])), np.zeros(0), target.slope)
    lam, exhaustive = feasible(U, target, target.z / target.softness)
    return Optimum(
        atoms=none,
        lam=lam,
        is_exhaustive=exhaustive,
        cost=target.cost(U, none),
        bound=target.bound(lam),
        residual=0.0,
        status="solved",
    )


def _of_points(data: Dataset, problem: MeanRays, lam: Array, decay: float, kappa: float) -> Array:
    r"""Dual vector of the data: :math:`\kappa (y_i - h(x_i))` with the outputs of ``lam``.

    Numerics
    --------
    Points alone on their ray get :math:`\mu\lambda/|x_i|`, which loses nothing for small decay.
    """
    share = problem.lengths / problem.rays.norms[problem.of_point]
    mean = problem.lengths * (problem.rays.scale * problem.rays.z)[problem.of_point]
    alone = np.bincount(problem.of_point)[problem.of_point] == 1
    apart = np.where(alone, 0.0, kappa * (data.y - mean))
    return np.asarray(apart + decay * share * (lam / problem.rays.norms)[problem.of_point])
