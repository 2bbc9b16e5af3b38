"""Results of runs that did not end as was asked, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from reluflow.sweeps import Result
from reluflow.trajectory import Status


def remark(results: Iterable[Result]) -> str:
    """One sentence on results of runs that did not end as was asked; empty if there are none.

    Looked for in the values named ``status`` or ``..._status``.
    """
    counts: Counter[str] = Counter()
    for result in results:
        told = [str(value) for name, value in result.values.items() if name.endswith("status")]
        bad = [s for s in told if s in set(Status) and not Status(s).is_asked_for]
        counts.update(bad[:1])
    if not counts:
        return ""
    listed = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    return (
        f"Warning: {counts.total()} computations are of runs that did not end as was asked "
        f"({listed}); what is drawn of them is where they stopped."
    )
