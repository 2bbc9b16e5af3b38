"""Tables and first pictures of a sweep: ``--csv FILE`` and ``--plot x=... y=... hue=...``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reluflow.checks import nearest
from reluflow.errors import InputError
from reluflow.wording import shown

if TYPE_CHECKING:
    from reluflow.figures import Figure
    from reluflow.sweeps import Plan, Store

AXES = ("x", "y", "hue")
MOST_LINES = 12
DASHES = ("solid", "dash", "dot", "dashdot")


def parsed(axes: Sequence[str] | None, plot: bool) -> dict[str, str] | None:
    """The columns to draw, by axis; None without ``--plot``.

    Examples
    --------
    >>> parsed(["x=log_scale", "y=max_angle"], True)
    {'x': 'log_scale', 'y': 'max_angle'}
    """
    found: dict[str, str] = {}
    for given in axes or ():
        name, sign, column = given.partition("=")
        if name not in AXES or not sign or not column or name in found:
            raise InputError(
                f"{shown(given, 80)} is no axis. Write --plot x=COLUMN y=COLUMN, and hue=COLUMN "
                f"for a line each.{nearest(name, AXES)}"
            )
        found[name] = column
    if found and not plot:
        raise InputError("axes are given without --plot. Add it, or leave them out.")
    if plot and not {"x", "y"} <= set(found):
        raise InputError("--plot needs x=COLUMN and y=COLUMN. Add them after it.")
    return found if plot else None


def written(
    plan: Plan, store: Store, csv: Path | None, wanted: Mapping[str, str] | None
) -> list[str]:
    """Write what was asked for; where it is."""
    from reluflow import files
    from reluflow.sweeps.tables import columns, to_csv

    table = columns(store, plan=plan)
    lines = []
    if csv is not None:
        files.write_bytes(csv, to_csv(table))
        count = len(table["seed"])
        lines.append(f"the table of {count} points, {len(table)} columns, is in {csv}")
    if wanted is not None:
        from reluflow.figures import paper

        pdf, png = paper.write(picture(plan.name, table, wanted), store.path)
        lines.append(f"the picture is in {png} and {pdf}")
    return lines


def picture(name: str, table: Mapping[str, list[Any]], wanted: Mapping[str, str]) -> Figure:
    """Medians over trials with the band from least to greatest, a line for each hue."""
    from reluflow.figures import Axis, Figure, Line, Panel
    from reluflow.sweeps.tables import column_named

    chosen = {axis: column_named(dict(table), column) for axis, column in wanted.items()}
    x, y = (_numbers(table, chosen[axis]) for axis in ("x", "y"))
    hue = table[chosen["hue"]] if "hue" in chosen else [""] * len(x)
    groups = sorted(set(hue), key=lambda value: (isinstance(value, str), value))
    if len(groups) > MOST_LINES:
        raise InputError(
            f"{chosen['hue']} has {len(groups)} values; a picture shows {MOST_LINES} lines. "
            "Choose another column."
        )
    lines = []
    for k, group in enumerate(groups):
        mine = np.array([value == group for value in hue]) & np.isfinite(x) & np.isfinite(y)
        places = np.unique(x[mine])
        spread = [y[mine & (x == place)] for place in places]
        low, middle, high = (
            np.array([function(values) for values in spread])
            for function in (np.min, np.median, np.max)
        )
        label = "" if "hue" not in chosen else f"{wanted['hue']} = {group}"
        lines.append(
            Line(
                places,
                middle,
                label,
                colour=k % 7,
                dash=DASHES[k % 4],  # type: ignore[arg-type]
                marker="circle",
                low=low,
                high=high,
            )
        )
    positive = np.isfinite(y) & (y > 0)
    wide = positive.any() and positive[np.isfinite(y)].all()
    is_log = bool(wide and y[positive].max() > 1e3 * y[positive].min())
    panel = Panel(
        "",
        Axis(chosen["x"]),
        Axis(chosen["y"], "log" if is_log else "linear"),
        tuple(lines),
    )
    short = {axis: column.rpartition(".")[2] for axis, column in chosen.items()}
    return Figure(f"{short['y']}_against_{short['x']}", name, (panel,))


def _numbers(table: Mapping[str, list[Any]], column: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    try:
        return np.array([np.nan if value is None else value for value in table[column]], float)
    except (TypeError, ValueError):
        raise InputError(f"{column} holds texts, not numbers. Choose another column.") from None
