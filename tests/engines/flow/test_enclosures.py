"""Flows with a closed form, enclosed by interval arithmetic: a proved bound of the true error.

One neuron on the ray of one point, ``w = s x / |x|``, square loss ``(h - y)^2 / 2``. With
``l = |x|`` the output ``h = a s l`` obeys

* ``h' = 2 l h (y - h)`` if both layers train from ``a = s`` (a logistic curve),
* ``h' = (a l)^2 (y - h)`` if the hidden layer trains.

Floats enter the intervals as they are, ``l`` as the root of an enclosed sum: nothing is rounded
that the interval does not contain.
"""

import numpy as np
import pytest
from mpmath import iv

import reluflow as rf

RTOL = 1e-9
CASES = 200


def drawn(seed):
    """A point, a label, a neuron on the ray of the point, and a time of the order of training."""
    rng = np.random.default_rng([seed, 22])
    x = rng.normal(size=int(rng.integers(1, 5))) * 4.0 ** rng.integers(-3, 4)
    a = float(rng.uniform(0.05, 2.0))
    # a multiple of the point by a power of two lies on its ray exactly
    w = x * 2.0 ** rng.integers(-3, 4)
    return x, float(rng.uniform(0.1, 4.0)), a, w, float(rng.uniform(0.2, 3.0))


def outputs(x, w, a, y, t, train):
    """An interval that contains the output at time ``t``."""
    exact = [iv.mpf(float(value)) for value in x]
    length = iv.sqrt(sum((value**2 for value in exact), iv.mpf(0)))
    start = iv.mpf(a) * sum(
        (iv.mpf(float(u)) * v for u, v in zip(w, exact, strict=True)), iv.mpf(0)
    )
    if train == "hidden":
        return y + (start - y) * iv.exp(-((iv.mpf(a) * length) ** 2) * t)
    return y / (1 + (y / start - 1) * iv.exp(-2 * length * y * t))


def top(interval):
    """The largest modulus in an interval."""
    return float(abs(interval).b)


@pytest.fixture(autouse=True)
def digits(monkeypatch):
    monkeypatch.setattr(iv, "dps", 40)


@pytest.mark.parametrize("train", ["both", "hidden"])
def test_the_true_error_is_below_ten_tolerances(train):
    widest = 0.0
    for seed in range(CASES // 2):
        x, y, a, w, pace = drawn(seed)
        length = float(np.linalg.norm(x))
        t = pace / (a * length) ** 2 if train == "hidden" else pace / (2.0 * length * y)
        if train == "both":  # a = |w| to rounding: the interval starts from the float that is given
            a = float(np.linalg.norm(w))
        run = rf.flow(
            rf.Dataset([x], [y]),
            rf.Network([a], [w]),
            loss=rf.losses.Square("1/2"),
            train=train,
            t_end=t,
            rtol=RTOL,
        )
        assert run.status in ("t_end", "converged")
        net = run.at(t).flat()
        found = outputs(x, net.W[0], float(net.a[0]), y, 0.0, train)  # its own output, enclosed
        wanted = outputs(x, w, a, y, t, train)
        gap = top(found - wanted) / max(top(wanted), y)
        widest = max(widest, float(wanted.delta.b) / top(wanted))
        assert gap <= 10.0 * RTOL, seed
    assert widest < 1e-30  # the intervals say something
