"""Figure 4: directions of the neurons around the first jump of the training of figure 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reluflow.figures import Axis, Figure, Line, Panel, Points
from reluflow.figures.description import Layer, Marker
from reluflow.papers.orthogonal.figures.training import points
from reluflow.sweeps import Result
from reluflow.theory.contract import Expectation, Recipe, Reproduction

MARKERS: tuple[Marker, ...] = ("circle", "square", "triangle", "diamond", "cross")
TITLES = (
    "start",
    "middle of the first plateau",
    "1000 epochs before jump 1",
    "1000 epochs after it",
    "3000 epochs after it",
    "31,000 epochs after it",
)


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
    source = "Fig. 4 of the paper"
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
