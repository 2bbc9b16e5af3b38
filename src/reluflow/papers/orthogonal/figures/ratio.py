"""The norm of the limit process over its minimum, for sizes that cannot be trained."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from reluflow.figures import Axis, Figure, Line, Panel, Rule
from reluflow.figures.description import DASHES, MARKERS
from reluflow.papers.orthogonal.figures.problems import width_for
from reluflow.sweeps import Point, Result, seeded
from reluflow.theory.contract import Expectation, Recipe, Reproduction, Size

TASK = "reluflow.papers.orthogonal.figures.measures:norm_of_limit"
HALVING = 1.0 + float(np.sqrt(2.0))  # of exact halving, sum of 2^(-k/2)


def points_of_limit(size: Size, seed: int) -> list[Point]:
    """The limit process alone: n to 100,000 at three widths, then m to 4096 at three n."""
    starts = 6 if size == "quick" else 40
    numbers = [16, 64, 256, 1024, 4096, 16384, 100_000]
    if size == "full":
        numbers = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 100_000]
    by_n = [(n, factor * width_for(n)) for n in numbers for factor in (1, 4, 16)]
    by_m = [(n, 2**k) for n in (32, 256, 2048) for k in range(5, 13)]
    return [
        seeded(
            TASK,
            {"n": n, "m": m, "starts": min(starts, max(2, 2 * 10**8 // (n * m))), "panel": panel},
            seed,
        )
        for panel, pairs in (("n", by_n), ("m", by_m))
        for n, m in pairs
    ]


def draw_ratio(results: Sequence[Result]) -> Reproduction:
    """Norm over minimal norm of the limit process, beyond what can be trained."""
    by_panel = _by_panel(results)
    left = tuple(
        _ratio_line(group, "n", f"m = {'' if key == 1 else f'{key} x '}log(100 n)/log(4/3)", k)
        for k, (key, group) in enumerate(sorted(by_panel["n"].items()))
    )
    right = tuple(
        _ratio_line(group, "m", f"n = {key}", k + 3)
        for k, (key, group) in enumerate(sorted(by_panel["m"].items()))
    )
    ceiling = Rule(HALVING, "y", label="exact halving, 1 + sqrt 2")
    ratio = Axis("squared norm over its minimum")
    figure = Figure(
        "norm_ratio",
        "How far from the minimal norm the limit process ends",
        (
            Panel("against n", Axis("number of points n", scale="log"), ratio, (*left, ceiling)),
            Panel("against m", Axis("width m", scale="log"), ratio, right),
        ),
        columns=2,
        caption=(
            "Limit process only, no training: means over random starts, band from least to "
            "largest. With m of order log n the ratio grows slowly and stays below 1 + sqrt 2; for "
            "fixed n it falls with the width, the part that Theorem 3 leaves open."
        ),
    )
    shape = _ratio_shape(results, by_panel["n"][1], right)
    return Reproduction((figure,), {"ratios": _ratio_table(results)}, shape)


def _by_panel(results: Sequence[Result]) -> dict[str, dict[int, list[Result]]]:
    """Results of each line: left by width over that of order log n, right by n."""
    panels: dict[str, dict[int, list[Result]]] = {"n": defaultdict(list), "m": defaultdict(list)}
    for result in results:
        if result.values["interpolating"]:
            parameters = result.point.parameters
            if parameters["panel"] == "n":
                key = round(parameters["m"] / width_for(parameters["n"]))
            else:
                key = parameters["n"]
            panels[parameters["panel"]][key].append(result)
    return panels


def _ratio_line(group: list[Result], axis: str, label: str, k: int) -> Line:
    group = sorted(group, key=lambda r: int(r.point.parameters[axis]))
    ratios = [r.arrays["ratios"] for r in group]
    return Line(
        np.array([float(r.point.parameters[axis]) for r in group]),
        np.array([float(x.mean()) for x in ratios]),
        label=label,
        colour=k % 7,
        dash=DASHES[k % 3],
        marker=MARKERS[k % 3],
        low=np.array([float(x.min()) for x in ratios]),
        high=np.array([float(x.max()) for x in ratios]),
    )


def _ratio_shape(
    results: Sequence[Result], base: Sequence[Result], by_width: Sequence[Line]
) -> tuple[Expectation, ...]:
    """Ratios of all results, of ``base`` with m of order log n, and of the lines against m."""
    means = {r.point.parameters["n"]: float(r.arrays["ratios"].mean()) for r in base}
    middle = [mean for n, mean in means.items() if 64 <= n <= 4096]
    falls = max(
        float(b / a) for line in by_width for a, b in zip(line.y[:-1], line.y[1:], strict=True)
    )
    return (
        Expectation(
            "least ratio", _extreme(results, np.min), 1.0 - 1e-12, np.inf, "paper eq. (15)"
        ),
        Expectation(
            "largest mean ratio, m of order log n",
            max(means.values()),
            1.0,
            2.5,
            "theory of the jump process: below about 1 + sqrt 2",
        ),
        Expectation(
            "least mean ratio, n from 64 to 4096",
            min(middle),
            1.5,
            2.4,
            "theory of the jump process",
        ),
        Expectation(
            "largest growth of the mean ratio when m doubles",
            falls,
            0.0,
            1.03,
            "theory of the jump process: decreasing in m (3 % for sampling)",
        ),
        Expectation(
            "largest |theta|^2 / (ymax sqrt n)",
            max(float(r.arrays["scaled"].max()) for r in results if len(r.arrays["scaled"])),
            0.0,
            19.32,
            "Theorem 3 with explicit constant",
        ),
    )


def _extreme(results: Sequence[Result], pick: Any) -> float:
    return float(pick([pick(r.arrays["ratios"]) for r in results if len(r.arrays["ratios"])]))


def _ratio_table(results: Sequence[Result]) -> dict[str, list[Any]]:
    kept = [r for r in results if r.values["interpolating"]]
    return {
        "n": [r.point.parameters["n"] for r in kept],
        "m": [r.point.parameters["m"] for r in kept],
        "starts": [r.values["interpolating"] for r in kept],
        "mean_ratio": [float(r.arrays["ratios"].mean()) for r in kept],
        "mean_jumps": [float(r.arrays["jumps"].mean()) for r in kept],
    }


RECIPES = (
    Recipe(
        "orthogonal/norm_ratio",
        "Norm over minimal norm of the limit process, n to 100,000",
        points_of_limit,
        draw_ratio,
    ),
)
