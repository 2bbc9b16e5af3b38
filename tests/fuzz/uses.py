"""Everything a user can do with a file: each call ends well or with an error of ours."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import reluflow as rf
from reluflow import files, spec, toml
from reluflow.errors import InputError, ReluflowError
from reluflow.verify import verify

Call = Callable[[], Any]
LARGEST_BUILT = 500


def use(kind: str, path: Path) -> str:
    """Use a file in every way; "refused", "used", or the exception that is no error of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            calls = list(USES[kind](path))
        except ReluflowError:
            return "refused"
        for call in calls:
            try:
                call()
            except ReluflowError:
                continue
    return "used"


def _file(path: Path) -> Iterator[Call]:
    """A run, network or result file of any kind."""
    yield lambda: verify(path)
    kind = files.read(path)[0]["kind"]
    if kind == "network":
        yield from _network(rf.Network.load(path))
    else:
        yield from _run(rf.load(path), path)


def _network(net: rf.Network) -> Iterator[Call]:
    yield lambda: repr(net)
    yield lambda: (net.log_norms, net.log_outputs, net.directions, net.signs, net.balance)
    yield lambda: (net.squared_norm, net.log_squared_norm, net.flat(), net.with_scale(0.0))
    yield lambda: net.predict(np.eye(net.d))
    yield lambda: net.log_predict(np.eye(net.d))


def _run(run: rf.Trajectory, path: Path) -> Iterator[Call]:
    from rich.console import Console

    from reluflow.cli.tables import summary
    from reluflow.sweeps.outcome import run_values

    yield from _network(run.final)
    yield from _network(run.net)
    yield lambda: (repr(run), run.loss, run.status.text, run.data.id, run.data.gram)
    yield lambda: [run.network(k) for k in range(len(run.t))]
    yield lambda: run.to_xarray()
    yield lambda: run_values(run)
    yield lambda: path.with_suffix(".again").write_bytes(run.to_bytes())
    yield lambda: rf.load(path.with_suffix(".again"))
    quiet = Console(quiet=True)
    yield lambda: quiet.print(summary(run, title="x", path=path))
    ends = run.t[0], run.t[-1]
    for t in (0.0, ends[0], 0.5 * (ends[0] + ends[1]), ends[1], 2.0 * ends[1], float("inf")):
        yield lambda t=t: run.at(t)
    yield lambda: run.at(log_t=float(run.log_t[-1]))
    yield lambda: run.at(log_loss=float(run.log_loss[len(run.t) // 2]))
    yield lambda: run.log_max_angle(float(ends[1]))
    if run.engine == "flow" and np.isfinite(ends[1]):
        yield lambda: rf.flow(run, t_end=1.01 * float(ends[1]) + 1e-3, max_seconds=1.0)


def _toml(path: Path) -> Iterator[Call]:
    raw = toml.read(path)
    yield lambda: spec.check(raw)
    if _largest(raw) <= LARGEST_BUILT:
        yield lambda: spec.build(raw, folder=path.parent)


def _largest(value: Any) -> float:
    """The largest integer, so that nothing large is built; names of files count as large."""
    if isinstance(value, dict):
        return max((_largest(inner) for inner in value.values()), default=0)
    if isinstance(value, list):
        return max((_largest(inner) for inner in value), default=0)
    return abs(value) if isinstance(value, (int, float)) else 0


def _csv(path: Path) -> Iterator[Call]:
    yield lambda: rf.datasets.from_csv(path, label=-1)
    yield lambda: rf.datasets.from_csv(path, label="y")


def _link(path: Path) -> Iterator[Call]:
    """A link of the explorer: what its page sends, what is computed and downloaded from it."""
    from reluflow.explore import compute, documents
    from reluflow.explore.state import from_json, to_json

    try:
        raw = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise InputError("the message is not JSON") from None
    state = from_json(raw)
    yield lambda: from_json(to_json(state))
    yield lambda: (state.dataset(), state.network(), state.options())
    yield lambda: documents.to_toml(state)
    yield lambda: documents.to_python(state)
    if state.width * state.n <= LARGEST_BUILT:
        yield lambda: compute.train(state, 1e-3, 0.1, None)


USES = {"damaged": _file, "sealed": _file, "toml": _toml, "csv": _csv, "link": _link}
