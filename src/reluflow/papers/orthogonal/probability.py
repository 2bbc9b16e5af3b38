r"""Proposition 2 and Theorem 3: probabilities over the random start, exact where they can be.

The start of Assumption 3 gives neuron j a fair sign and, on points of that sign, fair coins
(orthonormal points make the signs of :math:`w \cdot x_i` independent). Where all labels have one
sign and so have all neurons (``matched``) the coins alone are random.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.limits import SaddleToSaddle

LARGEST_EXACT = 20_000  # n * m up to which whole numbers of n * m bits are cheap


def exact_probability(positive: int, negative: int, m: int, *, matched: bool) -> Fraction:
    r"""The probability of Assumption 4(i), as a fraction.

    .. math:: Q(n, m) = 2^{-nm} \sum_{k=0}^n (-1)^k \binom nk (2^{n-k} - 1)_m, \qquad
              P = \sum_p \binom mp 2^{-m} Q(n_+, p) \, Q(n_-, m - p)

    with falling factorials :math:`(N)_m`: inclusion-exclusion over zero rows of matrices with
    distinct non-zero columns.

    Examples
    --------
    >>> exact_probability(1, 1, 2, matched=False)
    Fraction(1, 8)
    """
    if matched:
        return _distinct(positive + negative, m)[m]
    plus, minus = _distinct(positive, m), _distinct(negative, m)
    total = sum((math.comb(m, p) * plus[p] * minus[m - p] for p in range(m + 1)), Fraction(0))
    return total / Fraction(2**m)


def lower_bound(positive: int, negative: int, m: int, *, matched: bool) -> float:
    r"""The union bound behind Proposition 2 (may be negative: then it says nothing).

    :math:`1 - n (3/4)^m - m 2^{-n_{\min}} - \frac{m(m-1)}{4} 2^{-n_{\min}}`; with matched signs
    :math:`1 - n 2^{-m} - m 2^{-n} - \frac{m(m-1)}{2} 2^{-n}`.

    Examples
    --------
    >>> round(lower_bound(32, 32, 40, matched=False), 6)
    0.999356
    """
    n = positive + negative
    if matched:
        return 1.0 - n * 0.5**m - (m + m * (m - 1) / 2) * 0.5**n
    least = min(positive, negative)
    return 1.0 - n * 0.75**m - (m + m * (m - 1) / 4) * 0.5**least


def coverage(positive: int, negative: int, m: int, *, matched: bool) -> float:
    """Probability that every point has a matching neuron, that is, that the limit interpolates.

    Examples
    --------
    >>> round(coverage(64, 0, 6, matched=True), 3)
    0.365
    """
    n = positive + negative
    if matched:
        return float((1.0 - 0.5**m) ** n)
    p = np.arange(m + 1)
    weights = np.array([math.comb(m, int(k)) / 2**m for k in p])
    return float(weights @ ((1.0 - 0.5**p) ** positive * (1.0 - 0.5 ** (m - p)) ** negative))


def distinct(positive: int, negative: int, m: int, *, matched: bool) -> float:
    r"""Probability that masks are distinct and not empty: :math:`\prod_j (1 - j 2^{-n})` a sign.

    Examples
    --------
    >>> distinct(2, 0, 2, matched=True)
    0.375
    """
    if matched:
        return float(_distinct_masks(positive + negative, m)[m])
    weights = np.array([math.comb(m, k) / 2**m for k in range(m + 1)])
    plus, minus = _distinct_masks(positive, m), _distinct_masks(negative, m)
    return float(weights @ (plus * minus[::-1]))


def _distinct_masks(n: int, m: int) -> Array:
    """For 0 to m neurons that are all of one sign."""
    return np.cumprod(np.append(1.0, np.maximum(1.0 - np.arange(1, m + 1) * 0.5**n, 0.0)))


def enclosed(positive: int, negative: int, m: int, *, matched: bool) -> tuple[float, float]:
    """Bounds on the probability of Assumption 4(i): exact for few, else from its two halves.

    It is that of `coverage` and `distinct` together, so at most either, and at least their sum - 1.
    """
    parts = (positive, negative, m)
    if (positive + negative) * m <= LARGEST_EXACT:
        exact = float(exact_probability(*parts, matched=matched))
        return exact, exact
    covers, differ = coverage(*parts, matched=matched), distinct(*parts, matched=matched)
    return max(covers + differ - 1.0, 0.0), min(covers, differ)


def is_proper(masks: NDArray[np.bool_], signs: NDArray[np.float64]) -> bool:
    """No zero row, no zero column, no repeated column of the paper's matrix (masks transposed)."""
    if not (masks.any(axis=0).all() and masks.any(axis=1).all()):
        return False
    return len({np.packbits(row).tobytes() for row in masks}) == len(signs)


