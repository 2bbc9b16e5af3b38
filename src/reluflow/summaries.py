"""What a notebook shows of a value: a compact table, with a small curve where there is one.

Everything is text, numbers and one inline SVG in the colours of the notebook; words of users are
escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from reluflow.dataset import Dataset
    from reluflow.limits import Prediction
    from reluflow.network import Network
    from reluflow.theory import Check, Report
    from reluflow.trajectory import Trajectory

WIDTH, HEIGHT = 160, 36  # of the curve, in pixels
ROWS = 40  # of a report that are shown; the others are counted


def dataset(data: Dataset) -> str:
    """Sizes, ranges and the sorted labels."""
    rows: list[tuple[str, object]] = [
        ("points", data.n),
        ("inputs", f"{data.d - 1} and a bias" if data.bias else data.d),
        ("labels", f"{data.y.min():.4g} to {data.y.max():.4g}"),
        ("lengths of the points", _range(np.linalg.norm(data.X, axis=1))),
    ]
    if data.teacher is not None:
        rows.append(("teacher", "a network" if hasattr(data.teacher, "predict") else "a vector"))
    title = f"Dataset {data.name}" if data.name else "Dataset"
    return table(title, rows, sparkline(np.sort(data.y)), "labels, sorted")


def network(net: Network) -> str:
    """Sizes, scales and the sorted norms of the neurons."""
    signs = net.signs
    rows: list[tuple[str, object]] = [
        ("neurons", net.width),
        ("inputs", f"{net.d - 1} and a bias" if net.bias else net.d),
        ("signs", f"{int((signs > 0).sum())} positive, {int((signs < 0).sum())} negative"),
        ("log of the squared norm", f"{net.log_squared_norm:.6g}"),
        ("log scale", _range(net.log_scale)),
    ]
    if net.slope:
        rows.insert(2, ("slope below zero", f"{net.slope:g}"))
    return table("Network", rows, sparkline(np.sort(net.log_norms)), "log norms, sorted")


def trajectory(run: Trajectory) -> str:
    """How it ended, what it cost, and the log-loss through the records."""
    time = "time" if run.engine == "flow" else "iterations"
    rows: list[tuple[str, object]] = [
        ("engine", run.engine),
        ("status", f"{run.status}: {run.ending}"),
        (time, f"{run.t[-1]:.6g}"),
        ("log of the loss", f"{run.log_loss[0]:.4g} to {run.log_loss[-1]:.6g}"),
        ("squared norm", f"{run.net.squared_norm:.4g} to {run.final.squared_norm:.6g}"),
        ("events", len(run.events)),
        ("problem", f"{run.data.n} points, {run.net.width} neurons, {run.loss_function.name} loss"),
    ]
    if run.decay:
        said = f"{run.objective[0]:.4g} to {run.objective[-1]:.6g} (decay {run.decay:g})"
        rows.insert(4, ("loss + decay/2 |theta|^2", said))
    if np.isfinite(run.limit_error):
        rows.insert(3, ("distance to the limit, at most", f"{run.limit_error:.2g}"))
    return table("Trajectory", rows, sparkline(run.log_loss), "log-loss, record by record")


def prediction(found: Prediction) -> str:
    """Which limit, why, and the network it ends in."""
    rows: list[tuple[str, object]] = [("method", found.method or "none applies")]
    if found.method is not None:
        rows.append(("proved", "yes" if found.proved else "no: only the construction is followed"))
    if found.network is not None:
        rows.append(("squared norm of the limit", f"{found.network.squared_norm:.6g}"))
    rows.append(("reason", found.reason))
    return table("Prediction", rows)


def check(found: Check) -> str:
    """One claim."""
    rows = [
        ("verdict", f"{found.verdict.value}: {found.verdict.text}"),
        ("measured", _number(found.measured)),
        ("bound", _number(found.bound)),
        ("note", found.note),
    ]
    return table(f"{found.id}. {found.title}", [row for row in rows if row[1]])


def report(found: Report) -> str:
    """Counts, then a row for each assumption and claim: first those that do not pass."""
    every = [*found.assumptions, *found.checks]
    order = sorted(every, key=lambda row: (row.verdict.value == "PASS", row.verdict.value))
    counts = ", ".join(f"{count} {name}" for name, count in found.counts().items() if count)
    head = "".join(f"<th>{name}</th>" for name in ("id", "verdict", "measured", "bound", "claim"))
    body = "".join(
        _cells((row.id, row.verdict.value, _number(row.measured), _number(row.bound), row.title))
        for row in order[:ROWS]
    )
    more = len(every) - ROWS
    rest = f"<p>{more} further rows; print(report) shows all.</p>" if more > 0 else ""
    warnings = "".join(f"<p>Warning: {escape(text)}</p>" for text in found.warnings)
    return (
        f"<strong>{escape(found.title)}</strong><p>{escape(found.subject)}<br>{counts}</p>"
        f"{warnings}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"
    )


def table(
    title: str, rows: Iterable[tuple[str, object]], curve: str = "", caption: str = ""
) -> str:
    """A table of two columns below a title, with a curve beside the title."""
    body = "".join(_cells(row) for row in rows)
    picture = f"<div>{curve}<br><small>{escape(caption)}</small></div>" if curve else ""
    return f"<strong>{escape(title)}</strong>{picture}<table><tbody>{body}</tbody></table>"


def sparkline(values: Any) -> str:
    """A small curve through numbers, without axes; empty if there are fewer than two."""
    y = np.asarray(values, dtype=np.float64)
    y = y[np.isfinite(y)]
    if len(y) < 2:
        return ""
    y = y[np.unique(np.linspace(0, len(y) - 1, min(len(y), WIDTH)).round().astype(int))]
    span = float(np.ptp(y)) or 1.0
    across = np.linspace(1.0, WIDTH - 1.0, len(y))
    down = 1.0 + (HEIGHT - 2.0) * (y.max() - y) / span
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, down, strict=True))
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">'
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5"/></svg>'
    )


def _cells(values: Sequence[object]) -> str:
    first, *others = (escape(str(value)) for value in values)
    rest = "".join(f'<td style="text-align:left">{text}</td>' for text in others)
    return f'<tr><th style="text-align:left">{first}</th>{rest}</tr>'


def _range(values: Any) -> str:
    low, high = float(np.min(values)), float(np.max(values))
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
