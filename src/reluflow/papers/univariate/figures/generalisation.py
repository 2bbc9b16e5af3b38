"""Population error against the sample size and against the width (experiment 4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from reluflow.figures import Axis, Figure, Layer, Line, Panel
from reluflow.figures.description import DASHES, MARKERS
from reluflow.papers.univariate.figures.problems import problem, trials
from reluflow.papers.univariate.figures.tools import count_axis, fates, pick, separated
from reluflow.sweeps import Point, Result
from reluflow.theory.contract import Expectation, Recipe, Reproduction, Size
from reluflow.theory.results import columns, groups, slope, values

# far beyond separation; the sign changes of the function hardly move afterwards
MEASURED = ("error", "separated", "unfinished", "regions")
LEVEL = 50.0


def _points(size: Size, seed: int) -> Iterable[Point]:
    for r in pick(size, (1, 2), (1, 2, 4)):
        for n in pick(size, (10, 20, 40), (10, 20, 40, 80)):
            count = pick(size, 20, 30)
            yield from trials("ending", _problem(r, n, 32), count, seed, f"error {r} {n}")
    # width 32 is among the points above
    for width in pick(size, (16, 64), (16, 64, 128, 256, 512)):
        count = pick(size, 8, 24)
        yield from trials("ending", _problem(2, 20, width), count, seed, "error 2 20")


def _problem(r: int, n: int, width: int) -> dict[str, float]:
    return problem(r, n, width, 2.0 * r, 0.2 * r, LEVEL)


def _draw(results: Sequence[Result]) -> Reproduction:
    sizes = [run for run in results if run.point.parameters["width"] == 32]
    widths = [
        run for run in results if run.point.parameters["r"] == 2 and run.point.parameters["n"] == 20
    ]
    by_size, slopes, constants = _by_size(sizes)
    by_width, rise = _by_width(widths)
    figure = Figure(
        "generalisation",
        "Population error falls like r/n and does not grow with the width",
        (by_size, by_width),
        columns=2,
        caption=(
            "Mean misclassified mass (exact, no test sample) of separating runs, with one standard "
            "error. Left: against the sample size, width 32; the thin lines are c r/n. Right: "
            f"against the width, r = 2, n = 20. {fates(results)}"
        ),
    )
    source = "Corollary 5.1: n = O(r log(1/eps)/eps), so -1 up to logarithms"
    expectations = [
        Expectation("power of n in the error, all r", _common_power(sizes), -1.3, -0.7, source),
        *(
            Expectation(f"power of n in the error, r = {r}", slope, -1.3, -0.7, source)
            for r, slope in slopes.items()
        ),
    ]
    expectations.append(
        Expectation(
            "power of the width in the error",
            rise,
            -1.0,
            0.15,
            "section 2: an arbitrarily wide network may be trained without overfitting",
        )
    )
    return Reproduction(
        (figure,),
        {"errors": columns(results, ("r", "n", "width"), MEASURED)},
        tuple(expectations),
        note=f"{fates(results)} Fitted constant of error = c r/n: {constants}.",
    )


def _mean(runs: Sequence[Result]) -> tuple[float, float]:
    errors = values(separated(runs), "error")
    if not len(errors):
        return float("nan"), float("nan")
    return float(errors.mean()), float(errors.std() / np.sqrt(len(errors)))


def _common_power(runs: Sequence[Result]) -> float:
    """One power of n for all r: each r has its own constant."""
    x, y = [], []
    for members in groups(runs, "r").values():
        cells = {n: _mean(part)[0] for (n,), part in groups(members, "n").items()}
        logs = np.array([(np.log(n), np.log(mean)) for n, mean in cells.items() if mean > 0.0])
        if len(logs) > 1:
            centred = logs - logs.mean(axis=0)
            x += list(centred[:, 0])
            y += list(centred[:, 1])
    return float(np.dot(x, y) / np.dot(x, x)) if x else float("nan")


def _by_size(runs: Sequence[Result]) -> tuple[Panel, dict[int, float], str]:
    layers: list[Layer] = []
    slopes: dict[int, float] = {}
    fitted = []
    for k, ((r,), members) in enumerate(groups(runs, "r").items()):
        cells = {n: _mean(part) for (n,), part in groups(members, "n").items()}
        n = np.array(sorted(cells), dtype=np.float64)
        mean, spread = np.array([cells[int(size)] for size in n]).T
        constant = float(np.exp(np.nanmean(np.log(mean * n / r))))
        slopes[r] = slope(n, mean)
        fitted.append(f"{constant:.2f} (r = {r})")
        layers += [
            Line(
                n,
                mean,
                label=f"r = {r}, power {slopes[r]:.2f}",
                colour=k,
                dash=DASHES[k],
                marker=MARKERS[k],
                low=np.maximum(mean - spread, 1e-4),
                high=mean + spread,
            ),
            Line(n, constant * r / n, colour=k, dash="dot", width=0.8),
        ]
    panel = Panel(
        "against the sample size",
        count_axis("sample size n", [run.point.parameters["n"] for run in runs]),
        Axis("population error", "log"),
        tuple(layers),
    )
    return panel, slopes, ", ".join(fitted)


def _by_width(runs: Sequence[Result]) -> tuple[Panel, float]:
    cells = {width: _mean(part) for (width,), part in groups(runs, "width").items()}
    width = np.array(sorted(cells), dtype=np.float64)
    mean, spread = np.array([cells[int(k)] for k in width]).T
    line = Line(width, mean, marker="circle", low=np.maximum(mean - spread, 0), high=mean + spread)
    top = 1.6 * float(np.nanmax(mean + spread)) if np.isfinite(mean).any() else 1.0
    panel = Panel(
        "against the width",
        count_axis("width k", width),
        Axis("population error", range=(0.0, top)),
        (line,),
    )
    return panel, slope(width, mean)


RECIPES = (
    Recipe(
        "univariate/fig-generalisation",
        "Population error against sample size and width",
        _points,
        _draw,
    ),
)
