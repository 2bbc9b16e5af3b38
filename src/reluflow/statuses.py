"""How a run ended."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """How a run ended; ``text`` says it in words."""

    CONVERGED = "converged"
    STATIONARY = "stationary"
    STOP_LOSS = "stop_loss"
    T_END = "t_end"
    STEPS = "steps"
    UNCHANGED = "unchanged"
    DIVERGED = "diverged"
    BUDGET = "budget"
    FAILED = "failed"
    INTERRUPTED = "interrupted"

    @property
    def text(self) -> str:
        """One sentence for tables and reports."""
        return _STATUS_TEXT[self]

    @property
    def is_asked_for(self) -> bool:
        """Whether the run ended as was asked; other ends deserve a look before they are used."""
        return self in _ASKED_FOR


_STATUS_TEXT = {
    Status.CONVERGED: "a zero-loss limit is reached; .final is the limit",
    Status.STATIONARY: "a limit with non-zero loss is reached (minimum, saddle, dead network)",
    Status.STOP_LOSS: "the loss asked for is reached",
    Status.T_END: "the end time is reached",
    Status.STEPS: "all steps are done",
    Status.UNCHANGED: "the weights no longer change in floating point",
    Status.DIVERGED: "the loss blew up; use a smaller step",
    Status.BUDGET: "a limit set by the caller is reached before the end",
    Status.FAILED: "the engine could not go on; .final is the last good state",
    Status.INTERRUPTED: "the run was interrupted; .final is the last state before",
}
_ASKED_FOR = (Status.CONVERGED, Status.STATIONARY, Status.STOP_LOSS, Status.T_END, Status.STEPS)
