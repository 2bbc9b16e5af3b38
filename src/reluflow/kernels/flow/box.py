r"""The smallest pull over a box of weights: a tiny least-squares problem, solved exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.kernels.flow.small import solve_products
from reluflow.kernels.kernel import kernel


@kernel
def box_weights(base: Array, force: Array, gram: Array, theta: Array) -> None:
    """Minimise ``|g_base + sum theta_p D_p u_p|`` over the unit box; ``theta`` begins in it.

    ``base_p = u_p.g_base``. Primal active set: the objective is a convex quadratic that falls with
    every change of the set, so it ends, after one or two changes if ``theta`` is inside the box
    where the minimum is.
    """
    size = len(base)
    free = (theta > 0.0) & (theta < 1.0)
    for turn in range(8 * size + 8):
        if turn == 0 and free.any():
            _minimise(base, force, gram, theta, free)
        # the bound whose release lowers the objective fastest (slope D_p u_p.g)
        worst, pick = -1e-13, -1
        for p in range(size):
            if not free[p]:
                pull = base[p]
                noise = abs(base[p])
                for k in range(size):
                    pull += gram[p, k] * theta[k] * force[k]
                    noise += abs(gram[p, k] * theta[k] * force[k])
                slope = pull / (noise + 1e-300)  # not times D, which may be at the end of floats
                gain = slope if (theta[p] == 0.0) == (force[p] > 0.0) else -slope
                if gain < worst:
                    worst, pick = gain, p
        if pick < 0:
            break
        free[pick] = True
        _minimise(base, force, gram, theta, free)


@kernel
def _minimise(base: Array, force: Array, gram: Array, theta: Array, free: NDArray[Any]) -> None:
    """The minimum over the ``free`` weights; those that meet an end of the box stay there."""
    size = len(base)
    for _ in range(size + 1):
        index = np.flatnonzero(free)
        count = len(index)
        if count == 0:
            break
        sub = np.empty((count, count))
        rhs = np.empty(count)
        for p in range(count):
            rhs[p] = -base[index[p]]
            for k in range(size):
                if not free[k]:
                    rhs[p] -= gram[index[p], k] * theta[k] * force[k]
            for q in range(count):
                sub[p, q] = gram[index[p], index[q]]
        # solved for theta D: the forces of the planes may differ by twenty orders of magnitude
        target = rhs
        solve_products(sub, target)
        for p in range(count):
            target[p] = min(max(target[p] / force[index[p]], -1e300), 1e300)
        share, block = 1.0, -1
        for p in range(count):
            old, new = theta[index[p]], target[p]
            if new < 0.0 and old > 0.0 and old / (old - new) < share:
                share, block = old / (old - new), p
            elif new > 1.0 and old < 1.0 and (1.0 - old) / (new - old) < share:
                share, block = (1.0 - old) / (new - old), p
            elif (new < 0.0 and old <= 0.0) or (new > 1.0 and old >= 1.0):
                share, block = 0.0, p
        for p in range(count):
            theta[index[p]] += share * (target[p] - theta[index[p]])
        if block < 0:
            break
        theta[index[block]] = 0.0 if target[block] < 0.0 else 1.0
        free[index[block]] = False
