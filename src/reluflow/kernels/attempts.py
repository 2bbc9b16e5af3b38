r"""One tried step of the coupled flow in one call: equations, error, events.

Separate calls would cost more than the arithmetic of a small network.

The equations know the rows of the start. A light neuron that leaves its row adds a kink to the
outputs, below the tolerance as such; but where the outputs react fast the others would have
answered it, and the forces, which are small late in training, are off by the kink. A stiff step is
therefore solved again with the kinks of its walks as given, until the walks repeat them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.kernels.carrying import advance, light_ones
from reluflow.kernels.collocation import defects, solve_square
from reluflow.kernels.layout import Law, Neurons, Points, Rows, Tables
from reluflow.kernels.margins import solve_margin
from reluflow.kernels.releases import releases

# measured: at rtol 1e-4 the power of the defect overestimates the error by this much or more.
# Below, the error would fall like rtol^0.65; the estimate is raised so that it falls like rtol.
CALIBRATION, LOOSE, PROPORTION = 0.02, 1e-4, 0.45
# error of Gauss collocation on exp(q), divided by q: (4!)^2 / (8! 9!) for four stages
GROWTH_ERROR = 3.94e-8
# a kink in the last share q of a step is missed there: q^2 / 2 against 1 / 20 for one anywhere
LATE = 0.1
# so often a stiff step is solved with the kinks of its walks; they are repeated if they agree to
# ENOUGH times the goal of the equations, and must agree to ten times that. If they do not, the
# error is said to be UNSETTLED: a step of two fifths follows
CORRECTIONS, ENOUGH, UNSETTLED = 8, 50.0, 200.0


@njit(cache=True, nogil=True)
def attempt(
    neurons: Neurons,
    rows: Rows,
    points: Points,
    tables: Tables,
    law: Law,
    logistic: bool | None,
    h0: Array,
    c0: Array,
    kernel: Array,
    values: Array,
    vectors: Array,
    stiff: bool,
    fastest: float,
    rounding: float,
    step: float,
    rtol: float,
    bend: Array,
    ratio: float,
    goal: float,
    heavy: NDArray[Any],
    light_bound: float,
    stiffness: float,
    near: float,
    far: float,
    on_plane: float,
    patient: bool,
    log: Array,
) -> tuple[Any, ...]:
    """Solve a step of size ``step`` and carry the neurons to its end.

    ``logistic`` is None for the square loss: what the loss does not need is then not compiled.
    ``h0, c0, kernel``, its eigenpairs, the ``fastest`` speed and the ``rounding`` of the outputs
    belong to the start; ``bend, ratio, goal`` are explained in `solve_square`, ``heavy`` and the
    bound in `light_ones`, ``near`` and ``far`` in `releases`; ``stiffness`` is the fastest rate of
    the outputs. Returns
    ``(iterations, h, c, bend, error, boost, light)`` and the results of `releases` and `advance`,
    which are empty where the equations were not solved (0 iterations) or the error, relative to the
    tolerance, exceeds 1. ``boost`` is the largest angle in the step, of a
    neuron that crosses a plane too: the force of that point is then no longer balanced.
    """
    error, boost = np.inf, 0.0
    light = heavy
    leaving, unit, up = np.empty(0), np.empty(0), np.empty(0, np.bool_)
    a, w, mode, tau = neurons.a, neurons.w, neurons.mode, np.empty(0)
    point, met, used, whole = np.empty(0, np.int64), np.empty(0, np.int64), 0, False
    scale = 0.0
    if logistic is None:
        scale = law.force_scale
    kinks = np.zeros((len(tables.radau), len(c0)))
    gap, relax = kinks, 1.0
    iterations, h, c = 0, kinks, kinks
    tail = 1.0 / max(step * stiffness, 1.0)
    for turn in range(CORRECTIONS):
        if logistic is None:
            iterations, h, c, bend = solve_square(
                neurons, rows, points, tables, c0, values, vectors, kernel, law.kappa, step, bend,
                ratio, goal, rounding, law.hidden, kinks,
            )  # fmt: skip
        else:
            iterations, h, c, bend = solve_margin(
                neurons, rows, points, tables, h0, c0, kernel, stiff, logistic, step, bend, ratio,
                goal, rounding, law.hidden, kinks,
            )  # fmt: skip
        if iterations == 0:
            break
        if turn == 0:
            error, boost = _error(rows, points, tables, law, c0, c, step, rtol, fastest)
            light_bound /= max(min(1.0, boost) ** 2, 1e-300)
        if error > 1.0:
            break
        light = light_ones(neurons, rows, heavy, light_bound)
        leaving, unit, up = releases(c0, c, rows, tables.force, near, far, scale)
        walked = np.zeros(kinks.shape)
        a, w, mode, tau, point, met, used, whole = advance(
            neurons, rows, points, tables, c0, c, step, light, heavy,
            LATE * light_bound, tail, law.hidden, on_plane, leaving, near, far, scale,
            patient, log, walked,
        )  # fmt: skip
        if tail == 1.0 or used == 0 or not whole or light[met].any():
            break
        gap, before = walked - kinks, gap
        size = np.abs(gap).max()
        if size <= ENOUGH * goal:
            break
        if turn == CORRECTIONS - 1 and size > 10.0 * ENOUGH * goal:
            error = UNSETTLED
        change = gap - before
        if turn > 0 and change.any():  # the secant along the last two gaps (Irons and Tuck)
            relax *= -(before * change).sum() / (change * change).sum()
        kinks = kinks + relax * gap
        ratio = 1.0
    return (
        iterations, h, c, bend, error, boost, light, leaving, unit, up,
        a, w, mode, tau, point, met, used, whole,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _error(
    rows: Rows,
    points: Points,
    tables: Tables,
    law: Law,
    c0: Array,
    c: Array,
    step: float,
    rtol: float,
    fastest: float,
) -> tuple[float, float]:
    """Return ``(error / rtol, boost)``; see `attempt`.

    The force polynomial misses the known start value by a defect of order S. At the end of a step
    the error is of order 2S-1, because Radau nodes make the defect orthogonal to polynomials. So
    the relative defect to the power (2S-1)/S measures the error per unit of progress.
    """
    stages = len(c)
    defect, largest, last = defects(c0, c, rows, points, tables.to_start)
    if largest == 0.0:
        return 0.0, 0.0
    boost = step * max(fastest, last)
    error = CALIBRATION * max(LOOSE / rtol, 1.0) ** PROPORTION
    error *= (defect / largest) ** ((2 * stages - 1) / stages)
    error *= min(largest / (law.force_scale * law.longest), 1.0)
    error *= max(1.0, min(step * law.rate, 1e3))
    if not law.hidden:
        error += GROWTH_ERROR * boost ** (2 * stages)
    return error / rtol, max(boost, step * largest)
