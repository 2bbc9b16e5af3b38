"""Figures 1, 3 and 4: one training of six neurons, by descent and by flow."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from reluflow.checks import Array
from reluflow.figures import Axis, Figure, Line, Panel, Points, Rule
from reluflow.figures.description import Dash, Layer, Marker
from reluflow.studies.contract import Expectation, Recipe, Reproduction, Size
from reluflow.sweeps import Point, Result

TASK = "reluflow.studies.orthogonal.training:staircase"
LOG_INVERSE_SCALE = 200.0 * float(np.log(10.0))
DASHES: tuple[Dash, ...] = ("solid", "dot", "dashdot")  # dash is for predictions
MARKERS: tuple[Marker, ...] = ("circle", "square", "triangle", "diamond", "cross")
TITLES = (
    "start",
    "middle of the first plateau",
    "1000 epochs before jump 1",
    "1000 epochs after it",
    "3000 epochs after it",
    "31,000 epochs after it",
)


def points(size: Size, seed: int) -> list[Point]:
    """Descent and flow on one draw; two more draws in full."""
    seeds = [seed] if size == "quick" else [seed, seed + 1, seed + 2]
    shared = {"n": 64, "m": 6, "log_inverse_scale": LOG_INVERSE_SCALE, "lr": 0.01}
    return [
        Point(TASK, {**shared, "engine": engine}, seed=number)
        for number in seeds
        for engine in ("descent", "flow")
    ]


def draw_staircase(results: Sequence[Result]) -> Reproduction:
    """Figure 1: loss, fitted points and norms against epochs, with the predicted staircase."""
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
        Panel("neuron norms", axis, Axis("|w|"), (*_norm_lines(first, epochs, logs=False), *jumps)),
    )
    figure = Figure(
        "fig1",
        "Incremental learning: six neurons on 64 orthonormal points",
        panels,
        columns=2,
        caption=(
            "Descent with step 0.01 from scale 1e-200. The loss stays on plateaus and drops where "
            "one more neuron fits its points. Dashed: plateaus of the limit process, computed "
            "without training; dotted: its jump epochs with the first correction."
        ),
    )
    return Reproduction((figure,), _staircase_tables(results), _staircase_shape(results))


def draw_exponents(results: Sequence[Result]) -> Reproduction:
    """Figure 3: logarithms of the norms are concave and piecewise affine."""
    first = results[0].arrays
    epochs = first["epochs"] / 1e3
    jumps = tuple(Rule(float(epoch), "x", dash="dot") for epoch in first["predicted"] / 1e3)
    scale = float(first["log_norms"][0].max())
    lines = _norm_lines(first, epochs, logs=True)
    theory = _predicted_lines(first, scale)
    figure = Figure(
        "fig3",
        "Norms grow exponentially, at rates that fall at each jump",
        (Panel("", Axis("epoch (thousands)"), Axis("log10 of |w|"), (*lines, *theory, *jumps)),),
        caption=(
            "Logarithms of the six norms (solid) and the slopes predicted from the labels that "
            "are left in each mask (grey, dashed). A neuron is flat after its own jump; the "
            "others slow down if they share points with it. Dotted: predicted jumps."
        ),
    )
    slopes = [_slope_errors(result.arrays) for result in results]
    worst = max((float(error[0].max(initial=0.0)) for error in slopes), default=float("nan"))
    bend = max(_convexity(result.arrays) for result in results)
    expectations = (
        Expectation(
            "relative error of slopes on long plateaus",
            worst,
            0.0,
            1e-5,
            "spec section 9, Fig. 3 (regression on the middle half of a plateau)",
        ),
        Expectation(
            "largest rise of a slope from one plateau to the next, over the first slope",
            bend,
            -np.inf,
            1e-5,
            "paper Appendix A.2: decreasing slopes",
        ),
    )
    return Reproduction((figure,), _norm_table(first), expectations)


def draw_directions(results: Sequence[Result]) -> Reproduction:
    """Figure 4: directions and log norms around the first jump, in a random plane."""
    first = results[0].arrays
    panels = tuple(_snapshot(first, k) for k in range(len(first["shot_epochs"])))
    figure = Figure(
        "fig4",
        "Neurons turn when another one has fitted their points",
        panels,
        columns=3,
        caption=(
            "Six moments: angle, the direction of a neuron in a random plane; distance from the "
            "centre, the logarithm of its norm. Crosses on the rim: directions predicted for the "
            "plateau. Neurons are aligned before the jump; those that share points with the "
            "jumped neuron turn within a few thousand epochs."
        ),
    )
    cosines, turning = first["shot_cosines"], first["turning"] > 0.0
    alive = first["dormant"] > 0.0
    still = float(cosines[[1, 2]][:, alive].min())
    late = float(cosines[5][alive].min())
    source = "spec section 9, Fig. 4"
    expectations = (
        Expectation(
            "least cosine to the prediction before the jump", still, 0.999, 1.0 + 1e-9, source
        ),
        Expectation(
            "mean cosine of turning neurons 1000 epochs after",
            float(cosines[3][turning].mean()),
            0.7,
            0.95,
            source,
        ),
        Expectation(
            "mean cosine of turning neurons 3000 epochs after",
            float(cosines[4][turning].mean()),
            0.9,
            0.99,
            source,
        ),
        Expectation("least cosine 31,000 epochs after", late, 0.999, 1.0 + 1e-9, source),
    )
    note = (
        "The last snapshot is compared with the plateau after jump 1: if jump 2 comes within "
        "31,000 epochs, neurons have turned again."
    )
    columns = {"epoch": first["shot_epochs"].tolist()}
    columns |= {f"cosine_{j}": cosines[:, j].tolist() for j in range(cosines.shape[1])}
    return Reproduction((figure,), {"cosines": columns}, expectations, note)


# -------------------------------------------------------------------- parts


def _steps(jumps: Array, end: float) -> Array:
    """Abscissae of a staircase: every edge twice."""
    return np.concatenate([[0.0], np.repeat(jumps, 2), [end]])


def _norm_lines(arrays: Any, epochs: Array, *, logs: bool) -> tuple[Line, ...]:
    values = arrays["log_norms"]
    values = values / np.log(10.0) if logs else np.exp(values)
    order = arrays["group"]
    return tuple(
        Line(
            epochs,
            values[:, j],
            label=f"jumps {_ordinal(int(order[j]))}" if order[j] >= 0 else "never jumps",
            colour=k % 7,
            dash=DASHES[k % 3],
        )
        for k, j in enumerate(np.argsort(np.where(order < 0, 99, order), kind="stable"))
    )


def _ordinal(k: int) -> str:
    return ("first", "second", "third", "fourth", "fifth", "sixth")[k] if k < 6 else f"{k + 1}th"


def _predicted_lines(arrays: Any, scale: float) -> tuple[Line, ...]:
    """Piecewise affine predictions, through the measured values at the ends of plateaus."""
    edges = np.append(0.0, arrays["predicted"])
    lines = []
    for j in range(arrays["log_norms"].shape[1]):
        x: list[float] = []
        y: list[float] = []
        for k, (left, right) in enumerate(pairwise(edges)):
            middle = 0.5 * (left + right)
            centre = np.interp(middle, arrays["epochs"], arrays["log_norms"][:, j])
            at = np.array([left + 0.1 * (right - left), right - 0.1 * (right - left)])
            heights = centre + arrays["slopes"][k, j] * (at - middle)
            x += [*(at / 1e3), np.nan]
            y += [*(heights / np.log(10.0)), np.nan]
        label = "predicted slopes" if j == 0 else ""
        lines.append(Line(np.array(x), np.array(y), label=label, colour=7, dash="dash", width=1.0))
    return tuple(lines)


def _slope_errors(arrays: Any) -> tuple[Array, Array]:
    """Relative errors of regression slopes on long plateaus, and on the short ones."""
    edges = np.append(0.0, arrays["measured"])
    long: list[float] = []
    short: list[float] = []
    for k, (left, right) in enumerate(pairwise(edges)):
        inside = (arrays["epochs"] >= left + 0.25 * (right - left)) & (
            arrays["epochs"] <= left + 0.75 * (right - left)
        )
        if inside.sum() < 3:
            continue
        x = arrays["epochs"][inside]
        fit = np.polyfit(x - x.mean(), arrays["log_norms"][inside], 1)[0]
        for slope, found in zip(arrays["slopes"][k], fit, strict=True):
            if slope > 0.0:
                settled = 0.25 * (right - left) * slope >= 15.0
                (long if settled else short).append(abs(found / slope - 1.0))
    return np.array(long), np.array(short)


def _convexity(arrays: Any) -> float:
    return float(np.diff(arrays["slopes"], axis=0).max(initial=-np.inf) / arrays["slopes"][0].max())


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


def _staircase_shape(results: Sequence[Result]) -> tuple[Expectation, ...]:
    source = "spec section 9, Fig. 1"
    by_engine: dict[str, list[Any]] = {"descent": [], "flow": []}
    for result in results:
        by_engine[str(result.point.parameters["engine"])].append(result.arrays)
    both = [arrays for group in by_engine.values() for arrays in group]
    leading = max(float(np.abs(a["measured"] / a["leading"] - 1.0).max()) for a in both)
    plateau = max(float(_mid_plateau_errors(a).max(initial=0.0)) for a in both)
    steps = float(len(both[0]["predicted"]))
    first = [abs(float(a["measured"][0] - a["predicted"][0])) for a in by_engine["descent"]]
    sharp = [
        float(np.abs(a["measured"] - a["predicted"])[: _firm(a)].max(initial=0.0))
        for a in by_engine["flow"]
    ]
    return (
        Expectation("number of steps", steps, 4, 6, source),
        Expectation(
            "jump epochs against t_k L / lr, relative", leading, 0.0, 0.01, f"{source}: within 1 %"
        ),
        Expectation(
            "first half-epoch of descent against its prediction, in epochs",
            max(first, default=float("nan")),
            0.0,
            1.0,
            "spec section 6.4: within one epoch",
        ),
        Expectation(
            "half-epochs of the flow against sharp times, in epochs, before the first near tie",
            max(sharp, default=float("nan")),
            0.0,
            0.1,
            "spec section 5",
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
    return {"jumps": jumps, **_norm_table(first)}


def _norm_table(arrays: Any) -> dict[str, dict[str, list[Any]]]:
    columns = {
        "epoch": arrays["epochs"].tolist(),
        "log_loss": arrays["log_loss"].tolist(),
        "fitted": arrays["count"].tolist(),
    }
    for j in range(arrays["log_norms"].shape[1]):
        columns[f"log_norm_{j}"] = arrays["log_norms"][:, j].tolist()
    return {"curves": columns}


def _snapshot(arrays: Any, k: int) -> Panel:
    floor = float(arrays["shot_log_norms"][0].min())
    radius = 0.15 + 0.85 * np.clip(1.0 - arrays["shot_log_norms"][k] / floor, 0.0, 1.05)
    layers: list[Layer] = []
    angle = np.linspace(0.0, 2.0 * np.pi, 181)
    layers.append(Line(np.cos(angle), np.sin(angle), colour=7, dash="dot", width=0.8))
    seen, expected = arrays["shot_seen"][k], arrays["shot_expected"][k]
    for j in range(len(seen)):
        phi = np.arctan2(seen[j, 1], seen[j, 0])
        x, y = radius[j] * np.cos(phi), radius[j] * np.sin(phi)
        jumped = arrays["group"][j] == 0
        name = "jumps first" if jumped else f"neuron {j + 1}"
        layers += [
            Line(np.array([0.0, x]), np.array([0.0, y]), colour=7, width=1.0),
            Points(
                np.array([x]),
                np.array([y]),
                label=name,
                colour=j % 7,
                marker=MARKERS[j % 4],
                size=7.0 if jumped else 5.0,
            ),
        ]
    rim = expected / np.linalg.norm(expected, axis=1)[:, None]
    if k > 0:
        layers.append(
            Points(
                1.08 * rim[:, 0],
                1.08 * rim[:, 1],
                label="predicted direction",
                colour=7,
                marker="cross",
                size=4.0,
            )
        )
    limits = (-1.2, 1.2)
    axes = [Axis(name, range=limits, ticks=((0.0, ""),)) for name in ("", "")]
    return Panel(f"{k + 1}. {TITLES[k]}", axes[0], axes[1], tuple(layers), equal=True)


RECIPES = (
    Recipe("orthogonal/fig1", "Staircase of the loss with predicted jumps", points, draw_staircase),
    Recipe("orthogonal/fig3", "Log norms: concave, piecewise affine", points, draw_exponents),
    Recipe("orthogonal/fig4", "Directions around the first jump", points, draw_directions),
)
