"""Figures on a page: plain data for plotly.js, without importing plotly.

`to_plotly` returns ``{"data": ..., "layout": ..., "frames": ...}`` of texts, numbers and lists, as
``Plotly.react`` takes them. Numbers keep eight digits and long curves their envelope only, so that
a page stays small. All words are escaped: plotly reads a few HTML tags in texts, ours hold none.
Colours are those of the light theme; `palette.to_dark` maps each to the dark one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reluflow.errors import InputError
from reluflow.figures.description import (
    Figure,
    Line,
)
from reluflow.figures.page_layers import Parts, draw, nothing
from reluflow.figures.page_layout import layout_of, values_on
from reluflow.figures.page_words import Entry, axes_of

POINTS = 40_000  # of all curves of a figure together, all frames


def to_plotly(figure: Figure) -> Entry:
    """Describe a figure for plotly.js.

    Returns
    -------
    dict
        ``data``, ``layout`` and ``frames`` (one for each `Frame`; it changes traces of the
        first panel, and replaces the shapes and annotations of the layout). ``layout.meta`` has the
        labels and times of the frames, the axes of time, and what a narrow screen changes.
    """
    if not isinstance(figure, Figure):
        raise InputError(
            f"`figure` is a {type(figure).__name__}, not a Figure. There is nothing to draw. "
            "Describe it with reluflow.figures."
        )
    first, limit = figure.panels[0], _points_per_line(figure)
    starts = [frame.layers for frame in figure.frames] or [first.layers]
    shown = [draw(first, 0, layers, limit) for layers in starts]
    others = [draw(panel, k, panel.layers, limit) for k, panel in enumerate(figure.panels) if k]
    count = max(len(parts.data) for parts in shown)
    for parts in shown:  # every frame has the same number of traces
        parts.data += [nothing() for _ in range(count - len(parts.data))]
    pages = [Parts().add(parts, *others) for parts in shown]
    for parts in [pages[0], *shown[1:]]:
        _name_once(parts.data)
    layout = layout_of(figure, starts)
    layout |= {"shapes": pages[0].shapes, "annotations": pages[0].annotations}
    frames = [
        {
            "name": str(k),
            **_changes(pages[0].data, parts.data),
            "layout": {"shapes": page.shapes, "annotations": page.annotations},
        }
        for k, (parts, page) in enumerate(zip(shown, pages, strict=True))
        if figure.frames
    ]
    return {"data": pages[0].data, "layout": layout, "frames": frames}


def _changes(first: Sequence[Entry], now: Sequence[Entry]) -> Entry:
    """Traces of a frame, and of each only what differs from the first: most of it stays."""
    found: dict[int, Entry] = {}
    for k, (before, after) in enumerate(zip(first, now, strict=False)):
        gone = {key: None for key in before if key not in after}
        changed = {key: value for key, value in after.items() if before.get(key) != value} | gone
        if changed:
            found[k] = changed
    return {"data": list(found.values()), "traces": list(found)}


def remarks(figure: Figure) -> list[str]:
    """What the figure cannot show, in words: values at or below zero on a log axis."""
    found = []
    for k, panel in enumerate(figure.panels):
        shown = [frame.layers for frame in figure.frames] if k == 0 and figure.frames else []
        layers = [layer for group in shown or [panel.layers] for layer in group]
        for name, axis in axes_of(panel):
            values = np.concatenate([np.empty(0), *values_on(layers, name, axis)])
            lost = int((values <= 0).sum()) if axis.scale == "log" else 0
            if lost:
                words = "value that is" if lost == 1 else "values that are"
                found.append(
                    f"Not shown: {lost} {words} not positive, on the log axis “{axis.label}”."
                )
    return found


def _name_once(traces: Sequence[Entry]) -> None:
    """Show each label with its look once in the legend."""
    seen = set()
    for trace in traces:
        key = trace.get("legendgroup")
        trace["showlegend"] = bool(trace.get("name")) and key not in seen
        seen.add(key)


def _points_per_line(figure: Figure) -> int:
    groups = [panel.layers for panel in figure.panels] + [frame.layers for frame in figure.frames]
    lines = sum(isinstance(layer, Line) for layers in groups for layer in layers)
    return max(40, min(2000, POINTS // max(1, lines)))
