r"""The limit of the linearised network: lazy training, which moves on the tangent of its start.

For the square loss the flow of :math:`h = h_0 + \Phi (\theta - \theta_0)` ends in the fit nearest
to the start, :math:`\theta_0 + \Phi^+ (y - h_0)`. For the exponential and logistic losses weights
grow without bound where some weights classify all points, and their direction tends to the largest
margin in the features (Soudry et al. 2018),

.. math:: \min |z|^2 \quad \text{subject to} \quad y_i\, \phi_i \cdot z \ge 1 .
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from reluflow.checks import Array, choice, number, real_points
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.geometry.linear_model import Fit, LinearModel
from reluflow.geometry.nonnegative import nnls
from reluflow.limits import hypotheses
from reluflow.losses import Loss, Square, named
from reluflow.network import Network

TOL = 1e-9  # of margins and of the gap between primal and dual value, relative


@dataclass(frozen=True, eq=False)
class KernelLimit:
    """Where training of a linear model ends.

    Attributes
    ----------
    network : Network or None
        The weights in the limit (square loss).
    direction : Network or None
        The direction of the weights in the limit, with margin 1 (classification).
    outputs : (n,) array
        Outputs of the model on the data, with the weights or the direction.
    log_loss : float
        Logarithm of the loss in the limit; -inf where it tends to zero.
    error : float
        Estimate of the rounding error of the weights.
    certified : bool
        Whether the answer passed a test of its own: the gap of the dual problem for a direction;
        for weights, that their error is small beside them.
    model : LinearModel
        Features and start.
    """

    network: Network | None
    direction: Network | None
    outputs: Array
    log_loss: float
    error: float
    certified: bool
    model: LinearModel

    @property
    def interpolates(self) -> bool:
        """Whether the loss tends to zero."""
        return self.log_loss == -np.inf

    def predict(self, X: ArrayLike) -> Array:
        """Outputs of the model at points (n, d); of a direction, without those of the start."""
        points = real_points(X, "X")
        if self.network is not None:
            return self.model.predict(points, self.network)
        assert self.direction is not None
        start = self.model.net
        a, W = start.a + self.direction.a, start.W + self.direction.W
        moved = Network(a, W, slope=start.slope)
        return self.model.predict(points, moved) - self.model.predict(points, start)

    def __repr__(self) -> str:
        what = "weights" if self.network is not None else "direction"
        return f"KernelLimit({what}, log_loss={self.log_loss:.6g}, certified={self.certified})"


def kernel(
    data: Dataset,
    net: Network,
    *,
    loss: Loss | str = "square",
    train: str = "linearised",
    rates: tuple[float, float] = (1.0, 1.0),
) -> KernelLimit:
    """Return the limit of training the linearised network, or its output layer alone.

    Parameters
    ----------
    data, net : Dataset, Network
        Points, and the start at which the network is linearised.
    loss : Square, Exponential, Logistic or their names
        With the square loss the limit is a point, otherwise a direction.
    train : "linearised" or "output"
        Which linear model.
    rates : pair of float
        How fast hidden and output weights learn.

    Returns
    -------
    KernelLimit
        Weights or direction, outputs, loss.

    Examples
    --------
    >>> data = Dataset([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0])
    >>> found = kernel(data, Network([1.0, 1.0], [[1.0, 0.0], [0.0, 1.0]]))
    >>> found.outputs, found.network.a
    (array([1., 2.]), array([1. , 1.5]))

    Numerics
    --------
    By singular values of the features: weights to about eps times the condition of the features.
    Directions by nonnegative least squares, tested by the gap to the dual. O(n^2 m d).
    """
    hypotheses.check_pair(data, net)
    choice(train, "train", ("linearised", "output"))
    chosen = named(loss)
    chosen.check_data(data.X, data.y)
    pair = (number(rates[0], "rates", above=0.0), number(rates[1], "rates", above=0.0))
    model = LinearModel(data, net.flat(), train, pair)
    if not isinstance(chosen, Square):
        return _direction(model)
    fit = Fit(model, chosen.kappa(data.n))
    weights = model.network(fit.displacement(np.inf))
    size = float(np.hypot(np.linalg.norm(weights.a), np.linalg.norm(weights.W)))
    return KernelLimit(
        network=weights.with_bias(data.bias),
        direction=None,
        outputs=fit.outputs(np.inf),
        log_loss=fit.log_loss(np.inf),
        error=fit.error,
        certified=fit.error <= 1e-6 * size,
        model=model,
    )


def _direction(model: LinearModel) -> KernelLimit:
    """The largest margin, as a least-distance problem (Lawson & Hanson 1974, chapter 23)."""
    y, spectrum = model.data.y, model.spectrum
    rows = y[:, None] * spectrum.U * spectrum.sigma  # constraints, in coordinates of the modes
    unit = float(np.abs(rows).max(initial=0.0)) or 1.0
    found = nnls(
        np.vstack([rows.T / unit, np.ones(len(y))]), np.append(np.zeros(rows.shape[1]), 1.0)
    )
    weight = found.x.sum()
    if found.residual <= 1e-7 or weight >= 1.0:
        raise InputError(
            "no weights classify all points with these features, so the weights have no limiting "
            "direction. Use more neurons, or the square loss."
        )
    dual = found.x / (1.0 - weight) / unit**2
    shift = rows.T @ dual
    margins = rows @ shift
    value, bound = float(shift @ shift) / float(margins.min()) ** 2, _bound(rows, dual)
    z = spectrum.V @ (shift / margins.min())
    moved = model.network(z)
    return KernelLimit(
        network=None,
        direction=Network(moved.a - model.net.a, moved.W - model.net.W, slope=moved.slope),
        outputs=y * margins / margins.min(),
        log_loss=-np.inf,
        error=float(np.sqrt(max(value - bound, 0.0))),
        certified=bool(value - bound <= TOL * value),
        model=model,
    )


def _bound(rows: Array, dual: Array) -> float:
    """A lower bound of the squared norm: the dual value, with the best multiple of ``dual``."""
    shift = rows.T @ dual
    return float(dual.sum() ** 2 / (shift @ shift))
