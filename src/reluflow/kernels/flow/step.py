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
from reluflow.kernels.flow.field import Field, field_of
from reluflow.kernels.flow.forces import on_planes
from reluflow.kernels.flow.layout import (
    ABOVE,
    BRANCH,
    FLIP,
    GRAZES,
    SLIDE,
    Limits,
    Neurons,
    Path,
    Tables,
)
from reluflow.kernels.flow.neuron import AT_REST, STAYS, Log, Neuron, note
from reluflow.kernels.flow.passage import denominators, moment_of_flip, pull_on
from reluflow.kernels.flow.roots import first_boundary, first_flip, turns_back
from reluflow.kernels.flow.transport import (
    balance_of,
    damped_end,
    dot2,
    dot3,
    slopes,
)
from reluflow.kernels.flow.walk import walk
from reluflow.kernels.kernel import kernel

# what moves by this share of its distance from a plane does not turn back from it
HARDLY = 0.01
# a light neuron that after its event, at a pull the equations of the step do not know, has grown to
# this many times what is light is not: in a boost of one it grows to seven times at most
GROWN = 10.0


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
    tau, _ = first_boundary(neurons.z[j], neurons.mode[j], speed, step, tables, slack)
    if tau < field.tail and field.tail < 1.0 and law.decay == 0.0:
        for p in range(size):
            speed[0, p] = a * field.now[k, p]
        tau, _ = first_boundary(neurons.z[j], neurons.mode[j], speed, step, tables, slack)
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
def _note_graze(
    neurons: Neurons, j: int, path: Path, tables: Tables, slack: float, depth: float, log: Log,
    speed: Array,
) -> None:  # fmt: skip
    """Write down the first plane that repels neuron j and that it turns back within ``depth`` of.

    What is on a plane to rounding rests there.
    """
    least = max(AT_REST * slack, STAYS * depth)
    for p in range(speed.shape[1]):
        if neurons.mode[j, p] >= SLIDE or abs(neurons.z[j, p]) <= least:
            continue
        side = 1.0 if neurons.mode[j, p] == ABOVE else -1.0
        repels = neurons.a[j] * (path.high[-1, p] - path.low[-1, p]) > 0.0
        if side * speed[0, p] >= 0.0 or not repels:
            continue
        most = 0.0
        for r in range(len(speed)):
            most += tables.spread[r] * abs(speed[r, p])
        most *= path.step
        # it cannot come near, or it does not move but by rounding: the neuron grows along the plane
        if abs(neurons.z[j, p]) > most + depth or most <= HARDLY * abs(neurons.z[j, p]):
            continue
        moment = turns_back(neurons.z[j, p], side, speed[:, p], path.step, tables.path, depth)
        if moment <= 1.0:
            note(log, moment, j, p, GRAZES, BRANCH)
            return


class Ends(NamedTuple):
    """Neurons on their way to the end of a step: as in `Moved`, kinks by side and plane.

    ``weighs`` (m,) is the weight of a neuron whose events the outputs are told of afterwards.
    """

    a: Array
    w: Array
    mode: NDArray[Any]
    first: Array
    stopped: Array
    weighs: Array
    kinks: Array


@kernel
def _carry_the_quiet(
    system: System, field: Field, path: Path, tables: Tables, limits: Limits, log: Log, ends: Ends
) -> bool:
    """Carry all neurons without events; whether no event of the others matters too much."""
    neurons, law, step = system.neurons, system.law, path.step
    m, size = neurons.z.shape
    stages = len(tables.gauss)
    slope, speed = np.empty((2, stages)), np.empty((stages + 1, size))
    room = Room(slope, np.empty(stages), speed, np.empty(stages + 1))
    last = last_node(field.g, step, tables, law)
    keep, weights = damped_end(field.method, tables.gauss_b, law.decay)
    weights *= step
    all_forces = np.abs(system.c * system.planes.length).sum()
    whole = True
    for j in range(m):
        k = system.rows.cid[j]
        if k < 0:
            continue
        square = dot2(neurons.w, j, neurons.w, j)
        full = neurons.a[j] ** 2 + square
        slack = limits.on_plane * np.sqrt(square if law.hidden else full)
        slack += limits.tick * abs(neurons.a[j])
        if law.hidden:  # a neuron held at the origin moves by the rounding of forces that cancel
            slack += limits.on_plane * abs(neurons.a[j]) * step * all_forces
        first = _look(system, j, field, path, tables, slack, log, room)
        ends.first[j] = first
        depth = limits.known * np.sqrt(full)
        if first > 1.0 and square > (AT_REST * depth) ** 2:  # else near the origin, at rest there
            _note_graze(neurons, j, path, tables, slack, depth, log, speed)
        if first <= 1.0:
            size_j, after = neurons.weight[j] * full, 1.0 - first
            if size_j < limits.light:
                ends.weighs[j] = neurons.weight[j] if limits.tail < 1.0 else 0.0
            elif not (size_j * after**2 < limits.late and after <= limits.tail):
                whole = False
            continue
        if len(last.g):
            to_last_node(ends.a, ends.w, system, j, last, slope)
        else:
            gauss_end(ends.a, ends.w, j, keep, weights, slope, field.g_gauss, k)
        put_back(ends.a, ends.w, system, j)
    return whole


