r"""Sharp jump times: the constants beyond the leading order in ``log(1/lam)``.

Orthonormal data; a neuron is ``(a, c)`` with ``c_i = w . x_i``, and ``d_i = kappa r_i`` on active
points (r the residuals), so ``a' = d . c``, ``c' = a d``. Three pieces:

* *alignment*: with residuals frozen at the labels, ``|a_j(t)|`` tends to
  :math:`\chi_j \lambda e^{g_j t}`, :math:`g_j = \kappa |y_{A_j}|`;
* *switch*: while jump k fits the points F_k, the residuals there follow the logistic law, and a
  dormant neuron turns from growth rate :math:`\kappa |y_{A \cap U}|` to
  :math:`\kappa |y_{A \cap U \setminus F_k}|`, which multiplies its norm by a constant S;
* *recursion*: logarithms of the norms of groups grow linearly between these corrections, and a
  group jumps when its extrapolated norm reaches :math:`\sqrt{Y_k}`.

Reference: Town, Boursier, Lewis, Englert, Lazic (arXiv 2605.27097) for the process; the constants,
including the closed form of S, are derived here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow.checks import Array


def alignment_constant(c: Array, rest: float, d: Array) -> float:
    r"""Logarithm of :math:`\chi = \lim_t e^{-gt} a(t)` for one balanced neuron with a(0) = 1.

    Parameters
    ----------
    c : (n,) array
        Coordinates of the unit hidden weights; points with ``c_i <= 0`` are inactive for ever.
    rest : float
        Squared norm of what never moves: inactive coordinates and the part outside the span.
    d : (n,) array
        ``kappa s y_i``: positive on points of the neuron's sign, negative on the others, which the
        neuron loses one by one. At least one active point must have ``d_i > 0``.

    Notes
    -----
    With the clock :math:`A = \int a \, dt` every active coordinate is :math:`c_i + d_i A`, so a
    wrong-sign point is lost at :math:`A = c_i/|d_i|` whatever happens to the others: the order is
    known beforehand. Between two losses :math:`a^2 = q^2 + (gA + B/g)^2` with
    :math:`g^2 = \sum d_i^2`, :math:`B = \sum d_i c_i` and q constant, so
    :math:`t = g^{-1} \mathrm{asinh}((g A + B/g)/q)` up to a constant. At the end
    :math:`\chi = \tfrac12 (a + p) e^{-gt}` with p the component of c along d; without wrong-sign
    points :math:`\chi = (1 + \cos\varphi)/2`.

    Examples
    --------
    >>> round(alignment_constant(np.array([0.6, -0.8]), 0.64, np.array([2.0, 1.0])), 12)
    -0.223143551314

    Numerics
    --------
    Sums run from the last loss backwards, so nothing is subtracted. O(n log n).
    """
    active = c > 0.0
    c, d = c[active], d[active]
    wrong = d < 0.0
    loss = c[wrong] / -d[wrong]
    by_loss = np.argsort(loss, kind="stable")
    loss = loss[by_loss]

    def sums(values: Array) -> Array:
        """Sums over the active points on each piece; the last piece has no wrong-sign point."""
        tail = np.cumsum(values[wrong][by_loss][::-1])[::-1]
        return np.asarray(np.append(tail, 0.0) + values[~wrong].sum())

    g, B = np.sqrt(sums(d * d)), sums(d * c)
    q = np.sqrt(np.maximum(rest + sums(c * c) - (B / g) ** 2, np.finfo(float).tiny))
    start = np.append(0.0, loss)
    left, right = g * start + B / g, g[:-1] * loss + B[:-1] / g[:-1]
    t = float(np.sum((np.arcsinh(right / q[:-1]) - np.arcsinh(left[:-1] / q[:-1])) / g[:-1]))
    # after the last loss all components along d are positive: no cancellation in a + p
    p = float(left[-1])
    return float(np.log(0.5 * (np.hypot(q[-1], p) + p)) - g[-1] * t)


def switch_constant(fitted: ArrayLike, left: ArrayLike, jump: float) -> Array:
    r"""Logarithm of S for dormant neurons of rates ``fitted`` = gP on F_k and ``left`` = gQ beyond.

    With :math:`f(t) = 1/(1 + e^{2 g_k t})` the system :math:`a' = g_P f p + g_Q q`,
    :math:`p' = g_P f a`, :math:`q' = g_Q a` is the square of a two-component one,
    :math:`a = \psi_1^2 + \psi_2^2`, :math:`p = \psi_1^2 - \psi_2^2`, :math:`q = 2 \psi_1 \psi_2`,

    .. math:: \psi' = \tfrac12 \begin{pmatrix} g_P f & g_Q \\ g_Q & -g_P f \end{pmatrix} \psi,

    which is hypergeometric in :math:`e^{2 g_k t}`. Its connection formula gives, with
    :math:`P = g_P/g_k`, :math:`Q = g_Q/g_k`, :math:`R = \sqrt{P^2 + Q^2}`,

    .. math:: S = \left(1 + \frac PR\right) \left[ \frac{\Gamma(1 + R/2) \, \Gamma(Q/2)}
              {\Gamma((R - P + Q)/4) \, \Gamma(1 + (R + P + Q)/4)} \right]^2 .

    S = 1 for P = 0. For Q = 0 the neuron stops growing, S = 1 (the formula tends to 1/2 there: the
    other half sits in a mode that decays for any Q > 0).

    Examples
    --------
    >>> switch_constant([0.0, 1.0, 1.0], [1.0, 1.0, 0.0], 1.0).round(8)
    array([ 0.        , -0.24768903,  0.        ])

    Numerics
    --------
    Absolute error about 1e-15 (1 + R log R), checked against an integration to 1e-11.
    """
    from scipy.special import gammaln

    P, Q = np.broadcast_arrays(np.asarray(fitted) / jump, np.asarray(left) / jump)
    trivial = (P == 0.0) | (Q == 0.0)
    P, Q = np.where(trivial, 1.0, P), np.where(trivial, 1.0, Q)
    R = np.hypot(P, Q)
    less = Q * Q / (R + P)  # R - P
    log_ratio = gammaln(1 + R / 2) + gammaln(Q / 2)
    log_ratio -= gammaln((less + Q) / 4) + gammaln(1 + (R + P + Q) / 4)
    return np.asarray(np.where(trivial, 0.0, np.log1p(P / R) + 2.0 * log_ratio))


def half_times(
    log_start: Array,
    jumpers: NDArray[np.intp],
    slopes: Array,
    overlaps: Array,
    norms: Array,
    kappa: float,
) -> tuple[Array, bool]:
    r"""Half times of the jumps at finite scale, and whether the limit order still holds.

    Parameters
    ----------
    log_start : (G,) array
        Start of the groups, ``log_scale + (1/2) log sum chi_j^2``.
    jumpers : (K,) int array
        The group of each jump.
    slopes : (K + 1, G) array
        Growth rates on the plateaus before each jump and after the last.
    overlaps : (K, G) array
        ``kappa |y_{A_g & F_k}|``.
    norms : (K,) array
        ``Y_k``.
    kappa : float
        Normalisation of the loss.
    """
    ell, t, ordered = log_start.copy(), 0.0, True
    dormant = np.ones(len(ell), dtype=bool)
    times = np.empty(len(jumpers))
    for k, g in enumerate(jumpers):
        wait = (0.5 * np.log(norms[k]) - ell[g]) / slopes[k, g]
        dormant[g] = False
        # another group would have reached its own height first, or this one was due before
        height = 0.5 * np.log(np.maximum(slopes[k], np.finfo(float).tiny) / kappa)
        ahead = ell + slopes[k] * wait > height
        ordered = ordered and wait > 0 and not bool((ahead & dormant & (slopes[k] > 0)).any())
        t += wait
        times[k] = t
        ell += slopes[k] * wait
        ell[dormant] += switch_constant(
            overlaps[k, dormant], slopes[k + 1, dormant], kappa * norms[k]
        )
    return times, ordered
