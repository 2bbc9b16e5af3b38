"""Going on with a run that was interrupted: see `reluflow.engines.resume`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from reluflow.engines import flow
from reluflow.engines.descent import entry
from reluflow.trajectory import Trajectory


def resume(run: Trajectory, options: Mapping[str, Any]) -> Trajectory:
    """The end of an interrupted run; ``options`` are those of the engine that made it."""
    if run.engine == "descent":
        return entry.descend(run.data, run.net, earlier=run, **options)
    record, events = options["record"], options.get("max_events")
    kept = {
        name: value
        for name, value in options.items()
        if name not in ("loss", "train", "rates", "decay")
    }
    if events is not None:
        kept["max_events"] = max(events - len(run.events), 1)
    if np.ndim(record):
        return flow(run, **kept)
    return thinned(flow(thinned(run, record), **kept), record)


def thinned(run: Trajectory, count: int) -> Trajectory:
    """The same run with at most so many of its records, the first and the last among them."""
    if len(run.t) <= count:
        return run
    pick = np.unique(np.linspace(0, len(run.t) - 1, count).round().astype(int))
    states = {name: array[pick] for name, array in run.kept.items()}
    return replace(
        run, t=run.t[pick], log_t=run.log_t[pick], log_loss=run.log_loss[pick], kept=states
    )
