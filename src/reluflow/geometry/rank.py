r"""How many directions the hidden weights use: singular values, nuclear norm, effective rank."""

from __future__ import annotations

import numpy as np

from reluflow.checks import Array, choice, number
from reluflow.geometry.normal import check_network, rescaled
from reluflow.losses import logsumexp
from reluflow.network import Network, row_norms


def log_singular_values(net: Network) -> Array:
    r"""Return the logarithms of the singular values of the hidden matrix, largest first.

    The rows of the matrix are :math:`w_j = e^{s_j} W_j`, scales included.

    Returns
    -------
    (min(m, d),) array
        -inf for zeros.

    Examples
    --------
    >>> log_singular_values(Network([1.0, 1.0], [[3.0, 0.0], [0.0, 1.0]], log_scale=-1e6))
    array([ -999998.90138771, -1000000.        ])

    Numerics
    --------
    Error at most a few ulp of the largest singular value: smaller ones than 1e-15 of it are
    rounding. Any log scale. O(m d min(m, d)).
    """
    norms = row_norms(check_network(net).mantissa.W)
    sizes, reference = rescaled(norms, net.log_scale)
    values = np.linalg.svd(net.directions * sizes[:, None], compute_uv=False)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(values) + reference)


def singular_values(net: Network) -> Array:
    """Return the singular values of the hidden matrix; 0 below and inf above the float range.

    Examples
    --------
    >>> singular_values(Network([1.0, 1.0], [[3.0, 0.0], [0.0, 1.0]])).round(12)
    array([3., 1.])
    """
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.exp(log_singular_values(net)))


def log_nuclear_norm(net: Network) -> float:
    """Return the logarithm of the sum of the singular values of the hidden matrix."""
    return logsumexp(log_singular_values(net))


def nuclear_norm(net: Network) -> float:
    r"""Return the nuclear norm :math:`\sum_k \sigma_k` of the hidden matrix, scales included.

    On correlated data it tends to 1 as the initial scale vanishes (Chistikov, Englert, Lazic,
    NeurIPS 2023).

    Examples
    --------
    >>> round(nuclear_norm(Network([1.0, 1.0], [[3.0, 0.0], [0.0, 4.0]])), 12)
    7.0
    """
    with np.errstate(over="ignore", under="ignore"):
        return float(np.exp(log_nuclear_norm(net)))


def effective_rank(net: Network, kind: str = "entropy", *, tol: float = 1e-10) -> float:
    r"""Return how many directions the hidden weights use.

    With :math:`p_k = \sigma_k / \sum_l \sigma_l`:

    * ``"entropy"``: :math:`\exp(-\sum_k p_k \log p_k)` (Roy and Vetterli, EUSIPCO 2007);
    * ``"stable"``: :math:`\sum_k \sigma_k^2 / \sigma_1^2`;
    * ``"numerical"``: the number of :math:`\sigma_k > \mathrm{tol} \, \sigma_1`.

    Parameters
    ----------
    net : Network
        The network.
    kind : str
        One of the three.
    tol : float
        For ``"numerical"`` only.

    Returns
    -------
    float
        Between 1 and min(m, d); 0 when all hidden weights are zero.

    Examples
    --------
    >>> round(effective_rank(Network([1.0, 1.0], [[2.0, 0.0], [0.0, 2.0]], log_scale=-1e6)), 12)
    2.0

    Numerics
    --------
    Computed from ratios of singular values, so the scale never matters. Error 1e-14 relative.
    """
    choice(kind, "kind", ("entropy", "stable", "numerical"))
    number(tol, "tol", at_least=0.0, below=1.0)
    logs = log_singular_values(net)
    if np.isneginf(logs[0]):
        return 0.0
    ratios = np.exp(logs - logs[0])
    if kind == "stable":
        return float(ratios @ ratios)
    if kind == "numerical":
        return float(np.count_nonzero(ratios > tol))
    p = ratios[ratios > 0] / ratios.sum()
    return float(np.exp(-(p @ np.log(p))))