def failure_probability(n: int, m: int) -> float:
    r"""Bound on the probability that some unfitted set is larger than twice its mean.

    .. math:: p = \sum_{k=1}^K \binom mk P[\mathrm{Bin}(n, 2^{-k}) > 2 n 2^{-k}], \qquad
              K = \min(m, \lceil \tfrac12 \log_2 n \rceil)

    After k jumps of one sign the unfitted points of that sign are those outside the masks of k
    neurons, and there are :math:`\binom mk` such sets; above 1 it says nothing.

    Examples
    --------
    >>> round(failure_probability(1024, 40), 3)
    0.076
    """
    from scipy.special import bdtrc

    total = 0.0
    for k in range(1, halvings(n, m) + 1):
        total += math.comb(m, k) * float(bdtrc(math.floor(2 * n / 2**k), n, 0.5**k))
    return total


def failure_of_signs(y: Array, m: int) -> float:
    """The bound for labels of both signs: theirs added up."""
    parts = [int((y * s > 0.0).sum()) for s in (1.0, -1.0)]
    return sum(failure_probability(n, m) for n in parts if n)


def halvings(n: int, m: int) -> int:
    """K: jumps of one sign after which about sqrt(n) points are left."""
    return min(m, math.ceil(math.log2(n) / 2)) if n > 1 else 0


def set_bound(process: SaddleToSaddle) -> float:
    """``2 ymax [sum_(k<K) sqrt|U_k| + |U_K|]`` summed over the two signs, U_k as measured."""
    total = 0.0
    for s, rest, m in _unfitted(process):
        K = min(halvings(int((s * process.y > 0.0).sum()), m), len(rest) - 1)
        total += float(np.sqrt(rest[:K]).sum() + rest[K])
    return 2.0 * float(np.abs(process.y).max()) * total


def worst_halving(process: SaddleToSaddle) -> float:
    """Largest ``|U_k| / (2 n 2^-k)`` over the first K jumps of each sign (Theorem 3)."""
    worst = 0.0
    for _, rest, m in _unfitted(process):
        left = int(rest[0])
        for k in range(1, min(halvings(left, m), len(rest) - 1) + 1):
            worst = max(worst, float(rest[k]) / (2.0 * left * 0.5**k))
    return worst


def _unfitted(process: SaddleToSaddle) -> Iterator[tuple[float, Array, int]]:
    """Each sign: its points that are not fitted after 0, 1, ... of its jumps, and its neurons.

    Points without a neuron are in every U_k but in no jump: they are left out.
    """
    for s in (1.0, -1.0):
        sizes = [len(points) for points in process.fitted if s * process.y[points[0]] > 0.0]
        yield s, sum(sizes) - np.cumsum([0, *sizes]), int((process.signs == s).sum())


def _distinct(n: int, m: int) -> list[Fraction]:
    """``Q(n, p)`` for p = 0..m."""
    sums = [0] * (m + 1)
    for k in range(n + 1):
        sign, top = (-1) ** k * math.comb(n, k), 2 ** (n - k) - 1
        falling = 1
        for p in range(m + 1):
            sums[p] += sign * falling
            falling *= top - p
    return [Fraction(total, 2 ** (n * p)) for p, total in enumerate(sums)]
