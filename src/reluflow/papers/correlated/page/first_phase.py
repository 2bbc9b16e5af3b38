"""First act: neurons turn while they are too small to matter. Yardsticks beside the flow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reluflow.checks import Array
from reluflow.figures import Arrows, Axis, Figure, Frame, Layer, Line, Panel, Points
from reluflow.limits import yardsticks
from reluflow.limits.hypotheses import common_scale
from reluflow.network import Network
from reluflow.papers.correlated.case import Correlated, time_rate
from reluflow.papers.correlated.crossings import flow_crossings
from reluflow.theory.contract import LabelledRun, Said, Section
from reluflow.trajectory import Trajectory

DRAWN = 40  # neurons drawn as curves
FRAMES = 40
LN10 = np.log(10.0)


def alignment(case: Correlated, runs: Sequence[LabelledRun]) -> Section:
    """Angles to gamma by closed form and in the flow; how far crossing times differ."""
    shown = runs[0]
    panels = [_angles(case, shown)]
    practical = [item for item in runs if _scale(item.run) > -300.0]
    gaps = _time_gaps(case, practical)
    if len(gaps) > 1:
        panels.append(_gaps(case, gaps))
    text = (
        "While the network is tiny its outputs drop out of the equations and each neuron follows a "
        "yardstick that is known in closed form; gamma is the label-weighted mean of the points."
    )
    said = (
        Said(
            "Neurons with positive output weight turn towards gamma and take in one point after "
            "the other.",
            ("L3a", "L5b"),
        ),
        Said(
            "Neurons with negative output weight turn away until no point is left, and freeze.",
            ("L4",),
        ),
        Said(
            "The flow follows these curves; its crossing times differ from theirs by a multiple of "
            "the squared scale.",
            ("L3a", "L3c"),
        ),
    )
    caption = (
        f"Left: angle of each neuron to gamma; lines are closed forms, markers the flow at "
        f"{shown.label}. Right: differences of crossing times, largest and smallest over all "
        "neurons and points; the dashed line has slope 2."
    )
    figure = Figure(
        "yardsticks", "Yardsticks against the flow", tuple(panels), len(panels), caption
    )
    return Section("First act: neurons turn", text, (figure,), said)


def _scale(run: Trajectory) -> float:
    return common_scale(run.net)[0]


def _angles(case: Correlated, item: LabelledRun) -> Panel:
    run, sticks = item.run, yardsticks(case.data, item.run.net)
    rate = time_rate(run)
    end = min(sticks.T0, float(run.t[-1]) * rate)
    dense, sparse = np.linspace(0.0, end, 121), np.linspace(0.0, end, 10)
    along = sticks.gamma / np.linalg.norm(sticks.gamma)
    curves = np.array([_degrees(sticks.at(float(t)), along) for t in dense])
    marks = np.array([_degrees(run.at(float(t) / rate), along) for t in sparse])
    layers: list[Layer] = []
    groups = ((sticks.positive, "positive", 0, "circle"), (sticks.negative, "negative", 1, "cross"))
    for chosen, word, colour, marker in groups:
        kept = chosen[:DRAWN]
        for k, j in enumerate(kept):
            label = f"{word} output weight, closed form" if k == 0 else ""
            dash = "solid" if colour == 0 else "dash"
            line = Line(dense, curves[:, j], label, colour, dash, width=1.0, opacity=0.7)  # type: ignore[arg-type]
            layers.append(line)
        if len(kept):
            x = np.repeat(sparse, len(kept))
            y = marks[:, kept].ravel()
            layers.append(Points(x, y, f"{word}, flow", colour, marker, 3.5))  # type: ignore[arg-type]
    return Panel(
        "Turning towards gamma, or away",
        Axis("time"),
        Axis("angle to gamma (degrees)", range=(0.0, 180.0)),
        tuple(layers),
    )


def _degrees(net: Network, along: Array) -> Array:
    unit = net.directions
    chord, total = np.linalg.norm(unit - along, axis=1), np.linalg.norm(unit + along, axis=1)
    return np.asarray(np.degrees(2.0 * np.arctan2(chord, total)))


def _time_gaps(
    case: Correlated, runs: Sequence[LabelledRun]
) -> dict[float, tuple[float, float, float]]:
    """By log scale: largest and smallest difference of times, and the largest bound of Lemma 3."""
    found: dict[float, tuple[float, float, float]] = {}
    for item in runs:
        scale = _scale(item.run)
        crossings = flow_crossings(case, item.run)
        gaps, bounds = [], []
        for j in (*case.sticks.positive, *case.sticks.negative):
            order, times = crossings[int(j)]
            if order.tolist() != case.sticks.order[j].tolist():
                break
            gaps += np.abs(times - case.sticks.times[j]).tolist()
            stage = np.arange(1, len(times) + 1)
            powers = 1.0 - (1.0 + (3 * stage - 1) / (3 * max(len(times), 1))) * case.eps
            bounds += np.exp(powers * scale).tolist()
        else:
            above = [gap for gap in gaps if gap > 1e-12]
            if above:
                found[scale] = (max(above), min(above), min(bounds))
    return found


def _gaps(case: Correlated, gaps: dict[float, tuple[float, float, float]]) -> Panel:
    scales = sorted(gaps)
    x = np.exp(scales)
    top, low, bound = (np.array([gaps[s][k] for s in scales]) for k in range(3))
    layers = (
        Line(x, bound, "bound of Lemma 3", 7, "dashdot"),
        Line(x, top, "largest difference", 0, "solid", "circle"),
        Line(x, low, "smallest difference", 2, "solid", "triangle"),
        Line(x, top[0] * (x / x[0]) ** 2, "slope 2", 6, "dash", width=1.0),
    )
    return Panel(
        "Crossing times",
        Axis("initial scale", "log"),
        Axis("difference of crossing times", "log"),
        layers,
    )


def picture(case: Correlated, item: LabelledRun) -> Section:
    """The neurons in the plane of the teacher and the mean residual, through time."""
    run = item.run
    plane = _plane(case)
    chosen = _frames(run)
    frames = [
        Frame(_time_label(run, int(k)), _cloud(case, run.network(int(k)), plane)) for k in chosen
    ]
    frames.append(Frame("the limit", _cloud(case, run.final, plane)))
    axes = (
        Axis("along the teacher v*", range=(-1.1, 1.1)),
        Axis("across, towards gamma", range=(-1.1, 1.1)),
    )
    panel = Panel("", axes[0], axes[1], frames[0].layers, equal=True)
    figure = Figure(
        "teacher_and_gamma",
        f"Neurons in the plane of the teacher and of gamma ({item.label})",
        (panel,),
        caption="Unit directions of the neurons, projected.",
        wide=False,
        frames=tuple(frames),
    )
    text = (
        "The plane of two directions: the teacher v*, and gamma = H v*, the label-weighted mean of "
        "the points, which is the mean residual at the start. The arrow is the mean residual of "
        "the moment. Dots grow with the share of a neuron in the norm of the network."
    )
    said = (
        Said("First the neurons gather at gamma.", ("L5b",)),
        Said("Then the bundle turns to the teacher while it grows.", ("S3", "T7")),
    )
    return Section("Where the neurons point", text, (figure,), said)


def _plane(case: Correlated) -> Array:
    """Two orthonormal rows: the teacher, and the part of gamma across it."""
    main = case.teacher / np.linalg.norm(case.teacher)
    for candidate in (case.sticks.gamma, *np.eye(case.data.d)):
        across = candidate - (candidate @ main) * main
        if np.linalg.norm(across) > 1e-6 * np.linalg.norm(candidate):
            return np.array([main, across / np.linalg.norm(across)])
    return np.array([main, np.zeros_like(main)])


def _frames(run: Trajectory) -> Array:
    """Records spread over the run, half of them by time before the loss has halved."""
    half = int(np.argmax(run.log_loss < run.log_loss[0] - np.log(2.0))) or len(run.t) - 1
    early = np.linspace(0, half, FRAMES // 2)
    late = np.linspace(half, len(run.t) - 1, FRAMES // 2)
    return np.unique(np.concatenate([early, late]).round().astype(int))


def _time_label(run: Trajectory, k: int) -> str:
    return f"t = {run.t[k]:.4g}, loss {np.exp(run.log_loss[k]):.2g}"


def _cloud(case: Correlated, net: Network, plane: Array) -> tuple[Layer, ...]:
    angle = np.linspace(0, 2 * np.pi, 121)
    seen = net.directions @ plane.T
    logs = np.asarray(net.log_norms)
    share = np.exp(2.0 * (logs - logs.max()))
    size = 2.5 + 12.0 * np.sqrt(share / share.sum())
    residual = case.data.y - net.predict(case.data.X)
    force = plane @ (residual @ case.data.X)
    length = float(np.linalg.norm(residual @ case.data.X))
    force = force / length if length > 1e-9 * float(np.linalg.norm(case.data.y)) else 0.0 * force
    points = (case.data.X / np.linalg.norm(case.data.X, axis=1)[:, None]) @ plane.T
    zero = np.zeros(1)
    layers: list[Layer] = [
        Line(np.cos(angle), np.sin(angle), colour=7, dash="dot", width=1.0),
        Points(points[:, 0], points[:, 1], "training points", 7, "square", 5.0),
    ]
    for sign, word, colour, marker in ((1, "positive", 0, "circle"), (-1, "negative", 1, "cross")):
        kept = net.signs == sign
        if kept.any():
            layers.append(
                Points(
                    seen[kept, 0],
                    seen[kept, 1],
                    f"neurons, {word} output",
                    colour,
                    marker,  # type: ignore[arg-type]
                    size[kept],
                    0.7,
                )
            )
    layers.append(Arrows(zero, zero, zero + 1.0, zero, "teacher v*", 2))
    layers.append(Arrows(zero, zero, zero + force[0], zero + force[1], "mean residual", 4))
    return tuple(layers)
