r"""Minimum-norm interpolation by networks of any width, with a certificate.

.. math:: \min |\theta|^2 = \sum_j a_j^2 + |w_j|^2 \quad\text{s.t.}\quad
          \sum_j a_j\,\varphi(w_j \cdot x_i) = y_i

with :math:`\varphi` the ReLU, or a leaky one. Balanced neurons turn it into a convex problem over
activation patterns (Pilanci & Ergen, ICML 2020), whose dual is

.. math:: \max_\lambda\; 2\,\lambda \cdot y \quad\text{s.t.}\quad
          \Bigl|\sum_i \lambda_i\,\varphi(x_i \cdot w)\Bigr| \le |w| \;\text{ for all } w.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluflow import interrupts
from reluflow.checks import Array, number
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.interpolators.optimum import FIT, GAP, Optimum, balanced_network, optimum, proved
from reluflow.interpolators.polish import reduce_count
from reluflow.interpolators.rays import Rays, rays, too_close
from reluflow.interpolators.regularised import regularised
from reluflow.interpolators.target import Exactly
from reluflow.losses import Loss, Square, named
from reluflow.network import Network, activation_slope


@dataclass(frozen=True)
class MinNorm:
    r"""A network that fits, or of least loss plus decay, and how far from the optimum it can be.

    Attributes
    ----------
    network : Network
        Balanced, at most n neurons when it is certified.
    value : float
        Its squared norm :math:`|\theta|^2`.
    objective : float
        What is minimised: the squared norm, or with decay the loss plus decay/2 times it. An upper
        bound on the minimum.
    lower_bound : float
        A lower bound on the minimum of ``objective``: ``2 dual . y``, or with decay
        ``dual . y - |dual|^2 / (2 kappa)``.
    certified : bool
        Whether the bounds agree to 1e-7 (relative) and, without decay, the network fits to 1e-9.
    dual : (n,) array
        Dual vector whose sums of activations are at most ``|w|``, with decay at most
        ``decay |w|``; the bound can be checked from it alone.
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
    objective: float
    lower_bound: float
    certified: bool
    dual: Array
    residual: float
    is_exhaustive: bool
    solver_status: str

    @property
    def gap(self) -> float:
        """``objective - lower_bound``."""
        return self.objective - self.lower_bound


