"""Univariate classifiers: the page of a run and ten experiments (the paper has no figures)."""

from __future__ import annotations

from reluflow.studies.univariate import (
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
from reluflow.studies.univariate.study import STUDY

__all__ = ["FIGURES", "STUDY"]

FIGURES = [
    *regions.RECIPES,
    *function.RECIPES,
    *generalisation.RECIPES,
    *lazy.RECIPES,
    *margins.RECIPES,
    *residuals.RECIPES,
    *width_needed.RECIPES,
    *both_losses.RECIPES,
    *descent_steps.RECIPES,
]
