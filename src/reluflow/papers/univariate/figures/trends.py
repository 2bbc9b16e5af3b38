"""Panels of quantities along runs that pages and figures share: margins, KKT residuals, regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reluflow.figures import Axis, Layer, Line, Panel, Rule
from reluflow.papers.univariate.figures.tools import FALL

History = Mapping[str, Any]


def gap_panel(histories: Sequence[History], optima: Sequence[float]) -> Panel:
    """How far the margin and the smoothed margin are below the global optimum."""
    layers: list[Layer] = []
    for k, (history, best) in enumerate(zip(histories, optima, strict=True)):
        right = history["smoothed"] > 0.0
        F = history["F"][right]
        layers += [
            Line(
                F,
                _positive(1.0 - history["margin"][right] / best),
                label="" if k else "margin",
                colour=0,
                opacity=0.7,
            ),
            Line(
                F,
                _positive(1.0 - history["smoothed"][right] / best),
                label="" if k else "smoothed margin",
                colour=1,
                dash="dash",
                opacity=0.7,
            ),
        ]
    return Panel(
        "below the optimum",
        Axis(FALL, "log"),
        Axis("1 - margin / optimum", "log"),
        tuple(layers),
    )


def margin_panel(histories: Sequence[History], optima: Sequence[float]) -> Panel:
    """Margins relative to the optimum."""
    layers: list[Layer] = []
    for k, (history, best) in enumerate(zip(histories, optima, strict=True)):
        right = history["margin"] > 0.0
        F = history["F"][right]
        for name, text, colour, dash in (
            ("margin", "margin", 0, "solid"),
            ("smoothed", "smoothed margin", 1, "dash"),
        ):
            values = history[name][right] / best
            layers.append(
                Line(
                    F,
                    np.where(values > -0.05, values, np.nan),
                    label="" if k else text,
                    colour=colour,
                    dash=dash,  # type: ignore[arg-type]
                    opacity=0.7,
                )
            )
    layers.append(Rule(1.0, label="certified optimum"))
    return Panel(
        "normalised margin",
        Axis(FALL, "log"),
        Axis("margin / optimum", range=(-0.05, 1.08)),
        tuple(layers),
    )


def residual_panel(histories: Sequence[History]) -> Panel:
    """KKT residuals and misalignment."""
    layers: list[Layer] = []
    for k, history in enumerate(histories):
        rows = (
            (history["kkt_F"], history["kkt_eps"], "stationarity eps / |theta|", 0, "solid"),
            (history["kkt_F"], history["kkt_delta"], "slackness delta", 1, "dash"),
            (
                history["F"][history["margin"] > 0],
                history["misalignment"][history["margin"] > 0],
                "1 - cos(theta, gradient)",
                2,
                "dashdot",
            ),
        )
        layers += [
            Line(
                F,
                _positive(values),
                label="" if k else label,
                colour=colour,
                dash=dash,  # type: ignore[arg-type]
                opacity=0.7,
            )
            for F, values, label, colour, dash in rows
        ]
    return Panel(
        "distance to a KKT point", Axis(FALL, "log"), Axis("residual", "log"), tuple(layers)
    )


def _positive(values: Any) -> Any:
    """Values a logarithmic axis can show; rounding below 1e-12 is cut off."""
    return np.where(values > 1e-12, values, np.nan)
