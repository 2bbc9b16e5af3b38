"""Descent on orthonormal points, in their coordinates: O(m n) a step, whatever the dimension.

A neuron is ``(a_j, c_j)`` with ``c_ji = w_j . x_i``; the rest of its weights never moves. A step is

    r_i = y_i - sum_j a_j (c_ji)_+
    a_j += rate sum_i r_i (c_ji)_+,   c_ji += rate a_j r_i [c_ji > 0]

from old values, ``rate`` being step size times kappa. Ordinary floats: for scales above 1e-140.
"""

from __future__ import annotations

import numpy as np

from reluflow.checks import Array
from reluflow.kernels.kernel import kernel


# sums may be taken in any order, so that they run in vector registers
@kernel(fastmath={"reassoc"})
def run(a: Array, c: Array, y: Array, rate: float, steps: int, stop: float) -> tuple[int, float]:
    """Iterate in place until ``sum r^2 <= stop`` or all steps are done; steps made, ``sum r^2``."""
    m, n = c.shape
    r = np.empty(n)
    done = 0
    while True:
        for i in range(n):
            r[i] = y[i]
        for j in range(m):
            weight = a[j]
            for i in range(n):
                r[i] -= weight * max(c[j, i], 0.0)
        total = 0.0
        for i in range(n):
            total += r[i] * r[i]
        if total <= stop or done == steps or not np.isfinite(total):
            return done, total
        for j in range(m):
            weight, gain = a[j], 0.0
            for i in range(n):
                force = r[i] if c[j, i] > 0.0 else 0.0
                gain += force * c[j, i]
                c[j, i] += rate * weight * force
            a[j] = weight + rate * gain
        done += 1
