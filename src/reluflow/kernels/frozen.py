r"""Neurons in constant forces: a chain of boosts, event by event, in closed form.

With ``u = g/|g|``, ``p = u.w`` and ``q = tau |g|`` a neuron moves by

    p + a -> (p + a) e^q,    p - a -> (p - a) e^-q,    w - p u  constant;

the largest of the three parts is moved into its log scale, at any scale. The pre-activation
of point i is a quadratic in ``zeta = e^q - 1``: ``alpha zeta^2 + (z_i + xi_i a) zeta + z_i`` with
``xi_i = x_i.u`` and ``alpha = xi_i (p + a)/2``: no cancellation near ``q = 0``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from reluflow.checks import Array
from reluflow.kernels.boundaries import land, settle, slide_forces

NEVER = 1e308


@njit(cache=True, nogil=True)
def exit_boost(z: float, a: float, p: float, xi: float, sign: float) -> float:
    """Smallest ``q > 0`` at which the pre-activation leaves the side ``sign``; NEVER if none."""
    start = sign * z
    alpha = 0.5 * sign * xi * (p + a)
    slope = start + sign * xi * a
    if start <= 0.0:
        if slope < 0.0:
            return 0.0
        zeta = -slope / alpha if alpha < 0.0 else NEVER
    elif alpha == 0.0:
        zeta = -start / slope if slope < 0.0 else NEVER
    else:
        disc = slope * slope - 4.0 * alpha * start
        if disc < 0.0:
            return NEVER
        root = np.sqrt(disc)
        if alpha > 0.0:
            zeta = 2.0 * start / (root - slope) if slope < 0.0 else NEVER
        elif slope <= 0.0:
            zeta = 2.0 * start / (root - slope)
        else:
            zeta = (slope + root) / (-2.0 * alpha)
    return NEVER if zeta >= NEVER else np.log1p(zeta)


@njit(cache=True, nogil=True)
def drift(
    a: Array,
    w: Array,
    z: Array,
    sigma: Array,
    mode: Array,
    moving: Array,
    c: Array,
    X: Array,
    gram: Array,
    span: float,
    log: Array,
) -> int:
    """Carry the ``moving`` neurons through the time ``span`` in forces ``c``; all arrays change.

    Events go to rows of ``log``: time, neuron, point, mode before, mode after. Returns their
    number, or -1 if ``log`` is too short (the state is then void).
    """
    m, n = z.shape
    d = w.shape[1]
    rho = np.empty(n)
    gam = np.empty(n)
    g = np.empty(d)
    on = np.empty(n, np.bool_)
    arrival = np.empty(n)
    before = np.empty(n, mode.dtype)
    used = 0
    noise = 0.0  # forces that cancel leave this much rounding, per 1e-16
    for i in range(n):
        noise += abs(c[i]) * np.sqrt(gram[i, i])
    for j in range(m):
        if not moving[j]:
            continue
        time = 0.0
        repeats = 0
        while True:
            alive = False
            for i in range(n):
                if mode[j, i] == 1:
                    alive = True
            if not alive:
                break
            slide_forces(c, gram, mode[j], rho)
            for q in range(d):
                g[q] = 0.0
            for k in range(n):
                if rho[k] != 0.0:
                    for q in range(d):
                        g[q] += rho[k] * X[k, q]
            speed = 0.0
            for q in range(d):
                speed += g[q] * g[q]
            speed = np.sqrt(speed)
            for i in range(n):
                gam[i] = 0.0
                if mode[j, i] < 2:
                    for q in range(d):
                        gam[i] += g[q] * X[i, q]
                    # a pull at rounding would switch off a pre-activation that only fades
                    if abs(gam[i]) <= 4e-16 * noise * np.sqrt(gram[i, i]):
                        gam[i] = 0.0
            if speed <= 1e-15 * noise:
                break
            p = 0.0
            size = a[j] * a[j]
            for q in range(d):
                p += g[q] * w[j, q]
                size += w[j, q] * w[j, q]
            p /= speed
            boost = (span - time) * speed
            where = -1
            for i in range(n):
                if mode[j, i] < 2:
                    sign = 1.0 if mode[j, i] == 1 else -1.0
                    # a pre-activation that fades to rounding must pass the plane clearly
                    slack = 1e-13 * np.sqrt(size * gram[i, i])
                    start = z[j, i] + sign * slack if abs(z[j, i]) <= slack else z[j, i]
                    q_exit = exit_boost(start, a[j], p, gam[i] / speed, sign)
                    if q_exit < boost:
                        boost = q_exit
                        where = i
            plus = p + a[j]
            minus = p - a[j]
            rest = 0.0
            for q in range(d):
                w[j, q] -= p * g[q] / speed
                rest = max(rest, abs(w[j, q]))
            # the largest of the three parts sets the new log scale; none of them overflows
            shift = -NEVER
            if plus != 0.0:
                shift = max(shift, np.log(abs(plus)) + boost)
            if minus != 0.0:
                shift = max(shift, np.log(abs(minus)) - boost)
            if rest != 0.0:
                shift = max(shift, np.log(rest))
            if shift == -NEVER:
                break
            if plus != 0.0:
                plus *= np.exp(boost - shift)
            minus *= np.exp(-boost - shift)
            shrink = np.exp(-shift) if rest != 0.0 else 0.0  # else 0 times an overflow
            new_p = 0.5 * (plus + minus)
            a[j] = 0.5 * (plus - minus)
            for q in range(d):
                w[j, q] = w[j, q] * shrink + new_p * g[q] / speed
            # on its planes exactly, and pre-activations from the weights: carried on their own the
            # two part where a neuron shrinks below its rounding
            for i in range(n):
                on[i] = mode[j, i] >= 2 or i == where
            land(w[j], on, X, gram)
            for i in range(n):
                z[j, i] = 0.0
                if not on[i]:
                    for q in range(d):
                        z[j, i] += w[j, q] * X[i, q]
            top = abs(a[j])
            for q in range(d):
                top = max(top, abs(w[j, q]))
            sigma[j] += shift
            if top > 0.0 and (top < 0.25 or top > 4.0):
                exponent = np.floor(np.log2(top))
                factor = 2.0**-exponent
                a[j] *= factor
                for q in range(d):
                    w[j, q] *= factor
                for i in range(n):
                    z[j, i] *= factor
                sigma[j] += exponent * 0.6931471805599453
            time += boost / speed
            if where < 0:
                break
            repeats = repeats + 1 if boost == 0.0 else 0
            if repeats > 2 * n + 2:
                break
            size = a[j] * a[j]
            for q in range(d):
                size += w[j, q] * w[j, q]
            for i in range(n):
                near = abs(z[j, i]) <= 1e-13 * np.sqrt(size * gram[i, i])
                on[i] = mode[j, i] >= 2 or i == where or near
                before[i] = mode[j, i]
                arrival[i] = a[j] * gam[i]
            settle(a[j], c, gram, mode[j], on, arrival)
            for i in range(n):
                if before[i] != mode[j, i]:
                    if used >= len(log):
                        return -1
                    log[used, 0] = time
                    log[used, 1] = j
                    log[used, 2] = i
                    log[used, 3] = before[i]
                    log[used, 4] = mode[j, i]
                    used += 1
    return used


@njit(cache=True, nogil=True)
def any_below(a: Array, w: Array, sigma: Array, cid: Array, level: float) -> bool:
    """Whether ``log(a^2 + |w|^2) + 2 sigma`` of some living neuron lies below ``level``."""
    m, d = w.shape
    for j in range(m):
        if cid[j] >= 0:
            size = a[j] * a[j]
            for q in range(d):
                size += w[j, q] * w[j, q]
            if size == 0.0 or np.log(size) + 2.0 * sigma[j] < level:
                return True
    return False
