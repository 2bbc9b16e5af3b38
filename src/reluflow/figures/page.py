"""Figures on a page: plain data for plotly.js, without importing plotly.

`to_plotly` returns ``{"data": ..., "layout": ..., "frames": ...}`` of texts, numbers and lists, as
``Plotly.react`` takes them. Numbers keep eight digits and long curves their envelope only, so that
a page stays small. All words are escaped: plotly reads a few HTML tags in texts, ours hold none.
Colours are those of the light theme; `palette.to_dark` maps each to the dark one.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.errors import InputError
from reluflow.figures import palette
from reluflow.figures.description import (
    Arrows,
    Axis,
    Figure,
    Heat,
    Layer,
    Line,
    Panel,
    Points,
    Raster,
    Rule,
    Span,
    Text,
    edges,
    middles,
)

POINTS = 40_000  # of all curves of a figure together, all frames
CELLS_WITH_TEXT = 20_000  # a raster above this size shows no category on hover
Entry = dict[str, Any]
Name = Literal["x", "y"]
_PX = 4 / 3  # pixels in a point of typography
_MARGIN = {"l": 64, "r": 20, "t": 30, "b": 56}
_GAP_PX = 84  # between rows: tick labels, axis title, panel title
_SYMBOLS = {"circle": "circle", "square": "square", "triangle": "triangle-up"}
_SYMBOLS |= {"diamond": "diamond", "cross": "x", "none": "circle"}
_HOVER = "%{x:.5~g}, %{y:.5~g}<extra>%{fullData.name}</extra>"


@dataclass
class _Parts:
    """What layers become: traces, and the shapes and annotations of the layout."""

    data: list[Entry] = field(default_factory=list)
    shapes: list[Entry] = field(default_factory=list)
    annotations: list[Entry] = field(default_factory=list)

    def add(self, *others: _Parts) -> _Parts:
        for other in others:
            self.data += other.data
            self.shapes += other.shapes
            self.annotations += other.annotations
        return self


def to_plotly(figure: Figure) -> Entry:
    """Describe a figure for plotly.js.

    Returns
    -------
    dict
        ``data``, ``layout`` and ``frames`` (one for each `Frame`; it replaces the traces of the
        first panel, and the shapes and annotations of the layout). ``layout.meta.frames`` lists the
        labels of the frames, ``layout.meta.narrow`` what a narrow screen changes in the layout.
    """
    if not isinstance(figure, Figure):
        raise InputError(
            f"`figure` is a {type(figure).__name__}, not a Figure. There is nothing to draw. "
            "Describe it with reluflow.figures."
        )
    first, limit = figure.panels[0], _points_per_line(figure)
    starts = [frame.layers for frame in figure.frames] or [first.layers]
    shown = [_draw(first, 0, layers, limit) for layers in starts]
    others = [_draw(panel, k, panel.layers, limit) for k, panel in enumerate(figure.panels) if k]
    count = max(len(parts.data) for parts in shown)
    for parts in shown:  # every frame has the same number of traces
        parts.data += [_nothing() for _ in range(count - len(parts.data))]
    pages = [_Parts().add(parts, *others) for parts in shown]
    for parts in [pages[0], *shown[1:]]:
        _name_once(parts.data)
    layout = _layout(figure, starts)
    layout |= {"shapes": pages[0].shapes, "annotations": pages[0].annotations}
    frames = [
        {
            "name": str(k),
            "data": parts.data,
            "traces": list(range(count)),
            "layout": {"shapes": page.shapes, "annotations": page.annotations},
        }
        for k, (parts, page) in enumerate(zip(shown, pages, strict=True))
        if figure.frames
    ]
    return {"data": pages[0].data, "layout": layout, "frames": frames}


def remarks(figure: Figure) -> list[str]:
    """What the figure cannot show, in words: values at or below zero on a log axis."""
    found = []
    for k, panel in enumerate(figure.panels):
        shown = [frame.layers for frame in figure.frames] if k == 0 and figure.frames else []
        layers = [layer for group in shown or [panel.layers] for layer in group]
        for name, axis in _axes(panel):
            values = np.concatenate([np.empty(0), *_values(layers, name, axis)])
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


# ---------------------------------------------------------------- layers


def _draw(panel: Panel, k: int, layers: Sequence[Layer], limit: int) -> _Parts:
    parts = _Parts()
    for layer, cue in zip(layers, palette.cues(layers), strict=True):
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
            parts.add(_rule(layer, panel, k))
        elif isinstance(layer, Span):
            parts.shapes += _span(layer, k)
        else:
            parts.annotations += _remark(layer, panel, k)
    if panel.title:
        parts.annotations.append(_panel_title(panel, k))
    for trace in parts.data:
        trace |= {"xaxis": _ref("x", k), "yaxis": _ref("y", k)}
    return parts


def _line(layer: Line, cue: palette.Cue, panel: Panel, limit: int) -> list[Entry]:
    keep = _thinned(layer, limit)
    x, y = np.asarray(layer.x, float)[keep], np.asarray(layer.y, float)[keep]
    shade = palette.colour(layer.colour)
    trace = _scatter(_numbers(x, panel.x), _numbers(y, panel.y), layer.label, layer, cue)
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
        [_numbers(x, panel.x), _numbers(low, panel.y), _numbers(high, panel.y)], dtype=object
    )
    whole = np.flatnonzero((drawn != None).all(axis=0))  # noqa: E711 - compared entry by entry
    xs: list[Any] = []
    ys: list[Any] = []
    for part in np.split(whole, np.flatnonzero(np.diff(whole) > 1) + 1):
        xs += [*drawn[0, part], *drawn[0, part[::-1]], None]
        ys += [*drawn[2, part], *drawn[1, part[::-1]], None]
    return {
        **_nothing(),
        "x": xs,
        "y": ys,
        "mode": "lines",
        "line": {"width": 0},
        "fill": "toself",
        "fillcolor": palette.see_through(shade, palette.BAND_OPACITY),
    }


def _points(layer: Points, cue: palette.Cue, panel: Panel) -> Entry:
    x, y = _numbers(layer.x, panel.x), _numbers(layer.y, panel.y)
    trace = _scatter(x, y, layer.label, layer, cue)
    size = np.asarray(layer.size, float) * _PX
    marker: Entry = {"color": palette.colour(layer.colour), "symbol": _symbol(cue)}
    marker |= {"opacity": layer.opacity, "size": np.round(size, 2).tolist()}
    trace |= {"mode": "markers", "marker": marker}
    if layer.text:
        trace["text"] = [_words(text) for text in layer.text]
        trace["hovertemplate"] = "%{text}<br>" + _HOVER
    return trace


def _arrows(layer: Arrows, cue: palette.Cue, panel: Panel) -> Entry:
    """Shafts with gaps between them; a head on every second point looks back along its shaft."""
    x = np.column_stack([layer.x0, layer.x, np.full(len(layer.x), np.nan)]).ravel()
    y = np.column_stack([layer.y0, layer.y, np.full(len(layer.y), np.nan)]).ravel()
    shade = palette.colour(layer.colour)
    trace = _scatter(_numbers(x, panel.x), _numbers(y, panel.y), layer.label, layer, cue)
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
        "x": _numbers(layer.x, panel.x),
        "y": _numbers(layer.y, panel.y),
        "z": _bytes(z),
        "zmin": -0.5,
        "zmax": count - 0.5,
        "colorscale": scale,
        "showscale": False,
        "hovertemplate": "%{x:.5~g}<extra></extra>",
    }
    if z.size <= CELLS_WITH_TEXT:
        names = [_words(text) for text in layer.categories]
        cells["text"] = [[names[value] for value in row] for row in z]
        cells["hovertemplate"] = "%{text}, %{x:.5~g}<extra></extra>"
    keys = [
        {
            **_nothing([None]),
            "mode": "markers",
            "name": _words(text),
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
    return [{**_nothing(), "x": _numbers(x, panel.x), "y": _numbers(y, panel.y), **drawn}]


def _heat(layer: Heat, panel: Panel, k: int) -> Entry:
    rows, columns = np.shape(layer.z)
    free = Axis("")  # the values of the cells have no axis
    return {
        "type": "heatmap",
        "x": _numbers(edges(layer.x, columns, panel.x), panel.x),
        "y": _numbers(edges(layer.y, rows, panel.y), panel.y),
        "z": [_numbers(row, free) for row in np.asarray(layer.z, float)],
        "coloraxis": _ref("coloraxis", k),
        "hovertemplate": "%{z:.5~g} at %{x:.5~g}, %{y:.5~g}<extra></extra>",
    }


def _rule(layer: Rule, panel: Panel, k: int) -> _Parts:
    along, across, axis = ("x", "y", panel.y) if layer.axis == "y" else ("y", "x", panel.x)
    place = _on_axis(layer.value, axis)
    if not np.isfinite(place):
        return _Parts()
    shade, value = palette.colour(layer.colour), _rounded(layer.value)
    refs = {f"{along}ref": f"{_ref(along, k)} domain", f"{across}ref": _ref(across, k)}
    line = {"color": shade, "width": 1.4, "dash": layer.dash}
    shape = refs | {"type": "line", "line": line, f"{along}0": 0, f"{along}1": 1}
    shape |= {f"{across}0": value, f"{across}1": value}
    font = {"color": palette.text_colour(layer.colour)}
    note = refs | {along: 1, across: place, "showarrow": False, "font": font}
    note |= {"xanchor": "right", "yanchor": "bottom" if along == "x" else "top"}
    note |= {"text": _words(layer.label), "textangle": 0 if along == "x" else -90}
    return _Parts(shapes=[shape], annotations=[note] if layer.label else [])


def _span(layer: Span, k: int) -> list[Entry]:
    shade = palette.colour(layer.colour)
    font = {"color": palette.text_colour(layer.colour), "size": 12}
    return [
        {
            "type": "rect",
            "layer": "below",
            "xref": _ref("x", k),
            "yref": f"{_ref('y', k)} domain",
            "x0": _rounded(layer.low),
            "x1": _rounded(layer.high),
            "y0": 0,
            "y1": 1,
            "line": {"width": 0},
            "fillcolor": palette.see_through(shade, palette.SPAN_OPACITY),
            "label": {"text": _words(layer.label), "textposition": "top center", "font": font},
        }
    ]


def _remark(layer: Text, panel: Panel, k: int) -> list[Entry]:
    place = [_on_axis(value, axis) for value, axis in ((layer.x, panel.x), (layer.y, panel.y))]
    if not np.isfinite(place).all():
        return []
    note = {"x": place[0], "y": place[1], "xref": _ref("x", k), "yref": _ref("y", k)}
    font = {"color": palette.text_colour(layer.colour)}
    return [note | {"text": _words(layer.text), "showarrow": False, "font": font}]


def _panel_title(panel: Panel, k: int) -> Entry:
    place = {"x": 0.5, "y": 1, "xref": f"{_ref('x', k)} domain", "yref": f"{_ref('y', k)} domain"}
    look = {"showarrow": False, "yanchor": "bottom", "font": {"size": 14}}
    return place | {"text": _words(panel.title)} | look


# ---------------------------------------------------------------- layout


def _layout(figure: Figure, starts: Sequence[Sequence[Layer]]) -> Entry:
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
        for name, axis in _axes(panel):
            layout[_ref(f"{name}axis", k)] = _axis(axis, layers[k], name)
        layout[_ref("yaxis", k)]["anchor"] = _ref("x", k)
        layout[_ref("xaxis", k)]["anchor"] = _ref("y", k)
        if panel.equal:
            layout[_ref("yaxis", k)] |= {"scaleanchor": _ref("x", k), "constrain": "domain"}
            layout[_ref("xaxis", k)]["constrain"] = "domain"
    wide = _places(figure, max(1, figure.columns), "wide")
    narrow = _places(figure, 1, "narrow")
    for key, value in wide.items():
        layout[key] = layout.get(key, {}) | value if isinstance(value, dict) else value
    layout["meta"] = {"frames": [_words(f.label) for f in figure.frames], "narrow": narrow}
    return layout


def _places(figure: Figure, columns: int, screen: str) -> Entry:
    """Where the panels are in a grid of so many columns, as a part of the layout."""
    panels = figure.panels
    rows = [range(k, min(k + columns, len(panels))) for k in range(0, len(panels), columns)]
    heights = [max(_height_px(panels[k], screen) for k in row) for row in rows]
    total = sum(heights) + _GAP_PX * (len(rows) - 1)
    found: Entry = {"height": total + _MARGIN["t"] + _MARGIN["b"] + 40}  # 40: the legend
    gap = 0.1 if columns > 1 else 0.0
    width = (1 - gap * (columns - 1)) / columns
    top = 0
    for row, height in zip(rows, heights, strict=True):
        tall = [round(1 - (top + height) / total, 4), round(1 - top / total, 4)]
        for place, k in enumerate(row):
            left = place * (width + gap)
            bars = [layer for layer in panels[k].layers if isinstance(layer, Heat)]
            right = left + width - (0.14 if bars else 0.0)
            found[_ref("xaxis", k)] = {"domain": [round(left, 4), round(right, 4)]}
            found[_ref("yaxis", k)] = {"domain": tall}
            if bars:
                found[_ref("coloraxis", k)] = _colour_bar(bars[0], right, tall)
        top += height + _GAP_PX
    return found


def _height_px(panel: Panel, screen: str) -> int:
    if panel.equal:
        return 440 if screen == "wide" else 300
    return 360 if any(isinstance(layer, Raster) for layer in panel.layers) else 310


def _colour_bar(layer: Heat, right: float, tall: Sequence[float]) -> Entry:
    bar: Entry = {"x": round(right + 0.01, 4), "y": sum(tall) / 2, "len": tall[1] - tall[0]}
    title = {"text": _words(layer.label), "side": "right"}
    bar |= {"thickness": 12, "title": title, "exponentformat": "power"}
    return {"colorscale": "Viridis", "colorbar": bar}


def _axis(axis: Axis, layers: Sequence[Layer], name: Name) -> Entry:
    low, high = _range(axis, layers, name)
    cells = any(isinstance(layer, Raster | Heat) for layer in layers)
    found: Entry = {
        "title": {"text": _words(axis.label), "standoff": 8},
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
        found["tickvals"] = [_rounded(value) for value, _ in axis.ticks]
        found["ticktext"] = [_words(text) for _, text in axis.ticks]
    elif axis.scale == "log" and abs(high - low) > 1.5:
        found["dtick"] = int(np.ceil(abs(high - low) / 8))  # whole decades only
    return found


def _range(axis: Axis, layers: Sequence[Layer], name: Name) -> tuple[float, float]:
    """The ends of an axis, in decades if it is logarithmic: those given, or all data and a bit."""
    if axis.range is not None:
        low, high = (_on_axis(end, axis) for end in axis.range)
        return low, high
    values = np.concatenate([np.empty(0), *_values(layers, name, axis)])
    values = values[values > 0] if axis.scale == "log" else values
    if not len(values):
        return 0.0, 1.0
    low, high = _on_axis(values.min(), axis), _on_axis(values.max(), axis)
    if any(isinstance(layer, Raster | Heat) for layer in layers) and low < high:
        return low, high
    bit = 0.04 * (high - low) or 0.5
    return _rounded(low - bit), _rounded(high + bit)


def _values(layers: Iterable[Layer], name: Name, axis: Axis) -> list[Array]:
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


# ---------------------------------------------------------------- numbers and words


def _points_per_line(figure: Figure) -> int:
    groups = [panel.layers for panel in figure.panels] + [frame.layers for frame in figure.frames]
    lines = sum(isinstance(layer, Line) for layers in groups for layer in layers)
    return max(40, min(2000, POINTS // max(1, lines)))


def _thinned(layer: Line, limit: int) -> NDArray[np.intp]:
    """Which points of a curve to keep: of each stretch the ends, the least, the largest, a gap."""
    count = len(layer.x)
    if count <= limit:
        return np.arange(count)
    y = np.asarray(layer.y, float)
    gaps = np.isnan(y) | np.isnan(np.asarray(layer.x, float))
    kept = {0, count - 1}
    for part in np.array_split(np.arange(count), max(1, limit // 4)):
        kept |= {int(part[0]), int(part[np.argmin(np.where(gaps[part], np.inf, y[part]))])}
        kept |= {int(part[np.argmax(np.where(gaps[part], -np.inf, y[part]))])}
        kept |= {int(k) for k in part[gaps[part]][:1]}
    return np.array(sorted(kept))


def _numbers(values: Any, axis: Axis) -> list[float | None]:
    """Eight digits each; None where the axis has no place for the number."""
    array = np.asarray(values, float)
    shown = np.isfinite(array) & ((array > 0) | (axis.scale != "log"))
    return [_rounded(value) if ok else None for value, ok in zip(array, shown, strict=True)]


def _rounded(value: float) -> float:
    return float(f"{value:.8g}")


def _on_axis(value: float, axis: Axis) -> float:
    """Where plotly has a number on an axis: its decimal logarithm on a log axis."""
    if axis.scale != "log":
        return _rounded(value)
    return _rounded(np.log10(value)) if value > 0 else float("nan")


def _bytes(z: NDArray[Any]) -> Entry:
    """Small whole numbers as plotly's typed arrays: a byte for each cell."""
    rows, columns = z.shape
    body = base64.b64encode(np.ascontiguousarray(z, dtype=np.uint8).tobytes()).decode()
    return {"dtype": "u1", "bdata": body, "shape": f"{rows}, {columns}"}


def _scatter(
    x: list[float | None], y: list[float | None], label: str, layer: Layer, cue: palette.Cue
) -> Entry:
    look = f"{type(layer).__name__} {layer.colour} {cue}"  # type: ignore[union-attr]
    named = {"name": _words(label), "legendgroup": f"{label}|{look}"}
    return {"type": "scatter", "x": x, "y": y, **named, "hovertemplate": _HOVER}


def _nothing(place: Sequence[Any] = ()) -> Entry:
    empty = {"type": "scatter", "x": list(place), "y": list(place)}
    return empty | {"hoverinfo": "skip", "showlegend": False}


def _symbol(cue: palette.Cue) -> str:
    return _SYMBOLS[cue.marker] + ("-open" if cue.hollow else "")


def _axes(panel: Panel) -> tuple[tuple[Name, Axis], tuple[Name, Axis]]:
    return ("x", panel.x), ("y", panel.y)


def _ref(name: str, k: int) -> str:
    """``x``, ``x2``, ``x3``: what plotly calls things of the k-th panel."""
    return name if k == 0 else f"{name}{k + 1}"


def _words(text: str) -> str:
    return html.escape(text, quote=False)
