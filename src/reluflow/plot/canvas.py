"""From descriptions to Matplotlib figures that a notebook shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reluflow.figures import Figure, Panel, paper


def draw(
    name: str,
    title: str,
    panels: Sequence[Panel],
    ax: Any,
    *,
    columns: int = 1,
    wide: bool = True,
) -> Any:
    """Draw panels on a new figure, or the only one on axes of the caller; return the figure."""
    if ax is not None:
        paper.draw_on(ax, panels[0])
        return ax.figure
    return paper.picture(Figure(name, title, tuple(panels), columns=columns, wide=wide))
