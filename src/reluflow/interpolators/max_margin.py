r"""Global maximum margin of two-layer classifiers, any width.

.. math:: \min \tfrac12|\theta|^2 \quad\text{s.t.}\quad
          y_i \sum_j a_j\,\varphi(w_j \cdot x_i) \ge 1, \qquad y_i = \pm 1

with :math:`\varphi` the ReLU, or a leaky one. Balanced neurons turn it into a convex problem over
activation patterns, as in `min_norm`: the margins are inequalities on its outputs. Its dual is

.. math:: \max_{\lambda \ge 0}\; 2\sum_i \lambda_i \quad\text{s.t.}\quad
          \Bigl|\sum_i \lambda_i y_i\,\varphi(x_i \cdot w)\Bigr| \le |w| \;\text{ for all } w.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluflow import interrupts
from reluflow.checks import Array, whole
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.interpolators.fixed_width import best_of_width
from reluflow.interpolators.line_margin import is_line, line_margin
from reluflow.interpolators.optimum import GAP, balanced_network, optimum, proved
from reluflow.interpolators.polish import Atoms, reduce_count
from reluflow.interpolators.rays import Rays, margin_rays, too_close
from reluflow.interpolators.target import AtLeast
from reluflow.network import Network, activation_slope, row_norms


@dataclass(frozen=True)
class MaxMargin:
    r"""The global optimum of the margin problem, and its certificate.

    Attributes
    ----------
    network : Network
        Balanced classifier with smallest margin exactly 1 (to rounding).
    value : float
        :math:`|\theta|^2`, an upper bound on the minimum.
    margin : float
        Normalised margin :math:`\min_i y_i h(x_i)/|\theta|^2`, the inverse of ``value``.
    lower_bound : float
        A lower bound on the minimum: :math:`2\sum_i \lambda_i`, or for a given width the least
        bound of a search over patterns, if that is larger.
    certified : bool
        Whether the bounds agree to 1e-7 (relative).
    multipliers : (n,) array
        Dual feasible :math:`\lambda` of the problem for any width; zero on slack points and on
        repeated ones.
    is_exhaustive : bool
        Whether dual feasibility was checked on every activation pattern (otherwise by a
        relaxation, which may leave a gap).
    solver_status : str
        What the cone solver said; the certificate does not rely on it.
    """

    network: Network
    value: float
    margin: float
    lower_bound: float
    certified: bool
    multipliers: Array
    is_exhaustive: bool
    solver_status: str

    @property
    def gap(self) -> float:
        """``value - lower_bound``."""
        return self.value - self.lower_bound


@interrupts.deferred()
def max_margin(data: Dataset, *, width: int | None = None, slope: float = 0.0) -> MaxMargin:
    r"""Network with the largest normalised margin, of any width or of a given one.

    Parameters
    ----------
    data : Dataset
        Points of any dimension and labels +-1; a bias is a coordinate equal to 1 and counts in the
        norm. Points on one ray need one label, and opposite points with opposite labels must be
        linearly separable; otherwise no network separates and the message names them.
    width : int, optional
        Neurons at most; None for any number.
    slope : float
        Slope of the activation below zero, as in `reluflow.Network`: the largest margin of all
        networks with this slope.

    Returns
    -------
    MaxMargin
        The network, its margin, and the certificate.

    Examples
    --------
    >>> best = max_margin(Dataset([[4.0, 1.0], [-4.0, 1.0]], [1.0, 1.0]))
    >>> bool(abs(best.value - 4 / np.sqrt(17)) < 1e-9), best.certified
    (True, True)
    >>> best = max_margin(Dataset(np.diag([1.0, 2.0, 3.0]), [1.0, 1.0, -1.0]))
    >>> bool(abs(best.value - 2 * (np.sqrt(1.25) + 1 / 3)) < 1e-9), best.certified
    (True, True)

    Notes
    -----
    Exponential and logistic training tend to stationary points of this problem (Lyu and Li, ICLR
    2020), not always to its optimum; on the line see Safran, Vardi and Lee (NeurIPS 2022), whose
    setting has a solver of its own. The convex program is that of Pilanci and Ergen (ICML 2020).

    The problem for a given width is convex only once every neuron has its pattern. Unless the
    optimum of any width is narrow enough, the choices of patterns are searched; that is for small
    problems (some ten points in two dimensions, or two neurons in three) and refused beyond.

    Numerics
    --------
    On the line, rows ``(x, 1)``, a sparse program with O(n) entries: 0.3 s for n = 500 and a few
    label changes. Elsewhere, and with a slope, all patterns in one cone program while that is
    small, column generation beyond; Newton's method on the points of the support polishes the
    answer, and the gap is typically 1e-14. The value is recomputed from the network's own outputs.
    The lower bound is checked on every pattern of the points of one label while these can be listed
    (up to 16 independent points a label, 100 in three dimensions), beyond by a relaxation (with a
    slope a looser one). Different labels within 1e-6 in direction, and points whose norms differ by
    more than six orders of magnitude, are beyond what floats certify; the gap is told.
    """
    slope = activation_slope(slope)
    if width is not None:
        return _of_width(data, whole(width, "width"), slope)
    if slope or not is_line(data):
        return _by_patterns(data, slope)
    found = line_margin(data)
    root = np.sqrt(row_norms(found.atoms.W))
    network = Network(found.atoms.signs * root, found.atoms.W / root[:, None], bias=data.bias)
    multipliers = np.zeros(data.n)
    multipliers[found.first] = found.multipliers
    return _result(network, multipliers, True, found.status)


def _by_patterns(data: Dataset, slope: float = 0.0) -> MaxMargin:
    """The general solver, for rows of any form."""
    problem = margin_rays(data)
    target = AtLeast(problem.z, slope=slope)
    best = optimum(problem.U, target)
    if best is None or best.residual > 0.5:
        raise InputError(too_close(problem))
    few = target.best(problem.U, [reduce_count(problem.U, best.atoms)])
    kept = target.residual(problem.U, few) < 1e-12 and few.cost <= (1 + 1e-12) * best.cost
    multipliers = np.zeros(data.n)
    lam = proved(problem.U, target, best)
    multipliers[problem.first] = np.maximum(data.y[problem.first] * lam, 0.0) / problem.norms
    network = _with_margin_one(data, problem, few if kept else best.atoms)
    return _result(network, multipliers, best.is_exhaustive, best.status)


def _of_width(data: Dataset, width: int, slope: float) -> MaxMargin:
    """The optimum of any width if it is narrow enough, else the search over patterns."""
    free = max_margin(data, slope=slope)
    if free.network.width <= width:
        return free
    problem = margin_rays(data)
    few = reduce_count(problem.U, _vectors(free.network, problem))
    if len(few.W) <= width:
        network = _with_margin_one(data, problem, few)
        return _result(network, free.multipliers, free.is_exhaustive, free.solver_status)
    lam = (data.y * free.multipliers)[problem.first] * problem.norms
    found = best_of_width(problem.U, AtLeast(problem.z, slope=slope), width, lam)
    if found.atoms is None:
        raise InputError(
            f"no network of width {width} separates these points, by a search over all activation "
            f"patterns. An optimum of any width has {len(few.W)} neurons. Allow more."
        )
    network = _with_margin_one(data, problem, found.atoms)
    lower = max(free.lower_bound, min(2.0 * problem.scale * found.bound, network.squared_norm))
    return replace(
        _result(network, free.multipliers, True, free.solver_status),
        lower_bound=lower,
        certified=bool(network.squared_norm - lower <= GAP * network.squared_norm),
    )


def _vectors(network: Network, problem: Rays) -> Atoms:
    """The balanced network as vectors in coordinates of the problem."""
    vectors = np.abs(network.a)[:, None] * (network.W @ problem.basis.T) / problem.scale
    return Atoms(vectors, network.signs, network.slope)


def _with_margin_one(data: Dataset, problem: Rays, atoms: Atoms) -> Network:
    network = balanced_network(atoms, problem).with_bias(data.bias)
    lowest = float((data.y * network.predict(data.X)).min())
    a, W = network.a / np.sqrt(lowest), network.W / np.sqrt(lowest)
    return Network(a, W, bias=data.bias, slope=network.slope)


def _result(network: Network, multipliers: Array, exhaustive: bool, status: str) -> MaxMargin:
    value = network.squared_norm
    lower = min(2.0 * float(multipliers.sum()), value)
    return MaxMargin(
        network=network,
        value=value,
        margin=1.0 / value,
        lower_bound=lower,
        certified=bool(value - lower <= GAP * value),
        multipliers=multipliers,
        is_exhaustive=exhaustive,
        solver_status=status,
    )
