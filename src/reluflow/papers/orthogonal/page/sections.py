"""Sections of the page: staircase, exponents, who fits what, the norm against its minimum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from reluflow.checks import Array
from reluflow.figures import Axis, Figure, Line, Panel, Points, Raster, Rule
from reluflow.figures.description import Layer
from reluflow.limits import Alternating, SaddleToSaddle
from reluflow.papers.orthogonal.figures.training import TRAINED
from reluflow.papers.orthogonal.measure import network_at
from reluflow.theory.contract import LabelledRun, Said, Section
from reluflow.trajectory import Trajectory

SHOWN = 12  # neurons drawn one by one
GRID = 400  # times of the curves
Prediction = SaddleToSaddle | Alternating


def staircase(runs: Sequence[LabelledRun], process: Prediction) -> Section:
    """Loss against accelerated time, with the predicted plateaus."""
    end = 1.15 * float(process.times[-1])
    taus = np.linspace(0.0, end, GRID)
    lines: list[Layer] = [
        Line(
            taus,
            losses_of(item.run, taus),
            label=item.label,
            colour=k % 7,
            dash=TRAINED[k % 3],
        )
        for k, item in enumerate(runs)
    ]
    steps = np.concatenate([[0.0], np.repeat(process.times, 2), [end]])
    limit = Line(steps, np.repeat(process.losses, 2), label="limit process", colour=7, dash="dash")
    time = _time_axis(runs[0].run)
    floor = max(float(process.losses[process.losses > 0].min()) / 30.0, 1e-300)
    logs = tuple(
        Line(
            line.x,
            np.log10(np.maximum(line.y, 1e-300)),
            label=line.label,
            colour=line.colour,
            dash=line.dash,
        )
        for line in (*lines, limit)
        if isinstance(line, Line)
    )
    panels = (
        Panel("loss", time, Axis("loss"), (*lines, limit)),
        Panel(
            "its logarithm",
            time,
            Axis(
                "log10 of the loss", range=(math.log10(floor), math.log10(process.losses[0]) + 0.3)
            ),
            logs,
        ),
    )
    return Section(
        "Staircase",
        f"The prediction has {len(process.times)} steps. Time is divided by log(1/scale). "
        f"{_kind(process)}",
        (
            Figure(
                "staircase",
                "Loss and predicted plateaus",
                panels,
                columns=2,
                caption="Runs at several scales; dashed: predicted without training.",
            ),
        ),
        (
            Said(
                "The smaller the scale, the closer the run comes to the predicted staircase, "
                "slowly in time (like 1/log), fast in height.",
                ("O6", "O8"),
            ),
        ),
    )


def exponents(item: LabelledRun, process: Prediction) -> Section:
    """Log norms over log(1/scale), with the piecewise affine prediction."""
    end = 1.15 * float(process.times[-1])
    taus = np.unique(np.concatenate([np.linspace(0.0, end, GRID), process.times]))
    L = scale_of(item.run)
    logs = np.array([network_at(item.run, time_of(item.run, tau)).log_norms for tau in taus]) / L
    predicted = process.exponents(taus)
    chosen = _chosen(process, item.run.net.width)
    layers: list[Layer] = []
    for k, j in enumerate(chosen):
        layers.append(
            Line(taus, logs[:, j], label=_name(process, j), colour=k % 7, dash=TRAINED[k % 3])
        )
    for k, j in enumerate(chosen):
        label = "limit process" if k == 0 else ""
        layers.append(Line(taus, predicted[:, j], label=label, colour=7, dash="dash", width=1.0))
    panel = Panel(
        "",
        _time_axis(item.run),
        Axis("log |w| / log(1/scale)", range=(-1.15, 0.1)),
        tuple(layers),
    )
    return Section(
        "Exponents",
        f"The logarithm of each norm over log(1/scale) ({item.label}), beside its prediction.",
        (
            Figure(
                "exponents",
                "Exponents of the neurons",
                (panel,),
                caption="Solid and dotted: the run; dashed: the prediction, piecewise affine.",
            ),
        ),
        (
            Said(
                "It grows at a rate set by the labels that are not yet fitted in the neuron's "
                "mask.",
                ("O11",),
            ),
            Said(
                "A neuron that reaches 0 jumps and fits them; all others that share these points "
                "slow down.",
                ("O7", "O10"),
            ),
        ),
    )


def who_fits_what(item: LabelledRun, process: Prediction) -> Section:
    """Raster of fitted points, ordered by the predicted jump that fits them."""
    run = item.run
    end = 1.15 * float(process.times[-1])
    edges = np.linspace(0.0, end, 241)
    order = np.concatenate([*process.fitted, process.uncovered]).astype(int)
    h = np.array(
        [
            network_at(run, time_of(run, tau)).predict(run.data.X)
            for tau in 0.5 * (edges[1:] + edges[:-1])
        ]
    )
    fitted = (h * np.sign(run.data.y) >= 0.5 * np.abs(run.data.y)).T[order]
    rows = np.cumsum([0, *(len(points) for points in process.fitted)])
    predicted = Points(
        np.repeat(process.times, np.diff(rows)),
        np.arange(rows[-1]) + 0.5,
        label="predicted",
        colour=1,
        marker="diamond",
        size=3.0,
    )
    raster = Raster(
        edges,
        np.arange(len(order) + 1.0),
        fitted.astype(np.int64),
        ("not fitted", "fitted to a half or more"),
        (7, 0),
    )
    ticks = tuple(
        (float(0.5 * (a + b)), f"jump {k + 1}") for k, (a, b) in enumerate(pairwise(rows))
    )
    left = len(process.uncovered)
    if left:
        ticks = (*ticks, (float(rows[-1]) + 0.5 * left, "never"))
    panel = Panel("", _time_axis(run), Axis("points, by jump", ticks=ticks), (raster, predicted))
    done, n = int(fitted[:, -1].sum()), run.data.n
    words = f"{done} of {n} points are fitted to a half or more where the picture ends; "
    words += (
        "the prediction fits all."
        if process.interpolates
        else f"the prediction leaves {left}, which have no neuron of their sign."
    )
    return Section(
        "Who fits which points, and when",
        f"One row for each training point ({item.label}). {words}",
        (Figure("who_fits_what", "Fitted points through time", (panel,)),),
    )


def norms(runs: Sequence[LabelledRun], process: Prediction) -> Section:
    """Squared norm through time, against the limit and the smallest norm of any interpolator."""
    end = 1.15 * float(process.times[-1])
    taus = np.linspace(0.0, end, GRID)
    lines: list[Layer] = []
    for k, item in enumerate(runs):
        values = [network_at(item.run, time_of(item.run, tau)).squared_norm for tau in taus]
        lines.append(
            Line(taus, np.array(values), label=item.label, colour=k % 7, dash=TRAINED[k % 3])
        )
    lines.append(Rule(process.squared_norm, "y", label="end of the limit process", dash="dash"))
    text = "The squared norm of all weights."
    if isinstance(process, SaddleToSaddle):
        least = process.minimal_squared_norm
        lines.append(Rule(least, "y", label="least that fits", colour=2, dash="dot"))
        text += (
            f" The limit process ends at {process.squared_norm / least:.3f} times the smallest "
            "squared norm of any interpolating network, the runs at "
            + ", ".join(
                f"{item.run.final.squared_norm / least:.3f} ({item.label})" for item in runs
            )
            + "; Theorem 3 bounds the factor of the limit by a constant."
        )
    panel = Panel("", _time_axis(runs[0].run), Axis("squared norm"), tuple(lines))
    said = Said("It steps up with every jump.", ("O7",))
    return Section("Norm", text, (Figure("squared_norm", "Norm through time", (panel,)),), (said,))


def scale_of(run: Trajectory) -> float:
    """``log(1/lambda)`` as the prediction counts it: the common log scale of the start."""
    return -float(run.net.log_scale.max())


def time_of(run: Trajectory, tau: float) -> float:
    """Flow time, or whole iterations, at an accelerated time inside the run."""
    t = float(tau) * scale_of(run)
    if run.engine == "flow":
        return t
    return float(min(round(t / float(run.options["lr"])), int(run.t[-1])))


def losses_of(run: Trajectory, taus: Array) -> Array:
    """Losses of a run at accelerated times."""
    loss = run.loss_function
    return np.array(
        [
            loss.value(network_at(run, time_of(run, tau)).predict(run.data.X), run.data.y)
            for tau in taus
        ]
    )


def _time_axis(run: Trajectory) -> Axis:
    steps = "" if run.engine == "flow" else "step x iterations = "
    return Axis(f"{steps}time / log(1/scale)")


def _chosen(process: Prediction, width: int) -> list[int]:
    """Neurons that jump, in order, then others."""
    jumping = [int(j) for group in process.groups for j in group]
    others = [j for j in range(width) if j not in set(jumping)]
    return [*dict.fromkeys(jumping), *others][:SHOWN]


def _name(process: Prediction, j: int) -> str:
    jump = next((k for k, group in enumerate(process.groups) if j in group), None)
    return f"neuron {j}, " + ("never jumps" if jump is None else f"jump {jump + 1}")


def _kind(process: Prediction) -> str:
    if isinstance(process, SaddleToSaddle):
        return "The staircase is that of Theorem 2 (orthonormal points, balanced start)."
    return "These points are not orthonormal: the staircase is a guess. " + "; ".join(
        process.caveats
    )
