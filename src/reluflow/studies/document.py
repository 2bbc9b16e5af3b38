"""A study as a document: the tables of `reluflow.spec` and ``[study]``.

::

    [study]                        # optional
    paper = "correlated"           # whose claims and pictures the page shows
    title = "Neurons align, then grow"
    log_scales = [-6.9, -13.8]     # the network at each of these scales; as it is without
    decays = [0.0, 0.1, 0.01]      # or the flow with each of these weight decays

    [data]
    [network]
    [loss]
    [engine]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from reluflow import spec, toml
from reluflow.checks import nearest
from reluflow.errors import InputError
from reluflow.theory.registry import paper_named
from reluflow.wording import cut, printable, shown

FIELDS = ("paper", "title", "log_scales", "decays")
MAX_SCALES = 50


@dataclass(frozen=True)
class Plan:
    """A study ready to start: labelled runs, whose claims to check, and the document itself."""

    name: str
    title: str
    paper: str | None
    seed: int
    document: Mapping[str, Any]
    tasks: tuple[tuple[str, spec.Task], ...]


def load(path: str | PathLike[str], *, seed: int | None = None) -> Plan:
    """Read the study of a TOML file; ``seed`` replaces the file's."""
    file = Path(path)
    try:
        return build(toml.read(file), name=file.stem, folder=file.parent, seed=seed)
    except InputError as error:
        raise InputError(f"{printable(path)}: {error}") from error


def build(
    document: Mapping[str, Any],
    *,
    name: str,
    folder: Path | None = None,
    seed: int | None = None,
) -> Plan:
    """Check a document and draw its data and networks."""
    table = document.get("study", {})
    scales, decays = _check_table(table)
    rest = {key: value for key, value in document.items() if key != "study"}
    task = spec.build(rest, name=name, folder=folder, seed=seed)
    if scales:
        tasks = tuple(
            (scale_label(scale), replace(task, net=task.net.with_scale(scale))) for scale in scales
        )
    elif decays:
        tasks = tuple((decay_label(decay), _with_decay(task, decay)) for decay in decays)
    else:
        tasks = (("the run", task),)
    return Plan(
        name=task.name,
        title=table.get("title", task.name),
        paper=table.get("paper"),
        seed=int(task.provenance["seed"]),
        document=document,
        tasks=tasks,
    )


def scale_label(log_scale: float) -> str:
    """The scale as a power a reader knows.

    Examples
    --------
    >>> scale_label(-7 * math.log(4)), scale_label(-100 * math.log(10)), scale_label(-44000.0)
    ('scale 4^-7', 'scale 10^-100', 'scale exp(-44000)')
    """
    for base in (10, 4, 2):
        power = log_scale / math.log(base)
        if abs(power - round(power)) < 1e-9 * max(1.0, abs(power)):
            return f"scale {base}^{round(power)}" if round(power) else "scale 1"
    return f"scale exp({log_scale:.6g})"


def decay_label(decay: float) -> str:
    """How a page calls a run with this weight decay."""
    return f"decay {decay:g}" if decay else "no decay"


def _with_decay(task: spec.Task, decay: float) -> spec.Task:
    engine = task.engine
    if not isinstance(engine, spec.FlowTable) or engine.train != "both":
        raise InputError(
            '`$.study.decays` is for the flow of both layers. Set name = "flow" under [engine], '
            "without `train`."
        )
    return replace(task, engine=engine.with_decay(decay))


def _check_table(table: object) -> tuple[list[float], list[float]]:
    if not isinstance(table, Mapping):
        raise InputError(
            f"`$.study` is {shown(table)}. It must be a table. Write [study] above it."
        )
    for name in table:
        if name not in FIELDS:
            raise InputError(
                f"unknown field `{cut(name, 80)}` - at `$.study`. The fields are "
                f"{', '.join(FIELDS)}.{nearest(name, FIELDS)}"
            )
    if "paper" in table:
        try:
            paper_named(table["paper"])
        except InputError as error:
            raise InputError(f"`$.study.paper`: {error}") from None
    if not isinstance(table.get("title", ""), str):
        raise InputError(f"`$.study.title` is {shown(table['title'])}. It must be text. Quote it.")
    scales = _numbers(table, "log_scales", "numbers, the natural logarithms of the scales")
    decays = _numbers(table, "decays", "numbers from 0 on", least=0.0)
    if decays and (scales or "paper" in table):
        raise InputError(
            "`$.study` has `decays` beside `log_scales` or `paper`, whose runs are plain training. "
            "Remove one of them."
        )
    return scales, decays


def _numbers(
    table: Mapping[str, Any], name: str, what: str, least: float = -math.inf
) -> list[float]:
    given = table.get(name, [])
    good = isinstance(given, list) and all(
        isinstance(one, int | float)
        and not isinstance(one, bool)
        and math.isfinite(one)
        and one >= least
        for one in given
    )
    if not good or len(set(given)) != len(given) or len(given) > MAX_SCALES:
        raise InputError(
            f"`$.study.{name}` is {shown(given)}. It must be a list of at most {MAX_SCALES} "
            f"different finite {what}. Change it."
        )
    return [float(one) for one in given]
