"""Axes, places of panels and colours of a figure on a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from reluflow.checks import Array
from reluflow.figures import palette
from reluflow.figures.description import (
    Arrows,
    Axis,
    Figure,
    Heat,
    Layer,
    Line,
    Panel,
    Raster,
    Rule,
    Span,
)
from reluflow.figures.page_words import (
    Entry,
    Name,
    axes_of,
    on_axis,
    reference,
    rounded,
    words,
)
from reluflow.figures.places import edges, placed

_MARGIN = {"l": 64, "r": 20, "t": 30, "b": 56}
_PAGE_PX, _LETTER_PX, _TICK_PX = 930, 7.5, 40  # width of figures, of a letter, room at an axis
_ROW_PX = 20  # of the legend
_GAP_PX = 84  # between rows: tick labels, axis title, panel title


def layout_of(figure: Figure, starts: Sequence[Sequence[Layer]]) -> Entry:
    """Axes and places of all panels; ``starts`` holds the layers of the first, frame by frame."""
    moving = [layer for layers in starts for layer in layers]
    layers = [moving, *(panel.layers for panel in figure.panels[1:])]
    layout: Entry = {
        "autosize": True,
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": palette.INK["light"]},
        "paper_bgcolor": palette.PAPER["light"],
        "plot_bgcolor": palette.PAPER["light"],
        "margin": _MARGIN,
        "hovermode": "closest",
        "legend": {"orientation": "h", "x": 0, "y": 0, "yref": "container", "yanchor": "bottom"},
        "uirevision": "kept",  # a zoom stays when a frame or the theme changes
    }
    for k, panel in enumerate(figure.panels):
        for name, axis in axes_of(panel):
            layout[reference(f"{name}axis", k)] = _axis(axis, layers[k], name)
        layout[reference("yaxis", k)]["anchor"] = reference("x", k)
        layout[reference("xaxis", k)]["anchor"] = reference("y", k)
        if panel.equal:
            layout[reference("yaxis", k)] |= {
                "scaleanchor": reference("x", k),
                "constrain": "domain",
            }
            layout[reference("xaxis", k)]["constrain"] = "domain"
    wide = _places(figure, max(1, figure.columns), "wide")
    narrow = _places(figure, 1, "narrow")
    for key, value in wide.items():
        layout[key] = layout.get(key, {}) | value if isinstance(value, dict) else value
    layout["meta"] = {
        "frames": [words(f.label) for f in figure.frames],
        "narrow": narrow,
        "first": figure.first_frame,
        "times": [f.time for f in figure.frames],
        "cursor": [reference("x", k) for k in range(len(figure.panels))] if figure.cursor else [],
        "pace": {
            reference("x", k): np.array(panel.x.pace).T.tolist()
            for k, panel in enumerate(figure.panels)
            if panel.x.pace
        },
    }
    return layout


def _places(figure: Figure, columns: int, screen: str) -> Entry:
    """Where the panels are in a grid of so many columns, as a part of the layout."""
    panels = figure.panels
    rows = [range(k, min(k + columns, len(panels))) for k in range(0, len(panels), columns)]
    heights = [max(_height_px(panels[k], screen) for k in row) for row in rows]
    total = sum(heights) + _GAP_PX * (len(rows) - 1)
    found: Entry = {"height": total + _MARGIN["t"] + _MARGIN["b"] + _legend_px(figure, screen)}
    gap = _gap(figure, columns)
    width = (1 - gap * (columns - 1)) / columns
    top = 0
    for row, height in zip(rows, heights, strict=True):
        tall = [round(1 - (top + height) / total, 4), round(1 - top / total, 4)]
        for place, k in enumerate(row):
            left = place * (width + gap)
            bars = [layer for layer in panels[k].layers if isinstance(layer, Heat)]
            right = left + width - (0.14 if bars else 0.0)
            found[reference("xaxis", k)] = {"domain": [round(left, 4), round(right, 4)]}
            found[reference("yaxis", k)] = {"domain": tall}
            if bars:
                found[reference("coloraxis", k)] = _colour_bar(bars[0], right, tall)
        top += height + _GAP_PX
    return found


def _legend_px(figure: Figure, screen: str) -> int:
    """Height of the legend: a row for each entry on a narrow screen, four entries on a wide one."""
    groups = [panel.layers for panel in figure.panels] + [frame.layers for frame in figure.frames]
    named = {getattr(layer, "label", "") for layers in groups for layer in layers}
    named -= {layer.label for layers in groups for layer in layers if isinstance(layer, Rule)}
    entries = len(named - {""})
    rows = -(-entries // 4) if screen == "wide" else entries
    return 40 + _ROW_PX * max(0, rows - 2)


def _gap(figure: Figure, columns: int) -> float:
    """Room between columns, as a share of the width: for the texts at the axes on the right."""
    if columns == 1:
        return 0.0
    right = [panel for k, panel in enumerate(figure.panels) if k % columns]
    texts = [text for panel in right for _, text in panel.y.ticks]
    return max(0.1, (_TICK_PX + _LETTER_PX * max(map(len, texts), default=0)) / _PAGE_PX)


def _height_px(panel: Panel, screen: str) -> int:
    if panel.equal:
        return 440 if screen == "wide" else 300
    return 360 if any(isinstance(layer, Raster) for layer in panel.layers) else 310


def _colour_bar(layer: Heat, right: float, tall: Sequence[float]) -> Entry:
    bar: Entry = {"x": round(right + 0.01, 4), "y": sum(tall) / 2, "len": tall[1] - tall[0]}
    title = {"text": words(layer.label), "side": "right"}
    bar |= {"thickness": 12, "title": title, "exponentformat": "power"}
    return {"colorscale": "Viridis", "colorbar": bar}


def _axis(axis: Axis, layers: Sequence[Layer], name: Name) -> Entry:
    low, high = _range(axis, layers, name)
    cells = any(isinstance(layer, Raster | Heat) for layer in layers)
    found: Entry = {
        "title": {"text": words(axis.label), "standoff": 8},
        "type": axis.scale,
        "range": [low, high],
        "exponentformat": "power",
        "showgrid": not cells,
        "gridcolor": palette.GRID["light"],
        "linecolor": palette.INK["light"],
        "showline": True,
        "ticks": "outside",
        "zeroline": False,
        "automargin": True,
    }
    if axis.ticks:
        found["tickvals"] = [rounded(float(placed(value, axis))) for value, _ in axis.ticks]
        found["ticktext"] = [words(text) for _, text in axis.ticks]
    elif axis.scale == "log" and abs(high - low) > 1.5:
        found["dtick"] = int(np.ceil(abs(high - low) / 8))  # whole decades only
    return found


def _range(axis: Axis, layers: Sequence[Layer], name: Name) -> tuple[float, float]:
    """The ends of an axis, in decades if it is logarithmic: those given, or all data and a bit."""
    if axis.range is not None:
        low, high = (on_axis(end, axis) for end in axis.range)
        return low, high
    values = np.concatenate([np.empty(0), *values_on(layers, name, axis)])
    values = values[values > 0] if axis.scale == "log" else values
    if not len(values):
        return 0.0, 1.0
    low, high = on_axis(values.min(), axis), on_axis(values.max(), axis)
    if any(isinstance(layer, Raster | Heat) for layer in layers) and low < high:
        return low, high
    bit = 0.04 * (high - low) or 0.5
    return rounded(low - bit), rounded(high + bit)


def values_on(layers: Iterable[Layer], name: Name, axis: Axis) -> list[Array]:
    """All finite numbers that layers put on an axis."""
    found: list[Any] = []
    for layer in layers:
        if isinstance(layer, Rule):
            found += [layer.value] if layer.axis == name else []
        elif isinstance(layer, Span):
            found += [layer.low, layer.high] if name == "x" else []
        elif isinstance(layer, Heat):
            count = np.shape(layer.z)[1 if name == "x" else 0]
            found.append(edges(getattr(layer, name), count, axis))
        else:
            found.append(getattr(layer, name))
        if isinstance(layer, Arrows):
            found.append(getattr(layer, f"{name}0"))
        if isinstance(layer, Line) and name == "y" and layer.low is not None:
            found += [layer.low, layer.high]
    arrays = [np.atleast_1d(np.asarray(part, float)) for part in found if part is not None]
    return [part[np.isfinite(part)] for part in arrays]
