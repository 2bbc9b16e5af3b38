"""Section 5: norms of the reached interpolator, who fits what (O14 to O18)."""

from __future__ import annotations

import numpy as np

from reluflow.checks import Array
from reluflow.papers.orthogonal.case import Orthogonal
from reluflow.papers.orthogonal.claims import LIMIT, PROCESS
from reluflow.papers.orthogonal.measure import network_at
from reluflow.papers.orthogonal.paper import paper
from reluflow.theory.verdicts import Finding, Unresolved, at_least, at_most, holds
from reluflow.trajectory import Trajectory

ZERO_LOSS = 1e-8  # of the loss at 0: a run below it counts as interpolating


@paper.claim(
    "O14",
    "identity: squared norm of the limit is 2 sum_k Y_k (relative gap to the sum of its weights)",
    needs=LIMIT,
)
def o14(case: Orthogonal) -> Finding:
    """Summed directly over the parameters, and over the fitted labels."""
    process = case.limit
    assert process.network is not None
    labels = 2.0 * sum(float(np.linalg.norm(case.data.y[points])) for points in process.fitted)
    direct = process.network.squared_norm
    gap = max(abs(direct - process.squared_norm), abs(labels - process.squared_norm))
    return at_most(gap / labels, 1e-12)


@paper.claim(
    "O15",
    "identity: an interpolator has squared norm at least 2(|y+| + |y-|) (excess of the smallest)",
    needs=["A1", "interpolates"],
)
def o15(case: Orthogonal) -> Finding:
    """Every end point with zero loss, of flow or descent, and the limit if it interpolates."""
    y = case.data.y
    least = minimal_squared_norm(y)
    ends = [run for run in _ends(case) if _interpolates(run, case)]
    found = [(run.final.squared_norm, _slack(run, y)) for run in ends]
    if not found:
        raise Unresolved("no run ends with zero loss; one that is continued to it would decide")
    norm, slack = min(found, key=lambda pair: pair[0] + pair[1])
    note = f"{len(found)} interpolators; bound lowered by {slack:.2g} for what is not yet fitted"
    return at_least(norm, least - slack, note=note)


@paper.claim(
    "O16",
    "identity: one neuron covering each sign of label: one jump a sign and the minimal norm",
    needs=[*LIMIT, "cover"],
)
def o16(case: Orthogonal) -> Finding:
    """Relative excess of the squared norm; jump times 1/(kappa|y+|) and 1/(kappa|y-|)."""
    process, y = case.limit, case.data.y
    parts = [np.flatnonzero(y * s > 0.0) for s in (1.0, -1.0)]
    parts = [points for points in parts if len(points)]
    expected = np.sort([1.0 / (case.kappa * np.linalg.norm(y[points])) for points in parts])
    if len(process.times) != len(parts):
        return holds(False, len(process.times), len(parts), f"{len(parts)} jumps expected")
    late = float(np.abs(process.times / expected - 1.0).max())
    excess = abs(process.squared_norm / minimal_squared_norm(y) - 1.0)
    return at_most(max(late, excess), 1e-12, note=f"{len(parts)} jumps")


@paper.claim(
    "O17",
    "the limit interpolates exactly if every point has a matching neuron (uncovered)",
    needs=PROCESS,
)
def o17(case: Orthogonal) -> Finding:
    """For the process by its fitted sets; for runs, an uncovered point is never fitted."""
    process, y = case.process, case.data.y
    uncovered = np.flatnonzero(~case.masks.any(axis=0))
    fitted = np.concatenate([np.empty(0, dtype=np.intp), *process.fitted])
    exact = (
        process.interpolates == (not len(uncovered))
        and np.array_equal(np.sort(process.uncovered), uncovered)
        and len(np.unique(fitted)) == len(fitted) == case.data.n - len(uncovered)
    )
    floor = 0.5 * case.kappa * float((y[uncovered] ** 2).sum())
    runs = [run for run in case.subject.runs if run.engine == "flow"]
    kept = all(float(np.exp(run.log_loss[-1])) >= floor * (1.0 - 1e-9) for run in runs)
    note = (
        f"{len(runs)} runs stay above the loss {floor:.4g} of the uncovered points" if runs else ""
    )
    return holds(bool(exact) and kept, measured=len(uncovered), note=note)


@paper.claim(
    "O18",
    "neurons of one mask share the norm of their jump as chi^2 (largest gap of shares)",
    needs=[*LIMIT, "shared"],
)
def o18(case: Orthogonal) -> Finding:
    """After the jump, at a deep scale; the total of the group is Y."""
    shared = [k for k, neurons in enumerate(case.limit.groups) if len(neurons) > 1]
    for L in case.depths():
        worst, allowed = _shares(case, shared, L)
        if allowed <= 0.01:
            return at_most(worst, allowed, note=f"{len(shared)} groups at log(1/lambda) = {L:.4g}")
    raise Unresolved(
        f"lambda^delta is {allowed / 100:.2g} at log(1/lambda) = {L:.4g}: a deeper run decides"
    )


def _shares(case: Orthogonal, shared: list[int], L: float) -> tuple[float, float]:
    """Largest gap of a share to chi^2 after its jump, and what ``lambda^delta`` allows.

    Logarithms of size L are good to some ulps of it, and shares to twice that.
    """
    process, run = case.limit, case.run_at(L)
    assert process.network is not None
    after = case.middles(case.measured_half_times(run))[1:]
    worst, allowed = 0.0, 0.0
    for k in shared:
        neurons = process.groups[k]
        state = network_at(run, float(after[k]))
        shares = np.exp(2.0 * state.log_outputs[neurons]) / process.norms[k]
        expected = process.network.a[neurons] ** 2 / process.norms[k]
        worst = max(worst, float(np.abs(shares - expected).max()))
        allowed = max(allowed, 100.0 * np.exp(-L * process.rate(float(after[k]) / L)))
    return worst, float(allowed + 1e-8 + 8.0 * np.spacing(L))


def minimal_squared_norm(y: Array) -> float:
    """``2 (|y+| + |y-|)``: the least squared norm of a network with outputs y."""
    return float(2.0 * (np.linalg.norm(np.maximum(y, 0.0)) + np.linalg.norm(np.minimum(y, 0.0))))


def _ends(case: Orthogonal) -> tuple[Trajectory, ...]:
    return case.subject.runs or case.flows


def _interpolates(run: Trajectory, case: Orthogonal) -> bool:
    at_zero = case.loss.value(np.zeros(case.data.n), case.data.y)
    h = run.final.predict(run.data.X)
    return case.loss.value(h, case.data.y) <= ZERO_LOSS * at_zero


def _slack(run: Trajectory, y: Array) -> float:
    """A network with outputs h obeys the bound of h: what h lacks, plus rounding."""
    h = run.final.predict(run.data.X)
    least = minimal_squared_norm(y)
    return max(least - minimal_squared_norm(h), 0.0) + 1e-9 * least
