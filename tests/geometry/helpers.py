"""Small references shared by the geometry tests."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from reluflow import Network

seeds = st.integers(0, 2**32 - 1)


@dataclass(frozen=True)
class Uniform:
    """Uniform density on an interval, without any optional attribute."""

    low: float
    high: float

    @property
    def support(self):
        return self.low, self.high

    def cdf(self, x):
        return np.clip((np.asarray(x) - self.low) / (self.high - self.low), 0.0, 1.0)


def random_net(rng, width, d, log_scale=0.0):
    return Network(rng.normal(size=width), rng.normal(size=(width, d)), log_scale)


def permuted(net, rng):
    order = rng.permutation(net.width)
    return Network(
        net.mantissa.a[order],
        net.mantissa.W[order],
        net.log_scale[order],
        log_scale_out=net.log_scale_out[order],
    )


def rescaled(net, rng):
    """The same function with (w, a) -> (c w, a / c), c from 1e-3 to 1e3 per neuron."""
    c = np.exp(rng.uniform(-7, 7, net.width))
    return Network(
        net.mantissa.a / c,
        net.mantissa.W * c[:, None],
        net.log_scale,
        log_scale_out=net.log_scale_out,
    )


def shifted(net, by):
    """The same network with another common log scale."""
    return Network(*net.mantissa, net.log_scale + by, log_scale_out=net.log_scale_out + by)


def exact_value(net, x):
    """h(x) in rational arithmetic; the network must have log scale 0."""
    x = Fraction(x)
    total = Fraction(0)
    for a, (w, b) in zip(net.a.tolist(), net.W.tolist(), strict=True):
        total += Fraction(a) * max(Fraction(w) * x + Fraction(b), Fraction(0))
    return total


def integer_net(rng, width):
    """Small integer weights: every kink and value is a small rational, ties are frequent."""
    return Network(
        rng.integers(-2, 3, width).astype(float), rng.integers(-2, 3, (width, 2)).astype(float)
    )
