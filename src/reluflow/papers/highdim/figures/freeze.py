"""highdim/fig-freeze: how often one step makes the final pattern, against d/n^2."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from reluflow.figures import Axis, Figure, Line, Panel
from reluflow.sweeps import Point, Result
from reluflow.sweeps.point import seeded
from reluflow.theory.contract import Expectation, Recipe, Reproduction, Size

TASK = "reluflow.papers.highdim.figures.measures:freeze"
CONSTANTS = (2.0, 4.0)
# shares at d/n^2 = 0.3, 1, 3, 10, 30 as handed down (their source was not seen), (C, n) -> values
TABLE = {
    (2.0, 10): (0.23, 0.55, 0.95, 0.98, 1.0),
    (2.0, 20): (0.23, 0.68, 0.98, 1.0, 1.0),
    (2.0, 40): (0.35, 0.88, 1.0, 1.0, 1.0),
    (4.0, 20): (0.05, 0.35, 0.75, 0.98, 1.0),
}
RATIOS = (0.3, 1.0, 3.0, 10.0, 30.0)


def points(size: Size, seed: int) -> Iterable[Point]:
    """Batches of twenty draws."""
    full = size == "full"
    ratios = (0.1, 0.17, *RATIOS[:1], 0.55, 1.0, 1.7, 3.0, 5.5, 10.0, 30.0) if full else RATIOS
    for C in CONSTANTS:
        for n in (10, 20, 40):
            for ratio in ratios:
                d = round(ratio * n * n)
                given = {"n": n, "d": d, "ratio": ratio, "constant": C, "draws": 20}
                for repeat in range(10 if full else 2):
                    yield seeded(TASK, given, seed, repeat)


def shares(results: Sequence[Result], C: float, n: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Share of draws by d/n^2."""
    counts: dict[float, list[int]] = {}
    for r in results:
        p = r.point.parameters
        if p["constant"] == C and p["n"] == n:
            entry = counts.setdefault(p["ratio"], [0, 0])
            entry[0] += int(r.values[name])
            entry[1] += int(r.values["draws"])
    x = sorted(counts)
    return np.array(x), np.array([counts[k][0] / counts[k][1] for k in x])


def draw(results: Sequence[Result]) -> Reproduction:
    """One panel for each step."""
    panels, worst, least_end = [], 0.0, 1.0
    columns: dict[str, list[float]] = {
        name: [] for name in ("C", "n", "d_over_n2", "at_once", "end")
    }
    for C in CONSTANTS:
        layers: list[Line] = []
        for k, n in enumerate((10, 20, 40)):
            x, once = shares(results, C, n, "at_once")
            _, end = shares(results, C, n, "in_the_end")
            if not len(x):
                continue
            marker = ("circle", "square", "triangle")[k]
            layers.append(Line(x, once, f"n = {n}: after one step", k, "solid", marker))  # type: ignore[arg-type]
            layers.append(Line(x, end, f"n = {n}: in the end", k, "dot", width=1.2))
            for ratio, value in zip(RATIOS, TABLE.get((C, n), ()), strict=False):
                if ratio in x:
                    worst = max(worst, abs(float(once[np.flatnonzero(x == ratio)[0]]) - value))
            least_end = min([least_end, *end[x >= 3.0].tolist()])
            for values in zip([C] * len(x), [n] * len(x), x, once, end, strict=True):
                for name, value in zip(columns, values, strict=True):
                    columns[name].append(float(value))
        panels.append(
            Panel(
                f"step 1/({C:g} l1)",
                Axis("d / n^2", "log"),
                Axis("share of draws", range=(-0.02, 1.02)),
                tuple(layers),
            )
        )
    figure = Figure(
        "freeze",
        "One step makes the pattern once d exceeds n^2",
        tuple(panels),
        columns=2,
        caption=(
            "Share of draws whose activation pattern is right and frozen (certified) after the "
            "first step, and share that ends on the right pattern whenever. Curves for different n "
            "nearly collapse on d/n^2, the scale of assumption A2. A shorter step needs a larger "
            "dimension: its kick must beat cross terms that do not shrink with it."
        ),
    )
    expectations = (
        Expectation(
            "largest difference to the reference shares",
            worst,
            0.0,
            0.2,
            "shares of 40 draws as handed down: two standard errors are 0.16",
        ),
        Expectation(
            "least share right in the end for d >= 3 n^2", least_end, 0.95, 1.0, "section 6.1"
        ),
    )
    return Reproduction((figure,), {"freeze": columns}, expectations)


FIGURE = Recipe(
    "highdim/fig-freeze",
    "probability that the pattern is frozen after one step, against d/n^2",
    points,
    draw,
)
