r"""Boundary crossings of yardsticks, neuron by neuron, in O(n) each.

A yardstick is kept as the pre-activations ``p_i = u . x_i`` of its unit direction u and the
products ``g_i = g . x_i`` with its force ``g = sum_{active} force_i x_i``; vectors in R^d are not
needed. See `reluflow.limits.yardsticks` for the formulas.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from reluflow.checks import Array
from reluflow.kernels.kernel import kernel

# columns of the summary of a neuron
DONE, FIRST_COSINE, LAST_COSINE, LAST_LOG_NORM, CLOSEST, HORIZON = range(6)

# a shrinking neuron this close to the direction of its force never turns away from it
PARALLEL = 4.0 * np.finfo(np.float64).eps

# sums in any order and no test for division by zero: without both, loops do not vectorise
_LOOSE = {"fastmath": {"reassoc", "nsz", "contract"}, "error_model": "numpy"}


class Points(NamedTuple):
    """Products of the points (n, n), their forces (n,) and inverse lengths (n,)."""

    gram: Array
    force: Array
    inverse_norms: Array


class Trace(NamedTuple):
    """Crossed points, times, log-norms and steps, flat; a summary for each neuron."""

    order: Any
    times: Array
    log_norms: Array
    steps: Array
    summary: Array


@kernel
def crossings(
    P: Array, G: Array, points: Points, signs: Array, sines: Array, offsets: Any, trace: Trace
) -> None:
    """Fill the crossings of a block of neurons; ``P`` and ``G`` (rows, n) are used up.

    For row j the entries ``offsets[j]:offsets[j + 1]`` of the flat arrays receive the crossed
    points, the times, the log-norms at the start of each stage relative to time 0, and the steps c
    of ``alpha -> alpha + |alpha| c g``. ``summary[j]`` receives: crossings done, cosine to the
    force at time 0, the same after the last crossing, log-norm after it, smallest
    ``|u . x_i| / |x_i|`` over stage ends, time at which monotone crossing fails (inf if never).

    Numerics
    --------
    Four passes over n numbers a crossing, plus a fresh sum of the forces (active x n) whenever a
    shrinking force has halved.
    """
    active = np.empty(P.shape[1])  # 1.0 or 0.0: products with it vectorise
    scratch = np.empty(P.shape[1])
    for j in range(P.shape[0]):
        active[:] = P[j] > 0.0
        start, stop = offsets[j], offsets[j + 1]
        own = Trace(
            trace.order[start:stop],
            trace.times[start:stop],
            trace.log_norms[start:stop],
            trace.steps[start:stop],
            trace.summary[j],
        )
        _neuron(P[j], G[j], points, signs[j], sines[j], active, scratch, own)


@kernel(error_model="numpy")
def _neuron(
    p: Array,
    g: Array,
    points: Points,
    s: float,
    sine: float,
    active: Array,
    scratch: Array,
    trace: Trace,
) -> None:
    gram, force, summary = points.gram, points.force, trace.summary
    summary[:] = np.nan
    summary[CLOSEST] = summary[HORIZON] = np.inf
    alive = active.sum()
    t, rho, anchor, previous, done = 0.0, 0.0, 0.0, -1, 0
    while alive > 0.0:
        square, along = _force(p, g, force, active)
        if s < 0.0 and square < 0.25 * anchor:
            # g_i have lost digits to the forces subtracted so far: sum what is left afresh
            _refresh(g, gram, force, active)
            anchor = 0.0
            continue
        if anchor == 0.0:
            anchor = square
        if not _least(g) > 0.0:
            summary[HORIZON] = t
            break
        kappa = np.sqrt(square)
        cosine = min(along / kappa, 1.0)
        if done == 0:
            summary[FIRST_COSINE] = cosine
        else:
            sine = np.sqrt((1.0 - cosine) * (1.0 + cosine))
        summary[LAST_COSINE] = cosine
        best, distance = _nearest(p, g, s, active, scratch)
        if best < 0 or (s < 0.0 and sine <= PARALLEL):
            break
        rapidity, norm, growth = _boost(s * distance * kappa, cosine, sine)
        step = s * distance
        trace.order[done], trace.log_norms[done], trace.steps[done] = best, rho, step
        t += abs(rapidity) / kappa
        trace.times[done] = t
        rho += growth
        _cross(p, g, gram[best], s * force[best], step, norm, points.inverse_norms, scratch)
        p[best] = 0.0
        scratch[best] = np.inf
        if previous >= 0:
            scratch[previous] = np.inf
        summary[CLOSEST] = min(summary[CLOSEST], _least(scratch))
        active[best] = 1.0 if s > 0.0 else 0.0
        alive += s
        previous = best
        done += 1
    summary[DONE] = done
    summary[LAST_LOG_NORM] = rho


@kernel(**_LOOSE)
def _force(p: Array, g: Array, force: Array, active: Array) -> Any:
    """``|g|^2`` and ``u . g``."""
    square, along = 0.0, 0.0
    for i in range(len(p)):
        weight = force[i] * active[i]
        square += weight * g[i]
        along += weight * p[i]
    return square, along


@kernel(**_LOOSE)
def _nearest(p: Array, g: Array, s: float, active: Array, scratch: Array) -> Any:
    """The point not yet crossed whose boundary is nearest along g (-1: none), and its distance."""
    waiting = 0.0 if s > 0.0 else 1.0
    for i in range(len(p)):
        gap = -s * p[i]
        gap = gap if gap > 0.0 else 0.0  # a point on its boundary may have the wrong last digit
        scratch[i] = gap / g[i] if active[i] == waiting else np.inf
    least = _least(scratch)
    if least < np.inf:
        for i in range(len(p)):
            if scratch[i] == least:
                return i, least
    return -1, least


@kernel(**_LOOSE)
def _boost(move: float, cosine: float, sine: float) -> Any:
    """Rapidity, norm and log-norm of a unit yardstick moved by ``move`` along its unit force."""
    norm = np.hypot(sine, cosine + move)
    ratio = (norm + cosine + move) / (1.0 + cosine)
    # a small move leaves both logs near 0: every factor here is positive, so nothing cancels
    small = move * (1.0 + norm + 2.0 * cosine + move) / ((1.0 + norm) * (1.0 + cosine))
    stretch = move * (2.0 * cosine + move)
    rapidity = np.log1p(small) if 0.5 < ratio < 2.0 else np.log(ratio)
    growth = 0.5 * np.log1p(stretch) if -0.5 < stretch < 1.0 else np.log(norm)
    return rapidity, norm, growth


@kernel(**_LOOSE)
def _cross(
    p: Array,
    g: Array,
    row: Array,
    flip: float,
    step: float,
    norm: float,
    inverse_norms: Array,
    scratch: Array,
) -> None:
    """Move to the next boundary; ``scratch`` receives the distances at both ends of the stage."""
    shrink = 1.0 / norm
    for i in range(len(p)):
        new = (p[i] + step * g[i]) * shrink
        before, after = abs(p[i]), abs(new)
        scratch[i] = (before if before < after else after) * inverse_norms[i]
        p[i] = new
        g[i] += flip * row[i]


@kernel
def _refresh(g: Array, gram: Array, force: Array, active: Array) -> None:
    g[:] = 0.0
    for k in range(len(g)):
        if active[k] > 0.0:
            g += force[k] * gram[k]


@kernel
def _least(values: Array) -> float:
    """The minimum, in four lanes: a single running minimum waits for itself at every step."""
    a = b = c = d = np.inf
    i = 0
    while i + 3 < len(values):
        a = values[i] if values[i] < a else a
        b = values[i + 1] if values[i + 1] < b else b
        c = values[i + 2] if values[i + 2] < c else c
        d = values[i + 3] if values[i + 3] < d else d
        i += 4
    while i < len(values):
        a = values[i] if values[i] < a else a
        i += 1
    return min(min(a, b), min(c, d))
