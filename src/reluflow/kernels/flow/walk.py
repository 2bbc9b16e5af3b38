r"""One neuron through a step of given forces: the automaton where the law is a polynomial.

The forces are those of the solved step, whatever this neuron does, so its pull and what it feels at
the planes are polynomials known at K nodes; a plane more or less changes them in O(n + d).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.kernels.flow.layout import ABOVE, FLIP, SLIDE, Limits, Path, Planes, Tables
from reluflow.kernels.flow.neuron import (
    MEETS,
    NOTHING,
    RISES,
    SINKS,
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
    moment_of_flip,
    passage,
    pull_on,
    weights_at,
)
from reluflow.kernels.flow.planes import inverse_gram, is_alive, land
from reluflow.kernels.flow.roots import bound_outside, first_boundary, first_flip, leaves_box
from reluflow.kernels.flow.transport import hold
from reluflow.kernels.kernel import kernel

# from so many planes on products with the Gram matrix cost more than with the normals
CROWD = 100


@kernel
def _add(g: Array, push: Array, k: int, f: float, p: int, planes: Planes) -> None:
    """Add ``f u_p`` to the pull at node k."""
    for r in range(g.shape[1]):
        g[k, r] += f * planes.U[p, r]
    for r in range(push.shape[1]):
        push[k, r] += f * planes.gram[p, r]


@kernel
def _bare(row: NDArray[Any], path: Path, planes: Planes) -> tuple[Array, Array]:
    """Pull and push of the planes that a neuron does not slide on."""
    f = np.zeros(path.low.shape)
    for p in range(len(row)):
        if row[p] < SLIDE:
            for k in range(len(f)):
                f[k, p] = path.high[k, p] if row[p] == ABOVE else path.low[k, p]
    g = np.dot(f, planes.U)
    if len(row) >= CROWD and len(row) > 2 * planes.U.shape[1]:
        return g, np.dot(g, planes.U.T)
    return g, np.dot(f, planes.gram)


@kernel
def _balanced(
    g: Array, push: Array, held: NDArray[Any], normal: Array, planes: Planes
) -> tuple[Array, Array, Array]:
    """Project a pull and its push on the planes held: also the multipliers (K, h) that do it."""
    knots, h = len(g), len(held)
    g, push, rho = g.copy(), push.copy(), np.zeros((knots, h))
    for k in range(knots):
        for p in range(h):
            for q in range(h):
                rho[k, p] -= normal[p, q] * push[k, held[q]]
        for p in range(h):
            _add(g, push, k, rho[k, p], held[p], planes)
        for p in range(h):
            push[k, held[p]] = 0.0
    return g, push, rho


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
    neuron: Neuron, start: float, pull: Pull, path: Path, tables: Tables, slack: float, log: Log
) -> tuple[Event, Passage]:
    """The first plane met, or change of sign in a slide, after ``start``; and the way to the end.

    A change of sign away from all planes has no consequence and is only written down.
    """
    stages, size = len(tables.gauss), len(neuron.z)
    a = neuron.a[0]
    whole = passage(start, 1.0, a, pull, path, tables)
    now, speed = np.empty(len(path.nodes)), np.empty((stages + 1, size))
    weights_at(path, start, now)
    combine(now, pull.push, speed[0])
    _scale(speed[0], a)
    for k in range(stages):
        combine(whole.mix[k], pull.push, speed[k + 1])
        _scale(speed[k + 1], whole.value[k])
    left = (1.0 - start) * path.step
    tau, where = first_boundary(neuron.z, neuron.row, speed, left, tables.path, slack)
    event = Event(NOTHING, 1.0, -1)
    if where >= 0:
        event = Event(MEETS, start + tau * (1.0 - start), where)
    if not path.hidden and neuron.balance < 0.0:
        rise = np.empty(stages + 1)
        rise[0] = np.dot(now, pull.along)
        for k in range(stages):
            rise[k + 1] = whole.slope[k]
        moment = start + (1.0 - start) * first_flip(a, rise, left, tables.path)
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
    a crossroads or to no end; 2.0 if it came through.
    """
    size, d = planes.U.shape
    slack = _slack(neuron, path, limits)
    g, push = _bare(neuron.row, path, planes)
    none = np.empty((0, 0))
    start, kept = 0.0, -1  # kept: a slide that seemed to end but is held by the forces there
    for turns in range(4 * size + 8):
        if start >= 1.0 or not is_alive(neuron.row, planes.both):
            return 2.0
        held = np.flatnonzero(neuron.row == SLIDE)
        bound, felt, rho, free = g, push, none, False
        if len(held):
            normal, free = inverse_gram(planes.gram, held)
            bound, felt, rho = _balanced(g, push, held, normal, planes)
            land(neuron.w, neuron.row == SLIDE, planes)
        pull = pull_on(neuron.w, bound, felt)
        event, moved = next_event(neuron, start, pull, path, tables, slack, log)
        if free:
            ends = _first_end(start, rho, held, kept, path, tables, limits)
            if ends.moment <= event.moment:
                event = ends
        end = event.moment
        if event.kind != NOTHING:
            end, moved = _go(neuron, start, event, pull, path, tables, slack)
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
            return 2.0
        before = neuron.row.copy()
        event = Event(event.kind, end, event.plane)
        if not _apply(neuron, event, felt, path, planes, limits, slack, log):
            return end
        kept = event.plane if (before == neuron.row).all() and event.kind != MEETS else -1
        for p in range(size):
            _replace(g, push, before[p], neuron.row[p], p, path, planes)
        start = end
    return start


@kernel
def _replace(
    g: Array, push: Array, before: int, after: int, p: int, path: Path, planes: Planes
) -> None:
    """Account for a plane whose mode has changed."""
    if before == after:
        return
    for k in range(len(g)):
        change = 0.0
        if after < SLIDE:
            change += path.high[k, p] if after == ABOVE else path.low[k, p]
        if before < SLIDE:
            change -= path.high[k, p] if before == ABOVE else path.low[k, p]
        _add(g, push, k, change, p, planes)
