"""Eight colours that colour-blind readers can tell apart, and the second cue beside each.

Colours 0..6 are those of Okabe and Ito ("Color universal design", 2008; recommended by Wong,
Nature Methods 8:441, 2011) without the yellow, which vanishes on white; 7 is a grey for reference
lines and remarks. The dark variants keep the hues and gain lightness. Between any two colours of a
variant the CIELAB distance stays above 15 for normal, protanope, deuteranope and tritanope vision
(simulated after Machado et al. 2009).

Colour is never the only cue: where a panel has lines, points or arrows that differ in colour alone,
`cues` gives each colour its own marker, full for colours 0..4 and open for 5..7 (arrows: its own
dash). In a raster the third category and later ones carry a cross in each stretch of cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import choice, whole
from reluflow.figures.description import (
    DASHES,
    MARKERS,
    Arrows,
    Dash,
    Layer,
    Line,
    Marker,
    Points,
    Raster,
)

Theme = Literal["light", "dark"]

COLOURS: dict[Theme, tuple[str, ...]] = {
    "light": (
        "#0072b2",  # blue
        "#d55e00",  # vermilion
        "#009e73",  # green
        "#cc79a7",  # purple
        "#e69f00",  # orange
        "#56b4e9",  # sky
        "#000000",  # ink
        "#666666",  # grey
    ),
    "dark": (
        "#3d97db",
        "#f5762a",
        "#1cc08f",
        "#dc86bc",
        "#f5d547",
        "#9bdcff",
        "#fffffe",
        "#858585",
    ),
}
# background, text and grid of a figure; the dark text colour differs from colour 6 so that a
# figure can be recoloured by looking each colour up
PAPER: dict[Theme, str] = {"light": "#ffffff", "dark": "#14171a"}
INK: dict[Theme, str] = {"light": "#1b1b1b", "dark": "#e8e8e8"}
SOFT: dict[Theme, str] = {"light": "#555b61", "dark": "#a9b0b7"}
GRID: dict[Theme, str] = {"light": "#e3e3e3", "dark": "#33383d"}
MISSING: dict[Theme, str] = {"light": "#f1f1f1", "dark": "#22262a"}

BAND_OPACITY = 0.18
SPAN_OPACITY = 0.12


@dataclass(frozen=True)
class Cue:
    """What a layer is drawn with beside its colour.

    ``hollow`` markers are outlines; ``sparse`` shows a few markers of a line, not all.
    """

    dash: Dash
    marker: Marker
    hollow: bool = False
    sparse: bool = False


def colour(index: int, theme: Theme = "light") -> str:
    """The colour with this number as ``#rrggbb``.

    Examples
    --------
    >>> colour(0), colour(0, "dark")
    ('#0072b2', '#3d97db')
    """
    shades = COLOURS["dark" if choice(theme, "theme", ("light", "dark")) == "dark" else "light"]
    return shades[whole(index, "colour", at_least=0, at_most=len(shades) - 1)]


def cell_colour(index: int, theme: Theme = "light") -> str:
    """The colour of raster cells: as `colour`, but the grey recedes, being the background there."""
    return GRID[theme] if index == 7 else colour(index, theme)


def text_colour(index: int, theme: Theme = "light") -> str:
    """The colour of words that go with a colour: itself if it can be read, otherwise ink."""
    if index == 7:
        return SOFT[theme]
    return colour(index, theme) if index in (0, 6) else INK[theme]


def is_marked(category: int) -> bool:
    """Whether cells of this category carry a cross; the first two differ by lightness enough."""
    return category >= 2


def marked_cells(raster: Raster) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Columns and rows of the cells with a cross: one in the middle of each stretch of a row.

    Examples
    --------
    >>> z = np.array([[0, 2, 2, 2, 1, 2]])
    >>> marked = marked_cells(Raster(np.arange(7), np.arange(2), z, ("a", "b", "c"), (7, 0, 1)))
    >>> [part.tolist() for part in marked]
    [[2, 5], [0, 0]]
    """
    z = np.asarray(raster.z)
    is_start = np.diff(z, axis=1, prepend=z[:, :1] - 1) != 0
    is_end = np.diff(z, axis=1, append=z[:, -1:] - 1) != 0
    rows, starts = np.nonzero(is_start)
    ends = np.nonzero(is_end)[1]
    marked = z[rows, starts] >= 2
    return ((starts + ends) // 2)[marked], rows[marked]


def see_through(hexadecimal: str, opacity: float) -> str:
    """A ``#rrggbb`` colour with an opacity, as plotly and CSS write it.

    Examples
    --------
    >>> see_through("#0072b2", 0.5)
    'rgba(0,114,178,0.5)'
    """
    red, green, blue = (int(hexadecimal[k : k + 2], 16) for k in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"


def to_dark() -> dict[str, str]:
    """Every colour of a light figure and its counterpart in the dark, to recolour a drawn one."""
    pairs = [
        *zip(COLOURS["light"], COLOURS["dark"], strict=True),
        *((shade["light"], shade["dark"]) for shade in (PAPER, INK, SOFT, GRID, MISSING)),
    ]
    bands = [
        (see_through(light, opacity), see_through(dark, opacity))
        for light, dark in zip(COLOURS["light"], COLOURS["dark"], strict=True)
        for opacity in (BAND_OPACITY, SPAN_OPACITY)
    ]
    return dict(pairs + bands)


def marker_of(index: int) -> Marker:
    """The marker that goes with a colour.

    Examples
    --------
    >>> marker_of(0), marker_of(1)
    ('circle', 'square')
    """
    return MARKERS[whole(index, "colour", at_least=0, at_most=7) % len(MARKERS)]


def dash_of(index: int) -> Dash:
    """The dash that goes with a colour.

    Examples
    --------
    >>> dash_of(0), dash_of(1)
    ('solid', 'dash')
    """
    return DASHES[whole(index, "colour", at_least=0, at_most=7) % len(DASHES)]


def cues(layers: Sequence[Layer]) -> list[Cue]:
    """The dash and marker of each layer, as described or, where colour alone would tell, added.

    Examples
    --------
    >>> import numpy as np
    >>> two = [Line(np.arange(2), np.arange(2), colour=k) for k in (0, 1)]
    >>> [cue.marker for cue in cues(two)], [cue.marker for cue in cues(two[:1])]
    (['circle', 'square'], ['none'])
    """
    looks = [_look(layer) for layer in layers]
    found = []
    for layer, look in zip(layers, looks, strict=True):
        shared = look is not None and any(
            other == look and same.colour != layer.colour  # type: ignore[union-attr]
            for same, other in zip(layers, looks, strict=True)
        )
        found.append(_cue(layer, shared))
    return found


def _look(layer: Layer) -> tuple[str, str, str] | None:
    """Everything but colour that tells a layer from another of its kind."""
    if isinstance(layer, Line):
        return "line", layer.dash, layer.marker
    if isinstance(layer, Points):
        return "points", "", layer.marker
    return ("arrows", "", "") if isinstance(layer, Arrows) else None


def _cue(layer: Layer, shared: bool) -> Cue:
    if isinstance(layer, Arrows):
        return Cue(dash_of(layer.colour) if shared else "solid", "none")
    if not isinstance(layer, Line | Points):
        return Cue(getattr(layer, "dash", "solid"), "none")
    dash: Dash = layer.dash if isinstance(layer, Line) else "solid"
    if not shared:
        return Cue(dash, layer.marker)
    hollow = layer.colour >= len(MARKERS)
    return Cue(dash, marker_of(layer.colour), hollow, sparse=layer.marker == "none")
