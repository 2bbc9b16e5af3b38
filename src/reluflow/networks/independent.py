"""Initialisations with independent entries in both layers."""

from __future__ import annotations

import numpy as np

from reluflow.checks import generator, number, whole
from reluflow.network import Network

Seed = int | np.random.Generator


def gaussian(
    d: int,
    width: int,
    *,
    sigma_hidden: float,
    sigma_output: float,
    slope: float = 0.0,
    seed: Seed,
) -> Network:
    r"""Normal weights, :math:`W_{jk} \sim N(0, \sigma_h^2)` and :math:`a_j \sim N(0, \sigma_o^2)`.

    With ``d = 2`` and inputs ``(x, 1)`` this is Assumption 2.1 of Safran, Vardi and Lee (2022).

    Parameters
    ----------
    d, width : int
        Number of inputs and of neurons.
    sigma_hidden, sigma_output : float
        Standard deviations; the second may be 0.
    slope : float
        Slope of the activation below zero, as in `reluflow.Network`.
    seed : int or Generator
        Order of draws: hidden weights row by row, then output weights. The draws do not depend on
        the deviations.

    Returns
    -------
    Network
        With independent normal weights.

    Examples
    --------
    >>> gaussian(2, 3, sigma_hidden=1.0, sigma_output=0.1, seed=0).W.shape
    (3, 2)
    """
    dim, m = whole(d, "d"), whole(width, "width")
    hidden = number(sigma_hidden, "sigma_hidden", above=0.0)
    output = number(sigma_output, "sigma_output", at_least=0.0)
    rng = generator(seed)
    W = hidden * rng.standard_normal((m, dim))
    return Network(output * rng.standard_normal(m), W, slope=slope)


def fan_in_uniform(d: int, width: int, *, slope: float = 0.0, seed: Seed) -> Network:
    r"""Uniform weights, :math:`|W_{jk}| \le 1/\sqrt d` and :math:`|a_j| \le 1/\sqrt{m}`.

    The default of common deep-learning libraries for linear layers; the expected squared norm is
    ``(m + 1)/3``.

    Parameters
    ----------
    d, width : int
        Number of inputs and of neurons (m).
    slope : float
        Slope of the activation below zero, as in `reluflow.Network`.
    seed : int or Generator
        Order of draws: hidden weights row by row, then output weights.

    Returns
    -------
    Network
        Drawn as PyTorch draws its layers.

    Examples
    --------
    >>> net = fan_in_uniform(4, 9, seed=0)
    >>> bool(np.abs(net.W).max() <= 0.5), bool(np.abs(net.a).max() <= 1 / 3)
    (True, True)
    """
    dim, m = whole(d, "d"), whole(width, "width")
    rng = generator(seed)
    W = rng.uniform(-1.0, 1.0, (m, dim)) / np.sqrt(dim)
    return Network(rng.uniform(-1.0, 1.0, m) / np.sqrt(m), W, slope=slope)
