from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluflow import Network
from reluflow.errors import InputError
from reluflow.geometry import sign_changes

from .helpers import exact_value, integer_net, permuted, random_net, rescaled, seeds, shifted

# width 4 with five strict sign changes: more than width + 0, as many as pieces allow
FIVE = Network(
    [51.818, -76.428, 380.953, -350.715],
    [[1.0, -0.076], [1.0, -0.478], [-1.0, 0.833], [-1.0, 0.913]],
)


def exact_changes(net, low, high):
    """Sign changes in rational arithmetic: kinks, one zero per piece, labels at midpoints."""
    nodes = {Fraction(low), Fraction(high)}
    for w, b in net.W.tolist():
        if w:
            nodes.add(-Fraction(b) / Fraction(w))
    nodes = sorted(t for t in nodes if low <= t <= high)
    for left, right in list(pairwise(nodes)):
        first, last = exact_value(net, left), exact_value(net, right)
        if first * last < 0:
            nodes.append(left + (right - left) * first / (first - last))
    nodes = sorted(nodes)
    labels = [exact_value(net, (left + right) / 2) > 0 for left, right in pairwise(nodes)]
    return [
        float(t)
        for t, before, after in zip(nodes[1:-1], labels[:-1], labels[1:], strict=True)
        if before != after
    ]


@given(seeds, st.integers(1, 9))
def test_against_rational_arithmetic(seed, width):
    """Small integers make plateaus at zero, isolated zeros and coinciding kinks common."""
    net = integer_net(np.random.default_rng(seed), width)
    for low, high in ((-5, 5), (-1, 0), (0, 2)):
        found = sign_changes(net, (low, high))
        assert found == pytest.approx(exact_changes(net, low, high), abs=1e-13)


@given(seeds)
def test_random_weights_against_rational_arithmetic(seed):
    net = random_net(np.random.default_rng(seed), 12, 2)
    found = sign_changes(net, (-3.0, 3.0))
    assert found == pytest.approx(exact_changes(net, -3, 3), abs=1e-11)


@given(seeds)
def test_whole_line_against_a_wide_interval(seed):
    net = integer_net(np.random.default_rng(seed), 7)
    # integer weights of this size: all kinks within 2, all zeros within 1e3
    assert sign_changes(net) == pytest.approx(exact_changes(net, -1000, 1000), abs=1e-12)
    right = sign_changes(net, (0.25, np.inf))
    assert right == pytest.approx(exact_changes(net, 0.25, 1000), abs=1e-12)
    left = sign_changes(net, (-np.inf, 0.25))
    assert left == pytest.approx(exact_changes(net, -1000, 0.25), abs=1e-12)


def test_width_four_with_five_sign_changes():
    found = sign_changes(FIVE, (-0.383, 1.364))
    assert len(found) == 5
    marks = [-0.383, -0.061, 0.36, 0.56, 1.037, 1.364]
    assert np.searchsorted(found, marks).tolist() == [0, 1, 2, 3, 4, 5]
    assert found == pytest.approx(exact_changes(FIVE, -0.383, 1.364), abs=1e-13)


def test_conventions_at_zero():
    step, absolute = Network([1.0], [[1.0, 0.0]]), Network([1.0, 1.0], [[1.0, 0.0], [-1.0, 0.0]])
    assert sign_changes(step, (-1.0, 1.0)).tolist() == [0.0]  # zero plateau predicts -1
    assert sign_changes(step, (0.0, 1.0)).tolist() == []
    negative = Network([-1.0], [[1.0, 0.0]])
    assert sign_changes(negative, (-1.0, 1.0)).tolist() == []
    assert sign_changes(absolute, (-1.0, 1.0)).tolist() == []  # an isolated zero is ignored
    touching = Network([1.0, -2.0, 2.0], [[1.0, 0.0], [1.0, -1.0], [1.0, -2.0]])
    assert sign_changes(touching, (-1.0, 4.0)).tolist() == [0.0]  # h(2) = 0 between two positives
    tent = Network([1.0, -2.0, 1.0], [[1.0, 0.0], [1.0, -1.0], [1.0, -2.0]])
    assert sign_changes(tent, (-1.0, 9.0)).tolist() == [0.0, 2.0]  # a plateau made by cancellation
    assert sign_changes(tent).tolist() == [0.0, 2.0]


def test_constants_and_zero_networks():
    assert sign_changes(Network([1.0], [[0.0, 1.0]])).tolist() == []
    assert sign_changes(Network([0.0], [[0.0, 1.0]]), (-1.0, 1.0)).tolist() == []
    lifted = Network([-1.0, 1.0], [[0.0, 1.0], [1.0, 0.0]])
    assert sign_changes(lifted).tolist() == [1.0]
    mirrored = Network([-1.0, 1.0], [[0.0, 1.0], [-1.0, 0.0]])
    assert sign_changes(mirrored).tolist() == [-1.0]


def test_plateau_by_cancellation_survives_rescaling():
    rng = np.random.default_rng(0)
    tent = Network([1.0, -2.0, 1.0], [[1.0, -0.1], [1.0, -0.3], [1.0, -0.5]])
    for _ in range(50):
        assert sign_changes(rescaled(tent, rng), (0.0, 3.0)) == pytest.approx([0.1, 0.5], rel=1e-12)


@given(seeds)
def test_invariances(seed):
    rng = np.random.default_rng(seed)
    net = random_net(rng, 9, 2)
    found = sign_changes(net, (-2.0, 2.0))
    assert sign_changes(permuted(net, rng), (-2.0, 2.0)) == pytest.approx(found, abs=1e-12)
    assert sign_changes(rescaled(net, rng), (-2.0, 2.0)) == pytest.approx(found, abs=1e-11)
    for log_scale in (-1e6, 1e5):
        assert np.array_equal(sign_changes(shifted(net, log_scale), (-2.0, 2.0)), found)


def test_values_too_small_for_products():
    net = Network([1.0, -1.0], [[1.0, 0.0], [1.0, 0.0]], [0.0, -1e-13])
    assert sign_changes(net, (-1.0, 1.0), tol=0.0).tolist() == [0.0]
    assert sign_changes(net, (-1.0, 1.0)).tolist() == []  # below the tolerance: a plateau


def test_refusals():
    with pytest.raises(InputError, match="takes 3 inputs"):
        sign_changes(Network([1.0], [[1.0, 0.0, 0.0]]), (-1.0, 1.0))
    with pytest.raises(InputError, match="must be above 1"):
        sign_changes(FIVE, (1.0, 1.0))
    with pytest.raises(InputError, match="`tol` is -1"):
        sign_changes(FIVE, (-1.0, 1.0), tol=-1.0)
