r"""Trajectory: what a training run did, from start to status.

A run keeps recorded states, the event list, its status and the settings that made it, so any time
in its span can be recomputed exactly: `Trajectory.at` restarts the engine from the last record
before the time asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow import files, losses, run_file, run_relations
from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.errors import InputError, MissingExtraError
from reluflow.network import Network
from reluflow.run_file import EVENT_DTYPE as EVENT_DTYPE


class Status(StrEnum):
    """How a run ended; ``text`` says it in words."""

    CONVERGED = "converged"
    STATIONARY = "stationary"
    STOP_LOSS = "stop_loss"
    T_END = "t_end"
    STEPS = "steps"
    UNCHANGED = "unchanged"
    DIVERGED = "diverged"
    BUDGET = "budget"

    @property
    def text(self) -> str:
        """One sentence for tables and reports."""
        return _STATUS_TEXT[self]


_STATUS_TEXT = {
    Status.CONVERGED: "a zero-loss limit is reached; .final is the limit",
    Status.STATIONARY: "a limit with non-zero loss is reached (minimum, saddle, dead network)",
    Status.STOP_LOSS: "the loss asked for is reached",
    Status.T_END: "the end time is reached",
    Status.STEPS: "all steps are done",
    Status.UNCHANGED: "the weights no longer change in floating point",
    Status.DIVERGED: "the loss blew up; use a smaller step",
    Status.BUDGET: "a limit set by the caller is reached before the end",
}


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A finished run of an engine.

    Attributes
    ----------
    engine : str
        "flow" or "descent".
    data, net, loss_function
        What was trained: the data, the network at the start, the loss.
    t, log_t, log_loss : (k,) arrays
        Recorded times (flow) or iterations (descent), their logarithms, the log-losses there.
    states : mapping of arrays
        The recorded networks, stacked: ``a`` (k, m), ``W`` (k, m, d), ``log_scale`` (k, m),
        ``log_scale_out`` (k, m), and what the engine needs to restart.
    final : Network
        The last network; for ``converged`` and ``stationary`` the limit at t = infinity.
    limit_error : float
        Bound on the distance of ``final`` to the true limit (nan if no limit was reached).
    events : structured array
        Fields ``t, log_t, neuron, point, kind``, sorted by (t, neuron, point).
    status : Status
        How the run ended.
    stats, options : mapping
        Counts of work; the settings of the engine.
    provenance : mapping
        Versions and threads of the computation; the specification and seed, where there is one.
    """

    engine: str
    data: Dataset
    net: Network
    loss_function: losses.Loss
    t: Array
    log_t: Array
    log_loss: Array
    states: Mapping[str, NDArray[Any]]
    final: Network
    status: Status
    events: NDArray[Any] = field(default_factory=lambda: np.empty(0, EVENT_DTYPE))
    limit_error: float = float("nan")
    stats: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=files.provenance)

    @property
    def loss(self) -> Array:
        """The recorded losses; 0 where they are below the range of floats."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.log_loss))

    def network(self, k: int) -> Network:
        """The k-th recorded network."""
        names = ("a", "W", "log_scale", "log_scale_out")
        return Network.from_arrays({name: self.states[name][k] for name in names})

    def at(
        self,
        t: float | None = None,
        *,
        log_t: float | None = None,
        log_loss: float | None = None,
    ) -> Network:
        """Return the network at a time, a log-time or a log-loss inside the span.

        Recomputed from the nearest earlier record by the same engine, to the accuracy of the run.
        """
        given = {"t": t, "log_t": log_t, "log_loss": log_loss}
        asked = {name: value for name, value in given.items() if value is not None}
        if len(asked) != 1:
            raise InputError(
                f"`at` got {sorted(asked) or 'nothing'}. Give exactly one of t, log_t, log_loss."
            )
        from reluflow.engines import replay

        return replay(self, **asked)

    def log_max_angle(self, t: float, subset: Sequence[int] | None = None) -> float:
        """Logarithm of the largest angle between two neurons at time t, right at any scale."""
        from reluflow.engines import log_max_angle

        return log_max_angle(self, t, subset)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the run to one checked file; the old file stays intact if writing fails."""
        files.write_bytes(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """The contents of the file that `save` writes; equal runs give equal bytes."""
        arrays: dict[str, Any] = {
            "t": self.t,
            "log_t": self.log_t,
            "log_loss": self.log_loss,
            "events": self.events,
            **{f"states.{name}": array for name, array in self.states.items()},
            **{f"net.{name}": array for name, array in self.net.to_arrays().items()},
            **{f"final.{name}": array for name, array in self.final.to_arrays().items()},
            "data.X": self.data.X,
            "data.y": self.data.y,
        }
        teacher = self.data.teacher
        if isinstance(teacher, Network):
            arrays |= {f"teacher.{name}": array for name, array in teacher.to_arrays().items()}
        elif teacher is not None:
            arrays["data.teacher"] = teacher
        if self.data.spectrum is not None:
            arrays["data.spectrum"] = self.data.spectrum
        fields = {
            "engine": self.engine,
            "status": str(self.status),
            "limit_error": self.limit_error,
            "loss": self.loss_function.to_dict(),
            "name": self.data.name,
            "ambient_dim": self.data.ambient_dim,
            "stats": dict(self.stats),
            "options": dict(self.options),
            "provenance": dict(self.provenance),
        }
        return files.encode("trajectory", fields, arrays)

    def to_xarray(self) -> Any:
        """Return an ``xarray.Dataset`` of the records (extra ``reluflow[xarray]``)."""
        try:
            import xarray
        except ImportError:
            raise MissingExtraError(
                "to_xarray needs xarray. Install it with: pip install 'reluflow[xarray]'"
            ) from None
        dims = {"a": ("t", "neuron"), "W": ("t", "neuron", "coordinate")}
        variables = {
            name: (dims.get(name, ("t", "neuron")), np.asarray(self.states[name]))
            for name in ("a", "W", "log_scale", "log_scale_out")
        }
        variables["log_loss"] = (("t",), self.log_loss)
        return xarray.Dataset(
            variables,
            coords={"t": self.t},
            attrs={"engine": self.engine, "status": str(self.status), **files.versions()},
        )

    def __repr__(self) -> str:
        return (
            f"Trajectory({self.engine}, {self.status}, t={self.t[-1]:.6g}, "
            f"log_loss={self.log_loss[-1]:.6g}, events={len(self.events)})"
        )


def load(path: str | PathLike[str]) -> Trajectory:
    """Read a run written by `Trajectory.save`; a damaged or foreign file is refused.

    So is one whose checksums are right but whose parts do not fit each other
    (`reluflow.run_file`): what loads can be used.
    """
    manifest, arrays = files.read(path, "trajectory")
    with files.contents(path):
        return from_parts(manifest["fields"], arrays)


def from_parts(fields: Mapping[str, Any], arrays: Mapping[str, Any]) -> Trajectory:
    """Check and join the parts of a file into a run; `InputError` says what does not fit."""
    run_file.check(fields, arrays)

    def group(prefix: str) -> dict[str, Any]:
        return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}

    teacher = group("teacher.")
    data = Dataset(
        arrays["data.X"],
        arrays["data.y"],
        teacher=Network.from_arrays(teacher) if teacher else arrays.get("data.teacher"),
        name=fields["name"],
        ambient_dim=fields["ambient_dim"],
        spectrum=arrays.get("data.spectrum"),
    )
    loss = losses.from_dict(fields["loss"])
    loss.check_data(data.X, data.y)
    states = group("states.")
    run_relations.check(data, loss, states, arrays["log_loss"])
    return Trajectory(
        engine=fields["engine"],
        data=data,
        net=Network.from_arrays(group("net.")),
        loss_function=loss,
        t=arrays["t"],
        log_t=arrays["log_t"],
        log_loss=arrays["log_loss"],
        states=states,
        final=Network.from_arrays(group("final.")),
        status=Status(fields["status"]),
        events=arrays["events"],
        limit_error=fields["limit_error"],
        stats=fields["stats"],
        options=fields["options"],
        provenance=fields["provenance"],
    )
