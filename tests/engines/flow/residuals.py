"""Independent check of how a flow ended: plain NumPy on the final network, no engine."""

from __future__ import annotations

import numpy as np
from scipy.optimize import lsq_linear

from reluflow.losses import Square

# a pre-activation below this share of |(a, w)||x| counts as on the plane
ROUNDING = 1e-12
ON_PLANE = 1e-8


def weights(net):
    """Output and hidden weights with their log sizes taken out: unit neurons and logs."""
    shift = np.maximum(net.log_scale, net.log_scale_out)
    a = net.mantissa.a * np.exp(net.log_scale_out - shift)
    W = net.mantissa.W * np.exp(net.log_scale - shift)[:, None]
    size = np.sqrt(a**2 + (W**2).sum(axis=1))
    safe = np.where(size > 0, size, 1.0)
    return a / safe, W / safe[:, None], np.where(size > 0, np.log(safe) + shift, -np.inf)


def forces(data, loss, net):
    """``-dL/dh``; for classification as shares that sum to one."""
    h = net.predict(data.X)
    if isinstance(loss, Square):
        return loss.kappa(data.n) * (data.y - h)
    logs = loss.log_slope(data.y * h)
    shares = np.exp(logs - logs.max())
    return data.y * shares / shares.sum()


def clarke_speed(X, c, a, w, hidden=False):
    """Smallest relative speed ``|d(a, w)/dt|`` over the Clarke set at a unit neuron.

    Returns ``(speed, growth)`` with growth = d log|(a, w)| / dt for that element.
    """
    z = X @ w
    near = np.abs(z) <= ON_PLANE * np.linalg.norm(X, axis=1)
    active = (z > 0) & ~near
    slope = 0.0 if hidden else float(c[active] @ z[active])
    pull = c[active] @ X[active]
    if near.any() and a != 0.0:
        A = (c[near, None] * X[near]).T
        theta = lsq_linear(A, -pull, bounds=(0.0, 1.0), method="bvls").x
        pull = pull + A @ theta
    speed = float(np.sqrt(slope**2 + a * a * (pull @ pull)))
    return speed, a * slope + a * float(pull @ w)


def rate(data, loss):
    """Natural unit of speed: the pull of the labels on a small neuron."""
    kappa = loss.kappa(data.n) if isinstance(loss, Square) else 1.0
    size = np.linalg.norm(data.y) if isinstance(loss, Square) else 1.0
    return kappa * np.linalg.norm(data.X, 2) * size


def hidden_stationarity(data, loss, net):
    """Largest Clarke pull ``|a_j g_j|`` when only hidden weights train, in units of ``max |a|``."""
    c = forces(data, loss, net)
    flat = net.flat()
    size = np.abs(flat.a).max()
    longest = np.linalg.norm(flat.W, axis=1).max()
    worst = 0.0
    for a, w in zip(flat.a, flat.W, strict=True):
        # one that comes to the origin in finite time is there to the rounding of others' weights
        length = max(np.linalg.norm(w), ROUNDING * longest)
        z = data.X @ w
        near = np.abs(z) <= ON_PLANE * length * np.linalg.norm(data.X, axis=1)
        active = (z > 0) & ~near
        pull = c[active] @ data.X[active]
        if near.any():
            A = (c[near, None] * data.X[near]).T
            pull = pull + A @ lsq_linear(A, -pull, bounds=(0.0, 1.0), method="bvls").x
        worst = max(worst, abs(a) / size * float(np.linalg.norm(pull)))
    return worst / rate(data, loss)


def stationarity(data, loss, net):
    """Largest relative Clarke speed over all neurons that are not shrinking to nothing."""
    c = forces(data, loss, net)
    a, W, logs = weights(net)
    worst = 0.0
    for j in np.flatnonzero(np.isfinite(logs)):
        speed, growth = clarke_speed(data.X, c, a[j], W[j])
        shrinking = growth <= -(1.0 - 1e-6) * speed  # along its own direction, towards zero
        if not shrinking:
            worst = max(worst, speed)
    return worst / rate(data, loss)


def descent_left(data, loss, net, hidden=False):
    """``-dL/dt / L`` at a network of ordinary size: how fast the loss still falls."""
    a, W, logs = weights(net)
    h = net.predict(data.X)
    c = loss.forces(h, data.y)
    total = 0.0
    for j in np.flatnonzero(np.isfinite(logs)):
        speed, _ = clarke_speed(data.X, c, a[j], W[j], hidden)
        total += (speed * np.exp(logs[j])) ** 2
    return total / loss.value(h, data.y)
