r"""Angles between neurons far below rounding, from conserved products.

While two neurons share an activation row they move by the same boosts, so the Minkowski product
:math:`C_{jk} = a_j a_k - w_j \cdot w_k` stays constant. Taken when the later of the two joined the
row, where the angle is still of order one, it gives the angle ever after:

.. math:: 1 - \cos(w_j, w_k) = \frac{C_{jk} + |w_j||w_k| - a_j a_k}{|w_j| |w_k|},

with :math:`|w_j||w_k| - a_j a_k` from the conserved balances. Everything is kept in logs. With
weight decay :math:`\mu` it is the weights times :math:`e^{\mu t}` that keep products and balances:
those of an earlier time s have faded by :math:`e^{-2\mu (t - s)}`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow.replay import replay, sample
from reluflow.errors import InputError
from reluflow.geometry import pairwise_angles
from reluflow.network import Network
from reluflow.trajectory import Trajectory

# above this angle the directions themselves are accurate enough
DIRECT = 1e-6
# so many networks are held at once
SWEEP = 64


def log_max_angle(run: Trajectory, t: float, subset: Sequence[int] | None) -> float:
    """Logarithm of the largest angle between two neurons of ``subset`` at time ``t``.

    Numerics
    --------
    Relative error of the angle about ``rtol`` of the run, at any scale. Costs a sweep over the run,
    which stops where a neuron of a small angle last changed its row.
    """
    if run.engine != "flow":
        raise InputError(
            f"log_max_angle needs a run of rf.flow, not of {run.engine}. Only the flow conserves "
            "the products it uses; take rf.geometry.max_angle for descent."
        )
    chosen = np.arange(run.net.width) if subset is None else np.asarray(subset, dtype=np.int64)
    net = replay(run, t=t)
    chosen = chosen[np.isfinite(net.log_norms[chosen])]
    if len(chosen) < 2:
        return -np.inf
    angles = pairwise_angles(net, chosen.tolist())
    above = np.triu(np.ones_like(angles, dtype=bool), 1)
    largest = float(np.nanmax(angles[above]))
    if largest >= DIRECT:
        return float(np.log(largest))
    return _from_products(run, net, t, chosen)


def _from_products(run: Trajectory, net: Network, t: float, chosen: NDArray[np.int64]) -> float:
    """The same when every angle is small: the bundle shares one row since its last change."""
    changes = np.isin(run.events["kind"], ("branch", "flip"), invert=True)
    past = run.events[changes & (run.events["t"] <= t) & np.isin(run.events["neuron"], chosen)]
    joined = {int(j): -np.inf for j in chosen}
    for event in past:
        joined[int(event["neuron"])] = float(event["log_t"])
    order = sorted(joined, key=joined.__getitem__)
    best, end = -np.inf, min(t, float(run.t[-1]))
    for first in range(1, len(order), SWEEP):
        some = order[first : first + SWEEP]
        times, index = np.unique([joined[j] for j in some], return_inverse=True)
        swept = sample(run, times, None)
        for k, j in enumerate(some):
            # without an event its product is that of the start, which need not be recorded
            there = run.net if np.isinf(joined[j]) else swept.network(int(index[k]))
            others = np.array(order[: first + k])
            faded = -2.0 * run.decay * np.array([end - np.exp(joined[j]), end])
            best = max(best, float(_log_angles(run.net, there, net, j, others, faded).max()))
    return best


def _log_angles(
    start: Network, there: Network, now: Network, j: int, others: Array, faded: Array
) -> Array:
    """Log-angles of neuron j with ``others`` now, from products taken in the network ``there``.

    ``faded``: logarithms of what decay has left since of products, and of balances of the start.
    """
    unit = (
        there.mantissa.a[j] * there.mantissa.a[others]
        - there.mantissa.W[others] @ there.mantissa.W[j]
    )
    now_logs = now.log_norms[j] + now.log_norms[others]
    terms = [
        (unit, there.log_scale[j] + there.log_scale[others] - now_logs + faded[0]),
        _imbalance(start, now, np.full(len(others), j), faded[1]),
        _imbalance(start, now, others, faded[1]),
    ]
    top = np.max([np.where(v != 0, s, -np.inf) for v, s in terms], axis=0)
    top = np.where(np.isfinite(top), top, 0.0)
    total = np.sum([v * np.exp(s - top) for v, s in terms], axis=0)
    with np.errstate(divide="ignore"):
        return np.asarray(0.5 * (np.log(2.0 * np.maximum(total, 0.0)) + top))


def _imbalance(start: Network, now: Network, who: Array, faded: float) -> tuple[Array, Array]:
    """``(|w|^2 - a^2) / (2 |w|^2)`` as value and log factor; zero for a balanced neuron."""
    shift = np.exp(start.log_scale_out[who] - start.log_scale[who])
    norms = np.sqrt(np.einsum("jd,jd->j", start.mantissa.W[who], start.mantissa.W[who]))
    a = np.abs(start.mantissa.a[who]) * shift
    gap = 0.5 * (norms - a) * (norms + a)
    gap = np.where(np.abs(gap) <= 1e-14 * norms * norms, 0.0, gap)
    return gap, 2.0 * (start.log_scale[who] - now.log_norms[who]) + faded
