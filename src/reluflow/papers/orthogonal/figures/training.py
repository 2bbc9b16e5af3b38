"""Figure 1: one training of six neurons, by descent and by flow; its computations serve 3 and 4."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from reluflow.checks import Array
from reluflow.figures import Axis, Figure, Line, Panel, Rule
from reluflow.figures.description import DASHES
from reluflow.sweeps import Point, Result
from reluflow.theory.contract import Expectation, Recipe, Reproduction, Size
from reluflow.theory.results import by_seed

TASK = "reluflow.papers.orthogonal.figures.staircase:staircase"
LOG_INVERSE_SCALE = 200.0 * float(np.log(10.0))
TRAINED = tuple(dash for dash in DASHES if dash != "dash")  # which is for predictions


def points(size: Size, seed: int) -> list[Point]:
    """Descent and flow on one draw; two more draws in full."""
    seeds = [seed] if size == "quick" else [seed, seed + 1, seed + 2]
    shared = {"n": 64, "m": 6, "log_inverse_scale": LOG_INVERSE_SCALE, "lr": 0.01}
    return [
        Point(TASK, {**shared, "engine": engine}, seed=number)
        for number in seeds
        for engine in ("descent", "flow")
    ]


def figure_name(base: str, k: int) -> str:
    """The name of the figure of the k-th draw."""
    return base if k == 0 else f"{base}_{k + 1}"


def draw_staircase(results: Sequence[Result]) -> Reproduction:
    """Figure 1: one picture a draw, all draws judged."""
    figures = tuple(_staircase_figure(own, k) for k, own in enumerate(by_seed(results)))
    return Reproduction(figures, _staircase_tables(results), _staircase_shape(results))


def _staircase_figure(results: Sequence[Result], which: int) -> Figure:
    """Loss, fitted points and norms against epochs, with the predicted staircase."""
    first = results[0].arrays
    flow = next((r.arrays for r in results if r.point.parameters["engine"] == "flow"), None)
    epochs = first["epochs"] / 1e3
    steps = _steps(first["predicted"] / 1e3, epochs[-1])
    jumps = tuple(Rule(float(epoch), "x", dash="dot") for epoch in first["predicted"] / 1e3)
    log_loss = first["log_loss"] / np.log(10.0)
    plateaus = np.repeat(first["plateaus"], 2)
    with np.errstate(divide="ignore"):
        log_plateaus = np.where(plateaus > 0.0, np.log10(np.maximum(plateaus, 1e-300)), np.nan)
    axis = Axis("epoch (thousands)")
    predicted = {"label": "limit process", "colour": 1, "dash": "dash", "width": 1.2}
    loss = [Line(epochs, np.exp(first["log_loss"]), label="descent", colour=0, width=2.0)]
    if flow is not None:
        loss.append(
            Line(
                flow["epochs"] / 1e3,
                np.exp(flow["log_loss"]),
                label="flow",
                colour=2,
                dash="dot",
                width=1.2,
            )
        )
    panels = (
        Panel("loss", axis, Axis("loss"), (*loss, Line(steps, plateaus, **predicted), *jumps)),  # type: ignore[arg-type]
        Panel(
            "loss, logarithmic",
            axis,
            Axis("log10 of the loss", range=(-9.0, 0.5)),
            (
                Line(epochs, log_loss, label="descent", colour=0, width=2.0),
                Line(steps, log_plateaus, **predicted),  # type: ignore[arg-type]
                *jumps,
            ),
        ),
        Panel(
            "fitted points",
            axis,
            Axis("points with h at least y/2"),
            (
                Line(epochs, first["count"], label="descent", colour=0, width=2.0),
                Line(steps, np.repeat(first["fitted"], 2), **predicted),  # type: ignore[arg-type]
                *jumps,
            ),
        ),
        Panel("neuron norms", axis, Axis("|w|"), (*norm_lines(first, epochs, logs=False), *jumps)),
    )
    return Figure(
        figure_name("fig1", which),
        "Incremental learning: six neurons on 64 orthonormal points",
        panels,
        columns=2,
        caption=(
            "Descent with step 0.01 from scale 1e-200. The loss stays on plateaus and drops where "
            "one more neuron fits its points. Dashed: plateaus of the limit process, computed "
            "without training; dotted: its jump epochs with the first correction."
        ),
    )


# -------------------------------------------------------------------- parts


def _steps(jumps: Array, end: float) -> Array:
    """Abscissae of a staircase: every edge twice."""
    return np.concatenate([[0.0], np.repeat(jumps, 2), [end]])


def norm_lines(arrays: Any, epochs: Array, *, logs: bool) -> tuple[Line, ...]:
    """A line for each neuron, in the order of their jumps."""
    values = arrays["log_norms"]
    values = values / np.log(10.0) if logs else np.exp(values)
    order = arrays["group"]
    return tuple(
        Line(
            epochs,
            values[:, j],
            label=f"jumps {_ordinal(int(order[j]))}" if order[j] >= 0 else "never jumps",
            colour=k % 7,
            dash=TRAINED[k % 3],
        )
        for k, j in enumerate(np.argsort(np.where(order < 0, 99, order), kind="stable"))
    )


def _ordinal(k: int) -> str:
    return ("first", "second", "third", "fourth", "fifth", "sixth")[k] if k < 6 else f"{k + 1}th"


def _mid_plateau_errors(arrays: Any) -> Array:
    """Relative loss errors in the middle of plateaus that are long against a jump."""
    edges = np.append(0.0, arrays["measured"])
    errors = []
    for k, (left, right) in enumerate(pairwise(edges)):
        width = (right - left) * float(arrays["slopes"][k].max(initial=0.0))
        if width > 20.0:
            seen = np.exp(np.interp(0.5 * (left + right), arrays["epochs"], arrays["log_loss"]))
            errors.append(abs(seen / arrays["plateaus"][k] - 1.0))
    return np.array(errors)


def _steps_seen(arrays: Any) -> int:
    """Steps of the curve of fitted points: records at which it rises, neighbours as one."""
    rises = np.flatnonzero(np.diff(arrays["count"]) > 0.0)
    return int(np.count_nonzero(np.diff(rises, prepend=-2) > 1))


def _staircase_shape(results: Sequence[Result]) -> tuple[Expectation, ...]:
    source = "Fig. 1 of the paper"
    by_engine: dict[str, list[Any]] = {"descent": [], "flow": []}
    for result in results:
        by_engine[str(result.point.parameters["engine"])].append(result.arrays)
    both = [arrays for group in by_engine.values() for arrays in group]
    leading = max(float(np.abs(a["measured"] / a["leading"] - 1.0).max()) for a in both)
    plateau = max(float(_mid_plateau_errors(a).max(initial=0.0)) for a in both)
    steps = [float(_steps_seen(a)) for a in both]
    first = [abs(float(a["measured"][0] - a["predicted"][0])) for a in by_engine["descent"]]
    sharp = [
        float(np.abs(a["measured"] - a["predicted"])[: _firm(a)].max(initial=0.0))
        for a in by_engine["flow"]
    ]
    return (
        Expectation(
            "number of steps of the fitted points, furthest from 5 of all draws",
            max(steps, key=lambda count: abs(count - 5.0)),
            4,
            6,
            source,
        ),
        Expectation(
            "jump epochs against t_k L / lr, relative", leading, 0.0, 0.01, f"{source}: within 1 %"
        ),
        Expectation(
            "first half-epoch of descent against its prediction, in epochs",
            max(first, default=float("nan")),
            0.0,
            1.0,
            "theory of the jump process: within one epoch",
        ),
        Expectation(
            "half-epochs of the flow against sharp times, in epochs, before the first near tie",
            max(sharp, default=float("nan")),
            0.0,
            0.1,
            "theory of the jump process",
        ),
        Expectation("plateau loss, relative, mid-plateau", plateau, 0.0, 0.01, source),
    )


def _firm(arrays: Any) -> int:
    """How many jumps come before a rival is within 10 nats."""
    near = np.flatnonzero(arrays["gaps"] < 10.0)
    return int(near[0]) if len(near) else len(arrays["gaps"])


def _staircase_tables(results: Sequence[Result]) -> dict[str, dict[str, list[Any]]]:
    first = results[0].arrays
    jumps: dict[str, list[Any]] = {
        name: [] for name in ("engine", "seed", "jump", "predicted", "leading", "measured", "loss")
    }
    for result in results:
        arrays = result.arrays
        for k in range(len(arrays["predicted"])):
            row = (
                result.point.parameters["engine"],
                result.point.seed,
                k + 1,
                float(arrays["predicted"][k]),
                float(arrays["leading"][k]),
                float(arrays["measured"][k]),
                float(arrays["plateaus"][k + 1]),
            )
            for name, value in zip(jumps, row, strict=True):
                jumps[name].append(value)
    return {"jumps": jumps, **norm_table(first)}


def norm_table(arrays: Any) -> dict[str, dict[str, list[Any]]]:
    """Curves of one training, as columns."""
    columns = {
        "epoch": arrays["epochs"].tolist(),
        "log_loss": arrays["log_loss"].tolist(),
        "fitted": arrays["count"].tolist(),
    }
    for j in range(arrays["log_norms"].shape[1]):
        columns[f"log_norm_{j}"] = arrays["log_norms"][:, j].tolist()
    return {"curves": columns}


RECIPES = (
    Recipe("orthogonal/fig1", "Staircase of the loss with predicted jumps", points, draw_staircase),
)
