r"""Normalised margins of a classifier.

.. math:: \gamma = \frac{\min_i q_i}{|\theta|^2}, \qquad
          \tilde\gamma = \frac{\ell^{-1}(\sum_i \ell(q_i))}{|\theta|^2}, \qquad q_i = y_i h(x_i)

The network is 2-homogeneous, so both compare directions: :math:`\gamma` does not change with the
scale of :math:`\theta`.
"""

from __future__ import annotations

import numpy as np

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.geometry.normal import NormalForm, check_network, normal_form
from reluflow.losses import Exponential, Logistic, logsumexp
from reluflow.network import Network, activation, row_norms


def margin(data: Dataset, net: Network) -> float:
    r"""Return the normalised margin :math:`\min_i y_i h(x_i) / |\theta|^2`.

    Biases are ordinary coordinates and count in the norm. Labels must be -1 or 1. Negative when
    some point is on the wrong side.

    Parameters
    ----------
    data : Dataset
        Points with labels -1 and 1.
    net : Network
        Of any scale.

    Returns
    -------
    float
        Smallest margin over :math:`|\theta|^2`; negative where a point is on the wrong side.

    Examples
    --------
    >>> data = Dataset([[4.0, 1.0], [-4.0, 1.0]], [1.0, 1.0])
    >>> margin(data, Network([1.0, 0.0], [[0.0, 1.0], [0.0, 0.0]]))
    0.5

    Numerics
    --------
    Rounding of the sums only, at any log scale. O(n m d).
    """
    form = normal_form(check_network(net))
    with np.errstate(over="ignore", under="ignore"):
        return float(relative_margins(data, net, form).min() * np.exp(-form.log_norm_ratio))


def smoothed_margin(data: Dataset, net: Network, loss: Exponential | Logistic) -> float:
    r"""Return the smoothed margin :math:`\ell^{-1}(S)/|\theta|^2` with the **total** loss S.

    For the exponential loss :math:`\tilde\gamma \le \gamma \le \tilde\gamma + \log n/|\theta|^2`.
    Along gradient flow it never decreases once :math:`S < \ell(0)`; with the mean loss in place of
    the total it would do neither (Lyu and Li, ICLR 2020).

    Parameters
    ----------
    data : Dataset
        Points with labels -1 and 1.
    net : Network
        Of any scale.
    loss : Exponential or Logistic
        The loss :math:`\ell` of one point.

    Returns
    -------
    float
        At most the margin.

    Examples
    --------
    >>> data = Dataset([[4.0, 1.0], [-4.0, 1.0]], [1.0, 1.0])
    >>> net = Network([1.0], [[0.0, 1.0]])
    >>> round(smoothed_margin(data, net, Exponential()), 12)  # (1 - log 2) / 2
    0.15342640972

    Numerics
    --------
    Formed as ``gamma`` plus a correction that never needs the loss itself, so margins of 1e7 and
    of 1e300 lose nothing, and one point gives ``gamma`` exactly. -inf when ``|theta|^2`` is below
    the range of floats and n > 1.
    """
    if not isinstance(loss, (Exponential, Logistic)):
        raise InputError(
            f"`loss` is {loss!r}, which has no margin. The smoothed margin needs a loss of "
            "labels -1 and 1. Pass losses.Exponential() or losses.Logistic()."
        )
    form = normal_form(check_network(net))
    relative = relative_margins(data, net, form)
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        factor = float(np.exp(form.log_factor))
        if isinstance(loss, Logistic) and relative.min() * factor < -1e100:
            # the logistic loss is the hinge -q there, and so is its inverse
            return float(np.minimum(relative, 0.0).sum() * np.exp(-form.log_norm_ratio))
        plain = float(relative.min() * np.exp(-form.log_norm_ratio))
        correction = _correction(relative, factor, loss)
        squared_norm = np.exp(form.log_factor + form.log_norm_ratio)
        return plain if correction == 0.0 else float(plain + correction / squared_norm)


def relative_margins(data: Dataset, net: Network, form: NormalForm) -> Array:
    """Margins ``q_i`` (n,) divided by ``exp(form.log_factor)``; labels are checked."""
    Exponential().check_labels(data.y)
    norms = row_norms(net.mantissa.W)
    z = activation(net.preactivations(data.X), net.slope)
    weights = np.divide(form.weights, norms, out=np.zeros_like(norms), where=norms > 0)
    return np.asarray(data.y * (z @ weights))


def _correction(relative: Array, factor: float, loss: Exponential | Logistic) -> float:
    """``loss^{-1}(S) - q_min``, which lies between -log(n) and 0 when all margins are large."""
    if len(relative) == 1:
        return 0.0
    low = float(relative.min())
    # differences are scaled after they are taken: only they decide how much the points share
    excess = np.zeros_like(relative)
    np.multiply(relative - low, factor, out=excess, where=relative > low)
    q_min = low * factor
    if isinstance(loss, Exponential) or q_min > 40.0:
        # beyond a margin of 40 the two losses agree to rounding
        return -float(np.log(np.exp(-excess).sum()))
    log_total = logsumexp(loss.log_pointwise(q_min + excess))
    return loss.inverse(log_total) - q_min
