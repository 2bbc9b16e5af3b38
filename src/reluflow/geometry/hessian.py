r"""Sharpness: extreme eigenvalues of the Hessian where the network stands.

The loss is smooth on the piece of the current activation pattern and kinked beyond it, so its
Hessian there describes steps that cross no plane :math:`w_j \cdot x_i = 0`. How far the nearest one
is belongs to the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reluflow.checks import Array, whole
from reluflow.dataset import Dataset
from reluflow.geometry.kernel import checked_pattern
from reluflow.geometry.normal import check_network
from reluflow.geometry.piece_hessian import PieceHessian, extremes
from reluflow.losses import Loss, named
from reluflow.network import Network, gates, row_norms

NEAR = 1e-6


@dataclass(frozen=True, eq=False)
class HessianSpectrum:
    r"""Extreme eigenvalues on a piece, and how far the piece reaches.

    Attributes
    ----------
    smallest, largest : (k,) arrays
        Eigenvalues from the lower end, increasing, and from the upper end, decreasing.
    kink_distance : float
        Smallest :math:`|w_j \cdot x_i|/(|w_j||x_i|)`: how much of itself the hidden weight nearest
        to a plane has to move to reach it; 0 if some hidden weights are zero.
    kink : (int, int)
        Neuron and point of that pair.
    is_near_kink : bool
        Whether that is below 1e-6: the eigenvalues then hold on one side of a plane, and say little
        about steps of any size.
    error : float
        Each value is within this of an eigenvalue.
    is_complete : bool
        Whether no more extreme ones were left out; False where Lanczos did not converge (missing
        values are nan).
    method : str
        "dense" or "lanczos".
    """

    smallest: Array
    largest: Array
    kink_distance: float
    kink: tuple[int, int]
    is_near_kink: bool
    error: float
    is_complete: bool
    method: str

    @property
    def sharpness(self) -> float:
        """The largest eigenvalue."""
        return float(self.largest[0])

    @property
    def largest_stable_step(self) -> float:
        r"""Gradient descent with a larger step than :math:`2/\lambda_{\max}` leaves a minimum.

        Infinite where no eigenvalue is positive.
        """
        return 2.0 / self.sharpness if self.sharpness > 0.0 else np.inf


def hessian_spectrum(
    data: Dataset,
    net: Network,
    k: int = 1,
    *,
    loss: Loss | str = "square",
    active: Any = None,
) -> HessianSpectrum:
    r"""Return the k smallest and k largest eigenvalues of the Hessian of the loss.

    .. math:: \nabla^2 L = \sum_i b_i \nabla h_i \nabla h_i^T - \sum_i c_i \nabla^2 h_i,
              \qquad c_i = -\frac{dL}{dh_i},\; b_i = \frac{d^2L}{dh_i^2}

    Parameters
    ----------
    data, net : Dataset, Network
        Where the loss is looked at.
    k : int
        How many from either end (all of them if there are fewer).
    loss : Loss or str
        Of training; its factor matters.
    active : (m, n) array of bool, optional
        The pattern; pass ``run.active(k)`` where neurons rest on planes. Without it signs decide,
        and exactly zero is inactive.

    Returns
    -------
    HessianSpectrum
        ``.smallest .largest``, the distance to the nearest kink, and the error.

    Examples
    --------
    >>> data = Dataset([[1.0, 0.0], [0.0, 1.0]], [2.0, -1.0])
    >>> found = hessian_spectrum(data, Network([1.0], [[2.0, -1.0]]), 2)  # fits point 0
    >>> found.largest, found.smallest  # (a^2 + |w . x|^2) / n
    (array([2.5, 0. ]), array([0., 0.]))
    >>> found.largest_stable_step, round(found.kink_distance, 6), found.kink
    (0.8, 0.447214, (0, 1))

    Notes
    -----
    At a fit the non-zero eigenvalues are those of `tangent_kernel`. Gradient descent with step lr
    stays at a minimum only if the largest is at most 2 / lr, and large steps drive it there (Cohen
    et al., ICLR 2021). A negative one is a way down: a saddle (`stationary_point`). Weight decay
    adds its factor to every eigenvalue.

    Numerics
    --------
    Exact on the piece. Up to 1500 parameters the matrix is decomposed, and beyond, while
    N r^2 <= 2e9 (N parameters, r = n + 2 m), on a space of dimension r that holds its range: to
    1e-15 of the largest eigenvalue. For larger ones Lanczos with products of cost O(m n d) finds
    the ends to 1e-10 of it, or says that it did not. Eigenvalues that are zero for lack of rank are
    counted, not computed. Weights below the range of floats count as zero, their pattern does not.
    """
    count = whole(k, "k")
    chosen = named(loss)
    chosen.check_labels(data.y)
    unscaled = check_network(net).preactivations(data.X).T
    active = unscaled > 0.0 if active is None else checked_pattern(active, net.width, data.n)
    on = gates(active, net.slope)
    outputs = net.predict(data.X)
    hessian = PieceHessian(
        X=data.X,
        a=net.a,
        z=net.W @ data.X.T,
        on=on,
        pull=(on * chosen.forces(outputs, data.y)) @ data.X,
        bend=chosen.curvatures(outputs, data.y),
    )
    found = extremes(hessian, min(count, hessian.size))
    reach = np.outer(row_norms(net.mantissa.W), row_norms(data.X))
    ratios = np.divide(np.abs(unscaled), reach, out=np.zeros_like(reach), where=reach > 0.0)
    neuron, point = np.unravel_index(int(ratios.argmin()), ratios.shape)
    distance = float(ratios[neuron, point])
    return HessianSpectrum(
        smallest=found.smallest,
        largest=found.largest,
        kink_distance=distance,
        kink=(int(neuron), int(point)),
        is_near_kink=distance <= NEAR,
        error=found.error,
        is_complete=found.is_complete,
        method=found.method,
    )
