r"""The tangent kernel: the matrix by which residuals decay while no neuron changes its pattern.

.. math:: K_{ik} = \kappa \sum_j s_{ij} s_{kj}
          \left[ (w_j \cdot x_i)(w_j \cdot x_k) + a_j^2 \, x_i \cdot x_k \right]

with :math:`s_{ij} = 1` where neuron j is active on point i and the slope of the activation (0 for
ReLU) elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array, choice
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.geometry.normal import check_network, normal_form
from reluflow.losses import Loss, Square
from reluflow.network import Network, gates, row_norms


@dataclass(frozen=True, eq=False)
class TangentKernel:
    """The kernel and its spectrum, largest eigenvalue first.

    Attributes
    ----------
    matrix : (n, n) array
        The matrix K; zero where it is below the range of floats.
    eigenvalues : (n,) array
        In decreasing order, none negative.
    eigenvectors : (n, n) array
        Column k belongs to eigenvalue k.
    log_eigenvalues : (n,) array
        Their logarithms, right at any scale; -inf for zeros.
    """

    matrix: Array
    eigenvalues: Array
    eigenvectors: Array
    log_eigenvalues: Array


def tangent_kernel(
    data: Dataset,
    net: Network,
    loss: Loss | None = None,
    *,
    train: str = "both",
    active: Any = None,
) -> TangentKernel:
    r"""Return the tangent kernel of a network on data.

    For the square loss the residuals ``r = y - h`` obey :math:`\dot r = -K r` between events;
    ``kappa`` is that of the loss factor. For the exponential and logistic losses kappa = 1/n and
    :math:`\dot h = K (y \circ |\ell'(q)|)`.

    Parameters
    ----------
    data, net
        Points and network.
    loss : Loss, optional
        ``Square()``, that is kappa = 1/n, if not given.
    train : str
        "both", or "hidden" for fixed output weights (the first term of K drops).
    active : (m, n) array of bool, optional
        Which neuron counts as active on which point. Pass ``run.active(k)`` for a network of a run:
        where a neuron rests on the plane of a point, the sign of their inner product is rounding.
        Without it the signs decide, and exactly zero is inactive. A neuron that slides along a
        plane is not active on its point; that it is held there is not part of K.

    Returns
    -------
    TangentKernel
        The matrix and its eigenvalues.

    Examples
    --------
    >>> data = Dataset([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0])
    >>> tangent_kernel(data, Network([2.0], [[1.0, 1.0]])).matrix
    array([[2.5, 0.5],
           [0.5, 2.5]])

    Numerics
    --------
    Entries to a few ulp of the diagonal; eigenvalues to 1e-15 of the largest, so smaller ones than
    that are rounding. O(n^2 (m + d + n)).
    """
    choice(train, "train", ("both", "hidden"))
    z = check_network(net).preactivations(data.X)
    form = normal_form(net)
    norms = row_norms(net.mantissa.W)
    hidden = np.divide(form.hidden, norms, out=np.zeros_like(norms), where=norms > 0)
    on = z > 0.0 if active is None else checked_pattern(active, net.width, data.n).T
    passed = gates(on, net.slope)
    gated = passed * form.outputs
    unit = data.gram * (gated @ gated.T)
    if train == "both":
        inner = passed * z * hidden
        unit = unit + inner @ inner.T
    kappa = loss.kappa(data.n) if isinstance(loss, Square) else 1.0 / data.n
    unit = kappa * 0.5 * (unit + unit.T)
    values, vectors = np.linalg.eigh(unit)
    values = np.maximum(values[::-1], 0.0)
    log_size = form.log_factor + form.log_norm_ratio
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        size = np.exp(log_size)
        return TangentKernel(
            matrix=np.where(unit == 0.0, 0.0, unit * size),
            eigenvalues=np.where(values == 0.0, 0.0, values * size),
            eigenvectors=vectors[:, ::-1],
            log_eigenvalues=np.log(values) + log_size,
        )


def checked_pattern(active: Any, m: int, n: int) -> NDArray[np.bool_]:
    """The pattern ``active`` (m, n) as it was given, if it is one."""
    found = np.asarray(active)
    if found.shape != (m, n) or found.dtype != np.bool_:
        raise InputError(
            f"`active` has shape {found.shape} and dtype {found.dtype}; {m} neurons and {n} points "
            f"need ({m}, {n}) booleans. Pass run.active(k), a row for each neuron."
        )
    return found
