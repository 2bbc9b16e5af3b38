"""What ends a run before its limit, and how near a loss to stop at can be reached."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluflow.engines.flow.problem import Problem


@dataclass(frozen=True)
class Stops:
    """What ends a run before its limit, an end time in the units of the solver.

    ``log_t`` is its logarithm where the time itself is beyond the range of floats.
    """

    t_end: float = np.inf
    log_loss: float = -np.inf
    max_seconds: float = np.inf
    max_events: float = np.inf
    log_t: float = np.inf

    @property
    def log_t_end(self) -> float:
        """Logarithm of the end time."""
        return min(float(np.log(self.t_end)), self.log_t)

    @property
    def has_end(self) -> bool:
        """Whether there is an end time."""
        return self.log_t_end < np.inf


def resolution(problem: Problem, log_loss: float) -> float:
    """How near a log-loss can be reached: nearer, rounding of the residuals decides.

    Steps towards the exact value would go on forever.
    """
    if not np.isfinite(log_loss):
        return 0.0
    rounding = 0.0
    if problem.is_square:
        scaled = log_loss - 2.0 * problem.units.label * np.log(2.0)
        log_residual = 0.5 * (scaled + np.log(2.0 / (problem.kappa * problem.n)))
        rounding = 4e-15 * problem.output_scale * np.exp(min(-log_residual, 60.0))
    return float(1e-10 * max(1.0, abs(log_loss)) + min(rounding, 1.0))
