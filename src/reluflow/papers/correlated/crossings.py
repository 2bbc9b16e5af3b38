"""Crossings: those of a run by neuron, and a numerical integration of yardsticks."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.papers.correlated.case import Correlated, time_rate
from reluflow.trajectory import Trajectory

NEURONS = 4  # yardsticks integrated numerically


def flow_crossings(
    case: Correlated, run: Trajectory | None = None
) -> Mapping[int, tuple[NDArray[np.int64], Array]]:
    """Points in the order in which each neuron crosses them, and the times of the paper."""
    run = run or case.run
    rate = time_rate(run)
    crossing = np.isin(run.events["kind"], ("activate", "deactivate", "slide", "release"))
    events = run.events[crossing]
    order = np.argsort(events["neuron"], kind="stable")
    events = events[order]
    splits = np.searchsorted(events["neuron"], np.arange(case.net.width + 1))
    return {
        j: (events["point"][a:b], events["t"][a:b] * rate)
        for j, (a, b) in enumerate(pairwise(splits))
    }


def stage_gaps(case: Correlated) -> tuple[float, int]:
    r"""How far the closed form of yardsticks is from a numerical solution.

    Each stage is integrated by an eighth-order Runge-Kutta method in log-polar form,
    :math:`\dot r = s\, u \cdot g`, :math:`\dot u = s (g - (u \cdot g) u)`, from crossing to
    crossing. At its end the direction must lie on the boundary that the closed form names and the
    norm must agree. A neuron of J- turns away from its force, so its error grows like
    :math:`e^{|\gamma| t}`; those that would lose more than two digits are left out. Returns the
    largest deviation and the number of stages.
    """
    from scipy.integrate import solve_ivp

    steady = [
        j
        for j in case.sticks.negative
        if case.k * case.sticks.times[j].max(initial=0.0) < np.log(100.0)
    ]
    busiest = sorted([*case.sticks.positive, *steady], key=lambda j: -len(case.sticks.order[j]))[
        :NEURONS
    ]
    worst, count = 0.0, 0
    norms = np.linalg.norm(case.data.X, axis=1)
    for j in (int(j) for j in busiest):
        sign, u = float(case.net.signs[j]), case.net.directions[j].copy()
        active = case.net.mantissa.W[j] @ case.data.X.T > 0
        start, grown = 0.0, 0.0
        for point, end in zip(case.sticks.order[j], case.sticks.times[j], strict=True):
            g = (active * case.data.y) @ case.data.X / case.data.n

            def field(t: float, state: Array, g: Array = g, sign: float = sign) -> Array:
                u = state[:-1]
                along = u @ g
                return np.append(sign * (g - along * u), sign * along)

            state = np.append(u, grown)
            solved = solve_ivp(field, (start, end), state, "DOP853", rtol=1e-13, atol=1e-14)
            u, grown = solved.y[:-1, -1], float(solved.y[-1, -1])
            closed = case.sticks.paths.state(np.full(case.net.width, end))[1][j]
            norm_gap = abs(grown + case.sticks.paths.start_log_norms[j] - closed)
            worst = max(worst, abs(float(u @ case.data.X[point])) / norms[point], norm_gap)
            active[point], start, count = sign > 0, float(end), count + 1
    return worst, count


def log_perturbation(case: Correlated, until: float) -> float:
    r"""Log of how far outputs can have moved a neuron from its yardstick by a time: Gronwall.

    While :math:`|w_j| \le 2 \lambda |\alpha_j|`, outputs change a force by at most
    :math:`p = 4 \lambda^2 \Delta^2 \sum |z_j|^2 e^{2 K t}`, :math:`K = \frac1n \sum y_i |x_i|`. A
    direction follows its force with Lipschitz constant :math:`2K`. A crossing that comes
    :math:`\delta t` late adds at most :math:`2 K\, \delta t`, and
    :math:`\delta t \le \delta / c` where planes are passed at a speed of at least :math:`c`. Hence
    :math:`p\, t\, e^{2Kt} (1 + 2K/c)^n / c`. Rough, but far below any bound of Assumption 2.
    """
    X, y, n = case.data.X, case.data.y, case.data.n
    norms = np.linalg.norm(X, axis=1)
    K = float(y @ norms) / n
    slowest = float((y[:, None] * (X @ X.T) / norms).min()) / n
    if not slowest > 0.0:
        return np.inf
    sizes = 2.0 * case.at_scale(0.0).log_norms[case.moving]
    force = np.log(4.0) + 2.0 * np.log(case.sticks.Delta) + np.logaddexp.reduce(sizes)
    late = n * np.log1p(2.0 * K / slowest) - np.log(slowest)
    return float(2.0 * case.log_scale + force + 4.0 * K * until + np.log(until) + late)
