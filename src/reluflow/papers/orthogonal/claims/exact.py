"""The engines against closed forms and a plain loop, on the subject's data (O23 to O26)."""

from __future__ import annotations

import numpy as np

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.network import Network
from reluflow.papers.orthogonal.case import SMALL, Orthogonal
from reluflow.papers.orthogonal.claims import LIMIT, PROCESS
from reluflow.papers.orthogonal.exact import boost, one_neuron
from reluflow.papers.orthogonal.paper import paper
from reluflow.theory.verdicts import Finding, Unresolved, at_most


@paper.claim("O23", "one neuron alone follows its closed form (largest relative gap)", needs=LIMIT)
def o23(case: Orthogonal) -> Finding:
    """The first neuron to jump, alone, on the points of its mask, from a tenth of its norm."""
    process = case.limit
    j, mask = int(process.groups[0][0]), process.fitted[0]
    c = -np.abs(case.unit_start.mantissa.W[j] @ case.data.X.T)
    c[mask] *= -1.0
    size = 0.1 * np.sqrt(process.norms[0])
    W = (size * c / np.linalg.norm(c)) @ case.data.X
    net = Network([case.unit_start.signs[j] * np.linalg.norm(W)], W[None])
    y = case.data.y[mask]
    v0 = np.append(net.a, case.data.X[mask] @ W)
    times = np.array([0.5, 1.0, 2.0, 3.0, 5.0]) / (case.kappa * process.norms[0])
    run = case.flow(case.data, net, rtol=1e-10, t_end=float(times[-1]), record=times)
    worst = 0.0
    for k, t in enumerate(run.t):
        state = run.network(k).flat()
        found = np.append(state.a, case.data.X[mask] @ state.W[0])
        exact = one_neuron(v0, y, case.kappa, float(t))
        worst = max(worst, float(np.abs(found - exact).max() / np.abs(exact).max()))
    return at_most(worst, 1e-8)


@paper.claim(
    "O24",
    "constant residuals: plateau, boost and matrix exponential agree (relative gap)",
    needs=PROCESS,
)
def o24(case: Orthogonal) -> Finding:
    """All neurons of a tiny start until the first of them loses a point; a^2 - |c|^2 conserved."""
    from scipy.linalg import expm

    y, X = case.data.y, case.data.X
    forces = case.kappa * y
    rate = float(np.linalg.norm(forces))
    t = min(3.0 / rate, 0.5 * _first_loss(case))
    run = case.flow(case.data, case.start_at(SMALL), t_end=t, rtol=1e-10)
    state = run.network(len(run.t) - 1)
    worst = 0.0
    for j in np.flatnonzero(case.unit_start.mantissa.a):
        on = case.start_active[j]
        v0 = np.append(case.unit_start.mantissa.a[j], X[on] @ case.unit_start.mantissa.W[j])
        generator = np.zeros((len(v0), len(v0)))
        generator[0, 1:] = generator[1:, 0] = forces[on]
        exact = expm(generator * t) @ v0
        moved = boost(v0, forces[on], t)
        found = np.append(state.mantissa.a[j], X[on] @ state.mantissa.W[j])
        found = found * np.exp(state.log_scale[j] - (case.unit_start.log_scale[j] + case.L - SMALL))
        scale = float(np.abs(exact).max())
        worst = max(
            worst,
            float(np.abs(moved - exact).max()) / scale,
            float(np.abs(found - exact).max()) / scale,
            abs(_minkowski(moved) - _minkowski(v0)) / scale**2,
        )
    return at_most(worst, 1e-12, note=f"{case.unit_start.width} neurons to t = {t:.4g}")


