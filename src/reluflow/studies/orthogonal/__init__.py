"""Orthogonal data: staircase, jumps, norms; the study and its figures."""

from reluflow.studies.orthogonal import (
    fig_directions,
    fig_exponents,
    fig_limits,
    fig_norms,
    fig_ratio,
    fig_training,
)
from reluflow.studies.orthogonal.study import STUDY

__all__ = ["FIGURES", "STUDY"]

FIGURES = [
    *fig_training.RECIPES,
    *fig_exponents.RECIPES,
    *fig_directions.RECIPES,
    *fig_norms.RECIPES,
    *fig_ratio.RECIPES,
    *fig_limits.RECIPES,
]
