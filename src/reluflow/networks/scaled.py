r"""Initialisations with a fixed ratio of output to hidden weights in every neuron.

.. math:: w_j = \lambda z_j, \qquad a_j = s_j\, q\, |w_j|, \qquad s_j = \pm 1, \quad
    \lambda = e^{\text{log\_scale}}

Gradient flow conserves :math:`a_j^2 - |w_j|^2`: zero for `balanced` (q = 1), positive for
`dominated` (q > 1). In both the sign of ``a_j`` never changes; below 1 (`unbalanced`) it may.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from reluflow.checks import Array, choice, generator, number, whole
from reluflow.network import Network, row_norms
from reluflow.networks.signs import draw_signs

Seed = int | np.random.Generator


def balanced(
    d: int,
    width: int,
    *,
    log_scale: ArrayLike = 0.0,
    directions: str = "gaussian",
    signs: str | ArrayLike = "random",
    slope: float = 0.0,
    seed: Seed,
) -> Network:
    r"""Balanced neurons, :math:`|a_j| = |w_j|`.

    Parameters
    ----------
    d, width : int
        Number of inputs and of neurons.
    log_scale : float or (width,) array
        Logarithm of the scale, of any size; it is not part of the draws.
    directions : {"gaussian", "sphere"}
        ``z_j`` is normal with covariance ``I/(d width)``, or uniform on the unit sphere.
    signs : {"random", "positive"} or (width,) array of -1 and 1
        Signs of the output weights.
    slope : float
        Slope of the activation below zero, as in `reluflow.Network`.
    seed : int or Generator
        Order of draws: ``z`` row by row, then the signs if random. One seed gives the same ``z``
        and ``s`` at every scale.

    Returns
    -------
    Network
        With :math:`|a_j| = |w_j|`.

    Examples
    --------
    >>> net = balanced(3, 5, log_scale=-1e6, seed=0)
    >>> net.balance
    array([0., 0., 0., 0., 0.])

    Numerics
    --------
    ``Network.balance`` is exactly zero: output weights are the computed norms, bit for bit.
    """
    weights = _scaled(d, width, 1.0, directions, signs, seed)
    return Network(*weights, log_scale, slope=slope)


def dominated(
    d: int,
    width: int,
    *,
    ratio: float = 2.0,
    log_scale: ArrayLike = 0.0,
    directions: str = "gaussian",
    signs: str | ArrayLike = "random",
    slope: float = 0.0,
    seed: Seed,
) -> Network:
    r"""Neurons whose output weights dominate, :math:`|a_j| = q |w_j|` with q = ``ratio`` > 1.

    Parameters
    ----------
    ratio : float
        Above 1; output weights then never change sign under gradient flow.
    d, width, log_scale, directions, signs, slope, seed
        As for `balanced`; the same seed gives the same hidden weights and signs.

    Returns
    -------
    Network
        With :math:`|a_j| = q |w_j|`.

    Examples
    --------
    >>> bool((dominated(3, 5, seed=0).balance > 0).all())
    True
    """
    factor = number(ratio, "ratio", above=1.0)
    weights = _scaled(d, width, factor, directions, signs, seed)
    return Network(*weights, log_scale, slope=slope)


def unbalanced(
    d: int,
    width: int,
    *,
    ratio: float,
    log_scale: ArrayLike = 0.0,
    directions: str = "gaussian",
    signs: str | ArrayLike = "random",
    slope: float = 0.0,
    seed: Seed,
) -> Network:
    r"""Neurons with :math:`|a_j| = q |w_j|` for any q = ``ratio`` > 0.

    Parameters
    ----------
    ratio : float
        Positive. Below 1 the hidden weights dominate and output weights may change sign.
    d, width, log_scale, directions, signs, slope, seed
        As for `balanced`; the same seed gives the same hidden weights and signs.

    Returns
    -------
    Network
        With :math:`|a_j| = q |w_j|`.

    Examples
    --------
    >>> bool((unbalanced(3, 5, ratio=0.1, seed=0).balance < 0).all())
    True
    """
    factor = number(ratio, "ratio", above=0.0)
    weights = _scaled(d, width, factor, directions, signs, seed)
    return Network(*weights, log_scale, slope=slope)


def _scaled(
    d: int,
    width: int,
    ratio: float,
    directions: str,
    signs: str | ArrayLike,
    seed: Seed,
) -> tuple[Array, Array]:
    """Output weights and ``z``, before scaling."""
    dim, m = whole(d, "d"), whole(width, "width")
    kind = choice(directions, "directions", ("gaussian", "sphere"))
    rng = generator(seed)
    z: Array = rng.standard_normal((m, dim))
    z = z / np.sqrt(dim * m) if kind == "gaussian" else z / row_norms(z)[:, None]
    s = draw_signs(signs, m, rng)
    # the norms of z as stored, also for unit rows, where they may differ from 1 by an ulp
    return s * (ratio * row_norms(z)), z
