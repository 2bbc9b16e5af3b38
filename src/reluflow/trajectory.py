r"""Trajectory: what a training run did, from start to status.

A run keeps recorded states, the event list, its status and the settings that made it, so any time
in its span can be recomputed exactly: `Trajectory.at` restarts the engine from the last record
before the time asked for. The flow also keeps its modes, which say what weights cannot: a neuron
that rests on the plane of a point has an inner product of rounding, of either sign.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow import files, losses, run_file, run_relations
from reluflow.checks import Array, number, read_only
from reluflow.dataset import Dataset
from reluflow.errors import InputError, MissingExtraError
from reluflow.modes import AFTER, STORED, modes_of_signs
from reluflow.modes import Mode as Mode
from reluflow.network import Network, scaled
from reluflow.run_file import EVENT_DTYPE as EVENT_DTYPE
from reluflow.run_file import EVENT_KINDS as EVENT_KINDS
from reluflow.statuses import Status as Status


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
    kept : mapping of arrays
        What the engine recorded and files store: the networks stacked as `Network.mantissa` has
        them (``a`` (k, m), ``W`` (k, m, d), ``log_scale``, ``log_scale_out`` (k, m)), and what the
        engine needs to restart. `states` has the true weights.
    final : Network
        The last network; for ``converged`` and ``stationary`` the limit at t = infinity.
    limit_error : float
        Bound on the distance of ``final`` to the limit of this run (nan if none was reached,
        infinite if none is known). What the run itself is off by, where the end is ill-conditioned,
        is not in it.
    events : structured array
        Fields ``t, log_t, neuron, point, kind``, sorted by (t, neuron, point). Kinds:
        ``activate``, ``deactivate``; ``slide`` (starts), ``release`` (ends); ``die``, ``flip`` (of
        the output weight; both with point -1); ``branch`` (the solution was not unique here, or
        the error decides, and the run follows one way; point -1, or the first point of the plane).
    status : Status
        How the run ended.
    reason : str
        Why, where the status alone does not say it: which limit of the caller was reached
        (``budget``), what the engine could not do (``failed``); otherwise empty.
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
    kept: Mapping[str, NDArray[Any]]
    final: Network
    status: Status
    events: NDArray[Any] = field(default_factory=lambda: np.empty(0, EVENT_DTYPE))
    limit_error: float = float("nan")
    reason: str = ""
    stats: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=files.provenance)

    def __post_init__(self) -> None:
        for name in ("net", "final"):
            object.__setattr__(self, name, self._alike(getattr(self, name)))

    def _alike(self, found: Network) -> Network:
        """A network of this run: the inputs of the data, the activation of the start."""
        return found.with_bias(self.data.bias).with_slope(self.net.slope)

    @property
    def ending(self) -> str:
        """How the run ended, in words: the text of its status and the reason."""
        return f"{self.status.text} ({self.reason})" if self.reason else self.status.text

    @property
    def branches(self) -> NDArray[np.void]:
        """The events where the solution was not unique or not decided: other runs may follow."""
        return np.asarray(self.events[self.events["kind"] == "branch"])

    @property
    def loss(self) -> Array:
        """The recorded losses; 0 where they are below the range of floats."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.log_loss))

    @property
    def decay(self) -> float:
        """Weight decay mu of the training; 0 without."""
        return float(self.options.get("decay", 0.0))

    @cached_property
    def objective(self) -> Array:
        r"""What training lowers, at the records: loss plus :math:`\frac\mu2 |\theta|^2`.

        Of the trained weights, with the weight decay mu; without it the losses.
        """
        if not self.decay:
            return self.loss
        layers = {"hidden": ("W",), "output": ("a",)}.get(self.options["train"], ("a", "W"))
        weights = [self.states[name].reshape(len(self.t), -1) for name in layers]
        norms = np.sum([np.square(some).sum(axis=1) for some in weights], axis=0)
        return read_only(self.loss + 0.5 * self.decay * norms)

    @cached_property
    def states(self) -> Mapping[str, NDArray[Any]]:
        """The recorded states, stacked: ``a`` (k, m) and ``W`` (k, m, d) are the true weights.

        They are 0 where they underflow; ``mantissa_a``, ``mantissa_W``, ``log_scale`` and
        ``log_scale_out`` have them at any scale. The rest is what the engine needs to restart.
        """
        a, W = self.kept["a"], self.kept["W"]
        return {
            **self.kept,
            "a": read_only(scaled(a, self.kept["log_scale_out"])),
            "W": read_only(scaled(W, self.kept["log_scale"][..., None])),
            "mantissa_a": a,
            "mantissa_W": W,
        }

    def network(self, k: int) -> Network:
        """The k-th recorded network."""
        names = ("a", "W", "log_scale", "log_scale_out")
        return self._alike(Network.from_arrays({name: self.kept[name][k] for name in names}))

    def modes(
        self, k: int | None = None, *, t: float | None = None, log_t: float | None = None
    ) -> NDArray[np.int8]:
        """Return what each neuron does on each point: an (m, n) array of `Mode`.

        Parameters
        ----------
        k : int
            At the k-th record; -1 is the end, that is ``final``: the limit of a run that has one,
            and later than the last record where records were asked for at chosen times.
        t, log_t : float
            At a time instead (inf is the end): the modes of the record before it and the events
            since.

        Notes
        -----
        A flow knows its modes. Descent has none: there they are the signs of the inner products of
        weights and points, and one that is zero up to its own rounding (in a certified limit, up to
        ``limit_error``) counts as inactive, as relu'(0) = 0 has it; no pair of descent slides.
        """
        given = [value for value in (k, t, log_t) if value is not None]
        if len(given) != 1:
            raise InputError(f"got {len(given)} of `k`, `t`, `log_t`. Give exactly one of them.")
        if k is not None:
            return self._modes_of_record(k)
        if t is not None:
            t = number(t, "t", at_least=0.0, infinite=True)
            log_t = float(np.log(t)) if t > 0.0 else -np.inf
        assert log_t is not None
        return self._modes_at(number(log_t, "log_t", infinite=True))

    def active(
        self, k: int | None = None, *, t: float | None = None, log_t: float | None = None
    ) -> NDArray[np.bool_]:
        """Return which neuron is active on which point, (m, n); arguments as for `modes`.

        A pair that slides counts as False: its inner product is zero, whatever sign rounding gave
        it. `modes` tells such pairs from inactive ones.
        """
        return np.asarray(self.modes(k, t=t, log_t=log_t) == Mode.ACTIVE)

    def _modes_of_record(self, k: int) -> NDArray[np.int8]:
        count = len(self.t)
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not -count <= k < count:
            raise InputError(
                f"`k` is {k!r}; the run has records 0 to {count - 1}, and -1 is its end. "
                "Choose one of them."
            )
        if k == -1:
            return self._modes_at(np.inf)
        if "mode" in self.kept:
            return np.asarray(STORED[self.kept["mode"][k]])
        return modes_of_signs(self.network(int(k)), self.data)

    def _modes_at(self, log_t: float) -> NDArray[np.int8]:
        if "mode" not in self.kept:
            if log_t == np.inf:
                return modes_of_signs(self.final, self.data, self.limit_error)
            if log_t == -np.inf:
                return modes_of_signs(self.net, self.data)
            return modes_of_signs(self.at(log_t=log_t), self.data)
        last = float(self.log_t[-1])
        beyond = last + 1e-15 * (1.0 + abs(last)) < log_t < np.inf
        if beyond and self.status not in (Status.CONVERGED, Status.STATIONARY):
            raise InputError(
                f"`log_t` is {log_t:g}, after the end of the run ({last:g}). Ask for a time inside "
                "it, for t = inf (the end), or continue the run."
            )
        k = int(np.searchsorted(self.log_t, log_t, side="right")) - 1
        happened = self.events["log_t"] <= log_t
        if k < 0:  # before the first record
            found = modes_of_signs(self.net, self.data)
        else:
            found = STORED[self.kept["mode"][k]]
            happened &= self.events["log_t"] > self.log_t[k]
        changes = self.events[happened & np.isin(self.events["kind"], list(AFTER))]
        after = [AFTER[kind] for kind in changes["kind"].tolist()]
        found[changes["neuron"], changes["point"]] = after  # the last event of a pair stays
        return np.asarray(found)

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

        return self._alike(replay(self, **asked))

    def sample(self, log_times: ArrayLike, *, stop: Callable[[], bool] | None = None) -> Trajectory:
        """Return the run with records at these log-times only, computed in one sweep.

        Parameters
        ----------
        log_times : (k,) array
            Logarithms of times in the span, -inf for the start; put in order, each once. Times
            after the end of a run that has a limit count as its end.
        stop : callable, optional
            Asked between two times; once it returns True the times so far are returned.
        """
        if self.engine != "flow":
            raise InputError(
                "`sample` is for runs of the flow; descent has iterations. Ask for them with "
                "`rf.descend(..., record=[...])`."
            )
        from reluflow.engines import sample

        return sample(self, log_times, stop)

    def log_max_angle(self, t: float, subset: Sequence[int] | None = None) -> float:
        """Logarithm of the largest angle between two neurons at time t, right at any scale."""
        from reluflow.engines import log_max_angle

        return log_max_angle(self, t, subset)

    def plot(self) -> Any:
        """Draw the four pictures that fit the run best (extra ``reluflow[report]``).

        `reluflow.plot` has them one by one, and more.
        """
        from reluflow.plot import four

        return four(self)

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
            **{f"states.{name}": array for name, array in self.kept.items()},
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
            "reason": self.reason,
            "limit_error": self.limit_error,
            "loss": self.loss_function.to_dict(),
            "name": self.data.name,
            "ambient_dim": self.data.ambient_dim,
            "stats": dict(self.stats),
            "options": dict(self.options),
            "provenance": dict(self.provenance),
        }
        if self.data.bias:
            fields["bias"] = True
        return files.encode("trajectory", fields, arrays)

    def to_xarray(self) -> Any:
        """Return an ``xarray.Dataset`` of the records (extra ``reluflow[xarray]``).

        Its ``a`` and ``W`` are the true weights, as in `states`.
        """
        try:
            import xarray
        except ImportError:
            raise MissingExtraError(
                "to_xarray needs xarray. Install it with: pip install 'reluflow[xarray]'"
            ) from None
        axes = ("t", "neuron", "coordinate")
        names = ("a", "W", "mantissa_a", "mantissa_W", "log_scale", "log_scale_out")
        arrays = {name: np.asarray(self.states[name]) for name in names}
        variables = {name: (axes[: array.ndim], array) for name, array in arrays.items()}
        variables["log_loss"] = (("t",), self.log_loss)
        return xarray.Dataset(
            variables,
            coords={"t": self.t},
            attrs={
                "engine": self.engine,
                "status": str(self.status),
                "reason": self.reason,
                **({"slope": self.net.slope} if self.net.slope else {}),
                **files.versions(),
            },
        )

    def _repr_html_(self) -> str:
        from reluflow import summaries

        return summaries.trajectory(self)

    def __repr__(self) -> str:
        reason = f", reason={self.reason!r}" if self.reason else ""
        return (
            f"Trajectory({self.engine}, {self.status}, t={self.t[-1]:.6g}, "
            f"log_loss={self.log_loss[-1]:.6g}, events={len(self.events)}{reason})"
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
    X, bias = arrays["data.X"], fields.get("bias", False)
    if bias is not False and not (bias is True and X.shape[1] > 1 and np.all(X[:, -1] == 1.0)):
        raise InputError("`bias` does not fit the last coordinate of the points")
    data = Dataset(
        X[:, :-1] if bias else X,
        arrays["data.y"],
        bias=bias,
        teacher=Network.from_arrays(teacher) if teacher else arrays.get("data.teacher"),
        name=fields["name"],
        ambient_dim=fields["ambient_dim"],
        spectrum=arrays.get("data.spectrum"),
    )
    loss = losses.from_dict(fields["loss"])
    loss.check_data(data.X, data.y)
    states, options = group("states."), fields["options"]
    net = Network.from_arrays(group("net."))
    t = arrays["t"]
    run_relations.check(
        data, loss, states, arrays["log_loss"], t=t, options=options, slope=net.slope
    )
    if fields["engine"] == "flow":
        run_relations.check_start(group("net."), states, t, options=options)
    return Trajectory(
        engine=fields["engine"],
        data=data,
        net=net,
        loss_function=loss,
        t=arrays["t"],
        log_t=arrays["log_t"],
        log_loss=arrays["log_loss"],
        kept=states,
        final=Network.from_arrays(group("final.")),
        status=Status(fields["status"]),
        events=arrays["events"],
        limit_error=fields["limit_error"],
        reason=fields.get("reason", ""),  # older files have none
        stats=fields["stats"],
        options=options,
        provenance=fields["provenance"],
    )
