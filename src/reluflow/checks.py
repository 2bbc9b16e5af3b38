"""Validation of arguments, shared by the values, the generators and the engines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow.errors import InputError
from reluflow.wording import shown

Array = NDArray[np.float64]


class Frozen:
    """A value: its constructor sets each attribute once, nothing changes it afterwards."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__ or hasattr(type(self), name):
            raise AttributeError(
                f"`{name}` of a {type(self).__name__} cannot be changed; caches and files rely on "
                f"it. Build a new {type(self).__name__}."
            )
        super().__setattr__(name, value)


def real_array(values: ArrayLike, name: str, ndim: int) -> Array:
    """Return a read-only float64 copy of finite real numbers with ``ndim`` axes."""
    if np.ma.is_masked(values):
        raise InputError(f"`{name}` is a masked array with missing entries. Drop or fill them.")
    try:
        raw = np.asarray(values)
    except (TypeError, ValueError) as error:
        reason = str(error).split(". ")[0].rstrip(".")
        raise InputError(
            f"`{name}` is not a rectangular array ({reason}). Give rows of equal length."
        ) from None
    if raw.dtype.kind not in "biuf":
        raise InputError(f"`{name}` has dtype {raw.dtype}, not real numbers. Use `.astype(float)`.")
    if raw.ndim != ndim:
        raise InputError(
            f"`{name}` has shape {raw.shape}; {ndim} axes are needed. Reshape it before passing it."
        )
    with np.errstate(over="ignore"):  # a long double may overflow here; reported as non-finite
        array = np.array(raw, dtype=np.float64, order="C")
    bad = ~np.isfinite(array)
    if bad.any():
        where = tuple(int(k) for k in np.argwhere(bad)[0])
        raise InputError(
            f"`{name}` has {int(bad.sum())} non-finite entries (first: {array[where]} at {where}). "
            "Gradient flow is undefined there. Drop or replace them."
        )
    return read_only(array)


def real_points(values: ArrayLike, name: str) -> Array:
    """The same for points (n, d); points on a line may be given as (n,) and become (n, 1)."""
    try:
        on_line = np.ndim(values) == 1
    except ValueError:  # rows of several lengths
        on_line = False
    return real_array(values, name, 1)[:, None] if on_line else real_array(values, name, 2)


def with_ones(points: Array) -> Array:
    """Points with the coordinate 1 appended: the bias of a neuron is its last weight."""
    return read_only(np.column_stack([points, np.ones(len(points))]))


def read_only(array: Array) -> Array:
    """Mark an array of a frozen value so that nobody changes it in place."""
    array.setflags(write=False)
    return array


def number(
    value: Any,
    name: str,
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    infinite: bool = False,
) -> float:
    """Return ``value`` as a float inside the stated range; ``infinite`` allows +-inf."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise InputError(f"`{name}` is {shown(value)}, not a number. Pass a real number.")
    try:
        result = float(value)
    except OverflowError:
        result = float("inf") if value > 0 else float("-inf")
    if np.isnan(result) or (np.isinf(result) and not infinite):
        raise InputError(f"`{name}` is {result}. Pass a finite number.")
    for bound, ok, words in (
        (above, above is None or result > above, "above"),
        (at_least, at_least is None or result >= at_least, "at least"),
        (at_most, at_most is None or result <= at_most, "at most"),
        (below, below is None or result < below, "below"),
    ):
        if not ok:
            raise InputError(f"`{name}` is {result:g}; it must be {words} {bound:g}. Change it.")
    return result


def whole(value: Any, name: str, *, at_least: int = 1, at_most: int = 2**53) -> int:
    """Return ``value`` as an int in the stated range (floats are exact up to 2^53)."""
    is_whole = isinstance(value, (int, np.integer)) or (
        isinstance(value, float) and value.is_integer()
    )
    if isinstance(value, bool) or not is_whole:
        raise InputError(f"`{name}` is {shown(value)}, not a whole number. Pass an integer.")
    if int(value) < at_least:
        raise InputError(f"`{name}` is {int(value)}; it must be at least {at_least}. Change it.")
    if int(value) > at_most:
        size = float(min(value, 10**300))  # the conversion overflows above
        raise InputError(f"`{name}` is {size:g}; it must be at most {at_most}. Change it.")
    return int(value)


def choice(value: Any, name: str, allowed: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of ``allowed``."""
    if not isinstance(value, str) or value not in allowed:
        listed = ", ".join(repr(word) for word in allowed)
        raise InputError(
            f"`{name}` is {shown(value)}; it must be one of {listed}.{nearest(value, allowed)}"
        )
    return value


def nearest(value: Any, allowed: Iterable[str]) -> str:
    """A sentence that names the allowed word closest to ``value``; empty if none is close.

    Examples
    --------
    >>> nearest("sqare", ["square", "logistic"])
    " Did you mean 'square'?"
    """
    from difflib import get_close_matches

    if not isinstance(value, str) or len(value) > 100:  # its time grows with the length squared
        return ""
    close = get_close_matches(value.lower(), list(allowed), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def generator(seed: Any) -> np.random.Generator:
    """Turn an int seed or a Generator into a Generator; refuse anything implicit."""
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InputError(
            f"`seed` is {shown(seed)}. Pass a non-negative int or a numpy.random.Generator; "
            "draws without a seed cannot be repeated."
        )
    return np.random.default_rng(int(seed))
