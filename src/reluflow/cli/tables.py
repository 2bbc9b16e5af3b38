"""Tables of runs, comparisons and verdicts for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from reluflow.cli.safe import safe
from reluflow.departures import departure
from reluflow.theory.report import Report, number
from reluflow.theory.subject import branch_text
from reluflow.theory.verdicts import Verdict
from reluflow.trajectory import Trajectory

if TYPE_CHECKING:
    from reluflow.checks import Array
    from reluflow.network import Network
    from reluflow.theory.contract import Comparison, Expectation, LabelledRun

COLOURS = {
    Verdict.PASS: "green",
    Verdict.FAIL: "red",
    Verdict.UNRESOLVED: "yellow",
    Verdict.NOT_APPLICABLE: "dim",
}
# neurons this much smaller than the largest (in |a| |w|) play no part in the function
NEGLIGIBLE = 1e-3
# more neurons than this are compared with the largest only: all pairs take time quadratic in them
PAIRS_UP_TO = 1000
FARTHEST = 8


def summary(
    run: Trajectory, *, title: str, seconds: float | None = None, path: Path | None = None
) -> Table:
    """What a run did: status in words, work, loss, norms, angle, time."""
    table = Table(title=safe(title), show_header=False, title_style="bold")
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    colour = "green" if run.status.is_asked_for else "yellow"
    for name, text in rows(run, seconds=seconds, path=path):
        shown = safe(text)
        table.add_row(name, f"[{colour}]{shown}[/]" if name == "status" else shown)
    return table


def rows(
    run: Trajectory, *, seconds: float | None = None, path: Path | None = None
) -> list[tuple[str, str]]:
    """The lines of `summary` as plain text."""
    unit = "steps" if run.engine == "descent" else "time"
    # with records at chosen iterations the last of them may come before the end
    last = run.stats.get("iterations", run.t[-1])
    last_log_loss = run.stats.get("final_log_loss", run.log_loss[-1])
    lines = [
        ("data", f"{run.data.name or 'given'}: {run.data.n} points in {run.data.d} dimensions"),
        ("network", f"{run.net.width} neurons, start at log |theta|^2 = "
                    f"{run.net.log_squared_norm:.6g}"),
        ("training", ", ".join(filter(None, [run.engine, f"{run.loss_function.name} loss",
                                            departure(run)]))),
        ("status", f"{run.status}: {run.ending}"),
        (unit, f"{last:.10g}"),
        ("loss", f"{from_log(run.log_loss[0])} -> {from_log(last_log_loss)}"),
        ("squared norm", f"{from_log(run.net.log_squared_norm)} -> "
                         f"{from_log(run.final.log_squared_norm)}"),
        ("largest |w|", from_log(float(run.final.log_norms.max()))),
        ("neurons that count", f"{len(counted(run.final))} of {run.final.width}"),
        ("largest angle", angle_text(run.final)),
    ]  # fmt: skip
    if run.decay:
        first, last = (float(np.log(run.objective[k])) for k in (0, -1))
        lines.insert(6, ("loss + decay/2 |theta|^2", f"{from_log(first)} -> {from_log(last)}"))
    if len(run.events):
        lines.append(("events", f"{len(run.events)}"))
    if len(run.branches):
        lines.append(("branches", branch_text(run)))
    if seconds is not None:
        lines.append(("seconds", f"{seconds:.3g}"))
    if path is not None:
        lines.append(("file", str(path)))
    return lines


def from_log(log_value: float) -> str:
    """A number given by its logarithm; as a power of e beyond the range of floats."""
    if abs(log_value) < 700 or log_value == -np.inf:
        return f"{exp(log_value):.6g}"
    return f"exp({log_value:.6g})"


def counted(net: Network) -> list[int]:
    """Neurons whose product of norms is not negligible beside the largest."""
    sizes = net.log_norms + net.log_outputs
    if not np.isfinite(sizes).any():
        return []
    return [int(j) for j in np.flatnonzero(sizes > sizes.max() + np.log(NEGLIGIBLE))]


def angle_text(net: Network) -> str:
    """The largest angle between neurons that count and have output weights of one sign."""
    from reluflow.geometry import max_angle

    chosen, signs = np.array(counted(net), dtype=int), net.signs
    groups = [chosen[signs[chosen] == sign] for sign in (1.0, -1.0)]
    groups = [group for group in groups if len(group) > 1]
    if not groups:
        return "none: one neuron of each sign at most"
    if max(len(group) for group in groups) <= PAIRS_UP_TO:
        angle = max(float(max_angle(net, group)) for group in groups)
        return f"{angle:.6g} rad between neurons of one sign that count"
    sizes = net.log_norms + net.log_outputs
    tops = [int(group[sizes[group].argmax()]) for group in groups]
    angle = max(
        float(max_angle(net, [top, int(j)]))
        for top, group in zip(tops, groups, strict=True)
        for j in group[cosines(net, top, group).argsort()[:FARTHEST]]
    )
    return f"{angle:.6g} rad between the largest neuron of a sign and others that count"


def cosines(net: Network, top: int, group: NDArray[np.intp]) -> Array:
    """Cosines of the angles of some neurons with one of them."""
    return np.asarray(net.directions[group] @ net.directions[top])


def run_table(runs: Sequence[LabelledRun]) -> Table:
    """One line a run: status, end of time, loss, squared norm."""
    table = Table(title="Runs", title_style="bold")
    for head in ("run", "status", "time", "loss", "squared norm"):
        table.add_column(head)
    for item in runs:
        run = item.run
        colour = "green" if run.status.is_asked_for else "yellow"
        table.add_row(
            safe(item.label),
            f"[{colour}]{run.status}[/]",
            from_log(float(run.log_t[-1])),
            from_log(float(run.log_loss[-1])),
            from_log(run.final.log_squared_norm),
        )
    return table


def comparison_table(comparisons: Sequence[Comparison]) -> Table:
    """Predicted numbers beside simulated ones."""
    table = Table(title="Predicted and simulated", title_style="bold")
    table.add_column("")
    for head in ("predicted", "simulated", "difference"):
        table.add_column(head, justify="right", no_wrap=True)
    for item in comparisons:
        table.add_row(
            safe(item.name),
            f"{item.predicted:.8g}",
            f"{item.simulated:.8g}",
            f"{item.discrepancy:.1e}",
        )
    return table


def claim_table(report: Report) -> Table:
    """Every assumption and claim with its verdict; the notes of those that do not simply hold."""
    counts = ", ".join(
        f"{count} {name.lower().replace('_', ' ')}"
        for name, count in report.counts().items()
        if count
    )
    table = Table(title=safe(f"{report.title}: {counts}"), title_style="bold")
    for head in ("id", "verdict", "measured", "bound", "statement"):
        table.add_column(head, no_wrap=head != "statement", overflow="fold")
    for rows in (report.assumptions, report.checks):
        for check in rows:
            told = check.verdict is not Verdict.PASS
            said = [text for text in (check.observation, check.note) if text and told]
            note = f"\n[dim]{safe('; '.join(said))}[/]" if said else ""
            table.add_row(
                safe(check.id),
                f"[{COLOURS[check.verdict]}]{check.verdict.value.lower().replace('_', ' ')}[/]",
                number(check.measured),
                number(check.bound),
                safe(check.title) + note,
            )
        table.add_section()
    for text in report.warnings:
        table.add_row("", "[yellow]warning[/]", "", "", safe(text))
    return table


def expectation_table(expectations: Sequence[Expectation], *, title: str) -> Table:
    """The measured shape of a figure beside the expected one."""
    table = Table(title=safe(title), title_style="bold")
    for head in ("shape", "measured", "expected", "verdict", "source"):
        table.add_column(head, overflow="fold")
    for item in expectations:
        table.add_row(
            safe(item.text),
            f"{item.measured:.4g}",
            f"{item.low:.4g} .. {item.high:.4g}",
            f"[{COLOURS[item.verdict]}]{item.verdict.value.lower()}[/]",
            safe(item.source),
        )
    return table
