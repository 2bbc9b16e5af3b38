"""Problems to begin with: one for each paper and each finding, with what to look for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from reluflow.checks import nearest
from reluflow.errors import InputError
from reluflow.explore.state import Drawn, Given, State, to_json


class Preset(NamedTuple):
    """A named state; ``look`` says in two sentences what to look for."""

    id: str
    title: str
    look: str
    state: State


def _line(x: list[float], y: list[float], **more: Any) -> State:
    return State(line=True, X=[[value, 1.0] for value in x], y=y, **more)


def _plane(X: list[list[float]], y: list[float], **more: Any) -> State:
    return State(line=False, X=X, y=y, **more)


def _fan(angles: list[float], teacher: float, norms: list[float]) -> tuple[list[Any], list[Any]]:
    """Points at angles (degrees) and lengths, labelled by the unit teacher at its angle."""
    at = np.radians(angles)
    X = np.column_stack([np.cos(at), np.sin(at)]) * np.array(norms)[:, None]
    v = np.array([np.cos(np.radians(teacher)), np.sin(np.radians(teacher))])
    return X.round(12).tolist(), (X.round(12) @ v).tolist()


def _all() -> list[Preset]:
    """Every preset, in the order of the page."""
    return [
        _six_points(),
        *_correlated(),
        *_orthogonal(),
        _highdim(),
        *_classes(),
        *_findings(),
    ]


def _six_points() -> Preset:
    """Regression on a line."""
    return Preset(
        "line",
        "Six points on a line",
        "Drag a point up or down and watch the staircase of the loss move with it. "
        "Then make the scale smaller: fewer kinks survive, and they sit at points.",
        _line([-2.0, -1.2, -0.3, 0.5, 1.3, 2.1], [0.9, -0.4, 0.6, 0.2, -0.7, 0.8]),
    )


def _correlated() -> list[Preset]:
    """Points around a teacher: all within pi/4, and one beyond."""
    narrow = _fan([50.0, 80.0, 110.0, 70.0], 78.0, [1.0, 0.8, 0.9, 1.2])
    wide = _fan([35.0, 84.0, 124.0], 80.0, [1.0, 1.0, 1.0])
    return [
        Preset(
            "correlated",
            "Correlated points: one bundle",
            "All inputs lie within 45 degrees of the teacher: the neurons that survive turn into "
            "one bundle, which ends along it. The predicted limit is the star on the circle.",
            _plane(*narrow, net=Drawn(width=20, seed=3), log_scale=-15.0),
        ),
        Preset(
            "beyond",
            "Beyond pi/4",
            "One input is more than 45 degrees from the teacher, outside the theorem. Drag it "
            "further and see when the bundle stops being one.",
            _plane(*wide, net=Drawn(width=20, seed=3), log_scale=-15.0),
        ),
    ]


def _orthogonal() -> list[Preset]:
    """Staircases of orthonormal points."""
    return [
        Preset(
            "orthogonal",
            "Orthonormal points: the staircase",
            "Training jumps from saddle to saddle; bands are the predicted plateaus and ticks the "
            "predicted jumps. On the axis t / |log scale| they stay where they are at any scale.",
            _plane(
                [[1.0, 0.0], [0.0, 1.0]],
                [1.5, -0.7],
                net=Drawn(width=12, seed=2),
                log_scale=-60.0,
            ),
        ),
        Preset(
            "staircase",
            "Staircase in six dimensions",
            "Six orthonormal inputs with labels of both signs, each fitted in a jump of its own or "
            "with others. Compare the predicted norm with the smallest one.",
            State(
                line=False,
                X=np.eye(6).tolist(),
                y=[2.0, 1.4, 0.9, -1.7, -1.1, -0.6],
                net=Drawn(width=24, seed=5),
                log_scale=-100.0,
            ),
        ),
    ]


def _highdim() -> Preset:
    """Few points in many dimensions, output weights fixed."""
    rng = np.random.default_rng(12)
    X = rng.normal(size=(5, 30)).round(6) / 4.0
    return Preset(
        "highdim",
        "Fixed output weights",
        "Only the hidden layer moves. Neurons of either sign sort the points by label: the "
        "raster shows those of the other sign switching off.",
        State(
            line=False,
            X=X.tolist(),
            y=[1.0, 0.6, 1.4, -0.8, -1.2],
            net=Drawn(width=12, seed=3),
            factor="1/2",
            train="hidden",
            log_scale=-1.0,
        ),
    )


def _classes() -> list[Preset]:
    """Two classes, on a line and in the plane."""
    return [
        Preset(
            "univariate",
            "Classes on a line",
            "Labels are -1 and 1 and the loss is exponential. Compare the learned function with "
            "the dotted one of largest margin: kinks gather where the labels change.",
            _line(
                [-2.2, -1.4, -0.5, 0.4, 1.2, 2.0],
                [-1.0, -1.0, 1.0, 1.0, -1.0, -1.0],
                net=Drawn(width=30, seed=4),
                loss="exponential",
                log_scale=-3.0,
            ),
        ),
        Preset(
            "separable",
            "Two classes in the plane",
            "Points of one class have positive inner products, those of different classes "
            "negative ones. Two bundles form, one for each class; drag a point to break that.",
            _plane(
                [[1.0, 0.4], [0.6, 0.9], [-0.9, -0.3], [-0.5, -0.8]],
                [1.0, 1.0, -1.0, -1.0],
                net=Drawn(width=20, seed=1),
                loss="logistic",
                log_scale=-5.0,
            ),
        ),
    ]


def _findings() -> list[Preset]:
    """What single neurons do: slide, pass the origin, share the points."""
    return [
        Preset(
            "sliding",
            "Sliding along a plane",
            "One point pulls both neurons into the cone of the other, which pushes them out again: "
            "they slide along the line between. The hatched part of the raster is that slide.",
            _plane(
                [[1.0, 0.1], [0.5, 0.9]],
                [1.0, -1.0],
                net=Given(a=[1.0, 1.0], W=[[0.6, -0.8], [0.9, -0.44]]),
                log_scale=-4.0,
            ),
        ),
        Preset(
            "origin",
            "Through the origin",
            "Output weights dominate, so a neuron keeps its sign, and one that pulls the wrong way "
            "shrinks towards zero. The raster shows which neurons die and which slide and return.",
            _plane(
                [[1.0, 0.2], [0.8, 0.7], [-0.3, 1.0]],
                [1.0, 0.4, -0.8],
                net=Drawn(width=10, seed=0, init="dominated"),
                log_scale=-1.0,
            ),
        ),
        Preset(
            "rank",
            "Rank 2 beats rank 1",
            "One neuron fits both points, and so do two, one for each point, with a smaller norm. "
            "Compare the columns of the numbers, and see what the scale changes.",
            _plane(*_fan([13.0, 143.0], 78.0, [1.0, 1.0]), net=Drawn(width=20, seed=3)),
        ),
    ]


def named(id: str) -> State:
    """The state of a preset."""
    known = {preset.id: preset.state for preset in _all()}
    if id not in known:
        raise InputError(
            f"there is no preset {id!r}. The presets are {', '.join(known)}.{nearest(id, known)}"
        )
    return known[id]


def first() -> State:
    """What the explorer opens with."""
    return named("line")


def listed() -> list[dict[str, Any]]:
    """The presets as plain data for the page."""
    return [{**preset._asdict(), "state": to_json(preset.state)} for preset in _all()]
