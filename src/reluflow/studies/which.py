"""Which paper a run belongs to, when nobody says."""

from __future__ import annotations

from reluflow.theory.registry import names, papers
from reluflow.trajectory import Trajectory


def fitting_paper(run: Trajectory) -> tuple[str | None, str]:
    """The paper whose setting the run is in, and the reason; None with a sentence if none is."""
    said = run.provenance.get("paper")
    if said in names():
        return str(said), "the study that made the run names it"
    for paper in papers():
        reason = paper.recognises(run)
        if reason:
            return paper.name, reason
    return None, "No paper's setting fits these data."
