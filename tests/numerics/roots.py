"""First sign change of a power series given in fixed point: found in floats, certain in integers.

A series is a list of integers in units of 2^-bits, in powers of a time that runs over [0, top] with
top near one. Its sign is sampled at nodes and at turning points; where floats cannot tell the sign,
the integers decide.
"""

from __future__ import annotations

import numpy as np

NODES = 0.5 - 0.5 * np.cos(np.pi * np.arange(65) / 64)
# below this share of sum |f_k| s^k a float evaluation does not know the sign
UNSURE = 1e-11


def value(series, s, bits):
    """The series at ``s`` (fixed point) by Horner's rule."""
    total = 0
    for coefficient in reversed(series):
        total = (total * s >> bits) + coefficient
    return total


def floats(series):
    """Coefficients as floats, up to a common power of two."""
    shift = max(0, max(abs(v).bit_length() for v in series) - 900)
    return np.array([float(v >> shift) for v in series])


def first_root(series, top, bits):
    """First ``s`` in (0, top] where the series changes sign, in fixed point, or None."""
    if not any(series):
        return None
    f = _Sampled(series, bits)
    nodes = NODES * top
    rising = np.sign(f.slope(nodes))
    turns = np.flatnonzero(rising[:-1] * rising[1:] < 0)
    extra = [_bisect(f.slope, nodes[k], nodes[k + 1]) for k in turns]
    nodes = np.unique(np.concatenate([nodes, extra]))
    signs = f.signs(nodes)
    start = signs[np.flatnonzero(signs)[0]]
    beyond = np.flatnonzero(signs == -start)
    if not len(beyond):
        return None
    return f.refine(nodes[beyond[0] - 1], nodes[beyond[0]], start)


class _Sampled:
    def __init__(self, series, bits):
        self.series, self.bits = series, bits
        self.f = floats(series)
        self.df = self.f[1:] * np.arange(1, len(self.f))
        self.size = np.abs(self.f)

    def slope(self, s):
        return np.polynomial.polynomial.polyval(s, self.df)

    def signs(self, nodes):
        """Signs at the nodes, from the integers where floats cannot tell."""
        f = np.polynomial.polynomial.polyval(nodes, self.f)
        unsure = np.abs(f) <= UNSURE * np.polynomial.polynomial.polyval(nodes, self.size)
        signs = np.sign(f).astype(int)
        for k in np.flatnonzero(unsure):
            signs[k] = self.sign(self.fixed(nodes[k]))
        return signs

    def fixed(self, s):
        return int(s * 2.0**60) << (self.bits - 60)

    def sign(self, s):
        exact = value(self.series, s, self.bits)
        return (exact > 0) - (exact < 0)

    def refine(self, low, high, start):
        """Bisection and Newton's method between two nodes, all in integers."""
        low, high = self.fixed(low), self.fixed(high)
        slope = [k * v for k, v in enumerate(self.series)][1:]
        for _ in range(20):
            low, high = self._halve(low, high, start)
        s, close = (low + high) >> 1, False
        for _ in range(2 * self.bits):
            steep = value(slope, s, self.bits)
            move = (value(self.series, s, self.bits) << self.bits) // steep if steep else high
            if not low <= s - move <= high:
                low, high = self._halve(low, high, start)
                s = (low + high) >> 1
                continue
            s -= move
            if close or high - low <= 4:
                return s
            # the next move is the square of this one: down to the last bits
            close = abs(move) >> (self.bits // 2) == 0
        raise RuntimeError("Newton's method did not end. The root is not simple.")

    def _halve(self, low, high, start):
        middle = (low + high) >> 1
        return (middle, high) if self.sign(middle) in (start, 0) else (low, middle)


def _bisect(f, low, high):
    sign = np.sign(f(low))
    for _ in range(55):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.sign(f(middle)) == sign else (low, middle)
    return 0.5 * (low + high)
