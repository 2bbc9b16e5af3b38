r"""One neuron, one automaton: carried to its next event, which is then applied.

Events are few: it *meets* a plane, a slide *ends*, or its output weight changes sign in a slide.
`meet`, `end_slide` and `turn` apply them, and write them down, whatever law the forces obey: a
polynomial on a step (`walk`) or constants (`plateau`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.kernels.flow.layout import ABOVE, BRANCH, DIE, FLIP, SLIDE, Planes
from reluflow.kernels.flow.planes import CROSSROADS, TIE, decide, is_alive, let_go, part_ways
from reluflow.kernels.kernel import kernel

# a velocity below this share of the largest is rounding
STILL = 1e-12
# what is below this times the rounding of its plane, or the error of its size, does not graze it
AT_REST = 10.0
# ... nor what begins a step at this share of that error: it has just left the plane
STAYS = 0.02
# what the next event is
NOTHING, MEETS, RISES, SINKS, TURNS = 0, 1, 2, 3, 4


class Neuron(NamedTuple):
    """One neuron on its way; all arrays change. ``a`` (1,), ``w`` (d,), ``z = U w``, ``row`` (P,).

    ``balance`` is its ``a^2 - |w|^2``; ``weight`` is what its outputs count (0: not asked).
    """

    who: int
    a: Array
    w: Array
    z: Array
    row: NDArray[Any]
    balance: float
    weight: float


class Log(NamedTuple):
    """Events in rows of (moment, neuron, plane, mode before, mode or code after)."""

    rows: Array
    used: NDArray[Any]


class Event(NamedTuple):
    """What happens next to a neuron, when (a share of the step) and at which plane."""

    kind: int
    moment: float
    plane: int


@kernel
def note(log: Log, moment: float, neuron: int, plane: int, before: int, after: int) -> None:
    """Write one row; a list that is full counts on, so that the caller sees it."""
    k = log.used[0]
    if k < len(log.rows):
        log.rows[k, 0] = moment
        log.rows[k, 1] = neuron
        log.rows[k, 2] = plane
        log.rows[k, 3] = before
        log.rows[k, 4] = after
    log.used[0] += 1


@kernel
def _write(neuron: Neuron, before: NDArray[Any], planes: Planes, log: Log, moment: float) -> None:
    """List the changes of a row, and death."""
    for p in range(len(before)):
        if before[p] != neuron.row[p]:
            note(log, moment, neuron.who, p, before[p], neuron.row[p])
    if is_alive(before, planes.both) and not is_alive(neuron.row, planes.both):
        note(log, moment, neuron.who, -1, 0, DIE)


@kernel
def meet(
    neuron: Neuron, on: NDArray[Any], arrival: Array, low: Array, high: Array, planes: Planes,
    log: Log, moment: float,
) -> bool:  # fmt: skip
    """Apply an arrival at the planes ``on``; False at a crossroads, where nothing is decided."""
    before = neuron.row.copy()
    outcome = decide(neuron.a[0], neuron.row, on, arrival, low, high, planes.gram)
    if outcome == CROSSROADS:
        return False
    if outcome == TIE:
        note(log, moment, neuron.who, np.flatnonzero(on)[0], BRANCH, BRANCH)
    for p in range(len(on)):
        if on[p]:
            neuron.z[p] = 0.0
    _write(neuron, before, planes, log, moment)
    return True


@kernel
def end_slide(
    neuron: Neuron, event: Event, low: Array, high: Array, planes: Planes, far: float, log: Log
) -> bool:
    """Apply the end of a slide; False if the forces at the moment still hold it."""
    before = neuron.row.copy()
    up = event.kind == RISES
    if not let_go(neuron.a[0], neuron.row, event.plane, up, low, high, planes.gram, far):
        return False
    _write(neuron, before, planes, log, event.moment)
    return True


@kernel
def turn(neuron: Neuron, low: Array, high: Array, planes: Planes, log: Log, moment: float) -> None:
    """Apply a change of sign of the output weight in a slide: more than one way goes on."""
    before = neuron.row.copy()
    note(log, moment, neuron.who, -1, 0, FLIP)
    note(log, moment, neuron.who, np.flatnonzero(before == SLIDE)[0], BRANCH, BRANCH)
    part_ways(neuron.row, low, high, planes.gram)
    _write(neuron, before, planes, log, moment)


@kernel
def planes_met(neuron: Neuron, where: int, speed: Array, slack: float) -> NDArray[Any]:
    """The planes the neuron is on when it reaches that of ``where``: those it slides on, too.

    It has gone there with an error in time, that of ``z[where]``, in which it crosses the others
    with their ``speed``. A plane towards which it does not move is not met, however near: the
    pre-activation of a large neuron may be far below its rounding and yet not zero.
    """
    on = neuron.row == SLIDE
    if np.abs(neuron.w).max() <= 10.0 * slack:  # the origin
        on[:] = True
        return on
    off, fastest = abs(neuron.z[where]), np.abs(speed).max()
    late = off / abs(speed[where]) if speed[where] != 0.0 else 0.0
    for p in range(len(on)):
        towards = -speed[p] if neuron.row[p] == ABOVE else speed[p]
        error = max(slack, 10.0 * off, 10.0 * late * abs(speed[p]))
        if p == where or (abs(neuron.z[p]) <= error and towards > STILL * fastest):
            on[p] = True
    return on
