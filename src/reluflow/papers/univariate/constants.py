r"""Constants of the theorems, as the text at hand has them, and the closed forms of its examples.

Theorem numbers are those of Safran, Vardi and Lee (NeurIPS 2022, arXiv 2205.09072). Logs are
natural; ``r`` is the width of the teacher, ``R >= 1`` bounds the inputs, ``C`` bounds the density,
``rho`` is the length of the shortest stretch with one label.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from reluflow.dataset import Dataset
from reluflow.datasets.own import from_points
from reluflow.network import Network


@dataclass(frozen=True)
class Requirements:
    """What a theorem asks: least width, least hidden and largest output standard deviation."""

    width: float
    sigma_hidden: float
    sigma_output: float


def optimisation_requirements(
    n: int,
    r: int,
    R: float,
    rho: float,
    C: float,
    delta: float,
    *,
    width: int | None = None,
    sigma_hidden: float | None = None,
    end_to_end: bool = False,
) -> Requirements:
    r"""The conditions of Theorem 3.1, or with ``end_to_end`` those of Theorem 2.3.

    .. math:: k \ge \frac{6144 R^4 \log(24r/\delta)}{\rho}, \quad
              \sigma_h \ge \frac{4200 n^2 C R^{3.5} \sqrt{rk}}{\delta\rho}, \quad
              \sigma_o \le \frac{1}{4kR\sigma_h \log(6k/\delta)}

    Each condition depends on the one before; ``width`` and ``sigma_hidden`` put chosen values in
    place of the least ones. Theorem 2.3 spends half of delta here: 24, 4200 and 6 double.

    Examples
    --------
    >>> needed = optimisation_requirements(10, 1, 1.0, 1.0, 0.5, 0.1)
    >>> int(needed.width), f"{needed.sigma_hidden:.3g}", f"{needed.sigma_output:.2g}"
    (33674, '3.85e+08', '1.3e-15')
    """
    half = 2.0 if end_to_end else 1.0
    R = max(1.0, R)
    least = math.ceil(6144 * R**4 * math.log(half * 24 * r / delta) / rho)
    k = least if width is None else width
    hidden = half * 4200 * n**2 * C * R**3.5 * math.sqrt(r * k) / (delta * rho)
    used = hidden if sigma_hidden is None else sigma_hidden
    output = 1.0 / (4 * k * R * used * math.log(half * 6 * k / delta))
    return Requirements(float(least), hidden, output)


def region_bound(count: int) -> int:
    """Theorem 4.2: at most ``32 r + 67`` linear regions (also with label switches for r).

    Examples
    --------
    >>> region_bound(1)
    99
    """
    return 32 * count + 67


def loss_floor(alpha: float) -> float:
    """Theorem 3.2 as stated: population loss at least ``(1 - 0.75 alpha)/4``, not below 0."""
    return max(0.0, 0.25 * (1.0 - 0.75 * alpha))


def least_wrong_cells(cells: int, alive: int) -> int:
    r"""How many of M alternating cells ``alive`` neurons must get wrong.

    .. math:: \lceil (M - 1 - \mathrm{cap}(A))/2 \rceil, \qquad \mathrm{cap}(A) = A + 1

    A piecewise linear function with A kinks changes sign at most A + 1 times; the correct cells
    among M alternate at least M - 1 - 2e times when e are wrong.

    Examples
    --------
    >>> least_wrong_cells(20, 9), least_wrong_cells(5, 9)
    (5, 0)
    """
    return max(0, math.ceil((cells - 1 - (alive + 1)) / 2))


def quarter_tail(k: int) -> float:
    """``P[Bin(k, 1/4) >= k/4]``, the probability that a quarter of the neurons starts dead.

    Examples
    --------
    >>> quarter_tail(1)
    0.25
    """
    from scipy.stats import binom

    return float(binom.sf(math.ceil(k / 4) - 1, k, 0.25))


# ---------------------------------------------------------------------- Example 1


def example_1() -> tuple[Dataset, Network]:
    """Two positive points at +-4; one constant neuron, one zero neuron (section 4.1)."""
    return from_points([4.0, -4.0], [1.0, 1.0]), Network([1.0, 0.0], [[0.0, 1.0], [0.0, 0.0]])


def example_1_log_time(squared_weight: float, *, logistic: bool) -> float:
    r"""Logarithm of the time at which :math:`v_1^2 = b_1^2` has this value.

    .. math:: t = \tfrac12 (\mathrm{Ei}(a^2) - \mathrm{Ei}(1)), \qquad
              t = \log a + \tfrac12 (\mathrm{Ei}(a^2) - \mathrm{Ei}(1))

    for the exponential and the logistic loss.

    Numerics
    --------
    Above 40 by the asymptotic series of Ei to its smallest term or rounding, relative error 1e-15
    (``test_example_1_time_against_mpmath``).

    Examples
    --------
    >>> round(example_1_log_time(2.0, logistic=False), 9)
    0.424978981
    """
    from scipy.special import expi

    x = float(squared_weight)
    extra = 0.5 * math.log(x) if logistic else 0.0
    if x <= 40.0:
        return math.log(0.5 * float(expi(x) - expi(1.0)) + extra)
    term = total = 1.0
    for k in range(1, 40):
        term *= k / x
        if term < 1e-18:
            break
        total += term
    # Ei(1) and the logarithm are below e^-35 of the first term
    return x - math.log(x) + math.log(total) - math.log(2.0)


def example_1_optimum() -> float:
    r"""The least :math:`|\theta|^2` of the margin problem of Example 1, :math:`4/\sqrt{17}`."""
    return 4.0 / math.sqrt(17.0)


# ---------------------------------------------------------------------- counterexamples


def logistic_counterexample() -> tuple[Dataset, Network]:
    """Below 1/n in logistic loss, yet one point stays unseen: the loss tends to log(2)/2."""
    return from_points([1.0, -1.0], [1.0, 1.0]), Network([3.0], [[1.0, -0.5]])
