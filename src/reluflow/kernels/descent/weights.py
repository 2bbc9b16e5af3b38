r"""Compiled gradient descent on weights, for both layers or the hidden one.

Symbols: points ``X`` (n, d), labels ``y`` (n,), neurons ``2^e_j (a_j, W_j)`` with integer
exponents, forces ``c_i = -dL/dh_i``. Neurons active on the same points form a *class* r; they
share the pull :math:`g_r = \sum_i \theta_{ri} c_i x_i`, where :math:`\theta_{ri}` is 1 on the
points of r and the slope of the activation (0 for ReLU) elsewhere. Both layers are updated from old
values,

.. math:: a_j \leftarrow a_j + \eta\, g_r \cdot W_j, \qquad W_j \leftarrow W_j + \eta\, a_j g_r .

Outputs need one vector a class: :math:`h_i = \sum_r \theta_{ri}\, x_i \cdot v_r` with
:math:`v_r = \sum_{j \in r} 4^{e_j} a_j W_j`. Patterns are kept by `patterns`.

``slope * x + 0.0`` is zero for slope 0, never minus zero.

Every number of a step is a function of the weights before it, computed by the same code whatever
was remembered from earlier steps; so a run continued from a copy of its weights repeats bitwise.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from reluflow.kernels.descent.forces import forces
from reluflow.kernels.descent.patterns import (
    EPS,
    SUMS,
    Problem,
    Work,
    fourth_power,
    row_dot,
    row_length,
    update_patterns,
)
from reluflow.kernels.kernel import kernel

Array = NDArray[np.float64]

DONE, STOPPED, DIVERGED, UNCHANGED = 0, 1, 2, 3

LARGEST = 1e290  # a weight moves by less than this in one step, or the run has diverged
WATCH = 32  # every so many iterations the weights are compared with the previous ones
WINDOW = 8  # mantissas are brought back when they leave 2^-WINDOW .. 2^WINDOW


@kernel(forceinline=True, fastmath=SUMS)
def class_vectors(problem: Problem, work: Work) -> None:
    """Fill ``V``, one row ``v_r`` a class; nobody asks for that of ReLUs active nowhere."""
    WT, f = work.WT, work.f
    for s in range(len(f)):
        f[s] = work.power[s] * work.a[s]
    for r in range(work.classes[0]):
        if work.code[work.first[r]] == 0 and problem.slope == 0.0:
            continue
        begin, end = np.uint64(work.start[r]), np.uint64(work.start[r + 1])
        for q in range(WT.shape[0]):
            total = 0.0
            for s in range(begin, end):
                total += f[s] * WT[q, s]
            work.V[r, q] = total


@kernel(forceinline=True)
def outputs(problem: Problem, work: Work) -> None:
    """Fill ``h`` from ``V``."""
    count, h, products, slope = work.classes[0], work.h, work.products, problem.slope
    np.dot(work.V[:count], problem.XT, products[:count])
    h.fill(0.0)
    for r in range(count):
        for i in range(len(h)):
            p = products[r, i]
            h[i] += p if work.signs[work.first[r], i] > 0.0 else slope * p + 0.0


@kernel(forceinline=True)
def pulls(problem: Problem, work: Work) -> None:
    """Fill ``G``, one row ``g_r`` a class."""
    count, c, masked, slope = work.classes[0], work.c, work.products, problem.slope
    for r in range(count):
        for i in range(len(c)):
            active = work.signs[work.first[r], i] > 0.0
            masked[r, i] = c[i] if active else slope * c[i] + 0.0
    np.dot(masked[:count], problem.X, work.G[:count])


@kernel
def spare_slack(problem: Problem, work: Work, r: int, pull: float) -> int:
    """Give back what the neurons of class r were charged too much; how many are still stale?

    A step ``f g_r`` was charged as if it led straight to a boundary. In fact signed distances
    change by ``f g_r . x_i / |x_i|``: often it leads away from all of them.
    """
    toward, away = 0.0, 0.0
    for i in range(problem.X.shape[0]):
        speed = row_dot(problem.X, i, work.G, r) * problem.inverse_lengths[i]
        speed *= work.signs[work.first[r], i]
        toward, away = max(toward, -speed), max(away, speed)
    rounding = (problem.X.shape[1] + 8) * EPS * pull
    stale = 0
    for s in range(work.start[r], work.start[r + 1]):
        needed = (toward if work.f[s] > 0.0 else away) + rounding
        work.slack[s] += 1.000001 * abs(work.f[s]) * max(pull - needed, 0.0)
        stale += work.slack[s] <= 0.0
    return stale


@kernel(forceinline=True, fastmath=SUMS)
def move_class(problem: Problem, work: Work, r: int) -> float:
    """Update the neurons of class r; return ``lr |g_r|``, or inf if a weight would overflow."""
    WT, a, f, t, G, lr = work.WT, work.a, work.f, work.t, work.G, problem.lr
    slack, tick = work.slack, work.tick
    begin, end = np.uint64(work.start[r]), np.uint64(work.start[r + 1])
    pull: float = row_length(G, r)
    if pull == 0.0:
        return 0.0
    total, stale = 0.0, 0
    for s in range(begin, end):
        f[s] = lr * a[s]
        t[s] = 0.0
        total += abs(f[s])
        slack[s] -= 1.000001 * abs(f[s]) * pull + tick[s]
        stale += slack[s] <= 0.0
    work.stale[0] += spare_slack(problem, work, r, pull) if stale > 1 else stale
    if not total * pull < LARGEST:
        return np.inf
    for q in range(WT.shape[0]):
        g = G[r, q]
        for s in range(begin, end):
            w = WT[q, s]
            t[s] += g * w
            WT[q, s] = w + f[s] * g
    if not problem.hidden:
        total = 0.0
        for s in range(begin, end):
            a[s] += lr * t[s]
            total += abs(a[s])
        if not total < LARGEST:
            return np.inf
    return lr * pull


@kernel(forceinline=True)
def advance(problem: Problem, work: Work) -> bool:
    """Update all neurons; False if a weight would leave the range of floats."""
    fastest = 0.0
    for r in range(work.classes[0]):
        speed = move_class(problem, work, r)
        if not math.isfinite(speed):
            return False
        fastest = max(fastest, speed)
    work.known[0] = np.nan
    # a neuron's norm changes by a factor between 1 - speed and 1 + speed
    work.spent[0] += 2.0 * fastest if fastest <= 0.5 else np.inf
    return True


@kernel
def normalise(work: Work) -> None:
    """Bring mantissas outside the window back by exact powers of two."""
    WT, top = work.WT, work.t
    for s in range(len(top)):
        top[s] = abs(work.a[s])
    for q in range(WT.shape[0]):
        for s in range(len(top)):
            top[s] = max(top[s], abs(WT[q, s]))
    for s in range(len(top)):
        if top[s] > 0.0 and not 2.0**-WINDOW <= top[s] <= 2.0**WINDOW:
            shift = math.frexp(top[s])[1]
            factor = math.ldexp(1.0, -shift)
            for q in range(WT.shape[0]):
                WT[q, s] *= factor
            work.a[s] *= factor
            work.slack[s] *= factor
            work.tick[s] *= factor
            work.e[s] += shift
            work.power[s] = fourth_power(work.e[s])
    work.spent[0] = 0.0


@kernel
def remember(work: Work) -> None:
    """Copy the weights, for `is_unchanged` after the step."""
    for s in range(len(work.a)):
        work.old_outputs[s] = work.a[s]
    for q in range(work.WT.shape[0]):
        for s in range(len(work.a)):
            work.old_weights[q, s] = work.WT[q, s]


@kernel
def is_unchanged(work: Work) -> bool:
    """Whether the weights are bitwise those remembered."""
    for s in range(len(work.a)):
        if work.old_outputs[s] != work.a[s]:
            return False
    for q in range(work.WT.shape[0]):
        for s in range(len(work.a)):
            if work.old_weights[q, s] != work.WT[q, s]:
                return False
    return True


@kernel(forceinline=True)
def evaluate(problem: Problem, work: Work) -> None:
    """Fill outputs, forces and log-loss of the present weights."""
    if work.spent[0] > WINDOW and not problem.hidden:
        normalise(work)
    if work.stale[0] > 0:
        update_patterns(problem, work)
    class_vectors(problem, work)
    outputs(problem, work)
    work.known[0] = forces(problem.loss, problem.shares, problem.kappa, work.h, problem.y, work.c)


@kernel
def run(
    problem: Problem, work: Work, iteration: int, steps: int, stop: float, ceiling: float
) -> tuple[int, int, float, float]:
    """Do at most ``steps`` steps from ``iteration``, in place.

    Returns the outcome, the iteration reached, the log-loss there and the least log-loss on the
    way. The loss is tested before each step and after the last: at most ``stop`` ends the run, a
    value above ``ceiling`` or not finite is divergence.
    """
    least, end = np.inf, iteration + steps
    while True:
        if math.isnan(work.known[0]):
            evaluate(problem, work)
        log_loss = work.known[0]
        if not log_loss <= ceiling:
            return DIVERGED, iteration, log_loss, least
        least = min(least, log_loss)
        if log_loss <= stop:
            return STOPPED, iteration, log_loss, least
        if iteration == end:
            return DONE, iteration, log_loss, least
        pulls(problem, work)
        watched = iteration % WATCH == 0
        if watched:
            remember(work)
        if not advance(problem, work):
            return DIVERGED, iteration, log_loss, least
        if watched and is_unchanged(work):
            return UNCHANGED, iteration, log_loss, least
        iteration += 1
