"""Which kernels Python enters, and with which types: seen in a second where numba is switched off.

A kernel is then an ordinary function, and what it calls stays in Python, too. So a run shows what
it would compile without compiling it, and compilation can be shared out among processes.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """A kernel with the types, pickled, of the arguments it was given.

    ``parts`` are the names of all kernels it calls, and its own, with the lengths of their code.
    """

    module: str
    name: str
    types: bytes
    parts: frozenset[tuple[str, int]]

    def compile(self) -> None:
        """Compile it, or load it, for these types."""
        getattr(import_module(self.module), self.name).compile(pickle.loads(self.types))


_found: dict[Any, Entry] = {}
_inside = False


def watched(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that is not compiled and notes what it is given where Python enters it."""
    from numba.core.typing.typeof import Purpose, typeof  # others read this module without numba

    @functools.wraps(function)
    def call(*given: Any) -> Any:
        global _inside
        if _inside:
            return function(*given)
        types = tuple(typeof(value, Purpose.argument) for value in given)
        if (function, types) not in _found:  # equal types may be pickled in different ways
            named = function.__module__, function.__name__
            _found[function, types] = Entry(*named, pickle.dumps(types), _parts(call))
        _inside = True
        try:
            return function(*given)
        finally:
            _inside = False

    return call


def entered() -> list[Entry]:
    """Return what has been entered in this process."""
    return list(_found.values())


def _parts(kernel: Any) -> frozenset[tuple[str, int]]:
    """A kernel and all that it calls, with the lengths of their code."""
    found: set[Any] = set()
    open_ = [kernel]
    while open_:
        one = open_.pop()
        function = getattr(one, "__wrapped__", None)
        if function is not None and one not in found:
            found.add(one)
            values = (function.__globals__.get(name) for name in function.__code__.co_names)
            open_.extend(value for value in values if callable(value))
    code = [one.__wrapped__.__code__ for one in found]
    return frozenset((f"{one.co_filename}:{one.co_name}", len(one.co_code)) for one in code)
