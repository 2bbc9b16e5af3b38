"""Lines through measured numbers, with what they are good for; shares, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reluflow.checks import Array
from reluflow.theory.verdicts import Finding, at_least, undecided

CONFIDENCE = 0.9999  # one false alarm in ten thousand subjects


@dataclass(frozen=True)
class Fit:
    """A least-squares line: slope, its standard error, and the value at x = 0."""

    slope: float
    error: float
    intercept: float


def line(x: Sequence[float] | Array, y: Sequence[float] | Array) -> Fit:
    """The line through points; with two points the error is infinite, for nothing speaks of it.

    Parameters
    ----------
    x, y : (k,) arrays
        The points, at least two.

    Returns
    -------
    Fit
        Slope, intercept and how well they fit.

    Examples
    --------
    >>> found = line([0.0, 1.0, 2.0], [1.0, 3.0, 5.0])
    >>> round(found.slope, 12), round(found.intercept, 12)
    (2.0, 1.0)
    """
    xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    middle = xs.mean()
    centred = xs - middle
    spread = float(centred @ centred)
    if len(xs) < 2 or not spread > 0.0:
        return Fit(math.nan, math.inf, math.nan)
    slope = float(centred @ ys) / spread
    rest = ys - ys.mean() - slope * centred
    free = len(xs) - 2
    error = math.sqrt(float(rest @ rest) / free / spread) if free > 0 else math.inf
    return Fit(slope, error, float(ys.mean() - slope * middle))


@dataclass(frozen=True)
class Share:
    """A share of successes and its exact (Clopper-Pearson) interval."""

    successes: int
    trials: int
    low: float
    high: float
    confidence: float = CONFIDENCE

    @property
    def value(self) -> float:
        """Successes over trials."""
        return self.successes / self.trials

    @property
    def text(self) -> str:
        """In words."""
        return (
            f"{self.successes} of {self.trials}; {self.confidence:.2%} interval "
            f"{self.low:.3f} to {self.high:.3f}"
        )


def share(successes: int, trials: int, confidence: float = CONFIDENCE) -> Share:
    """The share with the interval that holds the true probability so often.

    Parameters
    ----------
    successes, trials : int
        What was counted.
    confidence : float
        How often the interval holds the true probability (Clopper and Pearson).

    Returns
    -------
    Share
        The share with its interval.

    Examples
    --------
    >>> found = share(40, 40)
    >>> found.value, round(found.low, 3), found.high
    (1.0, 0.781, 1.0)
    """
    from scipy.stats import binomtest

    interval = binomtest(int(successes), int(trials)).proportion_ci(confidence, method="exact")
    low, high = float(interval.low), float(interval.high)
    return Share(int(successes), int(trials), low, high, confidence)


def share_at_least(successes: int, trials: int, bound: float, note: str = "") -> Finding:
    """Whether a probability is at least ``bound``.

    It passes where the 95 % interval says so and fails where the 99.99 % interval contradicts it. A
    certain event (``bound`` is 1) fails by one exception and passes without.

    Examples
    --------
    >>> from reluflow.theory.verdicts import verdict_of
    >>> [verdict_of(share_at_least(k, 40, 0.9)).value for k in (40, 35, 2)]
    ['PASS', 'UNRESOLVED', 'FAIL']
    """
    usual, sure = share(successes, trials, 0.95), share(successes, trials)
    text = f"{usual.text}; {note}" if note else usual.text
    if bound >= 1.0:
        return at_least(usual.value, 1.0, note=text)
    if usual.low < bound <= sure.high:
        return undecided(usual.value, bound, f"{text}; more draws would decide")
    return at_least(usual.value, bound, note=text)
