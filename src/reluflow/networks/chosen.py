r"""Networks with chosen pre-activations on the data.

The initialisation of Lai, Wang, Tao and Muthukumar (arXiv 2603.04895) for high-dimensional
regression with output weights fixed to +-1:

.. math:: w_k = X^T (X X^T)^{-1} (\alpha_k \odot \varepsilon_k)
    \quad\Rightarrow\quad X w_k = \alpha_k \odot \varepsilon_k
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from reluflow.checks import Array, real_array
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.network import Network, row_norms
from reluflow.networks.signs import given_signs

# the Gram matrix of normalised points has a condition number above 1e16: singular in floats
_SINGULAR = 1e-8
_INACCURATE = 1e-6


def by_preactivations(
    data: Dataset,
    eps: ArrayLike,
    signs: ArrayLike,
    *,
    assignment: ArrayLike | None = None,
    slope: float = 0.0,
) -> Network:
    r"""Return the smallest hidden weights with the pre-activations asked for.

    Parameters
    ----------
    data : Dataset
        With linearly independent points (so d >= n).
    eps : float, (n,) or (m, n) array
        Pre-activations: one for all, one a point, or one a neuron and point. Any sign, but positive
        if an assignment is given.
    signs : (m,) array of -1 and 1
        Output weights; they give the width.
    assignment : (n,) array of ints, optional
        The neuron that is to fit each point, of the sign of its label. Pre-activations then get the
        factor :math:`\alpha_{ki} = -1` where neuron k has the sign of label i but is not assigned
        to it, and +1 elsewhere: every point starts active on its own neuron, inactive on the others
        of that sign, active on those of the other sign.
    slope : float
        Slope of the activation below zero, as in `reluflow.Network`.

    Returns
    -------
    Network
        With the asked pre-activations on every point.

    Examples
    --------
    >>> data = Dataset([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]], [1.0, 2.0])
    >>> net = by_preactivations(data, 0.1, [1, 1], assignment=[0, 1])
    >>> (data.X @ net.W.T).round(12)
    array([[ 0.1, -0.1],
           [-0.1,  0.1]])

    Numerics
    --------
    A QR factorisation of the normalised points and one correction step, so that errors grow with
    the condition number of the points, not its square: 1e-10 relative up to 1e5, singular above
    1e8. Pre-activations that come out wrong by 1e-6 (points of very different norms) are refused.
    O(n^2 (d + m)) time.
    """
    if not isinstance(data, Dataset):
        raise InputError(f"`data` is a {type(data).__name__}, not a Dataset. Build one first.")
    s = given_signs(signs)
    target = _targets(eps, len(s), data.n)
    if assignment is not None:
        if not (target > 0.0).all():
            raise InputError(
                f"`eps` holds {target.min():g}; with an assignment it must be positive. The signs "
                "of pre-activations follow from the assignment. Pass absolute values."
            )
        target = target * _factors(assignment, s, data.y)
    return Network(s, _least_norm(data, target), slope=slope)


def _targets(eps: ArrayLike, m: int, n: int) -> Array:
    try:
        ndim = min(np.ndim(eps), 2)
    except ValueError:  # ragged lists; `real_array` says so
        ndim = 2
    values = real_array(eps, "eps", ndim)
    if values.shape not in ((), (n,), (m, n)):
        raise InputError(
            f"`eps` has shape {values.shape} for {m} neurons and {n} points. Give a number, one a "
            f"point ({n},) or one a neuron and point ({m}, {n})."
        )
    return np.broadcast_to(values, (m, n))


def _factors(assignment: ArrayLike, s: Array, y: Array) -> Array:
    """The signs alpha (m, n) of the initialisation with an assignment."""
    tau = real_array(assignment, "assignment", 1)
    m, n = len(s), len(y)
    if len(tau) != n:
        raise InputError(f"`assignment` has {len(tau)} entries for {n} points. Give one a point.")
    bad = np.flatnonzero((tau != np.floor(tau)) | (tau < 0) | (tau >= m))
    if len(bad):
        raise InputError(
            f"`assignment[{bad[0]}]` is {tau[bad[0]]:g}; neurons are 0 to {m - 1}. Change it."
        )
    owner = tau.astype(int)
    bad = np.flatnonzero(s[owner] != np.sign(y))
    if len(bad):
        i = int(bad[0])
        raise InputError(
            f"point {i} with label {y[i]:g} is assigned to neuron {owner[i]} of sign "
            f"{s[owner[i]]:+g}. That neuron can never fit it. Assign it to one of its own sign."
        )
    same_sign = s[:, None] == np.sign(y)
    own = np.arange(m)[:, None] == owner
    return np.where(same_sign & ~own, -1.0, 1.0)


def _least_norm(data: Dataset, target: Array) -> Array:
    """The rows of least norm with ``X w_k = target_k``."""
    if data.d < data.n:
        raise InputError(
            f"the data have {data.n} points in {data.d} dimensions. Their pre-activations cannot "
            "be chosen freely. Use d >= n."
        )
    norms = row_norms(data.X)
    X = data.X / norms[:, None]
    q, r = np.linalg.qr(X.T)
    sizes = np.linalg.svd(r, compute_uv=False)
    if sizes[-1] <= _SINGULAR * sizes[0]:
        raise InputError(
            f"the points are linearly dependent (smallest singular value {sizes[-1]:.2g} of "
            f"{sizes[0]:.2g} after normalising), so their Gram matrix is singular. Pre-activations "
            "cannot be chosen freely. Drop repeated or dependent points."
        )
    goal = (target / norms).T
    W = q @ np.linalg.solve(r.T, goal)
    W += q @ np.linalg.solve(r.T, goal - X @ W)
    miss = np.abs((data.X @ W).T - target).max(axis=1)
    if (miss > _INACCURATE * np.abs(target).max(axis=1)).any():
        raise InputError(
            f"the norms of the points range from {norms.min():.3g} to {norms.max():.3g}: the "
            f"pre-activations of neuron {int(miss.argmax())} would be wrong by {miss.max():.2g}. "
            "Rescale the points to similar norms."
        )
    return np.asarray(W.T)
