r"""Bundle: the limit of training on correlated data, and how fast neurons become parallel.

On data with positive inner products and labels :math:`y_i = v \cdot x_i > 0` the neurons of J+
(positive output weight, active on some point) end parallel to v and all others vanish. Once all
points are active the neurons share one force, so in the form

.. math:: \alpha_j = \alpha_j^\perp + |\alpha_j| \cos(\alpha_j, \gamma) \bar\gamma, \qquad
          \omega_j = (|\alpha_j| + \alpha_j \cdot \bar\gamma) \, e^{-|\gamma| \tau_j}

both :math:`\alpha_j^\perp` and :math:`\omega_j` are constants of yardstick j after its last
crossing :math:`\tau_j`. The limit for :math:`\lambda \to 0` is

.. math:: a_j = \sqrt{|v|} \, \frac{\omega_j}{\sqrt{\sum_k \omega_k^2}}, \qquad w_j = a_j \bar v

The Minkowski products :math:`C_{jk} = |w_j||w_k| - w_j \cdot w_k` of neurons sharing a force are
conserved by the whole flow. In yardsticks
:math:`C_{jk} = \tfrac12 \omega_j \omega_k |\alpha_j^\perp/\omega_j - \alpha_k^\perp/\omega_k|^2`,
hence the final angle of two neurons is, up to a relative error of order :math:`\lambda`,

.. math:: \lambda \sqrt{\textstyle\sum_i \omega_i^2 / |v|} \;
          |\alpha_j^\perp/\omega_j - \alpha_k^\perp/\omega_k|

and the largest one is :math:`\lambda` times the diameter of a set of points.

Reference: Chistikov, Englert, Lazic, NeurIPS 2023 (arXiv 2306.06479), Theorem 7 for angles below
pi/4; the constants are derived here from the conserved products.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array, read_only
from reluflow.dataset import Dataset
from reluflow.limits import hypotheses
from reluflow.limits.yardsticks import Yardsticks, yardsticks
from reluflow.losses import logsumexp
from reluflow.network import Network


@dataclass(frozen=True, eq=False)
class Bundle:
    r"""The limit network of correlated data.

    Attributes
    ----------
    network : Network
        Limit for vanishing scale: J+ along ``vector``, every other neuron zero. Its squared norm
        is ``2 |vector|``.
    weights : (m,) array
        The limits of ``|a_j|``: their squares sum to ``|vector|``.
    vector : (d,) array
        The teacher, projected on the span of the points.
    angle_slope, log_angle_slope : float
        The largest final angle between two neurons of J+ is ``angle_slope * exp(log_scale)``, to a
        relative error of the order of the scale; 0 for fewer than two neurons.
    pair : tuple of two ints, or None
        The neurons that are furthest apart.
    positive : (k,) int array
        J+.
    angle : float
        Largest angle between ``vector`` and a point.
    proved : bool
        Whether that angle is below pi/4, as the theorem asks; otherwise only inner products are
        known to be positive and the limit is an observation.
    yardsticks : Yardsticks
        What the constants were computed from.
    """

    network: Network
    weights: Array
    vector: Array
    angle_slope: float
    log_angle_slope: float
    pair: tuple[int, int] | None
    positive: NDArray[np.intp]
    angle: float
    proved: bool
    yardsticks: Yardsticks

    def log_max_angle(self, log_scale: float) -> float:
        """Logarithm of the largest final angle at another scale."""
        return self.log_angle_slope + float(log_scale)


def failures(data: Dataset, net: Network) -> list[str]:
    """Reasons why the bundle limit does not apply; empty if it does.

    A neuron exactly on the plane of a point is not active there.
    """
    active = (net.mantissa.W @ data.X.T > 0).any(axis=1)
    found = [
        *hypotheses.imbalance(net),
        *hypotheses.negative_products(data),
        *hypotheses.teacher_vector(data)[1],
    ]
    if not (active & (net.signs > 0)).any():
        found.append("no neuron with a positive output weight is active on a point (J+ is empty)")
    return found


def bundle(data: Dataset, net: Network) -> Bundle:
    r"""Limit network of correlated data and the slope of its final angles, without training.

    Parameters
    ----------
    data : Dataset
        Points with positive inner products, labels ``v . x_i > 0`` for one vector v of any norm.
    net : Network
        Balanced network with some neuron in J+; ``z_j = W_j`` and ``lam = exp(log_scale)``.

    Returns
    -------
    Bundle
        The limit network and the slope of the largest angle.

    Examples
    --------
    >>> data = Dataset([[1.0, 0.2], [1.0, -0.3]], [2.0, 2.0], teacher=[2.0, 0.0])
    >>> limit = bundle(data, Network([1.0, 1.0], [[0.6, 0.8], [0.6, -0.8]], log_scale=-9.0))
    >>> limit.network.predict(data.X).round(12), round(limit.network.squared_norm, 12)
    (array([2., 2.]), 4.0)
    >>> round(limit.angle_slope, 6)
    1.600999

    Numerics
    --------
    Closed form; exponents are kept in logs, so slopes of any size are right. The relative error of
    a slope is that of the perpendicular parts, 1e-16 over the smallest sine involved. Against the
    integrated flow at scale lam the difference is O(lam) (tests/limits/test_bundle.py). O(k^2 d)
    for k neurons in J+ beside the cost of the yardsticks.
    """
    hypotheses.check_pair(data, net, "bundle")
    hypotheses.refuse("bundle", failures(data, net))
    vector = hypotheses.teacher_vector(data)[0]
    assert vector is not None  # `failures` has seen the same vector
    sticks = yardsticks(data, net)
    size = float(np.linalg.norm(vector))
    log_omega, spread, shift = _constants(sticks)
    log_total = 0.5 * logsumexp(2.0 * log_omega)
    weights = np.zeros(net.width)
    weights[sticks.positive] = np.sqrt(size) * np.exp(log_omega - log_total)
    diameter, pair = _diameter(spread)
    with np.errstate(divide="ignore"):
        log_slope = float(np.log(diameter) + shift + log_total - 0.5 * np.log(size))
    angle = hypotheses.largest_angle(vector, data.X)
    with np.errstate(over="ignore"):
        slope = float(np.exp(log_slope))
    return Bundle(
        network=Network(weights, weights[:, None] * (vector / size)),
        weights=read_only(weights),
        vector=read_only(np.array(vector)),
        angle_slope=slope,
        log_angle_slope=log_slope,
        pair=None
        if pair is None
        else (int(sticks.positive[pair[0]]), int(sticks.positive[pair[1]])),
        positive=sticks.positive,
        angle=angle,
        proved=angle < np.pi / 4,
        yardsticks=sticks,
    )


def _constants(sticks: Yardsticks) -> tuple[Array, Array, float]:
    r"""``log omega_j`` and ``alpha_perp / omega`` of J+, the latter divided by ``e^shift``."""
    paths, positive = sticks.paths, sticks.positive
    last = paths.last_times()
    directions, log_norms = (part[positive] for part in paths.state(last))
    rate = float(np.linalg.norm(sticks.gamma))
    along = sticks.gamma / rate
    cosine = directions @ along
    log_omega = log_norms + np.log1p(cosine) - rate * last[positive]
    perpendicular = directions - cosine[:, None] * along
    # the direction of alpha is enough: its norm cancels between alpha_perp and omega
    stretch = rate * last[positive] - np.log1p(cosine)
    shift = float(stretch.max())
    return log_omega, perpendicular * np.exp(stretch - shift)[:, None], shift


def _diameter(points: Array) -> tuple[float, tuple[int, int] | None]:
    """Largest distance between two rows and the rows; (0, None) for a single row."""
    if len(points) < 2:
        return 0.0, None
    centred = points - points.mean(axis=0)
    squares = np.einsum("ij,ij->i", centred, centred)
    best, pair = -1.0, (0, 1)
    for start in range(0, len(points), 512):
        block = slice(start, start + 512)
        gaps = squares[block, None] + squares - 2.0 * centred[block] @ centred.T
        k = int(np.argmax(gaps))
        if gaps.flat[k] > best:
            best, pair = float(gaps.flat[k]), (start + k // len(points), k % len(points))
    # the expanded square only finds the pair; its distance is taken from the difference
    return float(np.linalg.norm(points[pair[0]] - points[pair[1]])), pair
