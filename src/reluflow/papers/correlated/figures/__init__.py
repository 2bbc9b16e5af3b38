"""Figures of the paper: each a sweep, a picture, and the shape it should have."""

from reluflow.papers.correlated.figures import (
    coordinates,
    fig1,
    fig2,
    rank_norm,
    two_teachers,
    wider_cone,
)

__all__ = ["RECIPES"]

RECIPES = (
    *fig1.RECIPES,
    *fig2.RECIPES,
    *coordinates.RECIPES,
    *two_teachers.RECIPES,
    *rank_norm.RECIPES,
    *wider_cone.RECIPES,
)
