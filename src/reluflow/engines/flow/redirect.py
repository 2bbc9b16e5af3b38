"""The modes of a neuron at the planes it is on, chosen anew where the automaton cannot."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow import tolerances
from reluflow.engines.flow.crossroads import Crossroads
from reluflow.engines.flow.events import EventLog
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.state import State
from reluflow.kernels.flow.forces import on_planes
from reluflow.kernels.flow.layout import ABOVE, BELOW, BRANCH, GRAZES, SLIDE
from reluflow.kernels.flow.neuron import STILL
from reluflow.kernels.flow.planes import is_pulled, land, multipliers


def redirect(
    problem: Problem, state: State, c: Array, j: int, log: EventLog,
    came_from: State | None = None, tick: float = 0.0,
) -> None:  # fmt: skip
    """Choose the modes of neuron j at the planes it is on, in forces ``c``; writes down the events.

    It moved there from its place in ``came_from``, or else rests or starts there. Of ``tick`` see
    `kernels.flow.layout.Limits`.
    """
    planes = problem.planes
    row, w = state.mode[j], state.w[j]
    low, high = (pair[0] for pair in on_planes(c[None], planes))
    a = float(state.a[j])
    f = multipliers(low, high, row, planes.gram)
    # at the origin its own size is no measure of rounding: that from where it came is
    size = float((came_from or state).sizes(problem.hidden)[j])
    if a == 0.0 and not problem.hidden:  # the sign it will have; rounding has none
        z = planes.U @ w
        a = float(np.sign(f @ np.where(np.abs(z) <= tolerances.ON_PLANE * size, 0.0, z)))
    direction = a * (f @ planes.U) if came_from is not None else None
    size = max(size, tick * abs(a) / tolerances.ON_PLANE)
    on = row == SLIDE
    if np.abs(w).max() <= 100.0 * tolerances.ON_PLANE * size:
        on = np.ones_like(on)
    elif direction is not None:
        near = np.abs(planes.U @ w) <= 100.0 * tolerances.ON_PLANE * size
        rate = np.where(row == ABOVE, -1.0, 1.0) * (planes.U @ direction)
        on |= near & (rate > STILL * np.abs(rate).max())
    elif not on.any():
        on = np.abs(planes.U @ w) <= tolerances.ON_PLANE * size
    if not on.any():
        return
    land(w, on, planes)
    if a == 0.0:  # nothing moves it; with both layers trained anything else would make it move
        if not problem.hidden and w.any():
            log.add(state.clock, j, int(np.flatnonzero(on)[0]), BRANCH)
            held = np.where(on, np.where(planes.both, SLIDE, BELOW), row).astype(row.dtype)
            if not is_pulled(held, planes.both):  # nor will anything: not even rounding
                log.compare(state.clock, j, row, held, planes.both)
                state.mode[j] = held
        return
    way = Crossroads(problem, a, low, high).choose(row, on, direction)
    if not way.unique:
        log.add(state.clock, j, int(np.flatnonzero(on)[0]), BRANCH)
    log.compare(state.clock, j, row, way.row, planes.both)
    state.mode[j] = way.row
    state.still_sigma[j] = np.nan
    if way.offset is not None:
        w += 10.0 * tolerances.ON_PLANE * size * way.offset


def part(
    problem: Problem, state: State, pulls: tuple[Array, Array], j: int, away: NDArray[np.int64],
    log: EventLog,
) -> None:  # fmt: skip
    """Take neuron j off the planes ``away``, on which it slides though they have come to repel it.

    While a network rests at a saddle forces fall below their error, and some change their signs
    there: a plane that held a neuron pushes it away from then on. The moment of it, and so the side
    on which the neuron goes on, are lost. It goes to that on which descent would spend more time,
    as where an output weight changes its sign in a slide. The error has decided, as at a graze, and
    it is written down as one: such a run has no bound. ``pulls`` are those of all planes, below and
    above.
    """
    row, (low, high) = state.mode[j], pulls
    f, before = multipliers(low, high, row, problem.planes.gram), row.copy()
    above = (f - 0.5 * (low + high)) * (high - low) > 0.0
    row[away] = np.where(above, ABOVE, BELOW)[away]
    log.extend(state.clock, 0.0, np.array([[0.0, j, away[0], GRAZES, BRANCH]]))
    log.compare(state.clock, j, before, row, problem.planes.both)
    state.still_sigma[j] = np.nan
