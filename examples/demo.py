"""The job of ``make demo``: train one network, compare with theory, save the run.

Two hundred neurons start at random, tiny; the points all lie on the same side. Theory says where
training must end without training: every surviving neuron parallel to one vector. This script
follows the gradient flow to its limit, checks it against that prediction and against ordinary
gradient descent, and writes the run to ``results/demo.rf``.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import reluflow as rf

LOG_SCALE = -7 * math.log(4)
STRETCH = 40.0  # flow time of the comparison with gradient descent
LR = 0.01
EVENTS = {
    "activate": "a neuron became active on a point",
    "deactivate": "a neuron became inactive on a point",
    "slide": "a neuron began to slide along the boundary of a point",
    "release": "a neuron left the boundary it slid along",
    "die": "a neuron lost its last point: it never moves again",
    "flip": "an output weight changed its sign",
}


def main() -> None:
    """Run the demonstration."""
    console = Console()
    data = rf.datasets.centred(d=16, seed=0)
    net = rf.networks.balanced(data.d, width=200, log_scale=LOG_SCALE, seed=1)
    console.print(
        f"[bold]reluflow {rf.__version__}[/]: {net.width} ReLU neurons on {data.n} correlated "
        f"points in {data.d} dimensions, initial scale 4^-7.\n"
        "The first run compiles the solver, about half a minute; later ones start at once.\n"
    )
    with console.status("compiling ..."):
        compile_engines()
    with console.status("following the gradient flow to its limit ..."):
        begin = time.perf_counter()
        run = rf.flow(data, net)
        flow_s = time.perf_counter() - begin
    console.print(what_happened(run, flow_s))
    limit = rf.limits.predict(data, net)
    console.print(prediction_table(run, limit))
    console.print(f"[dim]{limit.reason}[/]\n")
    console.print(comparison(run))
    path = Path("results") / "demo.rf"
    run.save(path)
    console.print(
        f"\nThe run is saved in [bold]{path}[/]. Look at it again with `reluflow show {path}`, "
        f'or in Python with `reluflow.load("{path}")`.'
    )


def compile_engines() -> None:
    """Run both engines on next to nothing, so that the times shown are those of the work."""
    data = rf.datasets.centred(d=2, seed=0)
    net = rf.networks.balanced(2, width=4, log_scale=-9.0, seed=0)
    rf.flow(data, net, stop_loss=1e-3, max_seconds=1.0)
    rf.descend(data, net, lr=LR, steps=1)


def what_happened(run: rf.Trajectory, seconds: float) -> Table:
    """Status, work, events and losses of the flow."""
    table = Table(title="What happened", show_header=False, title_style="bold")
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    good = run.status == rf.Status.CONVERGED
    table.add_row("status", f"[{'green' if good else 'yellow'}]{run.status}: {run.status.text}[/]")
    if math.isfinite(run.limit_error):
        table.add_row("distance to the limit", f"at most {run.limit_error:.2g}")
    table.add_row("time of the flow", f"{run.t[-1]:.6g}")
    table.add_row("steps", f"{run.stats['steps']}")
    for kind, meaning in EVENTS.items():
        count = run.stats["events"].get(kind, 0)
        if count:
            table.add_row(kind, f"{count:5d}  {meaning}")
    table.add_row("loss", f"{run.loss[0]:.4g} -> {run.loss[-1]:.3g}")
    table.add_row("seconds", f"{seconds:.2f}")
    return table


def prediction_table(run: rf.Trajectory, limit: rf.limits.Prediction) -> Table:
    """The limit of the flow beside what theory says without training."""
    table = Table(title="Theory and training", title_style="bold")
    table.add_column("")
    table.add_column("predicted", justify="right")
    table.add_column("this run", justify="right")
    table.add_column("difference", justify="right")
    if limit.network is None or not isinstance(limit.detail, rf.limits.Bundle):
        table.add_row("no limit theorem applies to these data", "", "", "")
        return table
    end, bundle = run.final, limit.detail
    lines = [
        ("squared norm of the weights", limit.network.squared_norm, end.squared_norm),
        (
            "nuclear norm of layer one",
            rf.geometry.nuclear_norm(limit.network),
            rf.geometry.nuclear_norm(end),
        ),
        (
            "largest angle, survivors",
            bundle.angle_slope * math.exp(LOG_SCALE),
            rf.geometry.max_angle(end, bundle.positive),
        ),
    ]
    for name, expected, measured in lines:
        gap = f"{abs(measured / expected - 1):.1e}"
        table.add_row(name, f"{expected:.8g}", f"{measured:.8g}", gap)
    gap = np.abs(limit.network.flat().W - end.flat().W).max()
    table.add_row("hidden weights, one by one", "", "", f"{gap:.1e}")
    return table


def comparison(run: rf.Trajectory) -> str:
    """How far gradient descent is from the flow, at two step sizes."""
    there = run.at(STRETCH).predict(run.data.X)
    parts = []
    for lr in (LR, LR / 2):
        begin = time.perf_counter()
        loop = rf.descend(run.data, run.net, lr=lr, steps=round(STRETCH / lr))
        seconds = time.perf_counter() - begin
        gap = np.abs(loop.final.predict(run.data.X) - there).max()
        parts.append(
            f"step {lr:g}: {loop.stats['iterations']} steps in {seconds:.2f} s, outputs differ by "
            f"{gap:.2g}"
        )
    return (
        f"[bold]Gradient descent[/] up to time {STRETCH:g} follows the flow to first order in its "
        "step size:\n  " + "\n  ".join(parts)
    )


if __name__ == "__main__":
    main()
