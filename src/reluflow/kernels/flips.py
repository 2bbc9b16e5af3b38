"""When an output weight changes its sign inside a step."""

from __future__ import annotations

import numpy as np
from numba import njit

from reluflow.checks import Array
from reluflow.kernels.interpolation import combine, denominators, weights_at
from reluflow.kernels.transport import dot2, slopes_alone


@njit(cache=True, nogil=True)
def moment_of_flip(
    tau: float,
    a: float,
    w: Array,
    pull: Array,
    nodes: Array,
    step: float,
    gauss: Array,
    A: Array,
    B: Array,
) -> float:
    """Share of the step at which an output weight is zero, from one near it, by Newton's method.

    ``w`` (1, d) and ``a`` belong to the start; ``pull`` holds ``g`` at the ``nodes``.
    """
    stages, d = len(gauss), w.shape[1]
    only = np.int64(0)
    scale, mix = denominators(nodes), np.empty(len(nodes))
    g, end = np.empty((stages, d)), np.empty((1, d))
    b, value, slope = np.empty(stages), np.empty(stages), np.empty(stages)
    gg, matrix = np.empty((stages, stages)), np.empty((stages, stages))
    for _ in range(4):
        for k in range(stages):
            weights_at(nodes, scale, gauss[k] * tau, mix)
            combine(mix, pull, g, k)
            b[k] = dot2(g, k, w, only)
        slopes_alone(a, b, g, tau * step, A, False, value, slope, gg, matrix)
        output = a
        end[0] = w[0]
        for k in range(stages):
            output += tau * step * B[k] * slope[k]
            for q in range(d):
                end[0, q] += tau * step * B[k] * value[k] * g[k, q]
        weights_at(nodes, scale, tau, mix)
        combine(mix, pull, g, only)
        pace = step * dot2(g, only, end, only)
        better = tau - output / pace if pace != 0.0 else tau
        if not 0.0 < better <= 1.0 or abs(better - tau) > 0.1 * tau:
            break
        done = abs(better - tau) <= 1e-14
        tau = better
        if done:
            break
    return tau
