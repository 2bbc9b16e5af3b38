"""Section 2 of the paper: what every run of the flow conserves (O1 to O4)."""

from __future__ import annotations

import numpy as np

from reluflow.dataset import Dataset
from reluflow.losses import Square
from reluflow.network import Network
from reluflow.papers.orthogonal.assumptions import closing_times, recorded_coordinates
from reluflow.papers.orthogonal.case import RTOL, Orthogonal
from reluflow.papers.orthogonal.claims import LIMIT, PROCESS
from reluflow.papers.orthogonal.measure import NOISE, log_outputs, network_at
from reluflow.papers.orthogonal.paper import paper
from reluflow.theory.case import tolerance_of
from reluflow.theory.verdicts import Finding, at_most, holds
from reluflow.trajectory import Trajectory


@paper.claim("O1", "balance a_j^2 - |w_j|^2 is constant (change over a_j^2)", needs=["flow"])
def o1(case: Orthogonal) -> Finding:
    """Proposition 1; holds for any data, also from an unbalanced start."""
    worst = max(_imbalance(run) for run in case.flows)
    return at_most(worst, case.error)


@paper.claim(
    "O2",
    "output signs are constant and no pair becomes active (violations)",
    needs=[*PROCESS, "flow"],
)
def o2(case: Orthogonal) -> Finding:
    """Signs need a balanced start, frozen activity orthonormal points."""
    count = sum(_reversals(run) for run in case.flows)
    return holds(count == 0, count, 0.0)


@paper.claim(
    "O3", "the loss never increases (largest relative increment between records)", needs=["flow"]
)
def o3(case: Orthogonal) -> Finding:
    """Holds for any data. At rest the loss errs by the squared error of the weights."""
    worst = max(float(np.diff(run.log_loss).max(initial=0.0)) for run in case.flows)
    return at_most(worst, 1e-12 + max(tolerance_of(run) for run in case.flows) ** 2)


@paper.claim(
    "O4",
    "neurons lose all points of the other sign before half the first jump time (time)",
    needs=[*LIMIT, "mixed"],
)
def o4(case: Orthogonal) -> Finding:
    """At a scale of 1e-50 or below, small enough for the slowest loss of a wrong-sign point.

    A neuron without a point of its own sign, which A4(i) excludes, may keep one: with nothing but
    wrong points it loses all but the last, and shrinks along that one for ever.
    """
    first = case.limit.times[0]
    wrong = case.on_wrong_points
    expected = _expected_loss_time(case, wrong)
    L = max(case.L, 50.0 * np.log(10.0), 4.0 * expected / first)
    run = case.run_at(L)
    closed = closing_times(run)[wrong]
    note = f"at log(1/lambda) = {L:.4g}; at most about {expected:.3g} expected"
    left = int(np.isinf(closed).sum())
    if left:
        return holds(False, left, 0.0, f"{left} pairs stay; {note}")
    return at_most(float(closed.max()), 0.5 * L * first, note=note)


@paper.claim(
    "O31",
    "once wrong signs are lost, neurons and labels of one sign are a system of their own (gap)",
    needs=[*LIMIT, "two signs"],
)
def o31(case: Orthogonal) -> Finding:
    """Each sign restarted alone from the run after its last loss: distance at the end."""
    run = case.deep_run
    closed = closing_times(run)
    t0 = float(closed[np.isfinite(closed)].max(initial=0.0))
    state, data, worst = network_at(run, t0), case.data, 0.0
    for s in (1.0, -1.0):
        points, mine = data.y * s > 0.0, case.unit_start.signs == s
        if not mine.any():
            continue
        loss = Square("1/2") if case.kappa == 1.0 else case.loss
        part = Dataset(data.X[points], data.y[points])
        net = Network(
            state.mantissa.a[mine],
            state.mantissa.W[mine],
            state.log_scale[mine],
            log_scale_out=state.log_scale_out[mine],
        )
        alone = case.flow(part, net, loss=loss, rtol=RTOL).final.flat()
        full = run.final.flat()
        gap = np.hypot(
            np.linalg.norm(alone.a - full.a[mine]), np.linalg.norm(alone.W - full.W[mine])
        )
        worst = max(worst, float(gap) / np.sqrt(max(alone.squared_norm, 1e-300)))
    return at_most(worst, 1e-6 + 100.0 * case.error)


def _imbalance(run: Trajectory) -> float:
    """Change of a^2 - |w|^2 over the larger a^2, now or at the start: some neurons fade."""
    norms = np.linalg.norm(run.kept["W"], axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        hidden = np.log(norms) + run.kept["log_scale"]
        outputs = log_outputs(run)
        now = -np.expm1(2.0 * (hidden - outputs))
        faded = 2.0 * (outputs[0] - outputs)
        change = np.abs(
            now * np.exp(-np.maximum(faded, 0.0)) - now[0] * np.exp(np.minimum(faded, 0.0))
        )
    return float(change[np.isfinite(change)].max(initial=0.0))


def _reversals(run: Trajectory) -> int:
    """Sign changes, events that activate, and recorded coordinates that came back to life."""
    flips = int((np.sign(run.kept["a"]) != np.sign(run.kept["a"][0])).any(axis=0).sum())
    events = int(np.isin(run.events["kind"], ("activate", "flip")).sum())
    c, _ = recorded_coordinates(run)
    closed = closing_times(run)
    inactive = (closed[None] <= run.t[:, None, None]) | (c < -NOISE)
    revived = np.logical_or.accumulate(inactive, axis=0) & (c > NOISE)
    return flips + events + int(revived.any(axis=0).sum())


def _expected_loss_time(case: Orthogonal, wrong: np.ndarray) -> float:
    r"""An upper estimate of the time until the last wrong-sign point is lost.

    A growing neuron (rate g) loses point i after about ``log(1 + g/(kappa |y_i|))/g``; one whose
    only points are wrong shrinks first, and a single one of them is lost at
    :math:`\mathrm{artanh}(c/a)/(\kappa |y_i|)`, late where c is nearly a.
    """
    y = np.abs(case.data.y)
    g = case.kappa * np.sqrt(case.masks @ y**2)
    j, i = np.nonzero(wrong)
    rate = case.kappa * y[i]
    c = np.where(wrong, case.unit_start.mantissa.W @ case.data.X.T, 0.0)
    ratio = np.linalg.norm(c, axis=1) / np.maximum(np.abs(case.unit_start.mantissa.a), 1e-300)
    slow = np.arctanh(np.minimum(ratio, 1.0 - 1e-15))[j] / rate
    safe = np.where(g[j] > 0.0, g[j], 1.0)
    grows = np.log1p(safe / rate) / safe
    return float(np.where(g[j] > 0.0, np.maximum(grows, slow), slow).max())
