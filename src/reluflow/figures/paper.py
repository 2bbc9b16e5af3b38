"""Figures on paper: PDF (vector, fonts embedded) and PNG, drawn by matplotlib.

Widths are those of a column and of a page, 3.25 and 6.75 in. No global state of matplotlib is read
or changed, and no date is written: equal descriptions give equal bytes with equal versions.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from reluflow import files
from reluflow.errors import InputError, MissingExtraError
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
)
from reluflow.figures.places import edges, middles, on_the_left, placed, unplaced
from reluflow.figures.typeset import mathtext

NARROW_IN, WIDE_IN = 3.25, 6.75
PNG_DPI = 300
_MARKERS = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D", "cross": "x", "none": ""}
_DASHES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
_SETTINGS = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same on every machine
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "axes.linewidth": 0.6,
    "axes.edgecolor": palette.INK["light"],
    "text.color": palette.INK["light"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": palette.GRID["light"],
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "pdf.fonttype": 42,  # TrueType, whole outlines: editable, and accepted by publishers
    "pdf.compression": 6,
}


def write(figure: Figure, folder: str | PathLike[str]) -> tuple[Path, Path]:
    """Draw a figure and write ``<name>.pdf`` and ``<name>.png`` into a folder.

    A movie becomes its first, middle and last frame side by side, always 6.75 in wide: three
    panels do not fit into a column.

    Parameters
    ----------
    figure : Figure
        The description.
    folder : path
        Made if it does not exist.

    Returns
    -------
    pdf, png : Path
        The files written; old ones of these names are replaced, each at once.
    """
    if not isinstance(figure, Figure):
        raise InputError(
            f"`figure` is a {type(figure).__name__}, not a Figure. There is nothing to draw. "
            "Describe it with reluflow.figures."
        )
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", figure.name):
        raise InputError(
            f"the figure name {figure.name!r} is not a file name. Its files cannot be written. "
            "Use letters, digits, `_`, `-` and dots."
        )
    target = Path(folder)
    paths = target / f"{figure.name}.pdf", target / f"{figure.name}.png"
    with _settings():
        drawn = _draw(figure)
        bodies = [_render(drawn, kind) for kind in ("pdf", "png")]
    for path, body in zip(paths, bodies, strict=True):
        files.write_bytes(path, body)
    return paths


def picture(figure: Figure) -> Any:
    """Draw a figure as a Matplotlib figure, which a notebook shows and ``savefig`` writes."""
    with _settings():
        drawn = _draw(figure)
    drawn._repr_png_ = lambda: _png(drawn)
    return drawn


def draw_on(axes: Any, panel: Panel) -> None:
    """Draw one panel on axes of the caller, in the caller's style."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Data has no positive values")
        _draw_panel(axes, panel)
        keys = _keys(panel)
        if keys:
            labels = [_text(label) for label, _ in keys]
            axes.legend(list(keys.values()), labels, frameon=False, fontsize="small")


