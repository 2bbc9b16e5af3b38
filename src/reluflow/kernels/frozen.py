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
# pulls are summed anew after this many crossings, or where one of them is this share of all; the
# pre-activations more often
STALE, VAGUE, FRESH = 64, 1e-12, 16


@njit(cache=True, nogil=True)
def _pulls(
    c: Array, X: Array, gram: Array, row: Array, noise: float, lengths: Array, g: Array, gam: Array
) -> None:
    """``g`` (d,) and its products (n,) with the points that one neuron does not slide on."""
    rho = np.empty(len(c))
    slide_forces(c, gram, row, rho)
    g[:] = np.dot(rho, X)
    gam[:] = np.dot(X, g)
    for i in range(len(c)):
        # a pull at rounding would switch off a pre-activation that only fades
        if row[i] >= 2 or abs(gam[i]) <= 4e-16 * noise * lengths[i]:
            gam[i] = 0.0


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
    gam = np.empty(n)
    g = np.empty(d)
    on = np.empty(n, np.bool_)
    arrival = np.empty(n)
    before = np.empty(n, mode.dtype)
    lengths = np.empty(n)
    used = 0
    noise = 0.0  # forces that cancel leave this much rounding, per 1e-16
    for i in range(n):
        lengths[i] = np.sqrt(gram[i, i])
        noise += abs(c[i]) * lengths[i]
    for j in range(m):
        if not moving[j]:
            continue
        time = 0.0
        repeats = 0
        age, lost = STALE, 1.0
        while True:
            if not (mode[j] == 1).any():
                break
            # a crossing adds one point to g or takes one away; rounding must not pile up, nor be
            # what is left of a pull
            vague = age >= STALE
            for i in range(n if age > 0 and not vague else 0):
                if mode[j, i] >= 2 or abs(gam[i]) <= VAGUE * noise * lengths[i]:
                    vague = True
                    break
            if vague:
                _pulls(c, X, gram, mode[j], noise, lengths, g, gam)
                age = 0
            speed = np.sqrt(np.dot(g, g))
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
                    slack = 1e-13 * np.sqrt(size) * lengths[i]
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
            # on its planes exactly, and pre-activations from the weights now and then: carried on
            # their own the two part where a neuron shrinks below its rounding
            for i in range(n):
                on[i] = mode[j, i] >= 2 or i == where
            land(w[j], on, X, gram)
            lost *= max(shrink, 1.0)
            if where < 0 or age % FRESH == 0 or lost > 4.0:
                z[j] = np.dot(X, w[j])
                lost = 1.0
            else:
                for i in range(n):
                    xi = gam[i] / speed
                    z[j, i] = (z[j, i] - p * xi) * shrink + new_p * xi
            for i in range(n):
                if on[i]:
                    z[j, i] = 0.0
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
                near = abs(z[j, i]) <= 1e-13 * np.sqrt(size) * lengths[i]
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
                change = int(mode[j, i] == 1) - int(before[i] == 1)
                if change != 0:
                    for q in range(d):
                        g[q] += change * c[i] * X[i, q]
                    for k in range(n):
                        gam[k] += change * c[i] * gram[i, k]
            age = age + 1 if not (before >= 2).any() else STALE
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