@paper.claim(
    "O25",
    "descent at scale 1e-100 equals a plain loop in floats (gap over its rounding)",
    needs=PROCESS,
)
def o25(case: Orthogonal) -> Finding:
    """From the same doubles, through the first jump.

    Every step rounds a neuron, and what is rounded grows with the forces on its active points like
    the neuron itself, or while it shrinks: after t steps it is known to t roundings of that size.
    """
    lr, steps = _step(case), 1500
    flat = case.start_at(SMALL).flat()
    run = case.subject.descend(
        case.data, flat, lr=lr, steps=steps, loss=case.loss, record=np.arange(0, steps + 1, 100)
    )
    a, W = flat.a.copy(), flat.W.copy()
    worst, at, size = 0.0, 0, np.maximum(np.abs(a), np.finfo(float).tiny)
    for k, t in enumerate(run.t):
        a, W, size = _plain(a, W, size, case.data, case.kappa * lr, int(t) - at)
        at = int(t)
        state = run.network(k).flat()
        gap = np.maximum(np.abs(state.W - W).max(axis=1), np.abs(state.a - a))
        worst = max(worst, float((gap / size).max()) / ((1.0 + t) * np.finfo(float).eps))
    return at_most(worst, 1.0, note=f"{steps} steps of {lr:.3g}")


@paper.claim(
    "O26",
    "descent: log growth per step on a plateau is log(1 + lr g) (relative gap)",
    needs=LIMIT,
)
def o26(case: Orthogonal) -> Finding:
    """On the first plateau, for neurons that have turned: the slope of the flow would be lr g."""
    process, lr = case.limit, _step(case)
    growth = np.log1p(lr * process.race.slopes[0])
    end = int(0.5 * SMALL / growth.max())
    begin = end // 2
    run = case.subject.descend(
        case.data, case.start_at(SMALL), lr=lr, steps=end, loss=case.loss, record=[begin, end]
    )
    by_time = {int(t): run.network(k).log_norms for k, t in enumerate(run.t)}
    with np.errstate(invalid="ignore"):  # a neuron that is zero has no growth
        slope = (by_time[end] - by_time[begin]) / (end - begin)
    turned = [g for g in range(len(growth)) if growth[g] * begin > 20.0]
    if not turned:
        raise Unresolved("no neuron turns within half of the first plateau; a deeper start decides")
    worst = max(float(np.abs(slope[process.members[g]] / growth[g] - 1.0).max()) for g in turned)
    rate = lr * float(process.race.slopes[0].max())
    note = f"{len(turned)} groups; the flow's slope would miss by {rate / np.log1p(rate) - 1.0:.2g}"
    return at_most(worst, 1e-8, note=note)


def _minkowski(v: Array) -> float:
    return float(v[0] ** 2 - v[1:] @ v[1:])


def _first_loss(case: Orthogonal) -> float:
    """A time before any neuron loses a point: ``c_i - |d_i| int a`` stays positive until then."""
    wrong = case.start_active & ~case.masks
    if not wrong.any():
        return float("inf")
    c = (case.unit_start.mantissa.W @ case.data.X.T)[wrong]
    j, i = np.nonzero(wrong)
    clock = c / (case.kappa * np.abs(case.data.y[i]))
    # |a| grows at most at the rate of all forces together
    rate = case.kappa * float(np.linalg.norm(case.data.y))
    return float(np.log1p(rate * (clock / np.abs(case.unit_start.mantissa.a[j])).min()) / rate)


def _step(case: Orthogonal) -> float:
    """A step well inside stability, ``lr kappa |y| = 1/4``."""
    return 0.25 / (case.kappa * float(np.linalg.norm(case.data.y)))


def _plain(
    a: Array, W: Array, size: Array, data: Dataset, rate: float, steps: int
) -> tuple[Array, Array, Array]:
    """The textbook loop, with relu'(0) = 0; ``rate`` is step times kappa.

    ``size`` is what single roundings are relative to: it grows as fast as a neuron can.
    """
    for _ in range(steps):
        z = W @ data.X.T
        active = z > 0.0
        r = rate * (data.y - a @ np.where(active, z, 0.0))
        size = np.maximum(size * (1.0 + np.sqrt(active @ r**2)), np.abs(a))
        a, W = (
            a + np.where(active, z, 0.0) @ r,
            W + a[:, None] * (np.where(active, r, 0.0) @ data.X),
        )
    return a, W, size
