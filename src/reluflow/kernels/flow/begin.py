"""Everything that a step knows before it begins."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.kernels.flow.classes import outputs, rescale, rows_of, tangent_kernel
from reluflow.kernels.flow.forces import forces, speeds
from reluflow.kernels.flow.layout import Law, Planes, Rows
from reluflow.kernels.flow.planes import is_pulled
from reluflow.kernels.flow.transport import across_of
from reluflow.kernels.kernel import kernel


class Begun(NamedTuple):
    """Everything known at the start of a step.

    ``speeds`` (C,) are the ``|g|`` of the classes; ``most`` is the largest sum of sizes in an
    output, ``stiffness`` bounds the rates of the outputs.
    """

    rows: Rows
    z: Array
    weight: Array
    h: Array
    c: Array
    kernel: Array
    speeds: Array
    most: float
    stiffness: float


@kernel
def begin(
    a: Array, w: Array, sigma: Array, mode: NDArray[Any], still: Array, still_sigma: Array,
    planes: Planes, law: Law,
) -> Begun:  # fmt: skip
    """Everything a step knows before it begins. Weights are rescaled in place.

    A neuron that joins a ray has its part across noted in ``still`` there.
    """
    fixed = np.zeros(len(a), np.bool_)
    if law.hidden:
        for j in range(len(a)):
            fixed[j] = a[j] == 0.0
    else:
        rescale(a, w, sigma)
        # a neuron whose weights are all zero never moves, nor one that nothing pulls along w
        for j in range(len(a)):
            fixed[j] = a[j] == 0.0 and not (w[j].any() and is_pulled(mode[j], planes.both))
    rows = rows_of(mode, planes, fixed)
    if not law.hidden:
        keep_still(w, sigma, still, still_sigma, rows)
    z, weight, h, most = outputs(a, w, sigma, mode, planes)
    kernel = tangent_kernel(a, z, weight, rows, planes, law.hidden)
    c = forces(h.reshape(1, len(h)), planes, law)[0]
    moving = speeds(c, rows, planes)
    factor = law.kappa if law.kappa > 0.0 else 1.0
    largest = 0.0  # sum of a row
    for i in range(len(kernel)):
        largest = max(largest, np.abs(kernel[i]).sum())
    stiffness = factor * largest + 2.0 * law.decay
    return Begun(rows, z, weight, h, c, kernel, moving, most, stiffness)


@kernel
def keep_still(w: Array, sigma: Array, still: Array, still_sigma: Array, rows: Rows) -> None:
    """Hold the part of ``w`` across the ray of a class; forget it where there is no ray."""
    m, d = w.shape
    for j in range(m):
        k = rows.cid[j]
        if k < 0 or not rows.ray[k]:
            still_sigma[j] = np.nan
            continue
        along = np.dot(w[j], rows.axis[k])
        if np.isnan(still_sigma[j]):
            still_sigma[j] = sigma[j]
            confined = rows.begin[k + 1] - rows.begin[k] >= d - 1
            for q in range(d):
                part = across_of(w[j, q], along * rows.axis[k, q])
                still[j, q] = 0.0 if confined else part
        factor = np.exp(min(still_sigma[j] - sigma[j], 700.0))
        for q in range(d):
            w[j, q] = along * rows.axis[k, q] + factor * still[j, q]
