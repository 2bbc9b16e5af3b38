"""What every study shows of its runs: losses, norms, directions, activations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reluflow.figures import Figure, Frame
from reluflow.plot import of_runs
from reluflow.theory.contract import LabelledRun, Section
from reluflow.trajectory import Trajectory

FRAMES = 32
TRAIL, FOLLOWED = 4, 24  # records behind a neuron of a frame, of so many neurons
LN10 = of_runs.LN10


def sections(runs: Sequence[LabelledRun]) -> tuple[Section, ...]:
    """The four sections every page has; the last three show the first run."""
    first = runs[0]
    return (losses(runs), norms(first), directions(first), activations(first))


def losses(runs: Sequence[LabelledRun]) -> Section:
    """Loss against time, both as decimal logarithms."""
    panel = of_runs.loss([(item.label, item.run) for item in runs])
    if panel.x.pace:
        shape = (
            "the one of time is stretched where events are and where the loss changes. A plateau "
            "is a saddle."
        )
    else:
        shape = "a straight line going down is a power law, a plateau is a saddle."
    return Section(
        "Loss",
        "The loss along each run. Both axes are decimal logarithms of the quantities themselves: "
        + shape,
        (
            Figure(
                "loss",
                "Loss through training",
                (panel,),
                caption="Recorded losses of all runs.",
                cursor=True,
            ),
        ),
    )


def norms(item: LabelledRun) -> Section:
    """Norms of the neurons through time."""
    panel = of_runs.norms(item.run)
    width = item.run.net.width
    note = "" if len(panel.layers) == width else f" The {len(panel.layers)} largest are drawn."
    return Section(
        "Norms",
        f"Norms of the {width} hidden weight vectors ({item.label})." + note,
        (Figure("neuron_norms", "Neuron norms through training", (panel,), cursor=True),),
    )


def directions(item: LabelledRun) -> Section:
    """Directions of the neurons through time, projected on a plane, with a slider."""
    run = item.run
    plane, names = of_runs.plane_of(run)
    shown = of_runs.largest(np.array(run.final.log_norms), of_runs.CLOUD)
    followed = of_runs.largest(np.array(run.final.log_norms), FOLLOWED)
    chosen = _frame_records(run)
    nets = [run.network(int(k)) for k in chosen]
    frames = []
    for place, (k, net) in enumerate(zip(chosen, nets, strict=True)):
        label = f"log10 t = {run.log_t[k] / LN10:.3g}" if run.t[k] > 0 else "start"
        behind = nets[max(0, place - TRAIL) : place + 1] if place else nets[:1] * 2
        layers = (
            *of_runs.trails(behind, plane, followed),
            *of_runs.cloud(net, plane, shown),
        )
        frames.append(Frame(label, layers, run.log_t[k] / LN10 if run.t[k] > 0 else None))
    panel = of_runs.directions_panel(of_runs.cloud(nets[0], plane, shown), names)
    return Section(
        "Directions",
        "Each neuron as a unit vector, seen in a plane: the larger its share of the norm, the "
        "larger its dot, with a short trail behind it. Points near the centre of the circle lie "
        "across the plane. Move through time with the slider, the arrow keys or Play.",
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
    panel = of_runs.raster(run)
    counts = {
        kind: int((run.events["kind"] == kind).sum()) for kind in np.unique(run.events["kind"])
    }
    listed = ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "none"
    neurons = len({j for j, _ in of_runs.busiest_pairs(run)})
    text = (
        f"Activation of the {neurons} neurons with most events, one row for "
        f"each training point ({item.label}). Events of the whole run: {listed}."
    )
    if len(run.branches):
        text += " Diamonds: branches, where the solution was not unique or not decided."
    if run.engine == "descent" and not len(run.events):
        text += " Patterns are those of the records."
    figure = Figure("activations", "Activation raster", (panel,), cursor=True)
    return Section("Activations", text, (figure,))


def _frame_records(run: Trajectory) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, len(run.t) - 1, min(FRAMES, len(run.t))).round().astype(int))
