"""Everything a step knows before it begins, in one call."""

from __future__ import annotations

import numpy as np
from numba import njit

from reluflow.checks import Array
from reluflow.kernels.classes import outputs, rescale, rows_of, speeds, tangent_kernel
from reluflow.kernels.layout import Points
from reluflow.kernels.margins import shares


@njit(cache=True, nogil=True)
def prepare(
    a: Array,
    w: Array,
    sigma: Array,
    mode: Array,
    points: Points,
    square: bool,
    logistic: bool,
    kappa: float,
    hidden: bool,
) -> tuple[Array, ...]:
    """Everything known at the start of a step: the arrays of `Rows`, then those of the state.

    These are ``z, weight, h, c, kernel, speeds`` and, in one array, the largest sum of sizes in an
    output, the largest row sum of kappa times the kernel and the largest speed. Weights are
    rescaled in place.
    """
    if not hidden:
        rescale(a, w, sigma)
    rows = rows_of(mode, points.X, points.gram)
    z, weight, h, sizes = outputs(a, w, sigma, mode, points.X)
    kernel = tangent_kernel(a, z, weight, rows, points.gram, hidden)
    c = kappa * (points.y - h)
    if not square:
        c = shares(h.reshape(1, len(h)), points.y, logistic)[0]
    moving = speeds(c, rows, points.X)
    fastest = moving.max() if len(moving) else 0.0
    scales = np.array([sizes, kappa * np.abs(kernel).sum(axis=1).max(), fastest])
    return (
        rows.cid, rows.active, rows.begin, rows.point, rows.dual, rows.lift,
        z, weight, h, c, kernel, moving, scales,
    )  # fmt: skip
