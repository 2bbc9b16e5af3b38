"""Specification of one run: a TOML document, checked, then turned into data, network and engine.

::

    name = "correlated"            # optional: the name of the file
    seed = 0                       # of every draw whose section has no seed of its own

    [data]                         # a generator of reluflow.datasets and its arguments,
    generator = "centred"          # or file = "points.csv" with label = "column",
    d = 16                         # or X = [[...], ...] with y = [...]

    [network]                      # an initialisation of reluflow.networks and its arguments,
    init = "balanced"              # or file = "network.rf", or a = [...] with W = [[...], ...]
    width = 200
    log_scale = -9.7

    [loss]                         # optional: square with factor "1/2n" by default
    name = "square"

    [engine]                       # "descent" or "flow", with the arguments of that function
    name = "descent"
    lr = 0.1                       # or lr = { alpha = 0.1 } for the loss-based step
    steps = 20000
    batch = 8                      # optional; or batch = { size = 8, replacement = true }
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, isinf, isnan
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from reluflow import files, interrupts, losses, toml
from reluflow.builders import build_data, build_network
from reluflow.checks import nearest
from reluflow.dataset import Dataset
from reluflow.engines import Batches, LossBased, descend, flow, resume
from reluflow.errors import InputError
from reluflow.network import Network
from reluflow.trajectory import Trajectory
from reluflow.wording import cut, printable, shown

MAY_BE_INFINITE = ("$.engine.steps", "$.engine.t_end")

Positive = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Text = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")]


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of the document; a field that is not listed is an error."""


class LossTable(_Table, frozen=True):
    """``[loss]``: name and, for the square loss, factor."""

    name: str = "square"
    factor: str | None = None


class RateTable(_Table, frozen=True):
    """``lr = { alpha = ... }``: the loss-based step."""

    alpha: Positive = 0.1


class BatchTable(_Table, frozen=True):
    """``batch = { size = ..., replacement = true }``."""

    size: Count
    replacement: bool = False


class _EngineTable(_Table, frozen=True, kw_only=True, tag_field="name"):
    """What both engines take."""

    stop_loss: Positive | None = None
    stop_log_loss: float | None = None
    record: Count | list[float] = 200
    max_seconds: Positive | None = None


class DescentTable(_EngineTable, frozen=True, kw_only=True, tag="descent"):
    """``[engine]`` of `reluflow.descend`."""

    lr: Positive | RateTable
    steps: Annotated[float, msgspec.Meta(ge=1)]
    train: Literal["both", "hidden", "output"] = "both"
    decay: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    batch: Count | BatchTable | None = None
    momentum: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.0
    label_noise: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    seed: Annotated[int, msgspec.Meta(ge=0)] | None = None

    def options(self, seed: int) -> dict[str, Any]:
        """The arguments of `reluflow.descend`; without a seed of its own it draws from ``seed``."""
        found = msgspec.structs.asdict(self)
        if isinstance(self.lr, RateTable):
            found["lr"] = LossBased(alpha=self.lr.alpha)
        if isinstance(self.batch, BatchTable):
            found["batch"] = Batches(self.batch.size, self.batch.replacement)
        if self.seed is None:  # streams 0 and 1 are those of data and network
            found["seed"] = np.random.default_rng([seed, 2])
        return found


class FlowTable(_EngineTable, frozen=True, kw_only=True, tag="flow"):
    """``[engine]`` of `reluflow.flow`."""

    train: Literal["both", "hidden", "output", "linearised"] = "both"
    rates: tuple[Positive, Positive] = (1.0, 1.0)
    decay: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    t_end: Positive = inf
    rtol: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 1e-8
    max_events: Count | None = None

    def options(self, seed: int) -> dict[str, Any]:
        """The arguments of `reluflow.flow`, which draws nothing."""
        return msgspec.structs.asdict(self)

    def with_decay(self, decay: float) -> FlowTable:
        """The same with another weight decay."""
        return msgspec.structs.replace(self, decay=decay)


class Document(_Table, frozen=True):
    """The whole document."""

    data: dict[str, Any]
    network: dict[str, Any]
    engine: DescentTable | FlowTable
    loss: LossTable = LossTable()
    name: Text | None = None
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0


ENGINES: dict[str, type[_EngineTable]] = {"descent": DescentTable, "flow": FlowTable}


@dataclass(frozen=True)
class Task:
    """A run ready to start: everything is checked and drawn."""

    name: str
    data: Dataset
    net: Network
    loss: losses.Loss
    engine: DescentTable | FlowTable
    provenance: Mapping[str, Any]

    def inputs(self) -> dict[str, str]:
        """Digests of what the document's generators, files and arrays came to."""
        teacher = self.data.teacher
        known = {"X": self.data.X, "y": self.data.y, "spectrum": self.data.spectrum}
        if isinstance(teacher, Network):
            known |= {f"teacher.{name}": array for name, array in teacher.to_arrays().items()}
        else:
            known["teacher"] = teacher
        about = {"name": self.data.name, "ambient_dim": self.data.ambient_dim}
        arrays = {name: array for name, array in known.items() if array is not None}
        return {
            "data": files.digest(about, arrays),
            "network": files.digest({}, self.net.to_arrays()),
        }

    def start(
        self, *, progress: bool | None = None, earlier: Trajectory | None = None
    ) -> Trajectory:
        """Train; the result carries the document, the seed and the digests of the inputs.

        ``earlier`` is the same run, interrupted: it is gone on with. A signal raises
        `reluflow.interrupts.Interrupted`, also where compiled code would have swallowed it.
        """
        options = self.engine.options(int(self.provenance["seed"]))
        options |= {"loss": self.loss, "progress": progress}
        with interrupts.deferred():
            if earlier is not None:
                run = resume(earlier, **options)
            elif isinstance(self.engine, DescentTable):
                run = descend(self.data, self.net, **options)
            else:
                run = flow(self.data, self.net, **options)
        known = {**self.provenance, "inputs": self.inputs()}
        return replace(run, provenance={**run.provenance, **known})


