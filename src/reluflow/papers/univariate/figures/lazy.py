"""From lazy to rich: the scale of the hidden layer (experiment 5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from reluflow.checks import Array
from reluflow.figures import Axis, Figure, Line, Panel, Rule
from reluflow.papers.univariate.constants import optimisation_requirements
from reluflow.papers.univariate.figures.problems import trials
from reluflow.papers.univariate.figures.tools import fates, pick
from reluflow.sweeps import Point, Result
from reluflow.theory.contract import Expectation, Recipe, Reproduction, Size
from reluflow.theory.results import columns, extreme, groups, median, slope, values

MEASURED = ("reached", "movement", "displacement", "then", "later", "level", "unfinished")
R_TEACHER, SAMPLE, WIDTH = 2, 15, 64
LAZY_FROM = 3.0


def _points(size: Size, seed: int) -> Iterable[Point]:
    sigmas = pick(size, (0.1, 1.0, 3.0, 10.0), (0.03, 0.1, 0.3, 1.0, 3.0, 10.0))
    shared = {"r": R_TEACHER, "n": SAMPLE, "width": WIDTH}
    for sigma in sigmas:
        start = {**shared, "sigma": sigma, "level": pick(size, 1e3, 3e3)}
        yield from trials("lazy", start, pick(size, 2, 8), seed, "lazy")


def _draw(results: Sequence[Result]) -> Reproduction:
    """Movement until separation, and linear regions then and late, against the scale."""
    cells = {sigma: part for (sigma,), part in groups(results, "sigma").items()}
    sigma = np.array(sorted(cells))
    reached = {s: [r for r in cells[s] if r.values["reached"]] for s in sigma}
    movement = _middle(reached, sigma, "movement")
    displacement = _middle(reached, sigma, "displacement")
    panels = (_movement_panel(sigma, movement, displacement), _regions_panel(reached, sigma))
    late = slope(sigma[sigma >= LAZY_FROM], movement[sigma >= LAZY_FROM])
    sigmas = [result.point.parameters["sigma"] for result in results]
    return Reproduction(
        (_figure(panels, results),),
        {"lazy_rich": {"sigma_hidden": sigmas, **columns(results, (), MEASURED)}},
        _expectations(results, late),
        note=f"{fates(results)} Theorem 3.1 asks for {_asked()}.",
    )


def _figure(panels: tuple[Panel, ...], results: Sequence[Result]) -> Figure:
    """The two panels and the caption, which ends with how the runs ended."""
    return Figure(
        "lazy_rich",
        "A large hidden layer hardly moves before separation, and loses its kinks afterwards",
        panels,
        columns=2,
        caption=(
            "sigma_o is the largest that Theorem 3.1 allows. Left: movement when the loss first is "
            "1/(2n); it falls like sigma_h^-4 in the lazy regime (output weights of order "
            "1/sigma_h suffice, and balance lets hidden weights gain v^2/sigma_h). Right: kinks "
            "then and late (median; band over starts): the limit has few whatever the scale. "
            f"Theorem 3.1 asks for {_asked()}. {fates(results)}"
        ),
    )


def _movement_panel(sigma: Array, movement: Array, displacement: Array) -> Panel:
    """Median relative movement of the hidden layer and of its breakpoints."""
    return Panel(
        "movement until loss 1/(2n)",
        Axis("sigma_h, deviation of the hidden weights", "log"),
        Axis("relative movement", "log"),
        (
            Line(sigma, movement, label="hidden layer", marker="circle"),
            Line(
                sigma,
                displacement,
                label="breakpoint (median)",
                colour=1,
                dash="dash",
                marker="square",
            ),
        ),
    )


def _regions_panel(reached: dict[float, list[Result]], sigma: Array) -> Panel:
    """Linear regions at loss 1/(2n) and late, beside the number of label switches."""
    return Panel(
        "linear regions",
        Axis("sigma_h, deviation of the hidden weights", "log"),
        Axis("linear regions", range=(0.0, 40.0)),
        (
            _count(reached, sigma, "then", "regions at loss 1/(2n)", 2),
            _count(reached, sigma, "later", "regions late", 3),
            Rule(R_TEACHER, label="label switches", dash="dashdot"),
        ),
    )


def _expectations(results: Sequence[Result], late: float) -> tuple[Expectation, ...]:
    """The power of the movement, the share of runs that get there, and the regions late."""
    share = float(np.mean([bool(result.values["reached"]) for result in results]))
    excess = [r.values["later"] for r in results if r.values["reached"]]
    return (
        Expectation(
            f"power of sigma_h in the movement, from {LAZY_FROM:g} on",
            late,
            -4.5,
            -3.5,
            "balance of the two layers: relative movement v^2/sigma_h^2 with v = O(1/sigma_h)",
        ),
        Expectation(
            "share of the runs that reach loss 1/(2n)",
            share,
            0.9,
            1.0,
            "Theorem 3.1, whose constants are far larger",
        ),
        Expectation("most regions late", extreme(excess, "largest"), R_TEACHER, 131, "Theorem 4.2"),
    )


def _asked() -> str:
    needed = optimisation_requirements(SAMPLE, R_TEACHER, 1.0, 2.0 / (R_TEACHER + 1), 0.5, 0.1)
    return f"width {needed.width:.0f} and sigma_h {needed.sigma_hidden:.2g} (delta = 0.1)"


def _middle(cells: dict[float, list[Result]], sigma: Array, name: str) -> Array:
    return np.array([median(values(cells[s], name)) for s in sigma])


def _count(
    cells: dict[float, list[Result]], sigma: Array, name: str, label: str, colour: int
) -> Line:
    found = [values(cells[s], name) for s in sigma]
    return Line(
        sigma,
        np.array([median(part) for part in found]),
        label=label,
        colour=colour,
        dash="dash" if colour == 2 else "solid",
        marker="triangle" if colour == 2 else "diamond",
        low=np.array([extreme(part, "least") for part in found]),
        high=np.array([extreme(part, "largest") for part in found]),
    )


RECIPES = (
    Recipe(
        "univariate/fig-lazy-rich",
        "Movement and regions against the scale of the hidden layer",
        _points,
        _draw,
    ),
)
