r"""What a step expects of its forces before they are solved for: where the iteration starts."""

from __future__ import annotations

import numpy as np

from reluflow.checks import Array
from reluflow.kernels.kernel import kernel


@kernel
def linear_forces(c0: Array, values: Array, vectors: Array, times: Array, drain: Array) -> Array:
    r"""Forces at ``times`` if the kernel stayed as it is: exact for the last, linear phase.

    ``values`` and ``vectors`` are the eigenpairs of :math:`\kappa K`. Weight decay is a constant
    ``drain`` (n,): :math:`\dot c = -\kappa K c + 2 \mu \kappa h`.
    """
    part, gain = np.dot(c0, vectors), np.dot(drain, vectors)
    modes = np.empty((len(times), len(c0)))
    for k in range(len(times)):
        for e in range(len(c0)):
            modes[k, e] = np.exp(-times[k] * values[e]) * part[e]
            if gain[e] != 0.0:
                rate = max(values[e], 1e-300)
                modes[k, e] -= np.expm1(-times[k] * rate) / rate * gain[e]
    forces: Array = np.dot(modes, vectors.T)
    return forces


@kernel
def rebent(bend: Array, nodes: Array, ratio: float) -> Array:
    """What the forecast misses in a step ``ratio`` times as long as one that missed ``bend``.

    The polynomial through 0 at the start and the rows of ``bend`` at the other ``nodes``.
    """
    stages, n = bend.shape
    out = np.zeros((stages, n))
    for k in range(stages):
        tau = ratio * nodes[k + 1]
        for q in range(stages):
            weight = 1.0
            for r in range(stages + 1):
                if r != q + 1:
                    weight *= (tau - nodes[r]) / (nodes[q + 1] - nodes[r])
            for i in range(n):
                out[k, i] += weight * bend[q, i]
    return out
