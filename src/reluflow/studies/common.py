"""What every study shows of its runs: losses, norms, directions, activations."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.figures import Axis, Figure, Frame, Line, Panel, Points, Raster
from reluflow.network import Network
from reluflow.theory.contract import LabelledRun, Section
from reluflow.trajectory import Trajectory

LINES = 60  # neurons drawn as curves
NEURONS, ROWS = 12, 96  # of the raster, at most
COLUMNS = 160  # times of the raster
FRAMES = 48
Whole = NDArray[np.int64]
LN10 = math.log(10.0)
DASHES = ("solid", "dash", "dot", "dashdot")


def sections(runs: Sequence[LabelledRun]) -> tuple[Section, ...]:
    """The four sections every page has; the last three show the first run."""
    first = runs[0]
    return (losses(runs), norms(first), directions(first), activations(first))


def losses(runs: Sequence[LabelledRun]) -> Section:
    """Loss against time, both as decimal logarithms: no range is too large for them."""
    layers = tuple(
        Line(
            _log10_time(item.run),
            item.run.log_loss / LN10,
            label=item.label,
            colour=k % 7,
            dash=DASHES[k % 4],  # type: ignore[arg-type]
        )
        for k, item in enumerate(runs)
    )
    panel = Panel("", time_axis(runs[0].run), Axis("log10 of the loss"), layers)
    return Section(
        "Loss",
        "The loss along each run. Both axes are decimal logarithms of the quantities themselves: a "
        "straight line going down is a power law, a plateau is a saddle.",
        (
            Figure(
                "loss", "Loss through training", (panel,), caption="Recorded losses of all runs."
            ),
        ),
    )


def norms(item: LabelledRun) -> Section:
    """Norms of the neurons through time."""
    run = item.run
    stacked = np.array([run.network(k).log_norms for k in range(len(run.t))]) / LN10
    shown = _largest(stacked[-1], LINES)
    signs = run.net.signs
    layers = []
    named = set()
    for j in shown:
        sign = int(signs[j])
        label = {1: "positive output weight", -1: "negative output weight"}.get(sign, "zero")
        layers.append(
            Line(
                _log10_time(run),
                stacked[:, j],
                label="" if label in named else label,
                colour=0 if sign > 0 else 1,
                dash="solid" if sign > 0 else "dash",
                width=1.0,
                opacity=0.6,
            )
        )
        named.add(label)
    panel = Panel("", time_axis(run), Axis("log10 of the neuron's norm"), tuple(layers))
    note = "" if len(shown) == run.net.width else f" The {len(shown)} largest are drawn."
    return Section(
        "Norms",
        f"Norms of the {run.net.width} hidden weight vectors ({item.label})." + note,
        (Figure("neuron_norms", "Neuron norms through training", (panel,)),),
    )


def directions(item: LabelledRun) -> Section:
    """Directions of the neurons through time, projected on a plane, with a slider."""
    run = item.run
    plane, names = _plane(run)
    chosen = _frame_records(run)
    first = run.network(int(chosen[0]))
    shown = _largest(np.array(run.final.log_norms), 400)
    frames = []
    for k in chosen:
        net = run.network(int(k))
        label = f"log10 t = {run.log_t[k] / LN10:.3g}" if run.t[k] > 0 else "start"
        frames.append(Frame(label, _cloud(net, plane, shown)))
    axes = [Axis(name, range=(-1.08, 1.08)) for name in names]
    panel = Panel("", axes[0], axes[1], _cloud(first, plane, shown), equal=True)
    return Section(
        "Directions",
        "Each neuron as a unit vector, seen in a plane: the larger its share of the norm, the "
        "larger its dot. Points near the centre of the circle lie across the plane. Move through "
        "time with the slider, the arrow keys or Play.",
        (
            Figure(
                "neuron_directions",
                f"Neuron directions through training ({item.label})",
                (panel,),
                caption=f"Horizontal: {names[0]}. Vertical: {names[1]}, where neurons spread most.",
                wide=False,
                frames=tuple(frames),
            ),
        ),
    )


def activations(item: LabelledRun) -> Section:
    """Who is active on which point when, slides marked."""
    run = item.run
    pairs = _busiest_pairs(run)
    edges = _time_edges(run)
    z = _raster(run, pairs, edges)
    ticks = _neuron_ticks(pairs)
    panel = Panel(
        "",
        time_axis(run),
        Axis("neuron, a row for each point", ticks=ticks),
        (
            Raster(
                edges,
                np.arange(len(pairs) + 1.0),
                z,
                ("inactive", "active", "sliding"),
                (7, 0, 1),
            ),
            *_branches(run, pairs, edges),
        ),
    )
    counts = {
        kind: int((run.events["kind"] == kind).sum()) for kind in np.unique(run.events["kind"])
    }
    listed = ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "none"
    text = (
        f"Activation of the {len({j for j, _ in pairs})} neurons with most events, one row for "
        f"each training point ({item.label}). Events of the whole run: {listed}."
    )
    if len(run.branches):
        text += " Diamonds: branches, where the solution was not unique."
    if run.engine == "descent" and not len(run.events):
        text += " Patterns are those of the records."
    return Section("Activations", text, (Figure("activations", "Activation raster", (panel,)),))


def time_axis(run: Trajectory) -> Axis:
    """The axis of log10 time or iterations."""
    return Axis("log10 of time" if run.engine == "flow" else "log10 of iterations")


def _log10_time(run: Trajectory) -> Array:
    """log10 of the recorded times; the start, at -inf, is left out as NaN."""
    times = np.asarray(run.log_t, float) / LN10
    return np.where(np.isfinite(times), times, np.nan)


def _largest(log_norms: Array, count: int) -> list[int]:
    """Indices of the largest neurons, in their own order."""
    order = np.argsort(-np.asarray(log_norms), kind="stable")[:count]
    return sorted(int(j) for j in order)


def _plane(run: Trajectory) -> tuple[Array, tuple[str, str]]:
    """Two orthonormal rows to look along: the coordinates themselves in the plane, otherwise the
    teacher (or the first force on a neuron, X^T y) and the direction in which the end spreads most.
    """
    data = run.data
    if data.d == 1:
        return np.array([[1.0], [0.0]]), ("input coordinate", "")
    if data.d == 2:
        return np.eye(2), ("first coordinate", "second coordinate")
    if isinstance(data.teacher, np.ndarray):
        main, name = data.teacher, "along the teacher"
    else:
        main, name = data.X.T @ data.y, "along X^T y"
    if not np.linalg.norm(main) > 0:
        main, name = np.eye(data.d)[0], "first coordinate"
    main = main / np.linalg.norm(main)
    spread = np.concatenate([run.net.directions, run.final.directions])
    spread = spread - np.outer(spread @ main, main)
    second = np.linalg.svd(spread, full_matrices=False)[2][0]
    second = second - (second @ main) * main
    size = np.linalg.norm(second)
    if size < 1e-8:  # all directions parallel: any perpendicular one will do
        second = np.eye(data.d)[int(np.argmin(np.abs(main)))]
        second = second - (second @ main) * main
        size = np.linalg.norm(second)
    return np.array([main, second / size]), (name, "across it")


def _cloud(net: Network, plane: Array, shown: Sequence[int]) -> tuple[Line | Points, ...]:
    angle = np.linspace(0, 2 * np.pi, 121)
    circle = Line(np.cos(angle), np.sin(angle), colour=7, dash="dot", width=1.0)
    seen = net.directions[shown] @ plane.T
    log_norms = np.asarray(net.log_norms)[shown]
    share = np.exp(log_norms - log_norms.max())
    size = 3.0 + 9.0 * np.sqrt(share)
    signs = np.asarray(net.signs)[shown]
    groups = (
        (signs > 0, "positive output weight", 0, "circle"),
        (signs <= 0, "negative output weight", 1, "diamond"),
    )
    clouds = [
        Points(
            seen[part, 0],
            seen[part, 1],
            label=label,
            colour=colour,
            marker=marker,  # type: ignore[arg-type]
            size=size[part],
            opacity=0.6,
        )
        for part, label, colour, marker in groups
    ]
    return (circle, *clouds)


def _frame_records(run: Trajectory) -> Whole:
    return np.unique(np.linspace(0, len(run.t) - 1, min(FRAMES, len(run.t))).round().astype(int))


def _busiest_pairs(run: Trajectory) -> list[tuple[int, int]]:
    """Neurons by number of events, all their points, as many as fit."""
    points = min(run.data.n, ROWS)
    neurons = min(NEURONS, max(1, ROWS // points))
    own = run.events["neuron"]
    counts = np.bincount(own[own >= 0], minlength=run.net.width)
    busiest = np.sort(np.argsort(-counts, kind="stable")[:neurons])
    return [(int(j), i) for j in busiest for i in range(points)]


def _time_edges(run: Trajectory) -> Array:
    times = run.log_t[np.isfinite(run.log_t)] / LN10
    happened = run.events["log_t"][np.isfinite(run.events["log_t"])] / LN10
    low = min([*times[:1], *happened[:1]], default=0.0)
    high = max([*times[-1:], *happened[-1:]], default=1.0)
    if not high > low:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, COLUMNS + 1)


def _raster(run: Trajectory, pairs: Sequence[tuple[int, int]], edges: Array) -> Whole:
    """State of each pair at the right edge of each column: 0 inactive, 1 active, 2 sliding."""
    rows = {pair: row for row, pair in enumerate(pairs)}
    start = run.modes(t=0.0)
    z = np.empty((len(pairs), len(edges) - 1), int)
    for (j, i), row in rows.items():
        z[row] = start[j, i]
    if run.engine == "descent" and not len(run.events):  # events exist where a limit is certified
        return _raster_of_records(run, pairs, edges, z)
    after = {"activate": 1, "deactivate": 0, "slide": 2}
    for event in run.events:
        found = rows.get((int(event["neuron"]), int(event["point"])))
        if found is not None and event["kind"] in after:
            column = np.searchsorted(edges[1:], event["log_t"] / LN10)
            z[found, column:] = after[str(event["kind"])]
    return z


def _branches(
    run: Trajectory, pairs: Sequence[tuple[int, int]], edges: Array
) -> tuple[Points, ...]:
    """Diamonds where a neuron of the raster could have gone on in another way."""
    x, y = [], []
    for event in run.branches:
        point = int(event["point"])
        rows = [
            row for row, (j, i) in enumerate(pairs) if j == event["neuron"] and point in (i, -1)
        ]
        if rows:
            x.append(float(np.clip(event["log_t"] / LN10, edges[0], edges[-1])))
            y.append(float(np.mean(rows)) + 0.5)
    if not x:
        return ()
    return (Points(np.array(x), np.array(y), "branch", colour=6, marker="diamond", size=9.0),)


def _raster_of_records(
    run: Trajectory, pairs: Sequence[tuple[int, int]], edges: Array, z: Whole
) -> Whole:
    for k in range(len(run.t)):
        active = run.modes(k)
        column = np.searchsorted(edges[1:], run.log_t[k] / LN10) if run.t[k] > 0 else 0
        z[:, column:] = np.array([active[j, i] for j, i in pairs])[:, None]
    return z


def _neuron_ticks(pairs: Sequence[tuple[int, int]]) -> tuple[tuple[float, str], ...]:
    neurons = sorted({j for j, _ in pairs})
    rows = len(pairs) // len(neurons)
    return tuple(((k + 0.5) * rows, str(j)) for k, j in enumerate(neurons))
