r"""All neurons through a solved step: end states, and the events on the way.

Gauss collocation keeps every quadratic invariant of a linear equation: the transformation of a
class is a Lorentz transformation to rounding, whatever the step. Neurons with events walk
(`neuron.walk`), if what the outputs miss by that is below the tolerance.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.kernels.flow.collocation import System, at_points
from reluflow.kernels.flow.ending import (
    decaying,
    fade,
    gauss_end,
    last_node,
    put_back,
    to_last_node,
)
from reluflow.kernels.flow.forces import on_planes, pulls, spread
from reluflow.kernels.flow.layout import FLIP, Limits, Path, Rows, Tables
from reluflow.kernels.flow.neuron import Log, Neuron, note
from reluflow.kernels.flow.passage import denominators, moment_of_flip, pull_on
from reluflow.kernels.flow.roots import bound_outside, first_boundary, first_flip, leaves_box
from reluflow.kernels.flow.transport import (
    Matrices,
    Method,
    balance_of,
    class_matrices,
    damped,
    damped_end,
    dot2,
    dot3,
    slopes,
)
from reluflow.kernels.flow.walk import walk
from reluflow.kernels.kernel import kernel


class Moved(NamedTuple):
    """Neurons at the end of a step.

    ``first`` (m,) is the share of the step at which a neuron has its first event (2.0: none) and
    ``stopped`` (m,) that at which it stopped (2.0: it came through); ``leaves`` (C,) is when a
    slide of a class ends. Where ``whole`` is false some neuron's events matter more than the
    tolerance allows, and no neuron has walked.
    """

    a: Array
    w: Array
    mode: NDArray[Any]
    first: Array
    stopped: Array
    leaves: Array
    kinks: Array
    whole: bool


@kernel
def _leaving(
    f: Array, low: Array, high: Array, rows: Rows, tables: Tables, limits: Limits,
    sure: NDArray[Any],
) -> Array:  # fmt: skip
    """First time (C,) at which a slide of each class ends; 2.0 if none does.

    ``f`` (C, S + 1, P) are the multipliers at the start and the nodes; of a class that is ``sure``
    to leave it is enough that a weight is outside at all.
    """
    knots = len(low)
    leaves = np.full(len(rows.face), 2.0)
    share, force = np.empty(knots), np.empty(knots)
    for k in range(len(leaves)):
        if not rows.free[k]:
            continue
        for q in range(rows.begin[k], rows.begin[k + 1]):
            p = rows.plane[q]
            top, unit = 0.0, limits.unit
            for s in range(knots):
                share[s] = f[k, s, p] - low[s, p]
                force[s] = high[s, p] - low[s, p]
                top = max(top, abs(force[s]))
                unit = max(unit, abs(f[k, s, p]), abs(low[s, p]))
            far = limits.near * top
            if not sure[k]:
                far = limits.far * max(unit, top)
                far = bound_outside(share, force, tables.radau_a[-1], far, limits.most)
            tau, _ = leaves_box(share, force, tables.force, limits.near * top, far)
            leaves[k] = min(leaves[k], tau)
    return leaves


@kernel
def _at_gauss(values: Array, to_gauss: Array) -> Array:
    """Values (C, S, .) at the Gauss nodes of what is known at the start and the Radau nodes."""
    classes, knots, n = values.shape
    out = np.zeros((classes, knots - 1, n))
    for k in range(classes):
        for s in range(knots - 1):
            for r in range(knots - 1):
                for i in range(n):
                    out[k, s, i] += to_gauss[s, r] * values[k, r + 1, i]
    return out


@kernel
def _forget_start(values: Array, to_start: Array) -> None:
    """Values (C, S + 1, .) at the start from those at the Radau nodes."""
    classes, knots, n = values.shape
    for k in range(classes):
        for i in range(n):
            values[k, 0, i] = 0.0
            for r in range(knots - 1):
                values[k, 0, i] += to_start[r] * values[k, r + 1, i]


class Field(NamedTuple):
    """Pulls of a solved step: multipliers, ``g`` and ``U g`` of each class.

    At the start and the Radau nodes (S + 1), and at the Gauss nodes (S); and what the collocation
    of a class needs. ``now`` (C, P) is ``U g`` at the start, also where a stiff step forgets it:
    outputs react after the share ``tail`` of the step.
    """

    now: Array
    tail: float
    f: Array
    g: Array
    push: Array
    f_gauss: Array
    g_gauss: Array
    push_gauss: Array
    method: Method
    matrices: Matrices
    leaves: Array


@kernel
def _field(
    system: System, low: Array, high: Array, step: float, tables: Tables, limits: Limits,
    sure: NDArray[Any],
) -> Field:  # fmt: skip
    """The pulls of all classes in the forces of the planes at the start and the Radau nodes."""
    f = spread(low, high, system.rows)
    g, push = pulls(f, system.rows, system.planes.U)
    now = push[:, 0].copy()
    if limits.tail < 1.0:  # outputs forget the force of the start at once, and so do neurons
        _forget_start(g, tables.to_start)
        _forget_start(push, tables.to_start)
    f_gauss, g_gauss = _at_gauss(f, tables.to_gauss), _at_gauss(g, tables.to_gauss)
    method = damped(tables.gauss_a, step, system.law.decay)
    matrices = class_matrices(g_gauss, method, system.law.hidden)
    leaves = _leaving(f, low, high, system.rows, tables, limits, sure)
    push_gauss = _at_gauss(push, tables.to_gauss)
    return Field(
        now, limits.tail, f, g, push, f_gauss, g_gauss, push_gauss, method, matrices, leaves
    )


class Room(NamedTuple):
    """Where one neuron after the other is looked at.

    ``slope`` (2, S) are its output weight and the slope of that at the Gauss nodes, ``b`` (S,) the
    slopes without a change of ``w``; ``speed`` (S + 1, P) and ``rise`` (S + 1,) those of its
    pre-activations and output weight at the start, too.
    """

    slope: Array
    b: Array
    speed: Array
    rise: Array


@kernel
def _look(
    system: System, j: int, field: Field, path: Path, tables: Tables, slack: float, log: Log,
    room: Room,
) -> float:  # fmt: skip
    """When neuron j has its first event; ``room`` gets how it moves.

    Until outputs have reacted the force of the start counts: what is met there is met with it, too.
    A change of sign away from all planes has no consequence and is only written down.
    """
    neurons, law = system.neurons, system.law
    k = system.rows.cid[j]
    stages, size = len(tables.gauss), neurons.z.shape[1]
    a, step = neurons.a[j], path.step
    slope, b, speed, rise = room.slope, room.b, room.speed, room.rise
    for s in range(stages):
        b[s] = dot3(field.f_gauss, k, s, neurons.z, j)
    slopes(a, b, field.matrices, k, field.method, law.hidden, slope)
    for p in range(size):
        speed[0, p] = a * field.push[k, 0, p]
    for s in range(stages):
        for p in range(size):
            speed[s + 1, p] = slope[0, s] * field.push_gauss[k, s, p]
    if law.decay > 0.0:
        decaying(neurons.z[j], speed, field.method, law.decay)
    tau, _ = first_boundary(neurons.z[j], neurons.mode[j], speed, step, tables.path, slack)
    if tau < field.tail and field.tail < 1.0 and law.decay == 0.0:
        for p in range(size):
            speed[0, p] = a * field.now[k, p]
        tau, _ = first_boundary(neurons.z[j], neurons.mode[j], speed, step, tables.path, slack)
    tau = min(tau, field.leaves[k])
    if law.hidden or neurons.sign[j] >= 0.0:
        return tau
    rise[0] = dot3(field.g, k, np.int64(0), neurons.w, j) - law.decay * a
    for s in range(stages):
        rise[s + 1] = slope[1, s] - law.decay * slope[0, s]
    flip = first_flip(a, rise, step, tables.path)
    if flip <= 1.0 and flip < tau:
        if system.rows.begin[k] < system.rows.begin[k + 1]:
            return flip
        if tau > 1.0:
            known = len(field.f[k]) - len(path.nodes)
            pull = pull_on(neurons.w[j], field.g[k, known:], field.push[k, known:])
            note(log, moment_of_flip(flip, 0.0, a, pull, path, tables), j, -1, 0, FLIP)
    return tau


@kernel
def _matters_since(log: Log, begun: int, path: Path, limits: Limits, size: float) -> float:
    """The first event of a walk, if what a plane pulls after it is more than a step may miss; 2.0.

    ``begun`` is where the events of the walk begin in the log.
    """
    for k in range(begun, min(log.used[0], len(log.rows))):
        plane = int(log.rows[k, 2])
        if plane >= 0:
            after = 1.0 - log.rows[k, 0]
            boost = path.step * after * abs(path.high[-1, plane] - path.low[-1, plane])
            matters = after > 2.0 * limits.tail and size * boost**2 >= limits.light
            return log.rows[k, 0] if matters else 2.0
    return 2.0


@kernel
def carry(
    system: System, c: Array, step: float, tables: Tables, limits: Limits, sure: NDArray[Any],
    patient: bool, log: Log,
) -> Moved:  # fmt: skip
    """End states of all neurons in the forces ``c`` (S, n) at the Radau nodes.

    Events of neurons for which `Limits` allows it are carried out here and listed in ``log``
    (moments are shares of the step). If some neuron's first event is not allowed the step will be
    shortened, and nobody walks, unless the caller is ``patient``. Slides of classes that are
    ``sure`` (C,) to end, as a longer step has shown, do so as soon as their weight is outside.
    """
    neurons, rows, planes = system.neurons, system.rows, system.planes
    m, size = neurons.z.shape
    stages, hidden = len(c), system.law.hidden
    both = np.empty((stages + 1, c.shape[1]))
    for i in range(c.shape[1]):
        both[0, i] = system.c[i]
        for s in range(stages):
            both[s + 1, i] = c[s, i]
    low, high = on_planes(both, planes)
    field = _field(system, low, high, step, tables, limits, sure)
    # inside the step the force of the start helps, unless the outputs forget it at once
    known = 0 if limits.tail == 1.0 else 1
    nodes = tables.nodes[known:].copy()
    path = Path(nodes, denominators(nodes), low[known:].copy(), high[known:].copy(), step, hidden)
    a1, w1, mode1 = neurons.a.copy(), neurons.w.copy(), neurons.mode.copy()
    first, stopped = np.full(m, 2.0), np.full(m, 2.0)
    kinks = np.zeros((stages, 2, size))
    slope, weighs = np.empty((2, stages)), np.zeros(m)
    speed = np.empty((stages + 1, size))
    room = Room(slope, np.empty(stages), speed, np.empty(stages + 1))
    firm = Limits(
        limits.on_plane, limits.tick, limits.near, limits.near, 0.0, limits.light, limits.late,
        limits.tail, limits.most,
    )  # fmt: skip
    last = last_node(field.g, step, tables, system.law)
    keep, weights = damped_end(field.method, tables.gauss_b, system.law.decay)
    weights *= step
    all_forces = np.abs(system.c * planes.length).sum()
    whole = True
    for j in range(m):
        k = rows.cid[j]
        if k < 0:
            continue
        square = dot2(neurons.w, j, neurons.w, j)
        full = neurons.a[j] ** 2 + square
        slack = limits.on_plane * np.sqrt(square if hidden else full)
        slack += limits.tick * abs(neurons.a[j])
        if hidden:  # a neuron held at the origin moves by the rounding of forces that cancel
            slack += limits.on_plane * abs(neurons.a[j]) * step * all_forces
        first[j] = _look(system, j, field, path, tables, slack, log, room)
        if first[j] <= 1.0:
            size_j, after = neurons.weight[j] * full, 1.0 - first[j]
            if size_j < limits.light:
                weighs[j] = neurons.weight[j]
            elif not (size_j * after**2 < limits.late and after <= limits.tail):
                whole = False
            continue
        if len(last.g):
            to_last_node(a1, w1, system, j, last, slope)
        else:
            gauss_end(a1, w1, j, keep, weights, slope, field.g_gauss, k)
        put_back(a1, w1, system, j)
    if whole or patient:
        for j in range(m):
            if first[j] > 1.0:
                continue
            balance = balance_of(neurons.sign[j], neurons.log_balance[j], neurons.sigma[j])
            neuron = Neuron(
                j, a1[j : j + 1], w1[j], neurons.z[j].copy(), mode1[j], balance, weighs[j]
            )  # fmt: skip
            mine = firm if sure[rows.cid[j]] else limits
            begun = log.used[0]
            stopped[j] = walk(neuron, path, planes, tables, mine, log, kinks)
            if weighs[j] == 0.0 and limits.tail < 1.0:
                # a large neuron knows better when: outputs may have had time to react after it
                size_j = neurons.weight[j] * (neurons.a[j] ** 2 + dot2(neurons.w, j, neurons.w, j))
                earlier = _matters_since(log, begun, path, limits, size_j)
                first[j] = min(first[j], earlier)
                whole = whole and earlier > 1.0
    kinked = at_points(kinks, planes)
    fade(kinked, system.law.decay * step * tables.radau)
    return Moved(a1, w1, mode1, first, stopped, field.leaves, kinked, whole)
