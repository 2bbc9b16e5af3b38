"""highdim/fig-scaling: the distance to the shortest fit against dimension and size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from reluflow.figures import Axis, Figure, Line, Panel, Points
from reluflow.sweeps import Point, Result
from reluflow.sweeps.point import seeded
from reluflow.theory.contract import Expectation, Recipe, Reproduction, Size
from reluflow.theory.results import slope

TASK = "reluflow.papers.highdim.figures.measures:gap"
C = 2.0
SPECTRA: tuple[tuple[str, Any], ...] = (
    ("descent, isotropic data", "isotropic"),
    ("descent, 5 spikes of 20", ["spiked", 5, 20.0]),
    ("descent, power law 0.2", ["power", 0.2]),
)


def points(size: Size, seed: int) -> Iterable[Point]:
    """Sweeps of d, of n and of the spectrum."""
    full = size == "full"
    seeds = 20 if full else 6
    n = 20
    dimensions = [60 * n * 4**k for k in range(9 if full else 6)]
    counts = [8, 16, 32, 64, 128, 256, 500] if full else [8, 16, 32, 64, 128]
    stored = [500, 1000, 2000, 4000, 8000, 16000] if full else [500, 1000, 2000, 4000]
    for repeat in range(seeds):
        for d in dimensions:
            yield _point("d", {"n": n, "d": d, "constant": C}, seed, repeat)
        for count in counts:
            yield _point("n", {"n": count, "d": 10**6, "constant": C}, seed, repeat)
        for name, spectrum in SPECTRA:
            for d in stored:
                given = {"n": 8, "d": d, "constant": C, "spectrum": spectrum, "label": name}
                yield _point("spectrum", given, seed, repeat)


def _point(sweep: str, parameters: dict[str, Any], seed: int, repeat: int) -> Point:
    return seeded(TASK, {**parameters, "sweep": sweep}, seed, repeat)


def _means(results: Sequence[Result], key: str, value: Any) -> tuple[np.ndarray, np.ndarray]:
    """Geometric means of ``value(result)`` over seeds, by parameter ``key``."""
    groups: dict[float, list[float]] = {}
    for result in results:
        groups.setdefault(result.point.parameters[key], []).append(value(result))
    x = np.array(sorted(groups), dtype=np.float64)
    return x, np.array([np.exp(np.mean(np.log(groups[k]))) for k in sorted(groups)])


def _scaled(result: Result) -> float:
    """Distance in units of the root mean square of the negative labels."""
    v = result.values
    return float(v["distance"] / (v["negatives"] / np.sqrt(v["count"])))


def _relative(result: Result) -> float:
    return float(result.values["distance"] / result.values["length"])


def _through(x: np.ndarray, y: np.ndarray, power: float) -> np.ndarray:
    """The law x^power with the mean height of the points."""
    return np.asarray(np.exp(np.mean(np.log(y) - power * np.log(x))) * x**power)


def _ticks(values: Iterable[float]) -> tuple[tuple[float, str], ...]:
    return tuple((float(value), f"{int(value)}") for value in values)


def draw(results: Sequence[Result]) -> Reproduction:
    """Four panels: against d, against n, relative to the shortest fit, other spectra."""
    sweeps = {
        name: [r for r in results if r.point.parameters["sweep"] == name]
        for name in ("d", "n", "spectrum")
    }
    d, by_d = _means(sweeps["d"], "d", _scaled)
    n, by_n = _means(sweeps["n"], "n", _scaled)
    _, relative = _means(sweeps["d"], "d", _relative)
    # The limit of the relative distance differs from draw to draw by the labels alone.
    _, limit = _means(
        sweeps["d"], "d", lambda r: r.values["kick"] * r.values["negatives"] / r.values["positives"]
    )
    slopes = slope(d.tolist(), by_d.tolist()), slope(n.tolist(), by_n.tolist())
    dimension = Axis("dimension d", "log")
    count = Axis("number of points n", "log", ticks=_ticks(n))
    panels = (
        _absolute(f"n = 20: slope {slopes[0]:.3f}, law -1/2", dimension, d, by_d, -0.5),
        _absolute(f"d = 10^6: slope {slopes[1]:.3f}, law 1/2", count, n, by_n, 0.5),
        _relative_panel(d, relative, limit),
        _spectra(sweeps["spectrum"]),
    )
    ratios = [r.values["distance"] / r.values["law"] for r in sweeps["spectrum"]]
    tables = {
        "by_d": {"d": d.tolist(), "distance": by_d.tolist(), "relative": relative.tolist()},
        "by_n": {"n": n.tolist(), "distance": by_n.tolist()},
    }
    expectations = _expectations(slopes, float(relative[-1] / limit[-1]), ratios)
    return Reproduction((_figure(panels),), tables, expectations)


def _figure(panels: tuple[Panel, ...]) -> Figure:
    """The four panels and their caption."""
    return Figure(
        "scaling",
        "Distance of descent to the minimum-norm solution",
        panels,
        columns=2,
        caption=(
            "One neuron from a small positive start, step 1/(2 l1); geometric means over draws. In "
            "absolute terms the distance to the shortest fit w* falls like d^(-1/2) and grows like "
            "n^(1/2) (Theorem 2). Relative to w*, which shrinks at the same rate, it tends to a "
            "constant, the step times |y_-|/|y_+|. Other spectra, rescaled to trace 1, follow the "
            "same law."
        ),
    )


def _absolute(title: str, axis: Axis, x: np.ndarray, distance: np.ndarray, power: float) -> Panel:
    """Distance to w* in units of the labels, beside the law x^power."""
    return Panel(
        title,
        axis,
        Axis("distance to w* / rms label", "log"),
        (
            Line(x, _through(x, distance, power), "law", 7, "dash"),
            Points(x, distance, "descent, isotropic data", 0),
        ),
    )


def _relative_panel(d: np.ndarray, relative: np.ndarray, limit: np.ndarray) -> Panel:
    """Distance over the length of w* against the dimension, beside its limit."""
    return Panel(
        "relative distance does not vanish",
        Axis("dimension d", "log"),
        Axis("distance to w* / length of w*", range=(0.0, 1.0)),
        (
            Line(d, limit, "law", 7, "dash"),
            Points(d, relative, "descent, isotropic data", 0),
        ),
    )


def _expectations(
    slopes: tuple[float, float], last: float, ratios: Sequence[float]
) -> tuple[Expectation, ...]:
    """The two powers, the relative distance over its limit at the end, and all spectra."""
    return (
        Expectation("slope against d", slopes[0], -0.55, -0.45, "Theorem 2; HD-18"),
        Expectation("slope against n", slopes[1], 0.45, 0.55, "Theorem 2; HD-19"),
        Expectation(
            "relative distance over its limit at the largest d",
            last,
            0.95,
            1.05,
            "leading order of Theorem 2, section 6.2",
        ),
        Expectation(
            "median distance over the law, all spectra",
            float(np.median(ratios)) if ratios else float("nan"),
            0.8,
            1.1,
            "Theorem 2 for any covariance; HD-17",
        ),
    )


def _spectra(results: Sequence[Result]) -> Panel:
    layers: list[Line | Points] = []
    seen = [r.point.parameters["d"] for r in results] or [1]
    markers = ("circle", "square", "triangle")
    for k, (name, _) in enumerate(SPECTRA):
        mine = [r for r in results if r.point.parameters["label"] == name]
        if mine:
            d, value = _means(mine, "d", lambda r: r.values["distance"] / r.values["law"])
            layers.append(Points(d, value, name, k, markers[k]))  # type: ignore[arg-type]
    ends = np.array([min(seen), max(seen)], dtype=np.float64)
    return Panel(
        "other spectra, trace 1 (n = 8)",
        Axis("dimension d", "log", ticks=_ticks(sorted(set(seen)))),
        Axis("distance / leading-order law", range=(0.5, 1.15)),
        (Line(ends, np.ones(2), "law", 7, "dash"), *layers),
    )


FIGURE = Recipe(
    "highdim/fig-scaling",
    "distance to the minimum-norm solution against d and n: slopes -1/2 and 1/2",
    points,
    draw,
)
