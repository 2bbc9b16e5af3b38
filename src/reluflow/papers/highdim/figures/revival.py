"""highdim/fig-revival: random starts; who wakes up, and how many neurons cover all points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from reluflow.figures import Axis, Figure, Line, Panel, Points
from reluflow.sweeps import Point, Result
from reluflow.sweeps.point import seeded
from reluflow.theory.contract import Expectation, Recipe, Reproduction, Size

REVIVAL = "reluflow.papers.highdim.figures.measures:revival"
COVERAGE = "reluflow.papers.highdim.figures.measures:coverage"
DIMENSIONS = (1000, 4000, 16_000)
SCALES = (0.05, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
REFERENCE = {0.05: 0.6, 2.0: 0.3, 20.0: 0.03}  # section 6.5, n = 10, 6 positives, C = 2


def points(size: Size, seed: int) -> Iterable[Point]:
    """Batches of draws by scale and dimension; coverage by the number of neurons."""
    full = size == "full"
    for d in DIMENSIONS:
        for scale in SCALES:
            given = {"n": 10, "d": d, "n_positive": 6, "scale": scale, "draws": 50}
            for repeat in range(8 if full else 2):
                yield seeded(REVIVAL, given, seed, repeat)
    for k in range(1, 9):
        given = {"n": 16, "d": 10**5, "k": k, "draws": 50}
        for repeat in range(8 if full else 2):
            yield seeded(COVERAGE, given, seed, repeat)


def _share(results: Sequence[Result], over: str, part: str) -> float:
    total = sum(int(r.values[over]) for r in results)
    return sum(int(r.values[part]) for r in results) / total if total else float("nan")


def draw(results: Sequence[Result]) -> Reproduction:
    """Two panels."""
    woken = [r for r in results if r.point.task == REVIVAL]
    covered = [r for r in results if r.point.task == COVERAGE]
    curves = {d: _woken_shares(woken, d) for d in DIMENSIONS}
    k = np.arange(1, 9)
    found = {
        name: np.array([_share([r for r in covered if _at(r, k=int(j))], over, name) for j in k])
        for name, over in (("covered", "starts"), ("fitted", "draws"))
    }
    formula = (1.0 - 2.0 ** -k.astype(np.float64)) ** 16
    panels = (_woken_panel(curves), _coverage_panel(k, formula, found))
    identity = max((float(r.values["identity"]) for r in woken), default=float("nan"))
    coverage_miss = float(np.abs(found["covered"] - formula).max())
    tables = {
        "revival": {"scale": list(SCALES), **{f"d_{d}": curves[d].tolist() for d in DIMENSIONS}},
        "coverage": {
            "k": k.tolist(),
            "formula": formula.tolist(),
            **{name: values.tolist() for name, values in found.items()},
        },
    }
    expectations = _expectations(curves, identity, coverage_miss)
    return Reproduction((_figure(panels),), tables, expectations)


def _woken_shares(results: Sequence[Result], d: int) -> np.ndarray:
    """Share of the sleeping points that wake up in dimension d, by scale."""
    return np.array(
        [
            _share([r for r in results if _at(r, d=d, scale=scale)], "asleep", "awake")
            for scale in SCALES
        ]
    )


def _figure(panels: tuple[Panel, ...]) -> Figure:
    """The two panels and their caption."""
    return Figure(
        "revival",
        "Random starts: sleeping points and coverage",
        panels,
        columns=2,
        caption=(
            "Left: a positive point on which the neuron starts inactive is woken up by the others "
            "if the start is small beside the cross terms. The share depends on (scale x sqrt(d)) "
            "alone, so that small starts and large dimensions do not commute. Right: with k random "
            "neurons of each sign every point is covered by one of its sign with probability "
            "(1 - 2^-k)^n, so about log2(n) neurons suffice to fit everything."
        ),
    )


def _woken_panel(curves: dict[int, np.ndarray]) -> Panel:
    """Share of sleeping points that wake up against the scale, a curve for each dimension."""
    markers = ("circle", "square", "triangle")
    return Panel(
        "one neuron: sleeping points that wake up",
        Axis("scale of the start x sqrt(d)", "log"),
        Axis("share that ends active", range=(-0.02, 0.75)),
        (
            *(
                Line(np.array(SCALES), curves[d], f"d = {d}", j, marker=markers[j])  # type: ignore[arg-type]
                for j, d in enumerate(DIMENSIONS)
            ),
            Points(
                np.array(list(REFERENCE)),
                np.array(list(REFERENCE.values())),
                "reference values",
                7,
                "cross",
                8.0,
            ),
        ),
    )


def _coverage_panel(k: np.ndarray, formula: np.ndarray, found: dict[str, np.ndarray]) -> Panel:
    """Shares of draws that cover and that fit all points, beside (1 - 2^-k)^n."""
    return Panel(
        "several neurons: all points covered (n = 16)",
        Axis("neurons of each sign, k"),
        Axis("share of draws", range=(-0.02, 1.02)),
        (
            Line(k, formula, "(1 - 2^-k)^n", 7, "dash"),
            Points(k, found["covered"], "covered at the start", 0),
            Points(k, found["fitted"], "fitted in the end", 1, "cross", 7.0),
        ),
    )


def _expectations(
    curves: dict[int, np.ndarray], identity: float, coverage_miss: float
) -> tuple[Expectation, ...]:
    """Curves that collapse on the shares of section 6.5, the risk identity, and the coverage."""
    stacked = np.array([curves[d] for d in DIMENSIONS])
    pooled = dict(zip(SCALES, stacked.mean(axis=0), strict=True))
    miss = max(abs(pooled[scale] - value) for scale, value in REFERENCE.items())
    return (
        Expectation(
            "largest spread between dimensions at equal scale x sqrt(d)",
            float((stacked.max(axis=0) - stacked.min(axis=0)).max()),
            0.0,
            0.12,
            "HD-30: +-0.08 between two",
        ),
        Expectation("largest difference to the shares of section 6.5", miss, 0.0, 0.08, "6.5"),
        Expectation("largest error of the risk identity", identity, 0.0, 1e-9, "HD-30"),
        Expectation(
            "largest difference of coverage to (1 - 2^-k)^n",
            coverage_miss,
            0.0,
            0.05,
            "HD-31",
        ),
    )


def _at(result: Result, **wanted: float) -> bool:
    return all(result.point.parameters[name] == value for name, value in wanted.items())


FIGURE = Recipe(
    "highdim/fig-revival",
    "random starts: revived points against scale x sqrt(d), coverage against width",
    points,
    draw,
)
