"""Measurements of finished runs: by name, or a function of your own.

They are taken from the stored runs when a table is made, so that a further one needs no training::

    [measure]                              # a column each
    angle = "max_angle"
    rank = "effective_rank"
    mine = "mine.py:spread"                # a function of a run that returns a number

or, with the names as columns, ``measure = ["max_angle", "effective_rank"]`` at the top.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Mapping
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np

from reluflow.checks import nearest
from reluflow.errors import InputError, ReluflowError
from reluflow.losses import Square
from reluflow.trajectory import Trajectory
from reluflow.wording import cut, shown

Measure = Callable[[Trajectory], float]
MOST = 40  # columns


def max_angle(run: Trajectory) -> float:
    """Largest angle between two neurons at the end, in radians."""
    from reluflow import geometry

    return float(geometry.max_angle(run.final))


def squared_norm(run: Trajectory) -> float:
    """Squared norm of all weights at the end."""
    return run.final.squared_norm


def log_squared_norm(run: Trajectory) -> float:
    """Its logarithm."""
    return run.final.log_squared_norm


def effective_rank(run: Trajectory) -> float:
    """Effective rank of the hidden weights at the end."""
    from reluflow import geometry

    return float(geometry.effective_rank(run.final))


def nuclear_norm(run: Trajectory) -> float:
    """Nuclear norm of the hidden weights at the end."""
    from reluflow import geometry

    return float(geometry.nuclear_norm(run.final))


def linear_regions(run: Trajectory) -> float:
    """Linear pieces of the function of one input (with a bias) at the end."""
    from reluflow import geometry

    return float(geometry.linear_regions(run.final))


def margin(run: Trajectory) -> float:
    """Normalised margin of a classifier at the end."""
    from reluflow import geometry

    return float(geometry.margin(run.data, run.final))


def sharpness(run: Trajectory) -> float:
    """Largest eigenvalue of the Hessian of the loss at the end, on the piece of its pattern."""
    from reluflow import geometry

    return geometry.hessian_spectrum(
        run.data, run.final, loss=run.loss_function, active=run.active(-1)
    ).sharpness


def distance_to_predicted(run: Trajectory) -> float:
    """Distance of the weights to the predicted limit; nan where no limit theorem applies."""
    from reluflow import limits

    limit = limits.predict_end(run).network
    if limit is None or limit.width != run.final.width:
        return math.nan
    ends = run.final
    return float(np.hypot(np.linalg.norm(ends.a - limit.a), np.linalg.norm(ends.W - limit.W)))


def excess_norm(run: Trajectory) -> float:
    """Squared norm at the end over the least of any network that fits, or classifies as well."""
    from reluflow import interpolators

    if isinstance(run.loss_function, Square):
        return run.final.squared_norm / interpolators.min_norm(run.data, slope=run.net.slope).value
    smallest = float((run.data.y * run.final.predict(run.data.X)).min())
    if smallest <= 0.0:
        return math.nan
    best = interpolators.max_margin(run.data, slope=run.net.slope)
    return run.final.squared_norm / (smallest * best.value)


def objective(run: Trajectory) -> float:
    """Loss plus decay/2 times the squared norm at the last record; the loss without decay."""
    return float(run.objective[-1])


def above_optimum(run: Trajectory) -> float:
    """Relative excess over the best network of any width: 0 at a global minimum."""
    from reluflow import interpolators

    return interpolators.excess(run).at_most


def alive(run: Trajectory) -> float:
    """Neurons that are active on some point at the end."""
    return float(run.active(-1).any(axis=1).sum())


def largest_error(run: Trajectory) -> float:
    """Largest |h(x_i) - y_i| at the end."""
    return float(np.abs(run.final.predict(run.data.X) - run.data.y).max())


def log_loss(run: Trajectory) -> float:
    """Log-loss at the end."""
    return float(run.stats.get("final_log_loss", run.log_loss[-1]))


MEASURES: Mapping[str, Measure] = {
    function.__name__: function
    for function in (
        *(max_angle, squared_norm, log_squared_norm, effective_rank, nuclear_norm, linear_regions),
        *(margin, distance_to_predicted, excess_norm, alive, largest_error, log_loss, sharpness),
        *(objective, above_optimum),
    )
}


def read(table: Any, folder: Path | None = None, path: str = "$.measure") -> dict[str, Measure]:
    """The measurements of a document or of a call, by column; unknown names are refused."""
    if table is None:
        return {}
    if isinstance(table, str):
        table = [table]
    if isinstance(table, list | tuple):
        table = {_column(given, f"{path}[{k}]"): given for k, given in enumerate(table)}
    if not isinstance(table, Mapping) or len(table) > MOST:
        raise InputError(
            f"`{path}` is {shown(table)}. It must be a list of at most {MOST} names, or a table of "
            "columns and names."
        )
    return {column: _measure(given, folder, f"{path}.{column}") for column, given in table.items()}


def value(measure: Measure, run: Trajectory) -> float:
    """A measurement as a number; nan where it does not apply to this run."""
    try:
        return float(measure(run))
    except ReluflowError:
        return math.nan


def _column(given: Any, path: str) -> str:
    if callable(given):
        return str(getattr(given, "__name__", "measure"))
    if not isinstance(given, str):
        raise InputError(f"`{path}` is {shown(given)}. Give a name, or 'file.py:function'.")
    return given.rpartition(":")[2]


def _measure(given: Any, folder: Path | None, path: str) -> Measure:
    if callable(given):
        own: Measure = given
        return own
    if isinstance(given, str) and given in MEASURES:
        return MEASURES[given]
    if isinstance(given, str) and ".py:" in given:
        return _of_file(given, folder or Path(), path)
    raise InputError(
        f"`{path}` is {shown(given)}, no measurement. There are {', '.join(MEASURES)}, and "
        f"functions of your own as 'file.py:function'.{nearest(given, MEASURES)}"
    )


def _of_file(place: str, folder: Path, path: str) -> Measure:
    """A function of a Python file, which is executed once for each of its contents."""
    name, _, attribute = place.rpartition(":")
    file = (folder / name).resolve()
    if not file.is_file():
        raise InputError(f"`{path}` names {shown(name)}, which is no file. Correct the path.")
    digest = hashlib.sha256(str(file).encode() + file.read_bytes()).hexdigest()[:12]
    module_name = f"reluflow_measure_{file.stem}_{digest}"
    if module_name not in sys.modules:
        spec = util.spec_from_file_location(module_name, file)
        assert spec is not None
        assert spec.loader is not None
        module = util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise InputError(
                f"`{path}`: {cut(name, 80)} cannot be executed ({type(error).__name__}: "
                f"{cut(str(error), 200)}). Correct it."
            ) from error
        sys.modules[module_name] = module
    function = getattr(sys.modules[module_name], attribute, None)
    if not callable(function):
        public = [word for word in dir(sys.modules[module_name]) if not word.startswith("_")]
        raise InputError(
            f"`{path}`: {cut(name, 80)} has no function {shown(attribute, 80)}."
            f"{nearest(attribute, public)}"
        )
    found: Measure = function
    return found
