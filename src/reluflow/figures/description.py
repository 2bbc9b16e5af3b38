"""Figure: a picture described once, as data; drawn by `paper` (matplotlib) or `page` (plotly).

A figure is a grid of panels; a panel has two axes and layers, drawn in order. Colours are numbers
0..7 of one palette that colour-blind readers can tell apart (`palette`); a second cue, dash or
marker, goes with every colour. Descriptions hold numbers only: they are computed elsewhere, and
tests look at them instead of at pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from reluflow.errors import InputError

Scale = Literal["linear", "log"]
Dash = Literal["solid", "dash", "dot", "dashdot"]
Marker = Literal["circle", "square", "triangle", "diamond", "cross", "none"]
# in the order in which lines and clouds of a panel take them
DASHES: tuple[Dash, ...] = ("solid", "dash", "dot", "dashdot")
MARKERS: tuple[Marker, ...] = ("circle", "square", "triangle", "diamond", "cross")
Values = NDArray[Any]


@dataclass(frozen=True)
class Axis:
    """Label, scale and, if not chosen by the data, the range (in data units).

    ``ticks`` replaces the numbers by texts: pairs (value, text). ``pace`` bends a linear axis so
    that values stand at places of one's choice: pairs (value, place) that rise, straight between.
    """

    label: str
    scale: Scale = "linear"
    range: tuple[float, float] | None = None
    ticks: tuple[tuple[float, str], ...] = ()
    pace: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        if self.pace and not (
            self.scale == "linear"
            and len(self.pace) > 1
            and (np.diff(np.array(self.pace, float), axis=0) > 0.0).all()
        ):
            raise InputError(
                f"the pace of the axis {self.label!r} does not rise, or its scale is not linear. "
                "It cannot be drawn. Give two or more pairs (value, place) that rise in both."
            )
        if self.range is not None:
            low, high = self.range
            lowest = 0.0 if self.scale == "log" else -np.inf
            if not (np.isfinite([low, high]).all() and min(low, high) > lowest and low != high):
                raise InputError(
                    f"the {self.scale} axis {self.label!r} has the range {low:g} to {high:g}. "
                    "It cannot be drawn. Give two different finite numbers, positive on a log axis."
                )


@dataclass(frozen=True)
class Line:
    """A curve through points; NaN breaks it; ``low`` and ``high`` draw a band around it."""

    x: Values
    y: Values
    label: str = ""
    colour: int = 0
    dash: Dash = "solid"
    marker: Marker = "none"
    width: float = 1.5
    opacity: float = 1.0
    low: Values | None = None
    high: Values | None = None

    def __post_init__(self) -> None:
        _same_length(self.x, self.y, self.low, self.high)


@dataclass(frozen=True)
class Points:
    """Markers at points; ``size`` in points of typography, one or one each; ``text`` on hover."""

    x: Values
    y: Values
    label: str = ""
    colour: int = 0
    marker: Marker = "circle"
    size: float | Values = 5.0
    opacity: float = 1.0
    text: Sequence[str] = ()

    def __post_init__(self) -> None:
        _same_length(self.x, self.y, self.size if np.ndim(self.size) else None, self.text or None)


@dataclass(frozen=True)
class Arrows:
    """Arrows from (x0, y0) to (x, y), as for neuron directions."""

    x0: Values
    y0: Values
    x: Values
    y: Values
    label: str = ""
    colour: int = 0
    opacity: float = 1.0

    def __post_init__(self) -> None:
        _same_length(self.x, self.y, self.x0, self.y0)


@dataclass(frozen=True)
class Rule:
    """A reference line across the panel at one value of an axis, with its text."""

    value: float
    axis: Literal["x", "y"] = "y"
    label: str = ""
    colour: int = 7
    dash: Dash = "dash"


@dataclass(frozen=True)
class Span:
    """A shaded stretch of the x axis, with its text."""

    low: float
    high: float
    label: str = ""
    colour: int = 7


@dataclass(frozen=True)
class Raster:
    """Cells ``z[row, column]`` of whole numbers, each naming a category; edges of the cells.

    ``x`` has one value more than columns, ``y`` one more than rows. ``rows`` names them on hover.
    """

    x: Values
    y: Values
    z: NDArray[np.integer[Any]]
    categories: tuple[str, ...]
    colours: tuple[int, ...]
    rows: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        rows, columns = np.shape(self.z)
        if len(self.x) != columns + 1 or len(self.y) != rows + 1:
            raise InputError(
                f"a raster of {rows} x {columns} cells has {len(self.y)} and {len(self.x)} edges. "
                "Edges are one more than cells. Give them so."
            )
        if len(self.rows) not in (0, rows):
            raise InputError(
                f"a raster of {rows} rows has {len(self.rows)} names. Name all or none."
            )
        if len(self.categories) != len(self.colours):
            raise InputError(
                f"a raster has {len(self.categories)} categories and {len(self.colours)} colours. "
                "Give one colour each."
            )


@dataclass(frozen=True)
class Heat:
    """Cells ``z[row, column]`` of real numbers on a sequential colour scale with a bar.

    ``x`` and ``y`` are the edges of the cells (one more than cells) or their middles (as many).
    """

    x: Values
    y: Values
    z: Values
    label: str = ""

    def __post_init__(self) -> None:
        rows, columns = np.shape(self.z)
        if len(self.x) not in (columns, columns + 1) or len(self.y) not in (rows, rows + 1):
            raise InputError(
                f"a heat map of {rows} x {columns} cells has {len(self.y)} and {len(self.x)} "
                "places. Give the middles of the cells, or their edges, which are one more."
            )


@dataclass(frozen=True)
class Text:
    """A short text at a point of the panel."""

    x: float
    y: float
    text: str
    colour: int = 7


Layer = Line | Points | Arrows | Rule | Span | Raster | Heat | Text


@dataclass(frozen=True)
class Panel:
    """Two axes and the layers between them; ``equal`` gives both axes the same unit."""

    title: str
    x: Axis
    y: Axis
    layers: tuple[Layer, ...]
    equal: bool = False


@dataclass(frozen=True)
class Frame:
    """One moment of a movie: its label and the layers that replace those of the first panel.

    ``time`` is where the moment lies on the axes of figures with a ``cursor``.
    """

    label: str
    layers: tuple[Layer, ...]
    time: float | None = None


@dataclass(frozen=True)
class Figure:
    """A grid of panels with a name (its file name), a title and a caption.

    ``frames`` turns the first panel into a movie: a page shows a slider with play and pause, paper
    shows first, middle and last frame side by side. ``first_frame`` is the one a page opens with.
    ``cursor`` says that the x axes are the times of frames: a page marks there the moment that a
    movie shows. ``wide`` is 6.75 in on paper, otherwise 3.25.
    """

    name: str
    title: str
    panels: tuple[Panel, ...]
    columns: int = 1
    caption: str = ""
    wide: bool = True
    frames: tuple[Frame, ...] = field(default=())
    first_frame: int = 0
    cursor: bool = False

    def __post_init__(self) -> None:
        if not self.panels:
            raise InputError(f"the figure {self.name!r} has no panel. Give one.")


def _same_length(x: Any, *others: Any) -> None:
    lengths = {len(x), *(len(other) for other in others if other is not None)}
    if len(lengths) > 1:
        raise InputError(f"a layer has arrays of lengths {sorted(lengths)}. Make them equal.")
