r"""Where a path leaves the side it is on: exits of polynomials in Bernstein form.

The coefficients of a polynomial in Bernstein form enclose its values, so a path whose coefficients
all lie on one side never leaves it; otherwise the interval is halved until they change sign once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.kernels.flow.layout import ABOVE, SLIDE, Tables
from reluflow.kernels.kernel import kernel

NEVER = 1e308
# of Newton's method or bisection, for moments to the rounding of the step
TURNS = 40
AT_ROOT = 1e-14  # a share of a step


@kernel
def _halves(coefficients: Array, left: Array, right: Array) -> None:
    """Bernstein coefficients of the two halves of the interval (de Casteljau at 1/2)."""
    size = len(coefficients)
    for k in range(size):
        right[k] = coefficients[k]
    left[0] = right[0]
    for r in range(1, size):
        for k in range(size - r):
            right[k] = 0.5 * (right[k] + right[k + 1])
        left[r] = right[0]


@kernel
def _bernstein_value(coefficients: Array, tau: float, work: Array) -> float:
    """Value of a Bernstein polynomial on [0, 1] (de Casteljau)."""
    size = len(coefficients)
    for k in range(size):
        work[k] = coefficients[k]
    for r in range(1, size):
        for k in range(size - r):
            work[k] = (1.0 - tau) * work[k] + tau * work[k + 1]
    return float(work[0])


@kernel
def first_exit(coefficients: Array, sign: float, tiny: float) -> float:
    """First point in (0, 1] where a Bernstein polynomial leaves the side ``sign``; 2.0 if none.

    Subdivision, leftmost half first, until the coefficients change sign once: no root is missed,
    double ones included. Then bisection and secant by turns. Values within ``tiny`` of zero count
    as the right side.
    """
    size = len(coefficients)
    inside = True
    for k in range(size):
        if sign * coefficients[k] < -tiny:
            inside = False
    if inside:
        return 2.0
    stack = np.empty((56, size))
    left = np.empty(56)
    width = np.empty(56)
    lower = np.empty(size)
    upper = np.empty(size)
    for k in range(size):
        stack[0, k] = sign * coefficients[k] + tiny
    left[0] = 0.0
    width[0] = 1.0
    top = 1
    while top > 0:
        top -= 1
        changes = 0
        for k in range(1, size):
            if (stack[top, k] < 0.0) != (stack[top, k - 1] < 0.0):
                changes += 1
        if stack[top, 0] < 0.0:
            return float(left[top])
        if changes == 0:
            continue
        if changes == 1 or width[top] < 1e-14:
            low, high = 0.0, 1.0
            f_low, f_high = stack[top, 0], stack[top, size - 1]
            for turn in range(100):
                if high - low <= 1e-15 * (1.0 + left[top] / width[top] + high) or f_low == f_high:
                    break
                tau = low + (high - low) * (f_low / (f_low - f_high) if turn % 3 else 0.5)
                tau = min(max(tau, low + 0.01 * (high - low)), high - 0.01 * (high - low))
                value = _bernstein_value(stack[top], tau, lower)
                if value < 0.0:
                    high, f_high = tau, value
                else:
                    low, f_low = tau, value
            return float(left[top] + width[top] * high)
        _halves(stack[top], lower, upper)
        half = 0.5 * width[top]
        for k in range(size):
            stack[top, k] = upper[k]
            stack[top + 1, k] = lower[k]
        left[top + 1] = left[top]
        left[top] += half
        width[top] = half
        width[top + 1] = half
        top += 2
    return 2.0


@kernel
def first_boundary(
    z: Array, row: NDArray[Any], speed: Array, step: float, tables: Tables, slack: float
) -> tuple[float, int]:
    """Earliest exit (tau, plane) of one neuron from its row; (2.0, -1) if none.

    ``z`` (P,) are its pre-activations and ``speed`` (S + 1, P) their time derivatives at the start
    and at the Gauss nodes. Pre-activations below ``slack`` are zero.
    """
    path, bound, spread = tables.path, tables.bound, tables.spread
    nodes, size = speed.shape
    # the first plane at the speeds of the start: likely the one, and what comes later is skipped
    guess = -1
    soonest = np.inf
    for p in range(size):
        if row[p] < SLIDE and z[p] * speed[0, p] < 0.0:
            after = -z[p] / speed[0, p]
            if after < soonest:
                soonest = after
                guess = p
    best = 2.0
    where = -1
    for turn in range(-1, size):
        p = guess if turn < 0 else turn
        if p < 0 or row[p] >= SLIDE or turn == guess:
            continue
        sign = 1.0 if row[p] == ABOVE else -1.0
        # the line of the start speed, and bounds on how far the path is off it until ``best``
        reach = min(best, 1.0)
        line = sign * z[p]
        line = min(line, line + sign * reach * step * speed[0, p])
        rest = 0.0
        sooner = 0.0
        for r in range(1, nodes):
            off = abs(speed[r, p] - speed[0, p])
            rest += bound[r] * off
            sooner += spread[r] * off
        if line > step * min(rest, reach * sooner):
            continue
        start = z[p]
        if abs(start) <= slack:
            start = 0.0
        coefficients = np.empty(path.shape[0])
        for k in range(path.shape[0]):
            total = start
            for r in range(nodes):
                total += path[k, r] * step * speed[r, p]
            coefficients[k] = total
        tau = first_exit(coefficients, sign, slack)
        if tau < best:
            best = tau
            where = p
    return best, where


@kernel
def _curve(start: float, slope: Array, step: float, path: Array) -> Array:
    """Bernstein coefficients of what begins at ``start`` with ``slope`` (S + 1,) at the nodes."""
    coefficients = np.empty(path.shape[0])
    for k in range(path.shape[0]):
        total = start
        for r in range(len(slope)):
            total += path[k, r] * step * slope[r]
        coefficients[k] = total
    return coefficients


@kernel
def turns_back(
    z: float, side: float, speed: Array, step: float, path: Array, depth: float
) -> float:
    """When a pre-activation comes within ``depth`` of its plane, if it turns back in the step; 2.0.

    It comes from ``side`` and nearer at first; ``speed`` (S + 1,) is as in `first_boundary`. It
    must not have got across.
    """
    coefficients = _curve(z, speed, step, path)
    if side * (coefficients[-1] - coefficients[-2]) <= 0.0:  # still nearer at the end
        return 2.0
    return float(first_exit(coefficients, side, -depth))


@kernel
def first_flip(a: float, slope: Array, step: float, path: Array) -> float:
    """First zero in (0, 1] of the output weight; 2.0 if none."""
    if a == 0.0:
        return 2.0
    coefficients = _curve(a, slope, step, path)
    return float(first_exit(coefficients, 1.0 if a > 0 else -1.0, 0.0))


@kernel
def leaves_box(
    share: Array, force: Array, bernstein: Array, near: float, far: float
) -> tuple[float, bool]:
    """First time at which a weight is outside by ``near``, if it comes to be by ``far``; else 2.0.

    ``share = theta D`` and ``force = D`` are values at the nodes of the table. The second result
    says whether it leaves at 1, to the side above.
    """
    side = 1.0 if force[0] > 0.0 else -1.0
    bottom, top = np.dot(bernstein, share), np.dot(bernstein, force - share)
    tau, up = 2.0, False
    if first_exit(bottom, side, far) <= 1.0:
        tau = first_exit(bottom, side, near)
    if first_exit(top, side, far) <= 1.0:
        leaves = first_exit(top, side, near)
        up = leaves < tau
        tau = min(tau, leaves)
    return tau, up


@kernel
def bound_outside(share: Array, force: Array, weights: Array, far: float, most: float) -> float:
    """How far a weight may be outside: ``far``, or ``most`` where it grows to a mean above that.

    What falls again is the error of forces that fade. ``weights`` are those of a quadrature over
    the nodes but for the first; see `leaves_box`.
    """
    side = 1.0 if force[0] > 0.0 else -1.0
    mean, out = 0.0, 0.0
    for k in range(1, len(share)):
        before, out = out, max(-side * share[k], side * (share[k] - force[k]), 0.0)
        if out < before:
            return far
        mean += weights[k - 1] * out
    return min(far, most) if mean > most else far


@kernel
def exit_boost(z: float, across: float, xi: float, plus: float, sign: float) -> float:
    r"""Smallest boost ``q > 0`` at which a pre-activation leaves the side ``sign``; NEVER if none.

    In a constant pull ``z`` is a quadratic in ``zeta = e^q - 1``, divided by ``e^q``:
    ``alpha zeta^2 + (across + xi plus) zeta + z`` with ``xi = u.g/|g|``, ``alpha = xi plus / 2``,
    ``plus = w.g/|g| + a`` and ``across`` the product with the part of ``w`` across the pull: no
    cancellation near ``q = 0``.
    """
    start = sign * z
    alpha = 0.5 * sign * xi * plus
    slope = sign * (across + xi * plus)
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


@kernel
def moments(start: Array, rises: Array, up: NDArray[Any], low: Array, high: Array) -> Array:
    """Where ``start + t p(t)`` (E,), p with coefficients ``rises`` (K, E), comes to its other side.

    That is above zero where ``up``; it is there at ``high`` and not at ``low``. Newton's method,
    and bisection where that would leave the bracket. Newton comes near a root from one side: its
    last point is the root, an end of the bracket need not be.
    """
    out = np.empty(len(start))
    for e in range(len(start)):
        left, right = low[e], high[e]
        t = 0.5 * (left + right)
        for _ in range(TURNS):
            value, slope = 0.0, 0.0
            for k in range(len(rises) - 1, -1, -1):
                slope = slope * t + value
                value = value * t + rises[k, e]
            slope = slope * t + value
            value = start[e] + value * t
            if (value > 0.0) == up[e]:
                right = t
            else:
                left = t
            better = t - value / slope if slope != 0.0 else left - 1.0
            if abs(better - t) <= AT_ROOT:
                break
            t = better if left < better < right else 0.5 * (left + right)
        out[e] = t
    return out
