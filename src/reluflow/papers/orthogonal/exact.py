r"""Closed forms on orthonormal points: one neuron while it fits, a neuron under constant forces."""

from __future__ import annotations

import numpy as np

from reluflow.checks import Array


def one_neuron(v0: Array, y: Array, kappa: float, t: float) -> Array:
    r"""State ``(a, c)`` at time t of a single neuron with fixed active points.

    .. math:: v(t) = \frac{z(t)}{\sqrt{1 + \kappa \int_0^t |z|^2}}, \qquad
              z(t) = e^{\kappa G t} v(0), \qquad
              G = \begin{pmatrix} 0 & y^T \\ y & 0 \end{pmatrix}
                + \frac{a^2 - |c|^2}{2} \mathrm{diag}(1, -1, \dots, -1)

    Parameters
    ----------
    v0 : (1 + n,) array
        ``a`` and the coordinates ``c_i = w . x_i`` of the active points at time 0.
    y : (n,) array
        Labels of the active points.
    kappa, t : float
        Normalisation of the loss, time.

    Examples
    --------
    >>> one_neuron(np.array([0.5, 0.5]), np.array([1.0]), 1.0, 50.0).round(12)
    array([1., 1.])

    Numerics
    --------
    G is symmetric; in its eigenvectors the integral is a sum of exponentials. Both z and the
    integral are taken over the fastest growing one, so any t is allowed.
    """
    half = 0.5 * float(v0[0] ** 2 - v0[1:] @ v0[1:])
    G = np.diag(np.append(half, np.full(len(y), -half)))
    G[0, 1:] = G[1:, 0] = y
    rates, vectors = np.linalg.eigh(kappa * G)
    parts = vectors.T @ v0
    top = max(float(rates.max()), 0.0)
    grown = parts * np.exp((rates - top) * t)
    small = np.abs(rates) * t < 1e-9
    safe = np.where(small, 1.0, rates)
    # integral of e^{2 rate s}, over e^{2 top t}
    integrals = np.where(
        small,
        t * np.exp(-2.0 * top * t),
        (np.exp(2.0 * (rates - top) * t) - np.exp(-2.0 * top * t)) / (2.0 * safe),
    )
    norm = np.sqrt(np.exp(-2.0 * top * t) + kappa * float(parts**2 @ integrals))
    return np.asarray(vectors @ grown / norm)


def boost(v0: Array, d: Array, t: float) -> Array:
    r"""State ``(a, c)`` after time t under constant forces: ``a' = d . c``, ``c' = a d``.

    With :math:`g = |d|`, :math:`u = d/g`: a hyperbolic rotation in the plane of ``a`` and
    ``u . c``, so :math:`a^2 - |c|^2` stays.

    Examples
    --------
    >>> boost(np.array([1.0, 0.0]), np.array([2.0]), 0.5).round(6)
    array([1.543081, 1.175201])
    """
    g = float(np.linalg.norm(d))
    if g == 0.0:
        return np.array(v0)
    u = d / g
    along = float(u @ v0[1:])
    sinh, cosh1 = np.sinh(g * t), 2.0 * np.sinh(0.5 * g * t) ** 2
    c = v0[1:] + u * (along * cosh1 + v0[0] * sinh)
    return np.append(v0[0] * (1.0 + cosh1) + along * sinh, c)
