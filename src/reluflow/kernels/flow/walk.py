r"""One neuron through a step of given forces: the automaton where the law is a polynomial.

The forces are those of the solved step, whatever this neuron does, so its pull and what it feels at
the planes are polynomials known at K nodes; a plane more or less changes them in O(n + d).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.kernels.flow.layout import (
    BRANCH,
    FLIP,
    GRAZES,
    SLIDE,
    Limits,
    Path,
    Planes,
    Tables,
)
from reluflow.kernels.flow.neuron import (
    AT_REST,
    MEETS,
    NOTHING,
    RISES,
    SINKS,
    STAYS,
    TURNS,
    Event,
    Log,
    Neuron,
    end_slide,
    meet,
    note,
    planes_met,
    turn,
)
from reluflow.kernels.flow.passage import (
    Passage,
    Pull,
    combine,
    glances,
    moment_of_flip,
    passage,
    pull_on,
    reach_of,
    weights_at,
)
from reluflow.kernels.flow.planes import inverse_gram, is_alive, land
from reluflow.kernels.flow.roots import bound_outside, first_boundary, first_flip, leaves_box
from reluflow.kernels.flow.row import balanced, bare, replace
from reluflow.kernels.flow.transport import hold
from reluflow.kernels.kernel import kernel

# parts without an event in a walk, at most: a neuron that grows so far is no longer light
PARTS = 64


@kernel
def _first_end(
    start: float, rho: Array, held: NDArray[Any], kept: int, path: Path, tables: Tables,
    limits: Limits,
) -> Event:  # fmt: skip
    """The first slide that ends after ``start``, but for that on the plane ``kept``.

    ``rho`` (K, h) are the multipliers of the slides.
    """
    count, knots = len(tables.nodes), len(path.nodes)
    mix, share, force = np.empty(knots), np.empty(count), np.empty(count)
    first = Event(NOTHING, 2.0, -1)
    for p in range(len(held)):
        if held[p] == kept:
            continue
        top, unit = 0.0, limits.unit
        for k in range(count):
            weights_at(path, start + tables.nodes[k] * (1.0 - start), mix)
            share[k], force[k] = 0.0, 0.0
            for r in range(knots):
                low, high = path.low[r, held[p]], path.high[r, held[p]]
                share[k] += mix[r] * (rho[r, p] - low)
                force[k] += mix[r] * (high - low)
                unit = max(unit, abs(rho[r, p]), abs(low))
            top = max(top, abs(force[k]))
        near, far = limits.near * top, limits.far * max(unit, top)
        most = limits.most / max(1.0 - start, 1e-300)
        far = bound_outside(share, force, tables.radau_a[-1], far, most)
        tau, up = leaves_box(share, force, tables.force, near, far)
        moment = start + tau * (1.0 - start)
        if tau <= 1.0 and moment < first.moment:
            first = Event(RISES if up else SINKS, moment, held[p])
    return first


@kernel
def _scale(values: Array, factor: float) -> None:
    for p in range(len(values)):
        values[p] *= factor


@kernel
def next_event(
    neuron: Neuron, start: float, stop: float, pull: Pull, path: Path, tables: Tables,
    slack: float, log: Log,
) -> tuple[Event, Passage]:  # fmt: skip
    """The first plane met, or change of sign in a slide, between ``start`` and ``stop``.

    And the way to ``stop``. A change of sign away from all planes has no consequence and is only
    written down.
    """
    stages, size = len(tables.gauss), len(neuron.z)
    a = neuron.a[0]
    whole = passage(start, stop, a, pull, path, tables)
    now, speed = np.empty(len(path.nodes)), np.empty((stages + 1, size))
    weights_at(path, start, now)
    combine(now, pull.push, speed[0])
    _scale(speed[0], a)
    for k in range(stages):
        combine(whole.mix[k], pull.push, speed[k + 1])
        _scale(speed[k + 1], whole.value[k])
    left = (stop - start) * path.step
    tau, where = first_boundary(neuron.z, neuron.row, speed, left, tables, slack)
    event = Event(NOTHING, stop, -1)
    if where >= 0:
        event = Event(MEETS, start + tau * (stop - start), where)
    if not path.hidden and neuron.balance < 0.0:
        rise = np.empty(stages + 1)
        rise[0] = np.dot(now, pull.along)
        for k in range(stages):
            rise[k + 1] = whole.slope[k]
        moment = start + (stop - start) * first_flip(a, rise, left, tables.path)
        if moment <= event.moment:
            moment = moment_of_flip(moment, start, a, pull, path, tables)
            if (neuron.row == SLIDE).any():
                event = Event(TURNS, moment, -1)
            else:
                note(log, moment, neuron.who, -1, 0, FLIP)
    return event, whole


@kernel
def _go(
    neuron: Neuron, start: float, event: Event, pull: Pull, path: Path, tables: Tables, slack: float
) -> tuple[float, Passage]:
    """Go to an event; correct the time of a plane until the neuron is there.

    What is left is projected out, and would change the balance.
    """
    end, where = event.moment, event.plane
    now = np.empty(len(path.nodes))
    moved = passage(start, end, neuron.a[0], pull, path, tables)
    for _ in range(3 if event.kind == MEETS else 0):
        off, pace = neuron.z[where], 0.0
        weights_at(path, end, now)
        for k in range(len(now)):
            off += moved.share[k] * pull.push[k, where]
            pace += now[k] * pull.push[k, where]
        pace *= moved.a * path.step
        better = end - off / pace if pace != 0.0 else end
        if abs(off) <= 10.0 * slack or not start < better <= 1.0:
            break
        if abs(better - end) >= 0.1 * (end - start):
            break
        end = better
        moved = passage(start, end, neuron.a[0], pull, path, tables)
    return end, moved


@kernel
def _undecided(
    neuron: Neuron, moment: float, where: int, moved: Passage, pull: Pull, path: Path,
    limits: Limits,
) -> bool:  # fmt: skip
    """Whether the error decides that a neuron crosses a plane, which repels it."""
    now, force = np.empty(len(path.nodes)), 0.0
    weights_at(path, moment, now)
    for k in range(len(now)):
        force += now[k] * (path.high[k, where] - path.low[k, where])
    square = np.dot(neuron.w, neuron.w)
    depth = limits.known * np.sqrt(square + neuron.a[0] ** 2)
    rests = square <= (AT_REST * depth) ** 2 or abs(neuron.z[where]) <= STAYS * depth
    if rests or moved.a * force <= 0.0:
        return False
    return glances(moment, where, moved, pull, path, depth)


@kernel
def _contribute(
    neuron: Neuron, start: float, end: float, first: bool, pull: Pull, path: Path, tables: Tables,
    kinks: Array,
) -> None:  # fmt: skip
    """Add outputs at the Radau nodes by side and plane, where the row is not that of the start.

    On its way from ``start`` to ``end`` a neuron counts in its row; after the end of the first
    part it no longer counts in the row of the start, as the equations have it.
    """
    for k in range(len(tables.radau)):
        node = tables.radau[k]
        if not (node > end if first else start < node <= end):
            continue
        there = passage(start, node, neuron.a[0], pull, path, tables)
        weight = -neuron.weight if first else neuron.weight
        for p in range(len(neuron.z)):
            if neuron.row[p] < SLIDE:
                z = neuron.z[p]
                for r in range(len(there.share)):
                    z += there.share[r] * pull.push[r, p]
                kinks[k, neuron.row[p], p] += weight * there.a * z


@kernel
def _apply(
    neuron: Neuron, event: Event, felt: Array, path: Path, planes: Planes, limits: Limits,
    slack: float, log: Log,
) -> bool:  # fmt: skip
    """Apply the event that a neuron has come to; False at a crossroads, where it stops.

    ``slack`` is that of the start: at the origin a neuron's size is no measure of its rounding.
    """
    size = len(neuron.z)
    now = np.empty(len(path.nodes))
    low, high, speed = np.empty(size), np.empty(size), np.empty(size)
    weights_at(path, event.moment, now)
    combine(now, path.low, low)
    combine(now, path.high, high)
    if event.kind == TURNS:
        neuron.a[0] = 0.0  # exactly: the next part must not find the same flip again
        turn(neuron, low, high, planes, log, event.moment)
    elif event.kind == MEETS:
        combine(now, felt, speed)
        for p in range(size):
            speed[p] *= neuron.a[0]
        on = planes_met(neuron, event.plane, speed, slack)
        land(neuron.w, on, planes)  # exactly: the next part must not find the same crossing again
        if not meet(neuron, on, speed, low, high, planes, log, event.moment):
            return False
    else:
        far = limits.far * max(limits.unit, np.abs(high).max())
        end_slide(neuron, event, low, high, planes, far, log)
    return True


@kernel
def _slack(neuron: Neuron, path: Path, limits: Limits) -> float:
    """Pre-activations below this are zero; an output weight that is not trained is no measure."""
    square = np.dot(neuron.w, neuron.w) + (0.0 if path.hidden else neuron.a[0] ** 2)
    return limits.on_plane * np.sqrt(square) + limits.tick * abs(neuron.a[0])


@kernel
def walk(
    neuron: Neuron, path: Path, planes: Planes, tables: Tables, limits: Limits, log: Log,
    kinks: Array,
) -> float:  # fmt: skip
    """Carry one neuron through a step of given forces across all its events; it changes.

    ``kinks`` (S, 2, P) gains what its outputs at the Radau nodes differ from those in its first
    row, by side and plane. Returns the share of the step at which it stopped, because it came to
    a crossroads, to no end, or is about to grow too far; 2.0 if it came through.
    """
    size, d = planes.U.shape
    slack = _slack(neuron, path, limits)
    g, push = bare(neuron.row, path, planes)
    none = np.empty((0, 0))
    start, parts = 0.0, 0
    kept = -1  # a slide that seemed to end but is held by the forces there
    for turns in range(4 * size + 8 + PARTS):
        if start >= 1.0 or not is_alive(neuron.row, planes.both):
            return 2.0
        held = np.flatnonzero(neuron.row == SLIDE)
        bound, felt, rho, free = g, push, none, False
        if len(held):
            normal, free = inverse_gram(planes.gram, held)
            bound, felt, rho = balanced(g, push, held, normal, planes)
            land(neuron.w, neuron.row == SLIDE, planes)
        pull = pull_on(neuron.w, bound, felt)
        # the error of the step answers for its first row
        stop = reach_of(start, pull, path, limits) if turns > 0 else 1.0
        event, moved = next_event(neuron, start, stop, pull, path, tables, slack, log)
        if free:
            ends = _first_end(start, rho, held, kept, path, tables, limits)
            if ends.moment <= event.moment:
                event = ends
        end = event.moment
        if event.kind != NOTHING:
            end, moved = _go(neuron, start, event, pull, path, tables, slack)
        comes = event.kind == MEETS and abs(neuron.z[event.plane]) > AT_REST * slack
        if comes and _undecided(neuron, end, event.plane, moved, pull, path, limits):
            note(log, end, neuron.who, event.plane, GRAZES, BRANCH)
        if neuron.weight != 0.0:
            _contribute(neuron, start, end, turns == 0, pull, path, tables, kinks)
        for k in range(len(g)):
            for p in range(size):
                neuron.z[p] += moved.share[k] * felt[k, p]
            for q in range(d):
                neuron.w[q] += moved.share[k] * bound[k, q]
        neuron.a[0] = moved.a
        if event.kind == NOTHING:
            if len(held):
                land(neuron.w, neuron.row == SLIDE, planes)
            if not path.hidden:
                neuron.a[0] = hold(neuron.a[0], neuron.w, neuron.balance)
            start, parts = end, parts + 1
            if parts == PARTS:
                return start if start < 1.0 else 2.0
            slack = max(slack, _slack(neuron, path, limits))
            continue
        before = neuron.row.copy()
        event = Event(event.kind, end, event.plane)
        if not _apply(neuron, event, felt, path, planes, limits, slack, log):
            return end
        kept = event.plane if (before == neuron.row).all() and event.kind != MEETS else -1
        for p in range(size):
            replace(g, push, before[p], neuron.row[p], p, path, planes)
        start = end
    return start
