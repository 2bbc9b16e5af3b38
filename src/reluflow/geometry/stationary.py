r"""Which kind of point training ended in: a fit, a minimum, a saddle, a dead network.

On the piece of the current activation pattern the loss is smooth in
:math:`\theta = (a_j, w_j)`, so a second-order test applies there: a negative eigenvalue of the
Hessian is a way down, and a saddle. Neurons that are exactly zero have no pattern of their own; for
them the pulls of all points are asked.

A neuron that rests on the plane of a point that pushes it back (:math:`a_j c_i < 0`, where training
slides) is held by a part :math:`\vartheta_i` of that push. Off the plane the loss then rises at
first order like :math:`|a_j c_i| (\max(0, s_i) - \vartheta_i s_i)` with :math:`s_i = x_i \cdot v`
for a step :math:`v`, on both sides if :math:`0 < \vartheta_i < 1`; what is left to test is the
Hessian along the plane. With :math:`\vartheta_i` 0 or 1 it rises on one side only, and the other
side is the piece to test. For a leaky network :math:`\vartheta_i` lies between its slope and 1, and
no neuron is dead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.geometry.piece_hessian import PieceHessian, extremes
from reluflow.losses import Loss, Square, named
from reluflow.network import Network, activation, gates

FITTED = 1e-9  # of the labels' size
AT_REST = 1e-6  # gradient, as a share of its largest terms
ON_PLANE = 1e-9  # of |w||x|
HELD = 1e-6  # shares of a push within this of 0 or 1 do not hold from both sides
CURVED = 1e-8  # eigenvalues within this share of the largest are rounding or flat


@dataclass(frozen=True)
class StationaryPoint:
    """What a second-order test says of a network.

    Attributes
    ----------
    kind : str
        ``fit`` (every point is fitted: a global minimum), ``dead`` (no neuron is active on any
        point: nothing moves), ``minimum``, ``saddle``, or ``moving`` (the gradient is
        not zero: training has not ended).
    curvature : float
        Smallest eigenvalue of the Hessian over its largest (nan where it was not formed).
    gradient : float
        Norm of the gradient over what it would be if every point pulled as the worst one does.
    sure : bool
        Whether the test decides. It does not where neurons lie on planes of points that would pull
        them over, or where the search for a negative eigenvalue did not converge.
    text : str
        All this in one sentence.
    """

    kind: str
    curvature: float
    gradient: float
    sure: bool
    text: str


def stationary_point(
    data: Dataset,
    net: Network,
    *,
    loss: Loss | str = "square",
    active: NDArray[np.bool_] | None = None,
) -> StationaryPoint:
    """Decide by a second-order test which kind of point a network is.

    Parameters
    ----------
    data, net : Dataset, Network
        Where the loss is looked at.
    loss : Loss or str
        Of training.
    active : (m, n) array of bool, optional
        The pattern; pass ``run.active(-1)`` where neurons rest on planes.

    Returns
    -------
    StationaryPoint
        The kind, how sure it is, and a sentence.

    Examples
    --------
    >>> data = Dataset([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0])
    >>> stationary_point(data, Network([1.0], [[1.0, -0.5]])).kind
    'minimum'
    >>> stationary_point(data, Network([1.0, 0.0], [[1.0, 0.0], [0.0, 0.0]])).kind
    'saddle'
    >>> stationary_point(data, Network([1.0], [[-1.0, -1.0]])).kind
    'dead'

    Numerics
    --------
    The extreme eigenvalues are those of `hessian_spectrum`: dense up to 1500 parameters, O((md)^3),
    by Lanczos beyond. Those within 1e-8 of the largest count as zero.
    """
    chosen = named(loss)
    a, W, slope = net.a, net.W, net.slope
    z = W @ data.X.T
    on = z > 0.0 if active is None else np.asarray(active, dtype=bool)
    h = a @ (gates(on, slope) * z)
    c = chosen.forces(h, data.y)
    size = float(np.abs(data.y).max())
    if isinstance(chosen, Square) and np.abs(data.y - h).max() <= FITTED * max(size, 1e-300):
        return StationaryPoint("fit", np.nan, 0.0, True, "every point is fitted: a global minimum")
    left = np.abs(c) > FITTED * np.abs(c).max()
    if not (on.any() or slope) and not _zero_neuron(data, net, c):
        words = "no neuron is active on any point: the network is dead"
        return StationaryPoint("dead", np.nan, 0.0, True, words)
    near = _on_planes(data, W, z, left)
    rests = near & np.less(np.outer(a, c), 0.0)
    pull, between, on = _pulls(data.X, on & ~rests, rests, c, slope)
    gradient = _gradient(data.X, a, z, gates(on | between, slope), c, pull)
    if gradient > AT_REST:
        words = f"the gradient is not zero ({gradient:.1g} of its largest): training has not ended"
        return StationaryPoint("moving", np.nan, gradient, True, words)
    if _zero_neuron(data, net, c):
        words = "a neuron at zero could grow and lower the loss: a saddle"
        return StationaryPoint("saddle", np.nan, gradient, True, words)
    dead = np.logical_not(on.any(axis=1, keepdims=True) | (slope > 0.0))
    if _way_across(near & ~dead, on, a, c):
        words = "a neuron on the plane of a point would lower the loss beyond it: a saddle"
        return StationaryPoint("saddle", np.nan, gradient, True, words)
    bend = chosen.curvatures(h, data.y)
    piece = _Piece(data.X, a, z, gates(on, slope), ~dead[:, 0], pull, bend)
    curvature, whole = _curvature(piece, between)
    if curvature < -CURVED and not (between == rests).all():  # is there a way along the planes?
        along, _ = _curvature(piece, rests)
        between = rests if along < -CURVED else between
    return _judged(
        curvature,
        gradient,
        whole,
        one_sided=int((rests & ~between & ~dead).sum()),
        open_pairs=int((near & ~rests & ~dead).sum()),
        revivable=int((near & ~rests & dead).any(axis=1).sum()),
    )


def _judged(
    curvature: float,
    gradient: float,
    whole: bool,
    *,
    one_sided: int,
    open_pairs: int,
    revivable: int,
) -> StationaryPoint:
    if curvature < -CURVED:
        words = f"the Hessian has an eigenvalue of {curvature:.2g} of its largest: a saddle"
        if one_sided:
            words += ", unless a kink of the loss closes that way"
        return StationaryPoint("saddle", curvature, gradient, not one_sided, words)
    words = "no direction of second order goes down: a local minimum"
    if open_pairs:
        words += (
            f" of its piece, but {open_pairs} pairs of a neuron and a point that is not fitted lie "
            "on a kink of the loss, which the test does not look across"
        )
    if revivable:
        words += (
            f"; {revivable} dead neuron{'s' if revivable > 1 else ''} on the plane of a point "
            "would lower the loss if pushed over it, and nothing pushes"
        )
    if not whole:
        words += ", as far as a search that did not converge tells"
    sure = whole and not open_pairs and not revivable
    return StationaryPoint("minimum", curvature, gradient, sure, words)


def _pulls(
    X: Array, on: NDArray[np.bool_], rests: NDArray[np.bool_], c: Array, slope: float = 0.0
) -> tuple[Array, NDArray[np.bool_], NDArray[np.bool_]]:
    """The least pull on each neuron that parts of the resting points can leave, (m, d).

    Also which pairs hold their neuron from both sides, and the pattern of the side that is left to
    the others.
    """
    from scipy.optimize import lsq_linear

    passed = np.where(rests, 0.0, gates(on, slope))
    pull, between, pattern = (passed * c) @ X, np.zeros_like(rests), on.copy()
    for j in np.flatnonzero(rests.any(axis=1) & (on.any(axis=1) | (slope > 0.0))):
        points = np.flatnonzero(rests[j])
        pushes = (c[points, None] * X[points]).T
        share = lsq_linear(pushes, -pull[j], bounds=(slope, 1.0), method="bvls").x
        pull[j] += pushes @ share
        between[j, points] = (share > slope + HELD) & (share < 1.0 - HELD)
        pattern[j, points] = share >= 1.0 - HELD
    return pull, between, pattern


def _gradient(X: Array, a: Array, z: Array, on: Array, c: Array, pull: Array) -> float:
    """Norm of the gradient over what it would be if every point pulled as the worst one does.

    ``on`` (m, n) is 1 where a neuron is active and the slope of the activation elsewhere.
    """
    found = np.hypot(np.linalg.norm(a[:, None] * pull), np.linalg.norm((on * z) @ c))
    reach = np.abs(a) * (on @ np.linalg.norm(X, axis=1))
    terms = np.abs(c).max() * np.hypot(
        np.linalg.norm(reach), np.linalg.norm((on * np.abs(z)).sum(axis=1))
    )
    return float(found / terms) if terms > 0.0 else 0.0


def _zero_neuron(data: Dataset, net: Network, c: Array) -> bool:
    """Whether a neuron is zero and some direction would pull it."""
    if not ((net.a == 0.0) & ~net.W.any(axis=1)).any():
        return False
    trial = np.concatenate([data.X, -data.X, [data.X.T @ c, -data.X.T @ c]])
    pulls = activation(trial @ data.X.T, net.slope)
    size = np.abs(pulls) @ np.abs(c)
    return bool(np.any(np.abs(pulls @ c) > 1e-9 * np.maximum(size, 1e-300)))


def _on_planes(data: Dataset, W: Array, z: Array, left: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which neuron rests on the plane of which point that still pulls, (m, n)."""
    reach = np.outer(np.linalg.norm(W, axis=1), np.linalg.norm(data.X, axis=1))
    return np.asarray((np.abs(z) <= ON_PLANE * reach) & (reach > 0.0) & left)


