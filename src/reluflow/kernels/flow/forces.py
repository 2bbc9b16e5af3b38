r"""From outputs to pulls: forces of the points, of the planes, and on each class of neurons.

A plane with points :math:`x_i = t_i u` pulls along ``u`` with :math:`\sum_{t_i>0} c_i t_i` a neuron
above it and with :math:`\sum_{t_i<0} c_i t_i` a neuron below. Single points are the case in which
the second sum is empty. With a leaky ReLU each sum gains the slope times the other.
"""

from __future__ import annotations

import numpy as np

from reluflow.checks import Array
from reluflow.kernels.flow.layout import ABOVE, SLIDE, Law, Planes, Rows
from reluflow.kernels.flow.transport import dot3
from reluflow.kernels.kernel import kernel


@kernel
def forces(h: Array, planes: Planes, law: Law) -> Array:
    """Forces ``-dL/dh`` (S, n) at outputs ``h`` (S, n), in the clock of the loss."""
    if law.kappa > 0.0:
        return law.kappa * (planes.y - h)
    return shares(h, planes.y, law)


@kernel
def shares(h: Array, y: Array, law: Law) -> Array:
    """Forces ``y_i p_i`` (S, n) of a classification loss in its own clock; the p sum to one.

    With weight decay the loss does not tend to zero: the clock is time and the p are not scaled.
    """
    c = np.empty(h.shape)
    stages, n = h.shape
    for k in range(stages):
        top = -np.inf
        for i in range(n):
            q = y[i] * h[k, i]
            slope = -q
            if law.logistic:
                slope = -max(q, 0.0) - np.log1p(np.exp(-abs(q)))
            c[k, i] = slope
            top = max(top, slope)
        if law.decay > 0.0:
            for i in range(n):
                c[k, i] = np.exp(c[k, i]) * y[i] / n
            continue
        total = 0.0
        for i in range(n):
            c[k, i] = np.exp(c[k, i] - top)
            total += c[k, i]
        for i in range(n):
            c[k, i] *= y[i] / total
    return c


@kernel
def share_jacobian(h: Array, c: Array, y: Array, law: Law) -> Array:
    """The matrix ``-dc/dh`` (n, n) at outputs ``h`` (n,) with forces ``c``."""
    n = len(h)
    jacobian = np.zeros((n, n))
    for k in range(n):
        # d log(-l')/dq is -1 for the exponential and -sigmoid(q) for the logistic loss
        bend = 1.0
        if law.logistic:
            q = y[k] * h[k]
            bend = 1.0 / (1.0 + np.exp(-q)) if q >= 0 else np.exp(q) / (1.0 + np.exp(q))
        if law.decay == 0.0:  # shares: where one grows the others fall
            for i in range(n):
                jacobian[i, k] = -c[i] * abs(c[k]) * bend * y[k]
        jacobian[k, k] += abs(c[k]) * bend
    return jacobian


@kernel
def on_planes(c: Array, planes: Planes) -> tuple[Array, Array]:
    """Pulls of the planes, below and above, ``(low, high)`` (S, P), of forces ``c`` (S, n)."""
    stages, n = c.shape
    low = np.zeros((stages, len(planes.U)))
    high = np.zeros((stages, len(planes.U)))
    for k in range(stages):
        for i in range(n):
            pull = planes.length[i] * c[k, i]
            if planes.length[i] > 0.0:
                high[k, planes.owner[i]] += pull
                low[k, planes.owner[i]] += planes.slope * pull
            else:
                low[k, planes.owner[i]] += pull
                high[k, planes.owner[i]] += planes.slope * pull
    return low, high


@kernel
def spread(low: Array, high: Array, rows: Rows) -> Array:
    """Multipliers (C, S, P), ``g = sum_p f_p u_p`` of a class; on slides the projection's."""
    classes, size = rows.face.shape
    stages = low.shape[0]
    f = np.zeros((classes, stages, size))
    for k in range(classes):
        for s in range(stages):
            for p in range(size):
                if rows.face[k, p] < SLIDE:
                    f[k, s, p] = high[s, p] if rows.face[k, p] == ABOVE else low[s, p]
        for q in range(rows.begin[k], rows.begin[k + 1]):
            for s in range(stages):
                f[k, s, rows.plane[q]] = dot3(f, k, s, rows.lift, q)
        # a slide's own column of the lift is zero, so the order does not matter
    return f


@kernel
def pulls(f: Array, rows: Rows, U: Array) -> tuple[Array, Array]:
    """The vectors ``g`` (C, S, d) of multipliers and their products with the normals, (C, S, P)."""
    classes, stages, size = f.shape
    d = U.shape[1]
    flat = np.dot(f.reshape(classes * stages, size), U)
    gam = np.dot(flat, U.T).reshape(classes, stages, size)
    for k in range(classes):
        for q in range(rows.begin[k], rows.begin[k + 1]):
            for s in range(stages):
                gam[k, s, rows.plane[q]] = 0.0
    return flat.reshape(classes, stages, d), gam


@kernel
def speeds(c: Array, rows: Rows, planes: Planes) -> Array:
    """``|g|`` of each class in forces ``c`` (n,)."""
    low, high = on_planes(c.reshape(1, len(c)), planes)
    f = spread(low, high, rows)
    g = np.dot(f[:, 0].copy(), planes.U)
    lengths = np.empty(len(g))
    for k in range(len(g)):
        lengths[k] = np.sqrt(np.dot(g[k], g[k]))
    return lengths