@interrupts.deferred()
def min_norm(
    data: Dataset, *, decay: float | None = None, loss: Loss | str = "square", slope: float = 0.0
) -> MinNorm:
    r"""Network of smallest squared norm, over all widths, that fits the data exactly.

    With ``decay`` the network of smallest loss plus weight decay instead,

    .. math:: L(\theta) + \frac\mu2 |\theta|^2, \qquad
              L = \frac\kappa2 \sum_i (h(x_i) - y_i)^2,

    the least that training with weight decay can reach at any width. As :math:`\mu \to 0` it tends
    to the network that fits, and the objective over :math:`\mu/2` to its squared norm.

    Parameters
    ----------
    data : Dataset
        Points and labels of any signs. Without decay points on one ray must agree, and opposite
        points must differ by a linear function; otherwise nothing fits and the message names them.
    decay : float, optional
        The number :math:`\mu`; None or 0 asks for an exact fit.
    loss : Loss or str
        The square loss and its factor, ``Square("1/2n")`` by default (:math:`\kappa = 1/n`); it
        matters with decay only.
    slope : float
        Slope of the activation below zero, as in `reluflow.Network`: the least of all networks with
        this slope.

    Returns
    -------
    MinNorm
        ``.network .value .objective .lower_bound .certified`` and the dual certificate.

    Examples
    --------
    >>> data = Dataset([[1.0, 0.0], [0.0, 1.0]], [3.0, -4.0])
    >>> best = min_norm(data)
    >>> round(best.value, 6), best.certified
    (14.0, True)
    >>> best = min_norm(data, decay=0.5)  # every output shrinks by n decay = 1
    >>> round(best.value, 6), round(best.objective, 6), best.certified
    (10.0, 3.0, True)

    Notes
    -----
    The dual with decay maximises :math:`\nu \cdot y - |\nu|^2/(2\kappa)` over
    :math:`|\sum_i \nu_i \varphi(x_i \cdot w)| \le \mu |w|`; at the optimum
    :math:`\nu_i = \kappa (y_i - h(x_i))`. Strong decay, from the largest such sum of
    :math:`\kappa y` on, leaves the zero network. Both programs are those of Pilanci and Ergen (ICML
    2020); a network of fixed width reaches them if it has as many neurons as ``network``.

    Numerics
    --------
    All patterns in one cone program while that is small, column generation beyond. Newton's
    method polishes the solver's answer; the fit is then exact to rounding and the gap typically
    1e-14. The lower bound is checked on every pattern of the points of one dual sign while
    these can be listed (up to 16 independent points a sign, 100 in three dimensions), beyond by a
    relaxation. With decay the gap is as small while rounding of the outputs, squared, is small
    beside the decay: down to a decay of 1e-20 or so for labels of size 1. Different labels within
    1e-6 in direction, and with decay points whose norms differ by more than six orders of
    magnitude, are beyond what floats certify; the gap is told.
    """
    chosen = named(loss)
    if not isinstance(chosen, Square):
        raise InputError(
            f"`loss` is {chosen.name!r}; the least norm is that of square losses. Pass a factor as "
            "losses.Square(...); for classification use max_margin."
        )
    slope = activation_slope(slope)
    if decay is not None and number(decay, "decay", at_least=0.0) > 0.0:
        return _with_decay(data, float(decay), chosen, slope)
    problem = rays(data)
    if not problem.z.any():
        zero = Network([0.0], np.zeros((1, data.d)), bias=data.bias, slope=slope)
        return MinNorm(zero, 0.0, 0.0, 0.0, True, np.zeros(data.n), 0.0, True, "solved")
    target = Exactly(problem.z, slope=slope)
    best = optimum(problem.U, target)
    if best is None:
        raise InputError(too_close(problem))
    return _result(data, problem, target, best)


def _with_decay(data: Dataset, decay: float, loss: Square, slope: float) -> MinNorm:
    """The bounds from the network and the dual vector themselves."""
    kappa = loss.kappa(data.n)
    found = regularised(data, decay, kappa, slope)
    outputs = found.network.predict(data.X)
    value = found.network.squared_norm
    objective = loss.value(outputs, data.y) + 0.5 * decay * value
    bound = float(found.dual @ data.y - found.dual @ found.dual / (2.0 * kappa))
    lower = min(max(bound, 0.0), objective)
    return MinNorm(
        network=found.network,
        value=value,
        objective=objective,
        lower_bound=lower,
        certified=bool(objective - lower <= GAP * objective),
        dual=found.dual,
        residual=float(np.abs(outputs - data.y).max()),
        is_exhaustive=found.is_exhaustive,
        solver_status=found.status,
    )


def _result(data: Dataset, problem: Rays, target: Exactly, best: Optimum) -> MinNorm:
    """Translate the bounds to the original space and units."""
    atoms = reduce_count(problem.U, best.atoms)
    network = balanced_network(atoms, problem).with_bias(data.bias)
    dual = np.zeros(data.n)
    dual[problem.first] = proved(problem.U, target, best) / problem.norms
    value = network.squared_norm
    # a smaller lower bound is a lower bound too: rounding must not put it above the value
    lower = min(max(2.0 * float(dual @ data.y), 0.0), value)
    residual = float(np.abs(network.predict(data.X) - data.y).max())
    fits = max(atoms.residual(problem.U, problem.z), residual / np.abs(data.y).max()) <= FIT
    return MinNorm(
        network=network,
        value=value,
        objective=value,
        lower_bound=lower,
        certified=bool(fits and value - lower <= GAP * value),
        dual=dual,
        residual=residual,
        is_exhaustive=best.is_exhaustive,
        solver_status=best.status,
    )