def _way_across(near: NDArray[np.bool_], on: NDArray[np.bool_], a: Array, c: Array) -> bool:
    """Whether a neuron on one such plane, not active there, would be pulled further beyond it.

    Dead neurons are left out of ``near``: they often stop on the plane they died at, and nothing
    moves them.
    """
    alone = near & (near.sum(axis=1) == 1)[:, None]
    return bool((alone & ~on & (a[:, None] * c > 0.0)).any())


class _Piece(NamedTuple):
    """What the Hessian needs; ``on`` as in `PieceHessian`, ``live`` (m,) are the neurons in it."""

    X: Array
    a: Array
    z: Array
    on: Array
    live: NDArray[np.bool_]
    pull: Array
    bend: Array


def _curvature(piece: _Piece, between: NDArray[np.bool_]) -> tuple[float, bool]:
    """Smallest eigenvalue of the Hessian over its largest, and whether none can be smaller.

    Steps across the planes on which neurons rest count as nothing.
    """
    X, a, z, on, alive, pull, bend = piece
    live = np.flatnonzero(alive)
    held = {
        place: np.linalg.qr(X[between[j]].T)[0] for place, j in enumerate(live) if between[j].any()
    }
    hessian = PieceHessian(X, a[live], z[live], on[live], pull[live], bend, held)
    found = extremes(hessian, 1)
    low, high = np.nan_to_num([found.smallest[0], found.largest[0]])
    return float(low / max(abs(low), abs(high), 1e-300)), found.is_complete
