"""Shapes: gradient flow and SciPy's solvers on ordinary regression, at equal measured error.

One part a shape, ``n x d x m``: the flow at the loosest tolerance whose measured error is no larger
than that of RK45 at rtol 1e-6, atol 1e-9, beside the fastest of RK45, DOP853 and LSODA at these
tolerances. ``growth-n`` and ``growth-m`` are the exponents of our time, at rtol 1e-6. ``end-...``
goes on to the limit, at rtol 1e-6.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import reluflow as rf
from benchmarks import growth_exponent, ordinary
from benchmarks.ordinary import OutOfTimeError, Shape

if TYPE_CHECKING:
    from reluflow.figures import Figure

Row = dict[str, Any]
Part = Callable[[], Iterable[Row]]

SHAPES = (
    Shape(5, 2, 50), Shape(20, 2, 100), Shape(100, 2, 100), Shape(300, 2, 100),
    Shape(20, 20, 200), Shape(100, 20, 200), Shape(300, 20, 200), Shape(1000, 20, 100),
    Shape(100, 100, 200), Shape(50, 500, 100), Shape(2000, 10, 50), Shape(300, 20, 2000),
)  # fmt: skip
LADDER = tuple(step * 10.0**-decade for decade in range(2, 11) for step in (1.0, 0.5, 0.2))
SHORT_S = 1.0  # shorter runs are timed three times
LEAST, MEDIAN = 2.0, 20.0  # the ratios set as a target
END_S = {100: 60.0, 300: 60.0, 1000: 600.0, 2000: 600.0}


def parts(limit_s: float = 120.0) -> dict[str, Part]:
    """The parts by name; a solver is stopped after ``limit_s`` seconds."""
    found: dict[str, Part] = {
        shape.name: partial(_one, partial(compare, shape, limit_s)) for shape in SHAPES
    }
    along_n = [Shape(n, 20, 100) for n in (100, 300, 1000, 3000)]
    along_m = [Shape(300, 20, m) for m in (100, 300, 1000, 3000)]
    found["growth-n"] = partial(_one, partial(growth, "n", along_n, 1.3, limit_s))
    found["growth-m"] = partial(_one, partial(growth, "m", along_m, 1.1, limit_s))
    for shape in SHAPES:
        found[f"end-{shape.name}"] = partial(_one, partial(to_the_end, shape, limit_s))
    return found


def warm_up() -> None:
    """Compile and load everything: implicit and explicit steps, and SciPy's solvers."""
    for shape in (Shape(6, 2, 8), Shape(120, 2, 8)):
        rf.flow(*ordinary.problem(shape), t_end=ordinary.T_END)
    ordinary.scipy_solution(Shape(6, 2, 8), "RK45", np.inf)


def _one(row: Callable[[], Row]) -> Iterator[Row]:
    yield row()


def compare(shape: Shape, limit_s: float) -> Row:
    """One cell of the map."""
    try:
        reference = ordinary.reference(shape, limit_s)
    except OutOfTimeError:
        return {"shape": shape.name, "note": f"no solver gives a reference in {limit_s:g} s"}
    others: dict[str, tuple[float, float]] = {}
    notes = [f"reference {reference.by}"]
    for method in ordinary.METHODS:
        if method == "LSODA" and shape.m * (shape.d + 1) > ordinary.MOST_UNKNOWNS:
            notes.append("LSODA left out: its Jacobian would need gigabytes")
            continue
        best = min((seconds for seconds, _ in others.values()), default=limit_s)
        try:  # one that takes longer than the best so far need not be followed to its end
            found = ordinary.scipy_solution(shape, method, min(limit_s, 1.2 * best + 0.1))
        except OutOfTimeError as stopped:
            notes.append(f"{method} slower, {stopped}")
            continue
        others[method] = found.seconds, ordinary.error(found.weights, reference)
    row: Row = {"shape": shape.name}
    row |= {f"{method}_s": others[method][0] for method in others}
    if "RK45" not in others:
        return row | {"note": "; ".join(notes)}
    asked = others["RK45"][1]
    row |= {"RK45_error": asked} | matched(shape, reference, asked, limit_s, notes)
    best = min(seconds for seconds, _ in others.values())
    notes.append(", ".join(f"{method} error {miss:.1e}" for method, (_, miss) in others.items()))
    return row | {"ratio": best / row["ours_s"], "target": LEAST, "note": "; ".join(notes)}