def load(path: str | PathLike[str], *, seed: int | None = None) -> Task:
    """Read, check and build the run described by a TOML file; ``seed`` replaces the file's."""
    file = Path(path)
    try:
        return build(toml.read(file), name=file.stem, folder=file.parent, seed=seed)
    except InputError as error:
        raise InputError(f"{printable(path)}: {error}") from error


def parse(
    text: str, *, name: str = "run", folder: Path | None = None, seed: int | None = None
) -> Task:
    """Build the run described by a TOML text; files it names are looked up in ``folder``."""
    return build(toml.parse(text), name=name, folder=folder, seed=seed)


def build(
    raw: Mapping[str, Any],
    *,
    name: str = "run",
    folder: Path | None = None,
    seed: int | None = None,
) -> Task:
    """Build the run described by the tables of a document."""
    document = check(raw if seed is None else {**raw, "seed": seed})
    data = build_data(document.data, folder or Path(), document.seed)
    net = build_network(document.network, data, folder or Path(), document.seed)
    loss = _loss(document.loss)
    loss.check_data(data.X, data.y)
    return Task(
        name=document.name or re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip("._-") or "run",
        data=data,
        net=net,
        loss=loss,
        engine=document.engine,
        provenance={"spec": raw, "seed": document.seed},
    )


def check(raw: Mapping[str, Any]) -> Document:
    """Check names, types and ranges; every message names the path in the document."""
    _known(raw, Document, "$")
    if isinstance(raw.get("loss"), dict):
        _known(raw["loss"], LossTable, "$.loss")
    engine = raw.get("engine")
    if isinstance(engine, dict) and "name" in engine:
        name = engine["name"]
        if not isinstance(name, str) or name not in ENGINES:
            raise InputError(
                f"`$.engine.name` is {shown(name)}; it must be 'descent' or 'flow'."
                f"{nearest(name, ENGINES)}"
            )
        _known(engine, ENGINES[name], "$.engine")
        if isinstance(engine.get("lr"), dict):
            _known(engine["lr"], RateTable, "$.engine.lr")
        if isinstance(engine.get("batch"), dict):
            _known(engine["batch"], BatchTable, "$.engine.batch")
    _finite(raw, "$")
    try:
        return msgspec.convert(raw, Document)
    except msgspec.ValidationError as error:
        raise InputError(_explain(raw, str(error))) from None


def _known(table: Mapping[str, Any], struct: type[_Table], path: str) -> None:
    names = {field.encode_name for field in msgspec.structs.fields(struct)}
    if issubclass(struct, _EngineTable):
        names.add("name")
    for name in table:
        if name not in names:
            raise InputError(
                f"unknown field `{cut(name, 80)}` - at `{path}`. The fields are "
                f"{', '.join(sorted(names))}.{nearest(name, names)}"
            )


def _finite(value: Any, path: str) -> None:
    """Refuse nan everywhere, and inf where it has no meaning: the type check lets both through."""
    if isinstance(value, dict):
        for name, inner in value.items():
            _finite(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for k, inner in enumerate(value):
            _finite(inner, f"{path}[{k}]")
    elif isinstance(value, float) and (
        isnan(value) or (isinf(value) and path not in MAY_BE_INFINITE)
    ):
        raise InputError(f"`{path}` is {value}. Training is undefined there. Give a finite number.")


def _explain(raw: Any, message: str) -> str:
    """Say a message of the type check with the path first and the value that is wrong."""
    reason, _, path = message.partition(" - at `")
    path = path.rstrip("`") or "$"
    missing = re.search(r"missing required field `(\w+)`", reason)
    if missing:
        return f"`{path}.{missing[1]}` is missing. Add it."
    value = raw
    for name, index in re.findall(r"\.(\w+)|\[(\d+)\]", path):
        value = value[name] if name else value[int(index)]
    return f"`{path}` is {shown(value)}. {reason.replace('object', 'table')}. Change it."


def _loss(table: LossTable) -> losses.Loss:
    given = {
        key: value for key, value in msgspec.structs.asdict(table).items() if value is not None
    }
    try:
        if table.factor is not None and table.name in losses.NAMES[1:]:
            raise InputError(
                f"`factor` is {shown(table.factor)}, but the {table.name} loss is a mean and has "
                "none. Remove it."
            )
        return losses.from_dict(given)
    except InputError as error:
        raise InputError(f"{error} (at `$.loss`)") from None