@kernel
def _walk_the_others(
    system: System, path: Path, tables: Tables, limits: Limits, sure: NDArray[Any], log: Log,
    ends: Ends,
) -> bool:  # fmt: skip
    """Carry all neurons with events; whether none of a large one turns out to matter too much."""
    neurons, whole = system.neurons, True
    firm = Limits(
        limits.on_plane, limits.tick, limits.near, limits.near, 0.0, limits.light, limits.late,
        limits.tail, limits.most, limits.turn, limits.known,
    )  # fmt: skip
    for j in range(len(ends.first)):
        if ends.first[j] > 1.0:
            continue
        balance = balance_of(neurons.sign[j], neurons.log_balance[j], neurons.sigma[j])
        neuron = Neuron(
            j, ends.a[j : j + 1], ends.w[j], neurons.z[j].copy(), ends.mode[j], balance,
            ends.weighs[j],
        )  # fmt: skip
        mine = firm if sure[system.rows.cid[j]] else limits
        begun = log.used[0]
        ends.stopped[j] = walk(neuron, path, system.planes, tables, mine, log, ends.kinks)
        size_j = neurons.weight[j] * (neurons.a[j] ** 2 + dot2(neurons.w, j, neurons.w, j))
        grown = neurons.weight[j] * (ends.a[j] ** 2 + dot2(ends.w, j, ends.w, j))
        whole = whole and grown <= GROWN * max(limits.light, size_j)
        if ends.weighs[j] == 0.0 and limits.tail < 1.0:
            # a large neuron knows better when: outputs may have had time to react after it
            earlier = _matters_since(log, begun, path, limits, size_j)
            ends.first[j] = min(ends.first[j], earlier)
            whole = whole and earlier > 1.0
    return whole


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
    neurons, planes, hidden = system.neurons, system.planes, system.law.hidden
    m, size = neurons.z.shape
    stages = len(c)
    both = np.empty((stages + 1, c.shape[1]))
    for i in range(c.shape[1]):
        both[0, i] = system.c[i]
        for s in range(stages):
            both[s + 1, i] = c[s, i]
    low, high = on_planes(both, planes)
    field = field_of(system, low, high, step, tables, limits, sure)
    # inside the step the force of the start helps, unless the outputs forget it at once
    known = 0 if limits.tail == 1.0 else 1
    nodes = tables.nodes[known:].copy()
    path = Path(nodes, denominators(nodes), low[known:].copy(), high[known:].copy(), step, hidden)
    ends = Ends(
        neurons.a.copy(), neurons.w.copy(), neurons.mode.copy(), np.full(m, 2.0), np.full(m, 2.0),
        np.zeros(m), np.zeros((stages, 2, size)),
    )  # fmt: skip
    whole = _carry_the_quiet(system, field, path, tables, limits, log, ends)
    if whole or patient:
        harmless = _walk_the_others(system, path, tables, limits, sure, log, ends)
        whole = whole and harmless
    kinked = at_points(ends.kinks, planes)
    fade(kinked, system.law.decay * step * tables.radau)
    return Moved(
        ends.a, ends.w, ends.mode, ends.first, ends.stopped, field.leaves, kinked, whole
    )  # fmt: skip
