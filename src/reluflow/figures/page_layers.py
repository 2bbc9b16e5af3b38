"""Layers as traces, shapes and annotations of plotly.js."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reluflow.checks import Array
from reluflow.figures import palette
from reluflow.figures.description import (
    Arrows,
    Axis,
    Heat,
    Layer,
    Line,
    Panel,
    Points,
    Raster,
    Rule,
    Span,
    Text,
)
from reluflow.figures.page_words import (
    Entry,
    byte_array,
    numbers,
    on_axis,
    reference,
    rounded,
    thinned,
    words,
)
from reluflow.figures.places import edges, middles, on_the_left, placed

CELLS_WITH_TEXT = 2_000  # the texts of larger rasters are made by the page, from `meta`
_PX = 4 / 3  # pixels in a point of typography
_SYMBOLS = {"circle": "circle", "square": "square", "triangle": "triangle-up"}
_SYMBOLS |= {"diamond": "diamond", "cross": "x", "none": "circle"}
_HOVER = "%{x:.5~g}, %{y:.5~g}<extra>%{fullData.name}</extra>"


@dataclass
class Parts:
    """What layers become: traces, and the shapes and annotations of the layout."""

    data: list[Entry] = field(default_factory=list)
    shapes: list[Entry] = field(default_factory=list)
    annotations: list[Entry] = field(default_factory=list)

    def add(self, *others: Parts) -> Parts:
        """Take over what others hold."""
        for other in others:
            self.data += other.data
            self.shapes += other.shapes
            self.annotations += other.annotations
        return self


def draw(panel: Panel, k: int, layers: Sequence[Layer], limit: int) -> Parts:
    """Draw the layers of the k-th panel, curves with at most ``limit`` points."""
    parts, left = Parts(), on_the_left(layers, panel.y)
    for number, (layer, cue) in enumerate(zip(layers, palette.cues(layers), strict=True)):
        if isinstance(layer, Line):
            parts.data += _line(layer, cue, panel, limit)
        elif isinstance(layer, Points):
            parts.data.append(_points(layer, cue, panel))
        elif isinstance(layer, Arrows):
            parts.data.append(_arrows(layer, cue, panel))
        elif isinstance(layer, Raster):
            parts.data += _raster(layer, panel)
        elif isinstance(layer, Heat):
            parts.data.append(_heat(layer, panel, k))
        elif isinstance(layer, Rule):
            parts.add(_rule(layer, panel, k, number in left))
        elif isinstance(layer, Span):
            parts.shapes += _span(layer, panel, k)
        else:
            parts.annotations += _remark(layer, panel, k)
    if panel.title:
        parts.annotations.append(_panel_title(panel, k))
    for trace in parts.data:
        trace |= {"xaxis": reference("x", k), "yaxis": reference("y", k)}
        if panel.x.pace and "hovertemplate" in trace:  # the page finds the values at the places
            trace["hovertemplate"] = trace["hovertemplate"].replace("%{x:", "%{customdata:")
    return parts


def _line(layer: Line, cue: palette.Cue, panel: Panel, limit: int) -> list[Entry]:
    keep = thinned(layer, limit)
    x, y = np.asarray(layer.x, float)[keep], np.asarray(layer.y, float)[keep]
    shade = palette.colour(layer.colour)
    trace = _scatter(numbers(x, panel.x), numbers(y, panel.y), layer.label, layer, cue)
    trace["opacity"] = layer.opacity
    trace["line"] = {"color": shade, "width": round(layer.width * _PX, 2), "dash": cue.dash}
    if cue.marker == "none":
        trace["mode"] = "lines"
    else:
        trace["mode"] = "lines+markers"
        trace["marker"] = {"color": shade, "symbol": _symbol(cue), "size": 7}
        trace["marker"] |= {"maxdisplayed": 6} if cue.sparse else {}
    if layer.low is None or layer.high is None:
        return [trace]
    low, high = np.asarray(layer.low, float)[keep], np.asarray(layer.high, float)[keep]
    return [_band(x, low, high, shade, panel), trace]


def _band(x: Array, low: Array, high: Array, shade: str, panel: Panel) -> Entry:
    """One polygon for each stretch without gaps, up along ``high`` and back along ``low``."""
    drawn = np.array(
        [numbers(x, panel.x), numbers(low, panel.y), numbers(high, panel.y)], dtype=object
    )
    whole = np.flatnonzero((drawn != None).all(axis=0))  # noqa: E711 - compared entry by entry
    xs: list[Any] = []
    ys: list[Any] = []
    for part in np.split(whole, np.flatnonzero(np.diff(whole) > 1) + 1):
        xs += [*drawn[0, part], *drawn[0, part[::-1]], None]
        ys += [*drawn[2, part], *drawn[1, part[::-1]], None]
    return {
        **nothing(),
        "x": xs,
        "y": ys,
        "mode": "lines",
        "line": {"width": 0},
        "fill": "toself",
        "fillcolor": palette.see_through(shade, palette.BAND_OPACITY),
    }


def _points(layer: Points, cue: palette.Cue, panel: Panel) -> Entry:
    x, y = numbers(layer.x, panel.x), numbers(layer.y, panel.y)
    trace = _scatter(x, y, layer.label, layer, cue)
    size = np.asarray(layer.size, float) * _PX
    marker: Entry = {"color": palette.colour(layer.colour), "symbol": _symbol(cue)}
    marker |= {"opacity": layer.opacity, "size": np.round(size, 2).tolist()}
    trace |= {"mode": "markers", "marker": marker}
    if layer.text:
        trace["text"] = [words(text) for text in layer.text]
        trace["hovertemplate"] = "%{text}<br>" + _HOVER
    return trace


def _arrows(layer: Arrows, cue: palette.Cue, panel: Panel) -> Entry:
    """Shafts with gaps between them; a head on every second point looks back along its shaft."""
    x = np.column_stack([layer.x0, layer.x, np.full(len(layer.x), np.nan)]).ravel()
    y = np.column_stack([layer.y0, layer.y, np.full(len(layer.y), np.nan)]).ravel()
    shade = palette.colour(layer.colour)
    trace = _scatter(numbers(x, panel.x), numbers(y, panel.y), layer.label, layer, cue)
    marker: Entry = {"symbol": "arrow", "angleref": "previous", "color": shade, "opacity": 1}
    return trace | {
        "mode": "lines+markers",
        "opacity": layer.opacity,
        "line": {"color": shade, "width": 1.5, "dash": cue.dash},
        "marker": marker | {"size": [0, 10, 0] * len(layer.x)},
    }


def _raster(layer: Raster, panel: Panel) -> list[Entry]:
    z = np.asarray(layer.z)
    count = len(layer.categories)
    shades = [palette.cell_colour(index) for index in layer.colours]
    scale = [[(k + end) / count, shade] for k, shade in enumerate(shades) for end in (0, 1)]
    cells: Entry = {
        "type": "heatmap",
        "x": numbers(layer.x, panel.x),
        "y": numbers(layer.y, panel.y),
        "z": byte_array(z),
        "zmin": -0.5,
        "zmax": count - 0.5,
        "colorscale": scale,
        "showscale": False,
        "hovertemplate": "%{x:.5~g}<extra></extra>",
    }
    names = [words(text) for text in layer.categories]
    rows = [f"{words(text)}: " for text in layer.rows] or [""] * len(z)
    cells["hovertemplate"] = "%{text}, %{x:.5~g}<extra></extra>"
    if z.size <= CELLS_WITH_TEXT:
        cells["text"] = [
            [row + names[value] for value in line] for row, line in zip(rows, z, strict=True)
        ]
    else:
        cells["meta"] = {"rows": rows, "categories": names}
    keys = [
        {
            **nothing([None]),
            "mode": "markers",
            "name": words(text),
            "legendgroup": f"{text}|{shade}",
            "marker": {"color": shade, "size": 12}
            | {"symbol": "square-x" if palette.is_marked(k) else "square"}
            | (
                {"line": {"color": palette.INK["light"], "width": 1}}
                if palette.is_marked(k)
                else {}
            ),
        }
        for k, (text, shade) in enumerate(zip(layer.categories, shades, strict=True))
    ]
    return [cells, *keys, *_crosses(layer, panel)]


def _crosses(layer: Raster, panel: Panel) -> list[Entry]:
    columns, rows = palette.marked_cells(layer)
    if not len(rows):
        return []
    x, y = middles(layer.x, panel.x)[columns], middles(layer.y, panel.y)[rows]
    line = {"color": palette.INK["light"], "width": 1}
    drawn = {"mode": "markers", "marker": {"symbol": "x-thin", "size": 4, "line": line}}
    return [{**nothing(), "x": numbers(x, panel.x), "y": numbers(y, panel.y), **drawn}]


def _heat(layer: Heat, panel: Panel, k: int) -> Entry:
    rows, columns = np.shape(layer.z)
    free = Axis("")  # the values of the cells have no axis
    return {
        "type": "heatmap",
        "x": numbers(edges(layer.x, columns, panel.x), panel.x),
        "y": numbers(edges(layer.y, rows, panel.y), panel.y),
        "z": [numbers(row, free) for row in np.asarray(layer.z, float)],
        "coloraxis": reference("coloraxis", k),
        "hovertemplate": "%{z:.5~g} at %{x:.5~g}, %{y:.5~g}<extra></extra>",
    }


def _rule(layer: Rule, panel: Panel, k: int, left: bool) -> Parts:
    along, across, axis = ("x", "y", panel.y) if layer.axis == "y" else ("y", "x", panel.x)
    place = on_axis(layer.value, axis)
    if not np.isfinite(place):
        return Parts()
    shade, value = palette.colour(layer.colour), rounded(float(placed(layer.value, axis)))
    refs = {f"{along}ref": f"{reference(along, k)} domain", f"{across}ref": reference(across, k)}
    line = {"color": shade, "width": 1.4, "dash": layer.dash}
    shape = refs | {"type": "line", "line": line, f"{along}0": 0, f"{along}1": 1}
    shape |= {f"{across}0": value, f"{across}1": value}
    font = {"color": palette.text_colour(layer.colour)}
    note = refs | {along: 0 if left else 1, across: place, "showarrow": False, "font": font}
    note |= {"xanchor": "left" if left else "right", "yanchor": "bottom" if along == "x" else "top"}
    note |= {"text": words(layer.label), "textangle": 0 if along == "x" else -90}
    return Parts(shapes=[shape], annotations=[note] if layer.label else [])


def _span(layer: Span, panel: Panel, k: int) -> list[Entry]:
    shade = palette.colour(layer.colour)
    font = {"color": palette.text_colour(layer.colour), "size": 12}
    return [
        {
            "type": "rect",
            "layer": "below",
            "xref": reference("x", k),
            "yref": f"{reference('y', k)} domain",
            "x0": rounded(float(placed(layer.low, panel.x))),
            "x1": rounded(float(placed(layer.high, panel.x))),
            "y0": 0,
            "y1": 1,
            "line": {"width": 0},
            "fillcolor": palette.see_through(shade, palette.SPAN_OPACITY),
            "label": {"text": words(layer.label), "textposition": "top center", "font": font},
        }
    ]


def _remark(layer: Text, panel: Panel, k: int) -> list[Entry]:
    place = [on_axis(value, axis) for value, axis in ((layer.x, panel.x), (layer.y, panel.y))]
    if not np.isfinite(place).all():
        return []
    note = {"x": place[0], "y": place[1], "xref": reference("x", k), "yref": reference("y", k)}
    font = {"color": palette.text_colour(layer.colour)}
    return [note | {"text": words(layer.text), "showarrow": False, "font": font}]


def _panel_title(panel: Panel, k: int) -> Entry:
    place = {
        "x": 0.5,
        "y": 1,
        "xref": f"{reference('x', k)} domain",
        "yref": f"{reference('y', k)} domain",
    }
    look = {"showarrow": False, "yanchor": "bottom", "font": {"size": 14}}
    return place | {"text": words(panel.title)} | look


def _scatter(
    x: list[float | None], y: list[float | None], label: str, layer: Layer, cue: palette.Cue
) -> Entry:
    look = f"{type(layer).__name__} {layer.colour} {cue}"  # type: ignore[union-attr]
    named = {"name": words(label), "legendgroup": f"{label}|{look}"}
    return {"type": "scatter", "x": x, "y": y, **named, "hovertemplate": _HOVER}


def nothing(place: Sequence[Any] = ()) -> Entry:
    """A trace that shows nothing."""
    empty = {"type": "scatter", "x": list(place), "y": list(place)}
    return empty | {"hoverinfo": "skip", "showlegend": False}


def _symbol(cue: palette.Cue) -> str:
    return _SYMBOLS[cue.marker] + ("-open" if cue.hollow else "")
