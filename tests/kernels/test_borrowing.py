"""What is looked at in an argument is not counted; what is kept, changed or returned is."""

from typing import NamedTuple

import numpy as np
import pytest
from numba.core import config
from numba.core.caching import NullCache
from numba.core.runtime import _nrt_python, rtsys

from reluflow.kernels.kernel import kernel

compiled = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="numba is switched off")


class Pair(NamedTuple):
    one: np.ndarray
    other: np.ndarray


class Pairs(NamedTuple):
    near: Pair
    far: Pair


@kernel
def looks(pairs, times):
    total = 0.0
    for _ in range(times):
        near, (a, b) = pairs.near, pairs.far
        total += near.one[0] + near[1][1] + a[2] + b[0]
    return total


@kernel
def swapped(pairs, again):
    one, pair = pairs.near.one, pairs.far
    if again:
        one = one.copy()
        pair = Pair(pair.other, one)
    return Pairs(pair, Pair(one, pairs.near.other)), one


@kernel
def swapped_twice(pairs):
    first, _ = swapped(pairs, True)
    first, one = swapped(first, False)
    return first.near.one, one


@kernel
def given_back(pairs):
    return pairs


@kernel(fastmath=True)
def loose_mean(x):
    return np.mean(x)


@kernel
def strict_mean(x):
    return np.mean(x)


for function in (looks, swapped, swapped_twice, given_back, loose_mean, strict_mean):
    if not config.DISABLE_JIT:
        function._cache = NullCache()  # what is kept has no code to be read


def _pairs():
    return Pairs(Pair(np.arange(3.0), np.ones(3)), Pair(np.full(3, 5.0), np.zeros(3)))


@compiled
def test_looking_counts_nothing():
    assert looks(_pairs(), 3) == 3 * (0.0 + 1.0 + 5.0 + 0.0)
    (code,) = looks.inspect_llvm().values()
    own = next(part for part in code.split("\ndefine ") if "looks" in part.split("(")[0])
    assert "NRT_incref" not in own


@compiled
def test_what_is_kept_or_replaced_is_counted():
    _nrt_python.memsys_enable_stats()
    pairs = _pairs()
    swapped(pairs, True), swapped_twice(pairs), given_back(pairs)
    before = rtsys.get_allocation_stats()
    for _ in range(50):
        (near, far), one = swapped(pairs, True)
        first, second = swapped_twice(pairs)
        same = given_back(pairs)
    np.testing.assert_array_equal(same.far.one, pairs.far.one)
    np.testing.assert_array_equal(near.one, pairs.far.other)
    np.testing.assert_array_equal(far.one, [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(one, [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(first, [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(second, pairs.far.other)
    del near, far, one, first, second, same
    after = rtsys.get_allocation_stats()
    assert after.alloc > before.alloc
    assert after.alloc - before.alloc == after.free - before.free


@compiled
def test_what_was_found_for_reordered_sums_is_not_used_for_others():
    x = np.arange(4.0)
    assert loose_mean(x) == strict_mean(x) == 1.5
    (loose,), (strict,) = loose_mean.inspect_llvm().values(), strict_mean.inspect_llvm().values()
    assert "fadd fast" in loose
    assert "fadd fast" not in strict
