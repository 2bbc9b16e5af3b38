"""Linear regions against the loss and against the width (experiments 1 and 2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from reluflow.checks import Array
from reluflow.figures import Axis, Figure, Line, Panel, Rule
from reluflow.figures.description import DASHES, MARKERS
from reluflow.papers.univariate.constants import region_bound
from reluflow.papers.univariate.figures.problems import point, problem, scale_of, trials
from reluflow.papers.univariate.figures.tools import LN10, count_axis, fates, pick, separated
from reluflow.sweeps import Point, Result
from reluflow.theory.contract import Expectation, Recipe, Reproduction, Size
from reluflow.theory.results import columns, extreme, groups, median, slope, values

MEASURED = ("regions", "fewest", "most", "resolved", "separated", "unfinished", "switches", "level")
FLAT = 0.15
# runs with a band each; more would hide one another
BANDS = 3


def _time_points(size: Size, seed: int) -> Iterable[Point]:
    start = problem(4, 25, 64, 2.0 * scale_of(4), 0.2 * scale_of(4))
    return trials("history", start, pick(size, 3, 10), seed, "regions-time")


def _draw_time(results: Sequence[Result]) -> Reproduction:
    kept = separated(results)
    r = int(results[0].point.parameters["r"])
    switches = [int(result.values["switches"]) for result in kept]
    s = max(switches, default=r)
    figure = Figure(
        "regions_time",
        "Linear regions fall as the loss falls",
        (
            _time_panel("against the loss", Axis("log10(1/loss)", "log"), kept, s, r, _by_loss),
            _time_panel("against time", Axis("log10 of time", "log"), kept, s, r, _by_time),
        ),
        columns=2,
        caption=(
            "Regions of the normalised network with jumps above 0.3 % (a band, if drawn, is from "
            f"0.1 % to 1 %), one curve a start; width 64, r = {r}, n = 25. Every neuron bends the "
            "function at first; the limit keeps a few kinks, far below the bound of Theorem 4.2 "
            f"and at or above the number of label switches. {fates(results)}"
        ),
    )
    last = [float(result.arrays["regions"][-1]) for result in kept]
    excess = [m - region_bound(k) for m, k in zip(last, switches, strict=True)]
    short = [m - k for m, k in zip(last, switches, strict=True)]
    ratio = median([_fall(result) for result in kept])
    theorem = "Theorem 4.2: at most 32 s + 67 regions"
    return Reproduction(
        (figure,),
        {"regions_time": _time_table(results)},
        (
            Expectation(
                "largest excess over 32 s + 67", extreme(excess, "largest"), -np.inf, 0, theorem
            ),
            Expectation(
                "smallest surplus over the label switches",
                extreme(short, "least"),
                0,
                np.inf,
                "a function with p regions changes sign at most p times",
            ),
            Expectation(
                "median of regions at the end over the most there were",
                ratio,
                0.0,
                0.5,
                "section 4: the implicit bias discards redundant neurons",
            ),
        ),
        note=fates(results),
    )


def _fall(result: Result) -> float:
    regions = result.arrays["regions"]
    return float(regions[-1] / regions.max())


def _by_loss(result: Result) -> Array:
    return np.asarray(result.arrays["F"] / LN10)


def _by_time(result: Result) -> Array:
    times = result.arrays["log_t"] / LN10
    return np.where(times > 0.1, times, np.nan)


def _time_panel(
    title: str, axis: Axis, kept: Sequence[Result], s: int, r: int, abscissa: object
) -> Panel:
    layers: list[Line | Rule] = []
    banded = len(kept) <= BANDS
    for k, result in enumerate(kept):
        layers.append(
            Line(
                abscissa(result),  # type: ignore[operator]
                result.arrays["regions"].astype(float),
                colour=k % 7,
                dash=DASHES[k % 4],
                low=result.arrays["regions_high"].astype(float) if banded else None,
                high=result.arrays["regions_low"].astype(float) if banded else None,
                opacity=0.8,
            )
        )
    layers.append(Rule(region_bound(r), label=f"32 r + 67 = {region_bound(r)}"))
    if s != r:
        layers.append(Rule(region_bound(s), label=f"32 s + 67 = {region_bound(s)}", dash="dot"))
    layers.append(Rule(s, label=f"label switches, at most {s}", dash="dashdot"))
    return Panel(title, axis, Axis("linear regions", "log"), tuple(layers))


def _time_table(results: Sequence[Result]) -> dict[str, list[float]]:
    rows = [
        (k, result.arrays["F"][i], result.arrays["log_t"][i], *counts)
        for k, result in enumerate(results)
        for i, counts in enumerate(
            zip(
                result.arrays["regions_low"],
                result.arrays["regions"],
                result.arrays["regions_high"],
                strict=True,
            )
        )
    ]
    names = ("run", "minus_log_loss", "log_t", "regions_0.001", "regions_0.003", "regions_0.01")
    return {name: [float(row[k]) for row in rows] for k, name in enumerate(names)}


# ---------------------------------------------------------------------- width


def _width_points(size: Size, seed: int) -> Iterable[Point]:
    for r in pick(size, (1, 2, 4), (1, 2, 4, 8)):
        for trial in range(pick(size, 2, 6)):
            for width in pick(size, (8, 32, 128), (8, 16, 32, 64, 128, 256, 512)):
                start = problem(r, max(12, 5 * r + 5), width, scale_of(r), scale_of(r))
                yield point("ending", start, seed, f"regions-width {r} {trial}")


def _draw_width(results: Sequence[Result]) -> Reproduction:
    """Regions of the limit and share of separating starts against the width, by teacher."""
    counts: list[Line | Rule] = []
    shares: list[Line | Rule] = []
    expectations = []
    for k, ((r,), members) in enumerate(groups(results, "r").items()):
        by_width = {width: part for (width,), part in groups(members, "width").items()}
        counts.append(_count_line(r, k, by_width))
        counts.append(Rule(region_bound(r), label=f"32 r + 67, r = {r}", colour=k, dash="dot"))
        shares.append(_share_line(r, k, by_width))
        expectations += _width_shape(r, members)
    return Reproduction(
        (_width_figure(results, counts, shares),),
        {"regions_width": columns(results, ("r", "n", "width"), MEASURED)},
        tuple(expectations),
        fates(results),
    )


def _width_figure(
    results: Sequence[Result], counts: Sequence[Line | Rule], shares: Sequence[Line | Rule]
) -> Figure:
    """The panels of counts and of shares, with their caption."""
    axis = count_axis("width k", [run.point.parameters["width"] for run in results])
    return Figure(
        "regions_width",
        "The number of regions does not grow with the width",
        (
            Panel(
                "regions of the limit",
                axis,
                Axis("linear regions", "log"),
                tuple(counts),
            ),
            Panel(
                "runs that separate the points",
                axis,
                Axis("share of the starts", range=(-0.03, 1.03)),
                tuple(shares),
            ),
        ),
        columns=2,
        caption=(
            "Left: regions at log-loss -1e4 (median; band from fewest to most), for teachers with "
            "r sign changes: flat in the width, far below the bounds of Theorem 4.2 (dotted). "
            f"Right: share of the starts that separate their points. {fates(results)}"
        ),
    )


def _count_line(r: int, k: int, by_width: dict[int, list[Result]]) -> Line:
    """Median number of regions of separating runs, with a band from fewest to most."""
    widths = np.array(sorted(by_width), dtype=np.float64)
    found = [values(separated(by_width[int(w)]), "regions") for w in widths]
    return Line(
        widths,
        np.array([median(part) for part in found]),
        label=f"r = {r}",
        colour=k,
        dash=DASHES[k % 4],
        marker=MARKERS[k],
        low=np.array([extreme(part, "least") for part in found]),
        high=np.array([extreme(part, "largest") for part in found]),
    )


def _share_line(r: int, k: int, by_width: dict[int, list[Result]]) -> Line:
    """Share of the starts that separate their points."""
    widths = np.array(sorted(by_width), dtype=np.float64)
    part_right = [len(separated(by_width[int(w)])) / len(by_width[int(w)]) for w in widths]
    return Line(
        widths,
        np.array(part_right),
        label=f"r = {r}",
        colour=k,
        dash=DASHES[k % 4],
        marker=MARKERS[k],
    )


def _width_shape(r: int, members: Sequence[Result]) -> list[Expectation]:
    kept = [run for run in separated(members) if run.point.parameters["width"] >= 2 * r]
    widths = [run.point.parameters["width"] for run in kept]
    excess = values(kept, "regions") - [region_bound(int(s)) for s in values(kept, "switches")]
    return [
        Expectation(
            f"power of the width in the number of regions, r = {r}",
            slope(widths, values(kept, "regions")),
            -FLAT,
            FLAT,
            "Theorem 4.2: the bound does not depend on the width",
        ),
        Expectation(
            f"largest excess over 32 s + 67, r = {r}",
            extreme(excess, "largest"),
            -np.inf,
            0.0,
            "Theorem 4.2",
        ),
    ]


RECIPES = (
    Recipe(
        "univariate/fig-regions-time",
        "Linear regions against the loss and against time",
        _time_points,
        _draw_time,
    ),
    Recipe(
        "univariate/fig-regions-width",
        "Linear regions of the limit against the width",
        _width_points,
        _draw_width,
    ),
)