@contextmanager
def _settings() -> Iterator[None]:
    """Our settings on top of matplotlib's own defaults, whatever the user's are; then undone."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtraError(
            "drawing on paper needs matplotlib. Install it with: pip install 'reluflow[report]'"
        ) from None
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Data has no positive values")  # the panel stays empty
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def _render(drawn: Any, kind: str) -> bytes:
    buffer = io.BytesIO()
    metadata = {"CreationDate": None} if kind == "pdf" else {"Software": None}
    drawn.savefig(buffer, format=kind, dpi=PNG_DPI, metadata=metadata)
    drawn.set_layout_engine("none")  # the second file keeps the places found for the first
    return buffer.getvalue()


def _png(drawn: Any) -> bytes:
    buffer = io.BytesIO()
    drawn.savefig(buffer, format="png", dpi=150)
    return buffer.getvalue()


def _draw(figure: Figure) -> Any:
    from matplotlib.figure import Figure as Canvas

    rows = _rows(figure)
    width = WIDE_IN if figure.wide or figure.frames else NARROW_IN
    heights = [max(_height(panel, width / len(row)) for panel in row) for row in rows]
    keys = {look: key for row in rows for panel in row for look, key in _keys(panel).items()}
    longest = max((len(label) for label, _ in keys), default=1)
    columns = max(1, min(len(keys), int(width / (0.45 + 0.062 * longest))))
    legend_in = 0.17 * -(-len(keys) // columns)
    canvas = Canvas(figsize=(width, sum(heights) + legend_in), layout="constrained")
    grid = canvas.add_gridspec(len(rows), 1, height_ratios=heights)
    for k, row in enumerate(rows):
        strip = grid[k].subgridspec(1, len(row))
        first: Any = None
        for column, panel in enumerate(row):
            tied = first if figure.frames and k == 0 else None  # frames share their axes
            axes = canvas.add_subplot(strip[column], sharex=tied, sharey=tied)
            _draw_panel(axes, panel)
            first = first or axes
    if keys:
        canvas.legend(
            list(keys.values()),
            [_text(label) for label, _ in keys],
            loc="outside lower center",
            ncols=columns,
            frameon=False,
            columnspacing=1.2,
        )
    return canvas


def _rows(figure: Figure) -> list[list[Panel]]:
    """The panels row by row; the frames of a movie are a row of their own."""
    panels = list(figure.panels)
    rows: list[list[Panel]] = []
    if figure.frames:
        last = len(figure.frames) - 1
        shown = [figure.frames[k] for k in sorted({0, last // 2, last})]
        movie = panels.pop(0)
        rows.append([replace(movie, title=one.label, layers=one.layers) for one in shown])
        rows[0][1:] = [replace(panel, y=replace(panel.y, label="")) for panel in rows[0][1:]]
    columns = max(1, figure.columns)
    return rows + [panels[k : k + columns] for k in range(0, len(panels), columns)]


def _height(panel: Panel, width: float) -> float:
    if panel.equal:
        return width
    return min(3.4, (0.8 if any(isinstance(x, Raster) for x in panel.layers) else 0.7) * width)


def _draw_panel(axes: Any, panel: Panel) -> None:
    axes.set_xscale(**_scale(panel.x))
    axes.set_yscale(**_scale(panel.y))
    left = on_the_left(panel.layers, panel.y)
    for k, (layer, cue) in enumerate(zip(panel.layers, palette.cues(panel.layers), strict=True)):
        _draw_layer(axes, panel, layer, cue, left=k in left)
    axes.set_title(_text(panel.title))
    _set_axis(axes, axes.xaxis, panel.x)
    _set_axis(axes, axes.yaxis, panel.y)
    if panel.equal:
        axes.set_aspect("equal", adjustable="box")
    if any(isinstance(layer, Raster | Heat) for layer in panel.layers):
        axes.grid(False)


def _scale(axis: Axis) -> dict[str, Any]:
    if axis.pace:
        ways = (lambda values: placed(values, axis)), (lambda places: unplaced(places, axis))
        return {"value": "function", "functions": ways}
    return {"value": axis.scale} | ({"nonpositive": "mask"} if axis.scale == "log" else {})


def _set_axis(axes: Any, drawn: Any, axis: Axis) -> None:
    name = drawn.axis_name
    drawn.set_label_text(_text(axis.label))
    if axis.range is not None:
        getattr(axes, f"set_{name}lim")(axis.range)
    if axis.ticks:
        drawn.set_ticks([value for value, _ in axis.ticks], [_text(text) for _, text in axis.ticks])
        drawn.set_ticks([], minor=True)
    elif axis.scale == "linear":
        axes.locator_params(name, nbins=6)


def _draw_layer(axes: Any, panel: Panel, layer: Layer, cue: palette.Cue, left: bool) -> None:
    if isinstance(layer, Line):
        _draw_line(axes, layer, cue)
    elif isinstance(layer, Rule):
        _draw_rule(axes, layer, left)
    elif isinstance(layer, Points):
        area = np.broadcast_to(np.asarray(layer.size, float), np.shape(layer.x)) ** 2
        style = _marker_style(layer, cue)
        face = {"facecolors": "none"} if cue.hollow else {}
        axes.scatter(layer.x, layer.y, area, alpha=layer.opacity, linewidths=0.6, **style, **face)
    elif isinstance(layer, Arrows):
        _draw_arrows(axes, layer, cue)
    elif isinstance(layer, Span):
        shade = palette.colour(layer.colour)
        axes.axvspan(layer.low, layer.high, color=shade, alpha=palette.SPAN_OPACITY, linewidth=0)
        middle = middles(np.array([layer.low, layer.high]), panel.x)[0]
        _remark(axes, middle, 0.98, layer, axes.get_xaxis_transform(), ha="center", va="top")
    elif isinstance(layer, Raster):
        _draw_raster(axes, panel, layer)
    elif isinstance(layer, Heat):
        _draw_heat(axes, panel, layer)
    else:
        _remark(axes, layer.x, layer.y, layer, axes.transData, ha="center", va="center")


def _draw_line(axes: Any, layer: Line, cue: palette.Cue) -> None:
    shade = palette.colour(layer.colour)
    if layer.low is not None and layer.high is not None:
        opacity = palette.BAND_OPACITY
        axes.fill_between(layer.x, layer.low, layer.high, color=shade, alpha=opacity, linewidth=0)
    every = (0.04 * (1 + layer.colour), 0.25) if cue.sparse else None
    axes.plot(layer.x, layer.y, alpha=layer.opacity, markevery=every, **_line_style(layer, cue))


def _draw_arrows(axes: Any, layer: Arrows, cue: palette.Cue) -> None:
    from matplotlib.patches import FancyArrowPatch

    ends = np.column_stack([layer.x0, layer.y0, layer.x, layer.y]).astype(float)
    ends = ends[np.isfinite(ends).all(axis=1)]
    for x0, y0, x, y in ends:
        arrow = FancyArrowPatch(
            (x0, y0),
            (x, y),
            arrowstyle="-|>",
            mutation_scale=6,
            shrinkA=0,
            shrinkB=0,
            linewidth=0.9,
            linestyle=_DASHES[cue.dash],
            color=palette.colour(layer.colour),
            alpha=layer.opacity,
        )
        axes.add_patch(arrow)
    if len(ends):  # patches of this kind do not widen the axes by themselves
        axes.update_datalim(ends.reshape(-1, 2))
        axes.autoscale_view()


def _draw_rule(axes: Any, layer: Rule, left: bool) -> None:
    style = {"color": palette.colour(layer.colour), "linestyle": _DASHES[layer.dash]}
    if layer.axis == "y":
        axes.axhline(layer.value, linewidth=0.9, **style)
        place = (0.01 if left else 0.99, layer.value, layer, axes.get_yaxis_transform())
        _remark(axes, *place, ha="left" if left else "right", va="bottom")
    else:
        axes.axvline(layer.value, linewidth=0.9, **style)
        place = (layer.value, 0.98, layer, axes.get_xaxis_transform())
        _remark(axes, *place, ha="right", va="top", rotation=90)


def _remark(
    axes: Any, x: float, y: float, layer: Rule | Span | Text, frame: Any, **how: Any
) -> None:
    """A small text with a halo, so that it can be read on top of curves."""
    from matplotlib.patheffects import withStroke

    words = layer.text if isinstance(layer, Text) else layer.label
    if words:
        halo = [withStroke(linewidth=1.6, foreground=palette.PAPER["light"])]
        shade = palette.text_colour(layer.colour)
        axes.text(
            x, y, _text(words), transform=frame, color=shade, fontsize=7, path_effects=halo, **how
        )


def _draw_raster(axes: Any, panel: Panel, layer: Raster) -> None:
    from matplotlib.colors import BoundaryNorm, ListedColormap

    shades = ListedColormap([palette.cell_colour(k) for k in layer.colours])
    norm = BoundaryNorm(np.arange(len(layer.colours) + 1) - 0.5, len(layer.colours))
    axes.pcolormesh(layer.x, layer.y, layer.z, cmap=shades, norm=norm, rasterized=True)
    columns, rows = palette.marked_cells(layer)
    if len(rows):
        x, y = middles(layer.x, panel.x)[columns], middles(layer.y, panel.y)[rows]
        axes.scatter(x, y, 5, color=palette.INK["light"], marker="x", linewidths=0.5)


def _draw_heat(axes: Any, panel: Panel, layer: Heat) -> None:
    rows, columns = np.shape(layer.z)
    axes.set_facecolor(palette.MISSING["light"])
    cells = axes.pcolormesh(
        edges(layer.x, columns, panel.x),
        edges(layer.y, rows, panel.y),
        np.ma.masked_invalid(layer.z),
        cmap="viridis",
        rasterized=True,
    )
    axes.figure.colorbar(cells, ax=axes, label=_text(layer.label), pad=0.02)


def _line_style(layer: Line, cue: palette.Cue) -> dict[str, Any]:
    style = _marker_style(layer, cue)
    style["linestyle"] = _DASHES[cue.dash]
    style["linewidth"] = 0.8 * layer.width
    style["markersize"] = 3.5
    style["markerfacecolor"] = "none" if cue.hollow else style["color"]
    return style


def _marker_style(layer: Line | Points, cue: palette.Cue) -> dict[str, Any]:
    return {"color": palette.colour(layer.colour), "marker": _MARKERS[cue.marker]}


def _keys(panel: Panel) -> dict[tuple[str, str], Any]:
    """What the legend shows: an entry for each label and look that goes with it."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    found: dict[tuple[str, str], Any] = {}
    for layer, cue in zip(panel.layers, palette.cues(panel.layers), strict=True):
        if isinstance(layer, Raster):
            for k, (words, shade) in enumerate(zip(layer.categories, layer.colours, strict=True)):
                patch = Patch(facecolor=palette.cell_colour(shade), edgecolor="none")
                cross = Line2D([], [], color=palette.INK["light"], marker="x", markersize=3, lw=0)
                look = words, f"cell {shade}"
                found.setdefault(look, (patch, cross) if palette.is_marked(k) else patch)
        elif isinstance(layer, Line | Points | Arrows) and layer.label:
            style = _key_style(layer, cue)
            found.setdefault((layer.label, str(style)), Line2D([], [], **style))
    return found


def _key_style(layer: Line | Points | Arrows, cue: palette.Cue) -> dict[str, Any]:
    if isinstance(layer, Line):
        return _line_style(layer, cue)
    if isinstance(layer, Arrows):
        shade = palette.colour(layer.colour)
        return {"color": shade, "linestyle": _DASHES[cue.dash], "marker": ">", "markersize": 3.5}
    face = "none" if cue.hollow else palette.colour(layer.colour)
    return {**_marker_style(layer, cue), "lw": 0, "markersize": 4, "markerfacecolor": face}


def _text(words: str) -> str:
    """Words as mathtext; a leading `_` hides no label."""
    shown = mathtext(words)
    return f"\u2009{shown}" if shown.startswith("_") else shown
