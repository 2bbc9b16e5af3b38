"""Figure 4: directions of the neurons around the first jump of the training of figure 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reluflow.figures import Axis, Figure, Line, Panel, Points
from reluflow.figures.description import MARKERS, Layer
from reluflow.papers.orthogonal.figures.training import figure_name, points
from reluflow.sweeps import Result
from reluflow.theory.contract import Expectation, Recipe, Reproduction
from reluflow.theory.results import by_seed

ONE = 1.0 + 1e-9  # a cosine, rounded
TITLES = (
    "start",
    "middle of the first plateau",
    "1000 epochs before jump 1",
    "1000 epochs after it",
    "3000 epochs after it",
    "31,000 epochs after it",
)


def draw_directions(results: Sequence[Result]) -> Reproduction:
    """Figure 4: one picture a draw, and all draws judged by the one that is furthest off."""
    drawn = [own[0].arrays for own in by_seed(results)]
    before, soon, later, end = [], [], [], []
    for arrays in drawn:
        cosines = arrays["shot_cosines"]
        turning, dormant = arrays["turning"] > 0.0, arrays["dormant"] > 0.0
        before.append(float(cosines[[1, 2]][:, dormant].min()))
        soon.append(float(cosines[3][turning].mean()))
        later.append(float(cosines[4][turning].mean()))
        if _next_jump(arrays) > arrays["shot_epochs"][5]:
            end.append(float(cosines[5][dormant].min()))
    source = "Fig. 4 of the paper"
    expectations = (
        Expectation(
            "least cosine to the prediction before the jump", min(before), 0.999, ONE, source
        ),
        Expectation(
            "mean cosine of turning neurons 1000 epochs after, least of the draws",
            min(soon),
            0.5,
            0.95,
            "turning has begun and is not over",
        ),
        Expectation(
            "gain of that cosine from 1000 to 3000 epochs after, least of the draws",
            min(b - a for a, b in zip(soon, later, strict=True)),
            0.0,
            1.0,
            "neurons turn towards the prediction",
        ),
        Expectation(
            f"least cosine 31,000 epochs after, {len(end)} draws without a second jump by then",
            min(end, default=float("nan")),
            0.999,
            ONE,
            source,
        ),
    )
    figures = tuple(_figure(arrays, k) for k, arrays in enumerate(drawn))
    return Reproduction(figures, {"cosines": _table(drawn)}, expectations)


def _next_jump(arrays: Any) -> float:
    """The epoch of the second jump; infinite without one."""
    return float(arrays["predicted"][1]) if len(arrays["predicted"]) > 1 else np.inf


def _table(drawn: Sequence[Any]) -> dict[str, list[Any]]:
    """Cosines of all draws at their six moments."""
    columns: dict[str, list[Any]] = {"draw": [], "epoch": []}
    for k, arrays in enumerate(drawn):
        columns["draw"] += [k + 1] * len(arrays["shot_epochs"])
        columns["epoch"] += arrays["shot_epochs"].tolist()
        for j, cosines in enumerate(arrays["shot_cosines"].T):
            columns.setdefault(f"cosine_{j}", []).extend(cosines.tolist())
    return columns


def _figure(arrays: Any, which: int) -> Figure:
    """Directions and log norms around the first jump, in a random plane."""
    return Figure(
        figure_name("fig4", which),
        "Neurons turn when another one has fitted their points",
        tuple(_snapshot(arrays, k) for k in range(len(arrays["shot_epochs"]))),
        columns=3,
        caption=(
            "Six moments: angle, the direction of a neuron in a random plane; distance from the "
            "centre, the logarithm of its norm. Crosses on the rim: directions predicted for the "
            "plateau. Neurons are aligned before the jump; those that share points with the "
            "jumped neuron turn within a few thousand epochs."
        ),
    )


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


RECIPES = (Recipe("orthogonal/fig4", "Directions around the first jump", points, draw_directions),)