def matched(
    shape: Shape, reference: ordinary.Reference, asked: float, limit_s: float, notes: list[str]
) -> Row:
    """Our time at the loosest tolerance of the ladder whose error is at most ``asked``.

    A run that is stopped counts with the time it would have taken at its pace so far, if that is
    more than the limit: a bound in our favour where its steps are short at the start.
    """
    miss, rtol, seconds = np.inf, np.nan, np.nan
    for rtol in LADDER:
        try:
            found, run = ordinary.flow_solution(shape, rtol, limit_s)
        except OutOfTimeError as stopped:
            notes.append(f"ours at {rtol:g} {stopped}")
            seconds = limit_s * max(1.0, ordinary.T_END / max(stopped.reached, 1e-3))
            break
        seconds, miss = found.seconds, ordinary.error(found.weights, reference)
        if miss <= asked:
            again = 2 if seconds < SHORT_S else 0
            tries = [ordinary.flow_solution(shape, rtol, limit_s)[0] for _ in range(again)]
            seconds = min([seconds, *(tried.seconds for tried in tries)])
            notes.append(f"{run.stats['steps']} steps, {len(run.events)} events")
            break
    else:
        notes.append("no tolerance of the ladder is accurate enough")
    return {"rtol": rtol, "ours_error": miss, "ours_s": seconds}


def growth(letter: str, shapes: Sequence[Shape], most: float, limit_s: float) -> Row:
    """The exponent of our time over shapes that grow in one size."""
    sizes, times, notes = [], [], []
    for shape in shapes:
        try:
            found, _ = ordinary.flow_solution(shape, ordinary.RTOL, limit_s)
        except OutOfTimeError as stopped:
            notes.append(f"{shape.name} {stopped}")
            break
        sizes.append(float(getattr(shape, letter)))
        times.append(found.seconds)
    row: Row = {"shape": f"growth in {letter}", "sizes": sizes, "seconds": times}
    if len(sizes) > 1:
        exponent = growth_exponent(sizes, times)
        row |= {"exponent": exponent, "ratio": most / exponent, "target": 1.0}
        notes.append(f"exponent at most {most:g}")
    return row | {"note": "; ".join(notes)}


def to_the_end(shape: Shape, limit_s: float) -> Row:
    """Our time until the limit is certified."""
    data, net = ordinary.problem(shape)
    budget = END_S.get(shape.n, 60.0)
    allowed = max(budget, limit_s)
    run = rf.flow(data, net, rtol=ordinary.RTOL, max_seconds=allowed)
    spent = run.stats["seconds"]["coupled"] + run.stats["seconds"]["plateau"]
    return {
        "shape": f"{shape.name} to the end",
        "ours_s": spent,
        "ratio": budget / spent if run.status in ("converged", "stationary") else 0.0,
        "target": 1.0,
        "note": f"budget {budget:g} s; {run.status} at t = {run.t[-1]:.4g}, "
        f"{run.stats['steps']} steps, {len(run.events)} events",
    }


def summary(rows: Sequence[Row]) -> Iterator[Row]:
    """The median of the map."""
    ratios = [row["ratio"] for row in rows if "RK45_s" in row and "ratio" in row]
    if len(ratios) > 1:
        yield {
            "shape": f"median of {len(ratios)}, least {min(ratios):.3g}",
            "ratio": statistics.median(ratios),
            "target": MEDIAN,
        }


def figure(rows: Sequence[Row]) -> Figure | None:
    """The map: how many times faster than the best of SciPy's solvers, by shape."""
    from reluflow.figures import Axis, Figure, Panel, Points, Rule

    cells = [row for row in rows if "RK45_s" in row and "ratio" in row]
    if not cells:
        return None
    places = np.arange(len(cells), dtype=float)
    names = tuple((float(k), row["shape"].replace("x", ", ")) for k, row in enumerate(cells))
    ratios = np.array([row["ratio"] for row in cells])
    least = min(ratios.min(), 1.0) / 2.0
    most = 10.0 ** np.ceil(np.log10(max(ratios.max(), 100.0)))
    panel = Panel(
        "",
        Axis("times faster than the best of RK45, DOP853, LSODA", "log", (least, most)),
        Axis("n, d, m", range=(len(cells) - 0.5, -0.5), ticks=names),
        (
            Points(ratios, places),
            Rule(1.0, "x", "as fast"),
            Rule(LEAST, "x", f"{LEAST:g} times"),
            Rule(MEDIAN, "x", f"{MEDIAN:g} times"),
        ),
    )
    return Figure(
        "shapes", "Gradient flow and general solvers at equal measured error", (panel,),
        caption="Ordinary regression to t = 10: CPU seconds of the fastest of three solvers of "
        "SciPy at rtol 1e-6 over ours, at a tolerance whose measured error is no larger.",
    )  # fmt: skip
