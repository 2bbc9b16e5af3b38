"""Figure 2: training and test loss through training, at several scales."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from reluflow.figures import Axis, Figure, Layer, Line, Panel
from reluflow.figures.description import DASHES
from reluflow.papers.correlated.figures.tables import distinct, point, where
from reluflow.sweeps import Point, Result
from reluflow.theory.contract import Expectation, Recipe, Reproduction
from reluflow.theory.fits import line

POWERS = {"quick": (-2, -4, -6, -8), "full": tuple(range(-2, -9, -1))}
PANELS = (("centred", 200), ("uncentred", 25))


def points(size: str, seed: int, *, descent: bool = False) -> Iterator[Point]:
    """One data set in dimension 16 for each scheme, trained at several scales."""
    for scheme, width in PANELS:
        for power in POWERS[size]:
            parameters: dict[str, Any] = {
                "scheme": scheme,
                "d": 16,
                "width": width,
                "power": power,
                "engine": "descent" if descent else "flow",
            }
            yield point("losses", seed, f"fig2 {scheme}", parameters)


def draw(results: Sequence[Result]) -> Reproduction:
    """Training loss over log iterations, test loss over iterations; one figure for each scheme."""
    figures, expected = [], []
    table: dict[str, list[Any]] = {
        name: [] for name in ("scheme", "power", "iterations", "log_loss", "test_loss")
    }
    for scheme in distinct(results, "scheme"):
        own = sorted(where(results, scheme=scheme), key=lambda r: -r.point.parameters["power"])
        figures.append(_figure(scheme, own))
        expected += list(_expectations(scheme, own))
        for result in own:
            count = len(result.arrays["iterations"])
            table["scheme"] += [scheme] * count
            table["power"] += [result.point.parameters["power"]] * count
            for name in ("iterations", "log_loss", "test_loss"):
                table[name] += result.arrays[name].tolist()
    return Reproduction(tuple(figures), {"fig2": table}, tuple(expected))


def _figure(scheme: str, results: Sequence[Result]) -> Figure:
    train: list[Layer] = []
    test: list[Layer] = []
    for k, result in enumerate(results):
        arrays, power = result.arrays, result.point.parameters["power"]
        seen = arrays["iterations"] > 0
        style: dict[str, Any] = {"label": f"4^{power}", "colour": k % 7, "dash": DASHES[k % 4]}
        train.append(Line(arrays["iterations"][seen], np.exp(arrays["log_loss"][seen]), **style))
        test.append(Line(arrays["iterations"][seen], arrays["test_loss"][seen], **style))
    width = results[0].point.parameters["width"]
    caption = (
        "Left: training loss (mean squared error) through iterations of 0.01. The plateau "
        "lengthens by a constant for each factor of the scale; the tail does not depend on it. "
        "Right: mean squared error on 64 points drawn from N(0, I), labelled by the teacher: "
        "smaller scales generalise better."
    )
    return Figure(
        f"fig2_{scheme}",
        f"Training and test loss, {scheme}, d = 16, {width} neurons",
        (
            Panel("training loss", Axis("iterations", "log"), Axis("loss", "log"), tuple(train)),
            Panel("test loss", Axis("iterations", "log"), Axis("loss", "log"), tuple(test)),
        ),
        2,
        caption,
    )


def _time_of(result: Result, log_loss: float) -> float:
    """Iterations until the log-loss is first at most this (interpolated)."""
    logs, iterations = result.arrays["log_loss"], result.arrays["iterations"]
    below = np.flatnonzero(logs <= log_loss)
    if not len(below):
        return float(iterations[-1])
    k = max(int(below[0]), 1)
    share = (logs[k - 1] - log_loss) / max(logs[k - 1] - logs[k], 1e-300)
    return float(iterations[k - 1] + share * (iterations[k] - iterations[k - 1]))


def _expectations(scheme: str, results: Sequence[Result]) -> Iterator[Expectation]:
    small = results[-2:]
    half = [_time_of(r, float(r.arrays["log_loss"][0]) - math.log(2.0)) for r in small]
    powers = [r.point.parameters["power"] for r in small]
    # on the mean squared error the bundle grows with rate 2 |gamma|
    predicted = (powers[0] - powers[1]) * math.log(4.0) / (2 * small[0].values["growth"]) / 0.01
    yield Expectation(
        f"{scheme}: lengthening of the plateau between the two smallest scales, over its value "
        "by theory",
        (half[1] - half[0]) / predicted,
        0.9,
        1.1,
        "Lemma 5: the bundle grows with the rate |gamma| of the data",
    )
    rates = [_final_rate(result) for result in results]
    yield Expectation(
        f"{scheme}: final rate of the smallest scale over that of the largest",
        rates[-1] / rates[0],
        0.8,
        1.25,
        "derived (R1): the rate of the slowest mode, whatever the scale",
    )
    ends = [float(result.arrays["test_loss"][-1]) for result in results]
    yield Expectation(
        f"{scheme}: final test loss at the smallest scale over that at the largest",
        ends[-1] / ends[0],
        0.0,
        0.95,
        "no theorem: small scales end nearer to the teacher",
    )


def _final_rate(result: Result) -> float:
    """Decay of the loss over its last two decades."""
    logs, iterations = result.arrays["log_loss"], result.arrays["iterations"]
    late = logs <= logs[-1] + 2 * math.log(10.0)
    return -line(iterations[late], logs[late]).slope


RECIPES = [
    Recipe(
        "correlated/fig2",
        "training and test loss through training at several scales",
        points,
        draw,
        ("descent",),
    )
]
