from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluflow import Network
from reluflow.errors import InputError
from reluflow.geometry import convexity_changes, kinks, linear_regions

from .helpers import integer_net, permuted, rescaled, seeds, shifted

ABS = Network([1.0, 1.0], [[1.0, 0.0], [-1.0, 0.0]])
IDENTITY = Network([1.0, -1.0], [[1.0, 0.0], [-1.0, 0.0]])


def exact_kinks(net):
    """Positions and jumps in rational arithmetic."""
    jumps = {}
    for a, (w, b) in zip(net.a.tolist(), net.W.tolist(), strict=True):
        if w:
            position = -Fraction(b) / Fraction(w)
            jumps[position] = jumps.get(position, Fraction(0)) + Fraction(a) * abs(Fraction(w))
    return sorted((t, d) for t, d in jumps.items() if d)


def test_textbook_functions():
    assert linear_regions(ABS) == 2
    assert linear_regions(IDENTITY) == 1
    assert linear_regions(Network([3.0], [[0.0, 1.0]])) == 1
    assert linear_regions(Network([0.0], [[1.0, 1.0]])) == 1
    assert linear_regions(Network([0.0, 0.0], [[0.0, 0.0], [0.0, 0.0]])) == 1
    found = kinks(Network([2.0, -3.0], [[-2.0, 1.0], [0.5, 1.0]]))
    assert found.positions.tolist() == [-2.0, 0.5]
    assert found.jumps == pytest.approx([-1.5, 4.0], rel=1e-15)  # a |w|, whatever the sign of w
    assert [group.tolist() for group in found.neurons] == [[1], [0]]


@given(seeds, st.integers(1, 9))
def test_against_rational_arithmetic(seed, width):
    net = integer_net(np.random.default_rng(seed), width)
    expected = exact_kinks(net)
    found = kinks(net)
    assert found.positions == pytest.approx([float(t) for t, _ in expected], rel=1e-15)
    assert found.jumps == pytest.approx([float(d) for _, d in expected], rel=1e-14)
    assert linear_regions(net) == 1 + len(expected)
    signs = [d > 0 for _, d in expected]
    assert convexity_changes(net) == sum(p != q for p, q in pairwise(signs))


@given(seeds)
def test_invariances(seed):
    rng = np.random.default_rng(seed)
    net = integer_net(rng, 8)
    found = kinks(net)
    mixed = kinks(permuted(net, rng))
    assert np.array_equal(mixed.positions, found.positions)
    assert np.array_equal(mixed.jumps, found.jumps)
    split = kinks(rescaled(net, rng))
    assert split.positions == pytest.approx(found.positions, rel=1e-14, abs=1e-15)
    assert split.relative_jumps == pytest.approx(found.relative_jumps, rel=1e-12)
    for log_scale in (-1e6, 1e5):
        far = kinks(shifted(net, log_scale))
        assert np.array_equal(far.positions, found.positions)
        assert far.relative_jumps == pytest.approx(found.relative_jumps, rel=1e-15)


def test_merge_before_drop():
    eps = 1e-11  # two large opposite jumps at nearly one place, and a small true one
    net = Network([1.0, -1.0, 1e-3], [[1.0, 0.0], [1.0, -eps], [1.0, -1.0]])
    assert linear_regions(net) == 2
    assert kinks(net).positions.tolist() == [1.0]
    assert linear_regions(net, tol_x=0.0) == 4  # without merging they stand
    assert linear_regions(net, tol_x=0.0, tol_jump=1e-2) == 3
    assert linear_regions(net, tol_jump=1e-2) == 1
    assert linear_regions(IDENTITY, tol_x=0.0, tol_jump=0.0) == 1  # sums that vanish exactly


def test_positions_are_compared_relative_to_their_size():
    far = Network([1.0, 1.0], [[1.0, -1e6], [1.0, -1e6 - 5e-4]])
    assert linear_regions(far) == 2
    near = Network([1.0, 1.0], [[1.0, 0.0], [1.0, -5e-4]])
    assert linear_regions(near) == 3


def test_clusters_have_a_width_and_do_not_chain():
    tol = 1e-3
    t = 0.6 * tol * np.arange(11)  # neighbours merge, the chain of six tolerances does not
    net = Network(np.ones(11), np.column_stack([np.ones(11), -t]))
    found = kinks(net, tol_x=tol)
    assert len(found.positions) == 6
    widths = [t[group].max() - t[group].min() for group in found.neurons]
    assert max(widths) <= tol * 1.01
    assert found.relative_jumps.sum() == pytest.approx(1.0, rel=1e-15)


def test_cluster_position_is_weighted_by_jumps():
    net = Network([3.0, 1.0], [[1.0, 0.0], [1.0, -4e-4]])
    assert kinks(net, tol_x=1e-3).positions == pytest.approx([1e-4], rel=1e-14)


def test_discarded_and_kept_jumps_are_reported():
    net = Network([1.0, 1e-4], [[1.0, 0.0], [1.0, -1.0]])
    found = kinks(net, tol_jump=1e-3)
    assert found.largest_discarded == pytest.approx(1e-4, rel=1e-3)
    assert found.smallest_kept == pytest.approx(1.0, rel=1e-3)
    assert kinks(IDENTITY).smallest_kept == np.inf


def test_mixed_scales_far_outside_the_range_of_floats():
    net = Network([1.0, 1.0, -1.0], [[1.0, 0.0], [1.0, -1.0], [2.0, -4.0]], [-1e6, -1e6, -1e6 + 1])
    found = kinks(net)
    weights = np.array([1.0, 1.0, -2.0 * np.exp(2.0)])
    assert found.relative_jumps == pytest.approx(weights / np.abs(weights).sum(), rel=1e-14)
    assert not found.jumps.any()
    # scales of the two layers that cancel leave an ordinary function
    split = Network([1.0], [[2.0, -1.0]], 1e5, log_scale_out=-1e5)
    assert kinks(split).jumps == pytest.approx([2.0], rel=1e-14)
    assert linear_regions(Network([1e200], [[1e200, 1e200]])) == 2
    assert linear_regions(Network([1e-200], [[1e-200, 1e-200]])) == 2


def test_a_kink_at_infinity_is_a_constant():
    net = Network([1.0, 1.0], [[5e-324, 1.0], [1.0, 0.0]])
    assert kinks(net).positions.tolist() == [0.0]


def test_interval_counts_inner_kinks_only():
    net = Network([1.0, 1.0, 1.0], [[1.0, 5.0], [1.0, 0.0], [1.0, -5.0]])
    assert linear_regions(net, interval=(-1.0, 1.0)) == 2
    assert linear_regions(net, interval=(-9.0, np.inf)) == 4
    assert linear_regions(net, interval=(0.0, 5.0)) == 1


def test_refusals():
    with pytest.raises(InputError, match="`net` takes 3 inputs"):
        kinks(Network([1.0], [[1.0, 0.0, 0.0]]))
    with pytest.raises(InputError, match="`tol_x` is -1"):
        linear_regions(ABS, tol_x=-1.0)
    with pytest.raises(InputError, match="not two numbers"):
        linear_regions(ABS, interval=3.0)
    with pytest.raises(InputError, match=r"`interval\[1\]` is 0"):
        linear_regions(ABS, interval=(1.0, 0.0))
