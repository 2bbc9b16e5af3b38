"""What makes numba compile faster without changing what it makes: some of its habits, set aside.

Each was a few hundredths of the time to compile or more, by a profile of all kernels.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from numba.core import ir
from numba.core.registry import cpu_target
from numba.core.targetconfig import ConfigStack, TargetConfig
from numba.core.types.functions import BaseFunction

# the collector of garbage, at its usual pace, takes a fifth of the time to compile
SELDOM = (20_000, 50, 100)
# and for a process that only compiles: what has lasted a while is not looked at again, which is a
# twentieth of the time and takes half as much memory again
ONLY_YOUNG = (20_000, 100_000, 100_000)


@contextmanager
def haste() -> Iterator[None]:
    """Meanwhile numba compiles faster."""
    thresholds = gc.get_threshold()
    if thresholds[0] > 0:  # else its user has turned it off
        gc.set_threshold(*map(max, thresholds, SELDOM))
    try:
        with replaced(_faster):
            yield
    finally:
        gc.set_threshold(*thresholds)


def only_compile() -> None:
    """Make a process ready that does nothing but compile: load what every compilation needs."""
    gc.set_threshold(*ONLY_YOUNG)
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()


@contextmanager
def replaced(methods: Iterable[tuple[type, str, Callable[..., Any]]]) -> Iterator[None]:
    """Meanwhile classes have these methods: class, name and function of each."""
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in methods]
    for owner, name, function in methods:
        setattr(owner, name, function)
    try:
        yield
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)


def _equal_flags(mine: Any, other: Any) -> Any:
    """Whether two sets of flags are equal; numba asks a hundred thousand times.

    It compares all values with their defaults filled in, where few are set in either.
    """
    if type(mine) is not type(other):
        return (
            mine.values() == other.values() if isinstance(other, TargetConfig) else NotImplemented
        )
    ours, theirs = mine._values, other._values
    if ours == theirs:
        return True
    return all(getattr(mine, name) == getattr(other, name) for name in ours.keys() | theirs.keys())


def _hash_of_flags(flags: Any) -> int:
    """The hash of a set of flags as numba has it: that of the names of all, whatever is set."""
    return _hash_of_names(type(flags))


_hash_of_names: Callable[[Any], int] = cache(lambda kind: hash(tuple(sorted(kind.options))))


def _variables(owner: Any, value: Any) -> list[Any]:
    """The variables in a part of an instruction, in order, as numba lists them.

    It asks of everything it finds, again and again, of which of five kinds it is.
    """
    kind = _kind(type(value))
    if kind is ir.Var:
        return [value]
    if kind is ir.Inst:
        found: list[Any] = value.list_vars()
        return found
    found = []
    if kind is not None:
        for inner in value.values() if kind is dict else value:
            kind_of_inner = _kind(type(inner))
            if kind_of_inner is ir.Var:
                found.append(inner)
            elif kind_of_inner is not None:
                found += _variables(owner, inner)
    return found


KINDS = (ir.Var, ir.Inst, list, tuple, dict)
# the kind of what holds variables, by its type; None for what holds none
_kind: Callable[[Any], type | None] = cache(
    lambda of: next((kind for kind in KINDS if issubclass(of, kind)), None)
)

_find_call = BaseFunction.get_call_type
_calls: dict[Any, tuple[Any, Any]] = {}


def _call(function: Any, context: Any, args: Any, kws: Any) -> Any:
    """The signature of a call; numba tries all implementations of `+` anew at each sum.

    Flags decide, too: what is found may be compiled for sums that may be reordered. For each types
    of arguments numba keeps one implementation, that of the last call: it is set again.
    """
    flags = ConfigStack.top_or_none()
    key = (function, context, tuple(args), tuple(kws.items()), flags)
    if key not in _calls:
        found: Any = _find_call(function, context, args, kws)
        _calls[key] = found, function._impl_keys[found.args]
    signature, implementation = _calls[key]
    function._impl_keys[signature.args] = implementation
    return signature


_faster: tuple[tuple[type, str, Callable[..., Any]], ...] = (
    (TargetConfig, "__eq__", _equal_flags),
    (TargetConfig, "__hash__", _hash_of_flags),
    (ir.Inst, "_rec_list_vars", _variables),
    (BaseFunction, "get_call_type", _call),
)
