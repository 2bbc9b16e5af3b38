r"""Densities on the line with exact distribution functions, for sampling and for exact errors.

Every density offers ``pdf(x)``, ``cdf(x)``, ``quantile(u)``, ``sample(n, seed)``, ``maximum`` (the
constant C of Safran, Vardi and Lee 2022, Assumption 2.2) and ``support`` (lo, hi). Masses are
normalised here, so weights need not sum to one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from reluflow.checks import Array, generator, number, real_array, whole
from reluflow.errors import InputError
from reluflow.quadrature import GAUSS_16, GAUSS_16_WEIGHTS

__all__ = ["Density", "piecewise", "truncated_normal", "uniform", "union"]

_HALVINGS = 60


class Density(ABC):
    """What every density offers; arrays of any shape go in and come out."""

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """The smallest interval (lo, hi) that holds all the mass."""

    @property
    @abstractmethod
    def maximum(self) -> float:
        """The largest value of the density."""

    def pdf(self, x: ArrayLike) -> Any:
        """The density at ``x``; 0 outside the support."""
        points = _numbers(x, "x")
        lo, hi = self.support
        inside = (points >= lo) & (points <= hi)
        return np.where(inside, self._pdf(np.clip(points, lo, hi)), 0.0)[()]

    def cdf(self, x: ArrayLike) -> Any:
        """The probability of ``(-inf, x]``; exactly 0 and 1 at the ends of the support."""
        return np.clip(self._cdf(np.clip(_numbers(x, "x"), *self.support)), 0.0, 1.0)[()]

    def quantile(self, u: ArrayLike) -> Any:
        """The smallest ``x`` of the support with ``cdf(x) >= u``, for u in [0, 1]."""
        shares = _numbers(u, "u")
        if ((shares < 0.0) | (shares > 1.0)).any():
            worst = shares[(shares < 0.0) | (shares > 1.0)].flat[0]
            raise InputError(f"`u` holds {worst:g}, outside [0, 1]. It is no probability. Clip it.")
        return self._quantile(shares)[()]

    def sample(self, n: int, seed: int | np.random.Generator) -> Array:
        """``n`` independent points: the quantiles of ``n`` uniform draws, in the order drawn."""
        count = whole(n, "n")
        return np.asarray(self.quantile(generator(seed).random(count)))

    @abstractmethod
    def _pdf(self, x: Array) -> Array: ...

    @abstractmethod
    def _cdf(self, x: Array) -> Array: ...

    @abstractmethod
    def _quantile(self, u: Array) -> Array: ...


@dataclass(frozen=True, eq=False)
class _Steps(Density):
    """Piecewise constant: ``masses[k]`` spread evenly over ``[edges[k], edges[k+1]]``."""

    edges: Array
    masses: Array

    @property
    def support(self) -> tuple[float, float]:
        return float(self.edges[0]), float(self.edges[-1])

    @property
    def heights(self) -> Array:
        """The density in each cell."""
        return np.asarray(self.masses / np.diff(self.edges))

    @property
    def maximum(self) -> float:
        return float(self.heights.max())

    @property
    def _sums(self) -> Array:
        sums = np.concatenate([[0.0], np.cumsum(self.masses)])
        sums[-1] = 1.0  # the running sum may miss one by an ulp
        return np.asarray(np.minimum(sums, 1.0))

    def _pdf(self, x: Array) -> Array:
        cell = np.searchsorted(self.edges, x, side="right") - 1
        return np.asarray(self.heights[np.minimum(cell, len(self.masses) - 1)])

    def _cdf(self, x: Array) -> Array:
        return np.asarray(np.interp(x, self.edges, self._sums))

    def _quantile(self, u: Array) -> Array:
        # the first cell that reaches u: cells without mass are never the first
        sums, widths = self._sums, np.diff(self.edges)
        cell = np.searchsorted(sums[1:], u, side="left")
        share = np.minimum((u - sums[cell]) / (sums[cell + 1] - sums[cell]), 1.0)
        x = self.edges[cell] + share * widths[cell]
        return np.asarray(np.where(share == 1.0, self.edges[cell + 1], x))


@dataclass(frozen=True)
class _TruncatedNormal(Density):
    r"""Normal law conditioned to ``[lo, hi]``.

    Both functions come from the weight :math:`e^{-((a + t)^2 - k^2)/2}` and its integral from 0 to
    ``t``, where ``a`` is the left end and ``t`` the offset of a point from it, in units of ``sd``
    from the mean, mirrored so that the interval leans to the right. The shift ``k`` is 0 around the
    mode and ``a`` elsewhere, where the plain density may underflow. Offsets, not differences of
    z-scores, keep short intervals far from the mean exact.
    """

    lo: float
    hi: float
    mean: float
    sd: float

    @property
    def support(self) -> tuple[float, float]:
        return self.lo, self.hi

    @property
    def maximum(self) -> float:
        return float(self.pdf(min(max(self.mean, self.lo), self.hi)))

    @property
    def _frame(self) -> tuple[bool, float, float]:
        """Whether the line is mirrored, the left end ``a`` and the length of the interval."""
        low, high = (self.lo - self.mean) / self.sd, (self.hi - self.mean) / self.sd
        mirrored = low + high < 0.0
        return mirrored, -high if mirrored else low, (self.hi - self.lo) / self.sd

    def _offset(self, x: Array) -> Array:
        return (self.hi - x if self._frame[0] else x - self.lo) / self.sd

    def _shifted(self) -> bool:
        return self._frame[1] > 1.0 or self._short()

    def _short(self) -> bool:
        _, a, length = self._frame
        return length * (1.0 + abs(a) + length) < 1.0  # the log weight varies by less than one

    def _weight(self, t: Array) -> Array:
        a = self._frame[1]
        with np.errstate(over="ignore", under="ignore"):
            power = t * (a + 0.5 * t) if self._shifted() else 0.5 * (a + t) ** 2
            return np.asarray(np.exp(-power))

    def _mass(self, t: Array) -> Array:
        """Integral of the weight from 0 to ``t``."""
        from scipy.special import erf, erfcx

        if self._short():  # the differences below would cancel; Gauss is exact to rounding
            return np.asarray(t * (self._weight(t[..., None] * GAUSS_16) @ GAUSS_16_WEIGHTS))
        a, root = self._frame[1], np.sqrt(2.0)
        if a > 1.0:
            lost = self._weight(t) * erfcx((a + t) / root)
            return np.asarray(np.sqrt(np.pi / 2.0) * (erfcx(a / root) - lost))
        return np.asarray(np.sqrt(np.pi / 2.0) * (erf((a + t) / root) - erf(a / root)))

    def _total(self) -> Array:
        return self._mass(np.asarray(self._frame[2]))

    def _pdf(self, x: Array) -> Array:
        return np.asarray(self._weight(self._offset(x)) / (self.sd * self._total()))

    def _cdf(self, x: Array) -> Array:
        share = self._mass(self._offset(x)) / self._total()
        return np.asarray(1.0 - share if self._frame[0] else share)

    def _quantile(self, u: Array) -> Array:
        # bisection keeps quantile and cdf consistent to the last bits, in the tails as well
        low, high = np.full(u.shape, self.lo), np.full(u.shape, self.hi)
        for _ in range(_HALVINGS):
            middle = low + 0.5 * (high - low)
            reached = self._cdf(middle) >= u
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return np.where(u == 0.0, self.lo, high)


def uniform(lo: float, hi: float) -> Density:
    """Return the uniform density on ``[lo, hi]``.

    Parameters
    ----------
    lo, hi : float
        Ends of the support, ``lo < hi``.

    Returns
    -------
    Density
        With exact distribution function.

    Examples
    --------
    >>> law = uniform(-1.0, 3.0)
    >>> law.maximum, float(law.cdf(0.0)), float(law.quantile(0.75))
    (0.25, 0.25, 2.0)
    """
    return _Steps(np.array(_interval(lo, hi)), np.ones(1))


def piecewise(edges: ArrayLike, weights: ArrayLike) -> Density:
    """Return a piecewise constant density.

    Parameters
    ----------
    edges : (k + 1,) array
        Strictly increasing ends of the cells.
    weights : (k,) array
        Share of the probability in each cell (not the height), up to a common factor; zero leaves a
        gap, and empty cells at either end are cut off the support.

    Returns
    -------
    Density
        With exact distribution function.

    Examples
    --------
    >>> law = piecewise([0.0, 1.0, 3.0], [1.0, 1.0])
    >>> law.pdf([0.5, 2.0])
    array([0.5 , 0.25])
    """
    cuts, shares = real_array(edges, "edges", 1), real_array(weights, "weights", 1)
    if len(shares) == 0 or len(cuts) != len(shares) + 1:
        raise InputError(
            f"`edges` has {len(cuts)} entries and `weights` {len(shares)}; k cells have k + 1 "
            "edges. Give one edge more than weights."
        )
    wrong = np.flatnonzero(np.diff(cuts) <= 0.0)
    if len(wrong):
        k = int(wrong[0])
        raise InputError(
            f"`edges` does not increase: edges[{k + 1}] = {cuts[k + 1]:g} follows {cuts[k]:g}. "
            "Cells need a positive length. Sort the edges and drop repeats."
        )
    if (shares < 0.0).any():
        k = int(np.flatnonzero(shares < 0.0)[0])
        raise InputError(
            f"`weights[{k}]` is {shares[k]:g}. A probability cannot be negative. Change it."
        )
    if not shares.any():
        raise InputError("all `weights` are zero, so there is no mass. Make one positive.")
    scaled = shares / shares.max()  # the sum of huge weights could overflow
    full = np.flatnonzero(scaled)
    kept = scaled[full[0] : full[-1] + 1]
    return _Steps(cuts[full[0] : full[-1] + 2], kept / kept.sum())


def truncated_normal(lo: float, hi: float, mean: float, sd: float) -> Density:
    r"""Return the density of :math:`N(mean, sd^2)` conditioned to ``[lo, hi]``.

    Parameters
    ----------
    lo, hi : float
        Ends of the support.
    mean, sd : float
        Of the normal law before it is cut.

    Returns
    -------
    Density
        With exact distribution function.

    Examples
    --------
    >>> law = truncated_normal(-1.0, 1.0, 0.0, 0.5)
    >>> float(law.cdf(0.0))
    0.5
    >>> round(truncated_normal(40.0, 41.0, 0.0, 1.0).maximum, 3)  # far in the tail
    40.025

    Numerics
    --------
    ``cdf`` has absolute error below 1e-14 and ``pdf`` relative error below 1e-13, also where the
    normal mass of the interval underflows and for intervals much shorter than ``sd``
    (``test_truncated_normal_agrees_with_mpmath``). ``quantile`` is sixty bisections of the support:
    sixty evaluations of ``cdf`` a point.
    """
    low, high = _interval(lo, hi)
    centre, spread = number(mean, "mean"), number(sd, "sd", above=0.0)
    with np.errstate(over="ignore"):
        ends = np.array([low - centre, high - centre, high - low]) / spread
    if not np.isfinite(ends).all():
        raise InputError(
            f"`sd` is {spread:g}, too small for the interval [{low:g}, {high:g}] and the mean "
            f"{centre:g}: their ratio leaves the range of floats. Use a larger sd."
        )
    return _TruncatedNormal(low, high, centre, spread)


def union(intervals: Sequence[Sequence[float]]) -> Density:
    """Return the uniform density on a union of disjoint intervals ``[(lo, hi), ...]``, any order.

    Examples
    --------
    >>> law = union([(0.0, 1.0), (2.0, 5.0)])
    >>> law.maximum, float(law.cdf(1.5)), law.support
    (0.25, 0.25, (0.0, 5.0))
    """
    pairs = real_array(intervals, "intervals", 2)
    if pairs.shape[0] == 0 or pairs.shape[1] != 2:
        raise InputError(
            f"`intervals` has shape {pairs.shape}; pairs (lo, hi) are needed. Give at least one."
        )
    pairs = np.array([_interval(lo, hi) for lo, hi in pairs[np.argsort(pairs[:, 0])]])
    meet = np.flatnonzero(pairs[1:, 0] < pairs[:-1, 1])
    if len(meet):
        first, second = pairs[meet[0]], pairs[meet[0] + 1]
        raise InputError(
            f"the intervals [{first[0]:g}, {first[1]:g}] and [{second[0]:g}, {second[1]:g}] "
            "overlap. The density there would be counted twice. Merge them."
        )
    edges, cells = np.unique(pairs), pairs[:, 0]
    weights = np.zeros(len(edges) - 1)
    weights[np.searchsorted(edges, cells)] = pairs[:, 1] - pairs[:, 0]
    return piecewise(edges, weights)


def _interval(lo: float, hi: float) -> tuple[float, float]:
    low, high = number(lo, "lo"), number(hi, "hi")
    if not low < high:
        raise InputError(
            f"the interval [{low:g}, {high:g}] has no length. A density needs one. Make lo < hi."
        )
    return low, high


def _numbers(values: ArrayLike, name: str) -> Array:
    raw = np.asarray(values)
    if raw.dtype.kind not in "biuf":
        raise InputError(f"`{name}` has dtype {raw.dtype}, not real numbers. Use `.astype(float)`.")
    array = raw.astype(np.float64)
    if np.isnan(array).any():
        raise InputError(f"`{name}` holds NaN. A density has no value there. Drop it.")
    return array
