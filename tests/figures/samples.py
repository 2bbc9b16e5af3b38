"""Figures for the tests: one for each kind of layer, one with all, one movie."""

import numpy as np

from reluflow.figures import (
    Arrows,
    Axis,
    Figure,
    Frame,
    Heat,
    Line,
    Panel,
    Points,
    Raster,
    Rule,
    Span,
    Text,
)

T = np.geomspace(1e-2, 1e3, 60)
LOSS = 1.0 / (1.0 + T) ** 2
TURN = np.linspace(0, 2 * np.pi, 13)[:-1]

LAYERS = {
    "line": (
        Line(T, LOSS, label="simulated", low=LOSS / 2, high=2 * LOSS),
        Line(T, 1 / T**2, label="slope -2", colour=1, dash="dash"),
        Line(T, 0.1 / T, label="slope -1", colour=2),
    ),
    "points": (
        Points(T[::4], LOSS[::4], label="positive", text=[f"run {k}" for k in range(15)]),
        Points(T[1::4], LOSS[1::4], label="negative", colour=1, size=np.linspace(3, 9, 15)),
        Points(T[2::4], LOSS[2::4], label="open", colour=5),
    ),
    "arrows": (
        Arrows(0 * TURN, 0 * TURN, np.cos(TURN), np.sin(TURN), label="positive"),
        Arrows(0 * TURN, 0 * TURN, 0.6 * np.cos(TURN), -0.5 * np.sin(TURN), "negative", 1),
    ),
    "rule": (Line(T, LOSS), Rule(0.3, label="bound"), Rule(10.0, "x", label="jump", colour=1)),
    "span": (Line(T, LOSS), Span(0.1, 2.0, label="alignment"), Span(20, 200, "fitting", 2)),
    "raster": (
        Raster(
            np.arange(13.0),
            np.arange(7.0),
            np.add.outer(np.arange(6), np.arange(12)) // 4 % 3,
            ("inactive", "active", "sliding"),
            (7, 0, 1),
        ),
    ),
    "heat": (
        Heat(
            np.arange(8.0), np.geomspace(1, 100, 5), np.outer(np.arange(5), np.arange(8)), "angle"
        ),
    ),
    "text": (Line(T, LOSS), Text(1.0, 0.05, "knee")),
}
LOG = {"line", "points", "rule", "span", "text"}


def panel(kind: str) -> Panel:
    scale = "log" if kind in LOG else "linear"
    x, y = Axis("time t", scale), Axis("loss", "log" if kind == "heat" else scale)
    return Panel(f"{kind} layers", x, y, LAYERS[kind], equal=kind == "arrows")


def figure(kind: str, **options) -> Figure:
    return Figure(f"sample_{kind}", f"A figure of {kind}", (panel(kind),), **options)


def all_kinds(columns: int = 2) -> Figure:
    return Figure(
        "all_kinds", "Every kind", tuple(panel(kind) for kind in LAYERS), columns, "All layers."
    )


def movie(frames: int = 5, **options) -> Figure:
    def cloud(turn: float) -> tuple[Points, Arrows]:
        x, y = np.cos(TURN + turn), np.sin(TURN + turn)
        return (
            Points(x, y, label="neurons"),
            Arrows(0 * x[:2], 0 * x[:2], 0.8 * x[:2], 0.8 * y[:2], label="mean", colour=1),
        )

    shown = tuple(Frame(f"t = {k}", cloud(k / 10)) for k in range(frames))
    axes = Axis("first coordinate", range=(-1.1, 1.1)), Axis("second", range=(-1.1, 1.1))
    first = Panel("directions", *axes, shown[0].layers, equal=True)
    return Figure("movie", "Directions", (first,), frames=shown, wide=False, **options)
