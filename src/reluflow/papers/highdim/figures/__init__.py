"""Figures of the paper: each a sweep, a picture, and the shape it should have."""

from reluflow.papers.highdim.figures import (
    freeze,
    primal,
    revival,
    scaling,
    step,
)

__all__ = ["RECIPES"]

RECIPES = (
    scaling.FIGURE,
    freeze.FIGURE,
    primal.FIGURE,
    step.FIGURE,
    revival.FIGURE,
)
