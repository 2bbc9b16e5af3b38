"""Figures of the paper: each a sweep, a picture, and the shape it should have."""

from reluflow.papers.univariate.figures import (
    both_losses,
    descent_steps,
    function,
    generalisation,
    lazy,
    margins,
    regions,
    residuals,
    width_needed,
)

__all__ = ["RECIPES"]

RECIPES = (
    *regions.RECIPES,
    *function.RECIPES,
    *generalisation.RECIPES,
    *lazy.RECIPES,
    *margins.RECIPES,
    *residuals.RECIPES,
    *width_needed.RECIPES,
    *both_losses.RECIPES,
    *descent_steps.RECIPES,
)
