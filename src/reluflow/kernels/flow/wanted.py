"""The kernels that every run of the flow calls from Python."""

from __future__ import annotations

from typing import Any

from reluflow.kernels.flow.begin import begin
from reluflow.kernels.flow.classes import outputs
from reluflow.kernels.flow.collocation import solve_margin, solve_square
from reluflow.kernels.flow.forces import on_planes, speeds
from reluflow.kernels.flow.plateau import any_below
from reluflow.kernels.flow.step import carry

EVERY = (begin, carry, outputs, on_planes, speeds, any_below)


def wanted(square: bool) -> tuple[Any, ...]:
    """Those of a run with the square loss, or with a classification loss."""
    return (*EVERY, solve_square) if square else (*EVERY, solve_margin)
