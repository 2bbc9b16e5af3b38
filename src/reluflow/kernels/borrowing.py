"""Arguments of kernels are borrowed: nothing is counted while they are looked at.

numba gives every variable a reference to the arrays in it. A tuple of a dozen arrays, handed down
ten calls and taken apart in each, is hundreds of calls that count up and down, and they were a
seventh of all code that LLVM was given. But whoever calls keeps its arguments until the call
returns. So a variable that is an argument, or what is taken out of a tuple that is one, needs no
reference of its own, and no memory either: it is the same value wherever it is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from numba.core import ir
from numba.core.lowering import Lower, must_use_alloca
from numba.core.types.containers import BaseNamedTuple, BaseTuple

_find_local = Lower._find_singly_assigned_variable
_take_arguments = Lower.extract_function_arguments
_lower = Lower.lower_inst


# how numba takes tuples apart: by name, by number and all at once
TAKEN = {"getattr", "static_getitem", "exhaust_iter"}


class Origin(NamedTuple):
    """Where a borrowed variable comes from: an argument if ``owner`` is None, or another variable.

    ``place`` is which argument, or which item of the owner; None is the owner itself.
    """

    owner: str | None
    place: int | None


def borrowed(blocks: dict[int, Any], typeof: Callable[[str], Any]) -> dict[str, Origin]:
    """The borrowed variables of a function, owners before what is taken out of them."""
    assigned = list(_assigned(blocks))
    times = Counter(name for name, _ in assigned)
    # numba returns casts of variables, which count; one returned as it is would not be counted
    left_out = must_use_alloca(blocks) | _returned(blocks)
    open_ = {name: value for name, value in assigned if times[name] == 1 and name not in left_out}
    found: dict[str, Origin] = {}
    while True:
        new = {
            name: origin
            for name, value in open_.items()
            if (origin := _origin(name, value, found, typeof)) is not None
        }
        if not new:
            return found
        found |= new
        open_ = {name: value for name, value in open_.items() if name not in new}


def _returned(blocks: dict[int, Any]) -> set[str]:
    """The variables that a function returns."""
    ends = (block.terminator for block in blocks.values())
    return {end.value.name for end in ends if isinstance(end, ir.Return)}


def _assigned(blocks: dict[int, Any]) -> Iterator[tuple[str, Any]]:
    """Every variable with what is assigned to it."""
    for block in blocks.values():
        for one in block.body:
            if isinstance(one, ir.Assign):
                yield one.target.name, one.value


def _origin(
    name: str, value: Any, found: dict[str, Origin], typeof: Callable[[str], Any]
) -> Origin | None:
    """Where a variable comes from, if it can be borrowed: its type has to be that of its origin."""
    if isinstance(value, ir.Arg):
        same = typeof(f"arg.{value.name}") == typeof(name)
        return Origin(None, value.index) if same else None
    owner, place = _taken(value, typeof)
    if owner is None or owner not in found:
        return None
    kind = typeof(owner) if place is None else typeof(owner)[place]
    return Origin(owner, place) if kind == typeof(name) else None


def _taken(value: Any, typeof: Callable[[str], Any]) -> tuple[str | None, int | None]:
    """The variable and which of its items a value is; None and None if it is something else."""
    if isinstance(value, ir.Var):
        return value.name, None
    if not isinstance(value, ir.Expr) or value.op not in TAKEN:
        return None, None
    owner = value.value.name
    kind = typeof(owner)
    if value.op == "getattr" and isinstance(kind, BaseNamedTuple):
        return (owner, kind.fields.index(value.attr)) if value.attr in kind.fields else (None, None)
    if value.op == "static_getitem" and isinstance(kind, BaseTuple):
        inside = isinstance(value.index, int) and 0 <= value.index < len(kind)
        return (owner, value.index) if inside else (None, None)
    is_all = value.op == "exhaust_iter" and isinstance(kind, BaseTuple)
    return (owner, None) if is_all else (None, None)


def _find(making: Any) -> None:
    """Find the variables that need no memory, as numba does, and those that are borrowed."""
    _find_local(making)
    making.borrowed = {}
    if not making.func_ir.func_id.is_generator and not making._disable_sroa_like_opt:
        making.borrowed = borrowed(making.func_ir.blocks, making.typeof)
        making._singly_assigned_vars |= making.borrowed.keys()


def _take(making: Any) -> Any:
    """Take the arguments, and out of them what is borrowed, once: where the function begins."""
    arguments = _take_arguments(making)
    values = making._blk_local_varmap
    for name, (owner, place) in making.borrowed.items():
        if owner is None:
            values[name] = arguments[place]
        elif place is None:
            values[name] = values[owner]
        else:
            values[name] = making.builder.extract_value(values[owner], place)
    return arguments


def _make(making: Any, instruction: Any) -> None:
    """Make code of an instruction; nothing is left to do for what is borrowed."""
    if isinstance(instruction, ir.Assign):
        name = instruction.target.name
    else:
        name = instruction.value if isinstance(instruction, ir.Del) else None
    if name not in making.borrowed:
        _lower(making, instruction)


# what takes the place of which method of numba's that makes code
BORROWING: tuple[tuple[type, str, Callable[..., Any]], ...] = (
    (Lower, "_find_singly_assigned_variable", _find),
    (Lower, "extract_function_arguments", _take),
    (Lower, "lower_inst", _make),
)
