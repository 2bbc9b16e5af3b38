"""Figures: described once, drawn for paper (matplotlib) or for a page (plotly)."""

from reluflow.figures.description import (
    Arrows,
    Axis,
    Figure,
    Frame,
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

__all__ = [
    "Arrows",
    "Axis",
    "Figure",
    "Frame",
    "Heat",
    "Layer",
    "Line",
    "Panel",
    "Points",
    "Raster",
    "Rule",
    "Span",
    "Text",
]
