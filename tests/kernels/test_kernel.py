"""A kernel is compiled as a whole where Python enters it, as a part where another kernel does."""

from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
from numba.core.caching import NullCache
from numba.core.runtime import _nrt_python, rtsys

from reluflow.kernels.kernel import is_ready, kernel


@kernel
def inner(x):
    if x.sum() < 0.0:
        raise ValueError("below zero")
    return 2.0 * x


@kernel
def middle(x):
    return inner(x) + 1.0


@kernel(fastmath={"reassoc"})
def outer(x):
    return middle(x).sum() + inner(x)[0]


# entered by one test alone, whatever ran before it
@kernel
def lowest(x):
    return 2.0 * x


@kernel
def between(x):
    return lowest(x) + 1.0


@kernel
def highest(x):
    return between(x).sum() + lowest(x)[0]


@kernel
def counted(x, times):
    rows = [x[0], x[1].copy()]
    for _ in range(times):
        rows.append(middle(rows[-1])[:2])
    return rows[-1], rows[0], x


@kernel
def third(x):
    return x[2]


@kernel
def beyond(x):
    return third(x)


for function in (inner, middle, outer, lowest, between, highest, counted, third, beyond):
    function._cache = NullCache()  # what another run left would hide what is compiled


@numba.njit
def a_users(x):
    return outer(x) + 1.0


def test_parts_have_no_machine_code_and_wholes_do():
    assert not is_ready(highest)
    x = np.arange(3.0)
    assert highest(x) == 9.0
    assert is_ready(lowest)
    assert not lowest.overloads
    assert not between.overloads
    (part,) = lowest.part.overloads.values()
    assert part.library.get_pointer_to_function(part.fndesc.llvm_func_name) == 0
    np.testing.assert_array_equal(lowest(x), [0.0, 2.0, 4.0])  # a part before, entered now
    assert len(lowest.overloads) == 1
    np.testing.assert_array_equal(between(x), [1.0, 3.0, 5.0])


def test_an_exception_of_a_part_reaches_python():
    with pytest.raises(ValueError, match="below zero"):
        outer(-np.ones(2))


@pytest.mark.skipif(not numba.config.BOUNDSCHECK, reason="`make test-bounds` checks indices")
def test_a_wrong_index_of_a_part_reaches_python_where_indices_are_checked():
    assert beyond(np.ones(3)) == 1.0
    with pytest.raises(IndexError, match="out of bounds"):
        beyond(np.ones(2))


def test_functions_of_numba_may_call_kernels_and_what_numba_added_for_them():
    assert a_users(np.arange(3.0)) == 10.0

    @numba.njit
    def another(x):
        return x.sum() + np.abs(x).max()

    assert another(np.arange(3.0)) == 5.0


def test_a_kernel_does_not_call_what_another_was_optimised_for():
    # LLVM leaves out arguments of what one kernel alone calls; `outer` has its own `middle`
    x = np.arange(3.0)
    assert outer(x) == 9.0
    assert a_users(x) == 10.0
    np.testing.assert_array_equal(middle(x), [1.0, 3.0, 5.0])


def test_arrays_are_freed_and_none_too_soon_with_many_threads():
    x = np.arange(6.0).reshape(2, 3)
    counted(x, 1)
    before = _live()
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda k: counted(x, k), [1, 2, 3] * 200))
    for k, (last, first, whole) in zip([1, 2, 3] * 200, results, strict=True):
        np.testing.assert_array_equal(last, 2.0**k * x[1, :2] + 2.0**k - 1.0)
        np.testing.assert_array_equal(first, x[0])
        np.testing.assert_array_equal(whole, x)
    assert _live() > before
    del results, last, first, whole
    assert _live() == before


def _live():
    """How many allocations of compiled code have not been freed."""
    _nrt_python.memsys_enable_stats()
    stats = rtsys.get_allocation_stats()
    return stats.alloc - stats.free


def test_twins_in_python_stay():
    assert outer.py_func(np.arange(3.0)) == 9.0
