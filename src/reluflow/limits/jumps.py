r"""Saddle to saddle: the limit of training on orthonormal data, jump by jump.

For orthonormal points and a balanced network of scale :math:`\lambda`, let
:math:`L = \log(1/\lambda)`. In accelerated time :math:`\tau = t/L` the flow tends to a jump
process: neuron j, with mask :math:`A_j = \{i : w_j(0) \cdot x_i > 0, \; s_j y_i > 0\}`, has norm
:math:`\lambda^{-r_j}` with

.. math:: r_j(0) = -1, \qquad \dot r_j = \kappa |y_{A_j \cap U}|

while dormant, U being the unfitted points. The first exponent to reach 0 jumps: its neurons (all
those of the same mask) fit :math:`F = A \cap U` with total squared norm
:math:`Y = |y_F|`, :math:`w = Y^{-1/2} \sum_F |y_i| x_i`, :math:`a = \pm Y^{1/2}`, for ever.

Reference: Town, Boursier, Lewis, Englert, Lazic (arXiv 2605.27097), Algorithm 1 and Theorem 2. The
loss is :math:`(\kappa/2) \sum_i (h(x_i) - y_i)^2`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow.checks import Array, number, read_only, real_array
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.limits import hypotheses
from reluflow.limits.race import race
from reluflow.limits.sharp import alignment_constant
from reluflow.limits.staircase import SaddleToSaddle
from reluflow.network import Network


def failures(data: Dataset, net: Network) -> list[str]:
    """Reasons why the jump process does not apply; empty if it does."""
    found = [*hypotheses.not_orthonormal(data, net), *hypotheses.imbalance(net)]
    zero = np.flatnonzero(data.y == 0)
    return [*found, f"label y[{zero[0]}] is zero"] if len(zero) else found


def saddle_to_saddle(data: Dataset, net: Network, *, kappa: float | None = None) -> SaddleToSaddle:
    r"""The jump process of a balanced network on orthonormal data.

    Parameters
    ----------
    data : Dataset
        Orthonormal points (to rounding, or far below the scale) with labels other than 0.
    net : Network
        Balanced network. The common log scale tends to minus infinity; what remains of the
        individual norms is kept, it enters only the split of equal masks and the sharp times. A
        neuron exactly on the plane of a point is not active there.
    kappa : float, optional
        The loss is ``kappa/2 sum (h - y)^2``; 1/n if not given.

    Returns
    -------
    SaddleToSaddle
        Jump times, groups, plateaus and the end.

    Examples
    --------
    >>> data = Dataset(np.eye(3), [3.0, 4.0, 1.0])
    >>> W = np.array([[0.6, 0.8, -0.1], [-0.5, 0.6, 0.7]])
    >>> limit = saddle_to_saddle(data, Network(np.linalg.norm(W, axis=1), W))
    >>> limit.times.round(6), [points.tolist() for points in limit.fitted]
    (array([0.6     , 1.126137]), [[0, 1], [2]])
    >>> limit.network.predict(data.X), limit.squared_norm
    (array([3., 4., 1.]), 12.0)

    Numerics
    --------
    Exact up to rounding. Ties are flagged at 1e-9 of the waiting time. O(m n) to start, O(m) times
    the unfitted points at every jump.
    """
    hypotheses.check_pair(data, net, "saddle_to_saddle")
    hypotheses.refuse("saddle_to_saddle", failures(data, net))
    kappa = 1.0 / data.n if kappa is None else number(kappa, "kappa", above=0.0)
    coordinates = net.directions @ data.X.T
    masks = (coordinates > 0) & (net.signs[:, None] * data.y > 0)
    outside = net.directions - coordinates @ data.X
    rest = np.einsum("ij,ij->i", outside, outside) + (np.minimum(coordinates, 0.0) ** 2).sum(axis=1)
    factors = net.with_scale(hypotheses.common_scale(net)[1]).log_norms
    log_chi = np.full(net.width, np.nan)
    for j in np.flatnonzero(masks.any(axis=1)):
        forces = kappa * net.signs[j] * data.y
        log_chi[j] = factors[j] + alignment_constant(coordinates[j], float(rest[j]), forces)
    return _process(masks, net.signs, data.y, kappa, log_chi, data.X)


def saddle_to_saddle_from_masks(
    masks: ArrayLike, signs: ArrayLike, y: ArrayLike, *, kappa: float | None = None
) -> SaddleToSaddle:
    r"""The jump process from activation masks alone, when the points would not fit in memory.

    Parameters
    ----------
    masks : (m, n) array of bool
        Row j: the points on which neuron j is active at the start, of either label sign. An (n, m)
        array is recognised by its shape when n and m differ.
    signs : (m,) array
        Signs of the output weights, -1 or 1.
    y : (n,) array
        Labels other than 0.
    kappa : float, optional
        The loss is ``kappa/2 sum (h - y)^2``; 1/n if not given.

    Returns
    -------
    SaddleToSaddle
        With ``network`` None; `SaddleToSaddle.saddle` and `SaddleToSaddle.sharp_times` are refused.

    Examples
    --------
    >>> limit = saddle_to_saddle_from_masks([[1, 1, 0], [0, 1, 1]], [1, 1], [3.0, 4.0, 1.0])
    >>> limit.times.round(6), limit.losses.round(6), limit.interpolates
    (array([0.6     , 1.126137]), array([4.333333, 0.166667, 0.      ]), True)

    Numerics
    --------
    As `saddle_to_saddle`. Memory 2 m n bytes beside the input.
    """
    labels = real_array(y, "y", 1)
    s = real_array(signs, "signs", 1)
    if np.any(np.abs(s) != 1.0):
        j = int(np.flatnonzero(np.abs(s) != 1.0)[0])
        raise InputError(f"`signs[{j}]` is {s[j]:g}; signs are -1 or 1. Use np.sign(net.a).")
    if not len(labels) or np.any(labels == 0):
        where = f"y[{np.flatnonzero(labels == 0)[0]}] is 0" if len(labels) else "`y` is empty"
        raise InputError(
            f"{where}. The process is defined for non-zero labels only. Drop such points."
        )
    kappa = 1.0 / len(labels) if kappa is None else number(kappa, "kappa", above=0.0)
    active = _as_masks(masks, len(s), len(labels)) & (s[:, None] * labels > 0)
    return _process(active, s, labels, kappa, None, None)


def _as_masks(masks: Any, m: int, n: int) -> NDArray[np.bool_]:
    raw = np.asarray(masks)
    if raw.shape == (n, m) and n != m:
        raw = raw.T
    if raw.shape != (m, n):
        raise InputError(
            f"`masks` has shape {raw.shape} for {m} signs and {n} labels. Rows and columns cannot "
            "be matched. Give one row a neuron and one column a point."
        )
    if raw.dtype != np.bool_ and not (raw.dtype.kind in "iuf" and np.isin(raw, (0, 1)).all()):
        raise InputError("`masks` has entries other than 0 and 1. Use `preactivations > 0`.")
    return np.asarray(raw, dtype=np.bool_)


def _process(
    masks: NDArray[np.bool_],
    signs: Array,
    y: Array,
    kappa: float,
    log_chi: Array | None,
    X: Array | None,
) -> SaddleToSaddle:
    """Group equal masks (m, n), run the race and read the saddles off it."""
    groups: dict[bytes, list[int]] = {}
    alive = masks.any(axis=1)
    for j in np.flatnonzero(alive):
        groups.setdefault(np.packbits(masks[j]).tobytes(), []).append(int(j))
    members = tuple(np.array(neurons, dtype=np.intp) for neurons in groups.values())
    first = [int(neurons[0]) for neurons in members]
    record = race(np.ascontiguousarray(masks[first].T), y, kappa)
    jumped = set(record.jumpers.tolist())
    frozen = [neurons for g, neurons in enumerate(members) if g not in jumped]
    # from the last plateau backwards, so that small losses are sums and not differences
    energies = np.append(record.norms**2, np.sum(y[record.left] ** 2))
    result = SaddleToSaddle(
        times=read_only(record.times),
        groups=tuple(members[g] for g in record.jumpers),
        fitted=record.fitted,
        losses=read_only(0.5 * kappa * np.cumsum(energies[::-1])[::-1]),
        margins=read_only(record.margins),
        ties=record.ties,
        network=None,
        interpolates=not len(record.left),
        uncovered=record.left,
        norms=read_only(record.norms),
        dead=np.flatnonzero(~alive),
        frozen=np.sort(np.concatenate([np.empty(0, dtype=np.intp), *frozen])),
        members=members,
        signs=signs,
        y=y,
        kappa=kappa,
        log_chi=log_chi,
        race=record,
        X=X,
    )
    return result if X is None else replace(result, network=result.saddle(len(record.times)))
