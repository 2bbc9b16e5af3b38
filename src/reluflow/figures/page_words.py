"""Numbers, names and texts as plotly.js takes them."""

from __future__ import annotations

import base64
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from reluflow.figures.description import Axis, Line, Panel
from reluflow.figures.places import placed
from reluflow.figures.typeset import marked

Entry = dict[str, Any]
Name = Literal["x", "y"]


def thinned(layer: Line, limit: int) -> NDArray[np.intp]:
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


def numbers(values: Any, axis: Axis) -> list[float | None]:
    """Eight digits each; None where the axis has no place for the number."""
    array = placed(values, axis)
    shown = np.isfinite(array) & ((array > 0) | (axis.scale != "log"))
    return [rounded(value) if ok else None for value, ok in zip(array, shown, strict=True)]


def rounded(value: float) -> float:
    """Eight digits."""
    return float(f"{value:.8g}")


def on_axis(value: float, axis: Axis) -> float:
    """Where plotly has a number on an axis: its decimal logarithm on a log axis."""
    if axis.scale != "log":
        return rounded(float(placed(value, axis)))
    return rounded(np.log10(value)) if value > 0 else float("nan")


def byte_array(z: NDArray[Any]) -> Entry:
    """Small whole numbers as plotly's typed arrays: a byte for each cell."""
    rows, columns = z.shape
    body = base64.b64encode(np.ascontiguousarray(z, dtype=np.uint8).tobytes()).decode()
    return {"dtype": "u1", "bdata": body, "shape": f"{rows}, {columns}"}


def axes_of(panel: Panel) -> tuple[tuple[Name, Axis], tuple[Name, Axis]]:
    """Both axes with their names."""
    return ("x", panel.x), ("y", panel.y)


def reference(name: str, k: int) -> str:
    """``x``, ``x2``, ``x3``: what plotly calls things of the k-th panel."""
    return name if k == 0 else f"{name}{k + 1}"


def words(text: str) -> str:
    """A text with the markup that plotly reads: of ours raised and lowered parts only."""
    return str(marked(text)).replace("&#x27;", "'").replace("&quot;", '"')
