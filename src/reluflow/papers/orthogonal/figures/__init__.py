"""Figures of the paper: each a sweep, a picture, and the shape it should have."""

from reluflow.papers.orthogonal.figures import (
    directions,
    exponents,
    limits,
    norms,
    ratio,
    training,
)

__all__ = ["RECIPES"]

RECIPES = (
    *training.RECIPES,
    *exponents.RECIPES,
    *directions.RECIPES,
    *norms.RECIPES,
    *ratio.RECIPES,
    *limits.RECIPES,
)
