"""Tasks: the functions a sweep may call, by name.

A task is a function ``task(parameters, seed)`` that returns a `Trajectory`, or a mapping of
numbers, texts and arrays. It is pure: equal arguments give equal results, on any machine. Names
come from files, so only functions of allowed packages are ever called: those of reluflow, and of
packages that the program itself allows by `allow`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from reluflow.checks import nearest
from reluflow.errors import InputError
from reluflow.trajectory import Trajectory

if TYPE_CHECKING:
    from reluflow import spec

Task = Callable[[Mapping[str, Any], int], "Trajectory | Mapping[str, Any]"]

_NAME = re.compile(r"[A-Za-z]\w*(\.[A-Za-z]\w*)*:[A-Za-z]\w*")
_allowed = {"reluflow"}


def allow(package: str) -> None:
    """Let sweeps of this process and its workers call functions of another package.

    Examples
    --------
    >>> allow("reluflow")
    >>> "reluflow" in allowed()
    True
    """
    if not isinstance(package, str) or not _NAME.fullmatch(f"{package}:x"):
        raise InputError(f"`package` is {package!r}, not the name of a package. Write 'mylab'.")
    _allowed.add(package)


def allowed() -> tuple[str, ...]:
    """The packages whose functions may be called, sorted."""
    return tuple(sorted(_allowed))


def check_name(task: Any) -> None:
    """Refuse a name that is neither "train" nor a function of an allowed package."""
    if task == "train":
        return
    if not isinstance(task, str) or not _NAME.fullmatch(task):
        raise InputError(
            f"`task` is {task!r}. A task is 'train' or 'module:function'.{nearest(task, ['train'])}"
        )
    module = task.partition(":")[0]
    if not any(f"{module}.".startswith(f"{package}.") for package in _allowed):
        raise InputError(
            f"`task` is {task!r}, outside the package reluflow. Sweeps call nothing else, because "
            "plans are data. Use a function of reluflow, or allow your package in your program "
            "with reluflow.sweeps.allow."
        )


def resolve(task: str) -> Task:
    """The function of a name; a name without one is refused with the nearest that exists."""
    check_name(task)
    if task == "train":
        return train
    name, _, attribute = task.partition(":")
    try:
        module = import_module(name)
    except ImportError as error:
        raise InputError(
            f"`task` is {task!r}, but {name} cannot be imported ({error}). Correct the name."
        ) from None
    function = getattr(module, attribute, None)
    if not callable(function):
        raise InputError(
            f"`task` is {task!r}, but {name} has no function {attribute!r}. Correct the name."
            f"{nearest(attribute, [word for word in dir(module) if not word.startswith('_')])}"
        )
    return function  # type: ignore[no-any-return]


def train(parameters: Mapping[str, Any], seed: int) -> Trajectory:
    """Train what a document of `reluflow.spec` describes; ``seed`` is the document's.

    Examples
    --------
    >>> run = train(
    ...     {
    ...         "data": {"generator": "centred", "d": 2},
    ...         "network": {"init": "balanced", "width": 3},
    ...         "engine": {"name": "descent", "lr": 0.1, "steps": 5},
    ...     },
    ...     seed=1,
    ... )
    >>> str(run.status), run.provenance["seed"]
    ('steps', 1)
    """
    return prepare(parameters, seed).start()


def prepare(parameters: Mapping[str, Any], seed: int) -> spec.Task:
    """Check a document and build its data, network and loss."""
    from reluflow import spec

    return spec.build({**parameters, "seed": seed})


def echo(parameters: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return the numbers and texts of the parameters, and the seed: to try out a cluster.

    Examples
    --------
    >>> echo({"x": 1.5, "list": [1, 2]}, 7)
    {'x': 1.5, 'seed': 7}
    """
    kept = {k: v for k, v in parameters.items() if isinstance(v, (bool, int, float, str))}
    return {**kept, "seed": seed}
