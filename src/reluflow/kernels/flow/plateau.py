r"""Neurons in constant forces: a chain of boosts, event by event, in closed form.

The motion itself is in `boost`; here is what happens on the way. The largest part of a neuron is
moved into its log scale.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.kernels.flow.boost import Boost, boosted, coordinates
from reluflow.kernels.flow.layout import ABOVE, FLIP, SLIDE, Neurons, Planes
from reluflow.kernels.flow.neuron import Log, Neuron, meet, note, planes_met, turn
from reluflow.kernels.flow.planes import inverse_gram, is_alive, land, multipliers, ray_of
from reluflow.kernels.flow.roots import exit_boost
from reluflow.kernels.flow.transport import across_of, balance_of, hold
from reluflow.kernels.kernel import kernel

# pulls are summed anew after this many crossings, or where one of them is this share of all; the
# pre-activations more often
STALE, VAGUE, FRESH = 64, 1e-12, 16
# a neuron that shrinks does so in boosts of so many e-folds: what will grow again may be below the
# range of floats, and is found again from the balance
STAGE = 300.0
# a pre-activation below this share of a neuron's size is zero
ON_PLANE = 1e-13
# in place of a plane: no event, or the output weight changes sign in a slide
NONE, TURN = -1, -2
# in place of a neuron that stopped: all came through, or the work of one call is done
THROUGH, PAUSED = -1, -2


class Forces(NamedTuple):
    """Constant forces: pulls of the planes below and above, and the ``noise`` of their sum."""

    low: Array
    high: Array
    noise: float


@kernel
def _products(U: Array, v: Array, out: Array) -> None:
    for p in range(len(U)):
        out[p] = np.dot(U[p], v)


@kernel
def _pulls(forces: Forces, row: NDArray[Any], planes: Planes, g: Array, push: Array) -> None:
    """The pull ``g`` (d,) in a row and its products (P,) with the planes it does not slide on."""
    f = multipliers(forces.low, forces.high, row, planes.gram)
    size, d = planes.U.shape
    for q in range(d):
        g[q] = 0.0
    for p in range(size):
        for q in range(d):
            g[q] += f[p] * planes.U[p, q]
    _products(planes.U, g, push)
    for p in range(size):
        # a pull at rounding would switch off a pre-activation that only fades
        if row[p] >= SLIDE or abs(push[p]) <= 4e-16 * forces.noise:
            push[p] = 0.0


@kernel
def _next_event(
    neuron: Neuron, boost: Boost, push: Array, limit: float, planes: Planes, slack: float
) -> tuple[float, int]:
    """The boost, at most ``limit``, to the first event, and its plane, NONE or TURN."""
    plus, minus = boost.plus, boost.minus
    p = 0.5 * (plus + minus)
    shrinks = abs(plus) < 1e-3 * abs(minus)
    best, where = limit, NONE
    if neuron.balance < 0.0 and (neuron.row == SLIDE).any() and minus / plus > 1.0:
        flip = 0.5 * np.log(minus / plus)
        if flip < best:
            best, where = flip, TURN
    for i in range(len(push)):
        if neuron.row[i] >= SLIDE:
            continue
        sign = 1.0 if neuron.row[i] == ABOVE else -1.0
        # a pre-activation that fades to rounding must pass the plane clearly
        z = neuron.z[i] + sign * slack if abs(neuron.z[i]) <= slack else neuron.z[i]
        xi = push[i] / boost.speed
        rest = np.dot(planes.U[i], boost.across) + z - neuron.z[i] if shrinks else z - xi * p
        exit_ = exit_boost(z, rest, xi, plus, sign)
        if exit_ < best:
            best, where = exit_, i
    return best, where


@kernel
def drift(
    neurons: Neurons, j: int, forces: Forces, planes: Planes, begin: float, span: float, log: Log,
    work: Array,
) -> float:  # fmt: skip
    """Carry neuron j from ``begin`` to ``span`` of the clock, across all its events; it changes.

    Returns the moment at which it stopped at a crossroads; ``span`` if it came through. Each event
    takes from ``work`` (1,); once that is negative it pauses, at the moment that is returned.
    """
    size, d = planes.U.shape
    g, push, across = np.empty(d), np.empty(size), np.empty(d)
    moment, age, repeats, lost = begin, STALE, 0, 1.0
    stopped = False
    while work[0] >= 0.0:
        neuron = _taken(neurons, j)
        if not is_alive(neuron.row, planes.both):
            moment = span
            break
        if age >= STALE or (age > 0 and _vague(neuron.row, push, forces)):
            _pulls(forces, neuron.row, planes, g, push)
            age = 0
        if np.sqrt(np.dot(g, g)) <= 1e-15 * forces.noise:
            moment = span
            break
        _recall(neurons, j, g, across)
        boost = coordinates(neuron, g, across)
        whole = (span - moment) * boost.speed
        limit = whole if abs(boost.plus) > 1e-3 * abs(boost.minus) else min(whole, STAGE)
        q, where = _next_event(neuron, boost, push, limit, planes, _slack(neuron))
        lost *= _move(neurons, neuron, boost, q, where, g, push, planes)
        # pre-activations from the weights now and then: carried on their own the two part where a
        # neuron shrinks below its rounding
        if where < 0 or age % FRESH == 0 or lost > 4.0:
            _products(planes.U, neuron.w, neuron.z)
            lost = 1.0
        _on_planes(neuron, where)
        _note_flip(neurons, neuron, boost, moment, q, where, log)
        neurons.sigma[j] += _rescaled(neuron)
        moment += q / boost.speed
        if where == NONE:
            if limit == whole:
                moment = span
                break
            # in balance, and nothing across: it shrinks along its pull for ever
            if neurons.sign[j] == 0.0 and not neurons.still[j].any():
                neurons.sigma[j] -= whole - q
                moment = span
                break
            continue
        repeats = repeats + 1 if q == 0.0 else 0
        before = neuron.row.copy()
        if not _apply(neuron, where, push, forces, planes, moment, log) or repeats > 2 * size + 2:
            stopped = True
            break
        work[0] -= size * d
        for p in range(size):
            _replace(g, push, before[p], neuron.row[p], p, forces, planes)
        age = age + 1 if not (before >= SLIDE).any() else STALE
        neurons.still_sigma[j] = np.nan
    if stopped or not _is_ray(neurons.mode[j], planes):
        neurons.still_sigma[j] = np.nan
    return moment


@kernel
def _taken(neurons: Neurons, j: int) -> Neuron:
    """Neuron j as the automaton takes it: views, and its balance at the scale it has now."""
    balance = balance_of(neurons.sign[j], neurons.log_balance[j], neurons.sigma[j])
    return Neuron(
        j, neurons.a[j : j + 1], neurons.w[j], neurons.z[j], neurons.mode[j], balance, 0.0
    )


@kernel
def _slack(neuron: Neuron) -> float:
    return ON_PLANE * np.sqrt(neuron.a[0] ** 2 + np.dot(neuron.w, neuron.w))


@kernel
def _vague(row: NDArray[Any], push: Array, forces: Forces) -> bool:
    """Whether rounding may be what is left of a pull, or a slide needs it summed anew."""
    for p in range(len(row)):
        if row[p] >= SLIDE or abs(push[p]) <= VAGUE * forces.noise:
            return True
    return False


@kernel
def _recall(neurons: Neurons, j: int, g: Array, across: Array) -> None:
    """The part of ``w`` across the pull, at the scale of now; noted where it is not known."""
    if np.isnan(neurons.still_sigma[j]):
        neurons.still_sigma[j] = neurons.sigma[j]
        held = np.flatnonzero(neurons.mode[j] == SLIDE)
        along = np.dot(g, neurons.w[j]) / np.dot(g, g)
        free = len(held) < len(g) - 1  # nothing is across where slides confine a neuron to a line
        for q in range(len(g)):
            part = across_of(neurons.w[j, q], along * g[q])
            neurons.still[j, q] = part if free else 0.0
    factor = np.exp(min(neurons.still_sigma[j] - neurons.sigma[j], 700.0))
    for q in range(len(g)):
        across[q] = neurons.still[j, q] * factor


@kernel
def _move(
    neurons: Neurons, neuron: Neuron, boost: Boost, q: float, where: int, g: Array, push: Array,
    planes: Planes,
) -> float:  # fmt: skip
    """Move a neuron by the boost ``q``, on its planes and in balance; by how much rounding grew."""
    j, size = neuron.who, len(neuron.z)
    p_before = 0.5 * (boost.plus + boost.minus)
    shift, shrink = boosted(neuron, boost, q, g)
    neurons.sigma[j] += shift
    on = neuron.row == SLIDE
    if where >= 0:
        on[where] = True
    land(neuron.w, on, planes)
    if where == TURN:
        neuron.a[0] = 0.0
    else:
        balance = balance_of(neurons.sign[j], neurons.log_balance[j], neurons.sigma[j])
        neuron.a[0] = hold(neuron.a[0], neuron.w, balance)
    p_after = np.dot(g, neuron.w) / boost.speed
    for p in range(size):
        xi = push[p] / boost.speed
        neuron.z[p] = (neuron.z[p] - p_before * xi) * shrink + p_after * xi
    return max(shrink, 1.0)


@kernel
def _on_planes(neuron: Neuron, where: int) -> None:
    """Products with the planes that a neuron is on are zero."""
    for p in range(len(neuron.z)):
        if neuron.row[p] >= SLIDE or p == where:
            neuron.z[p] = 0.0


@kernel
def _note_flip(
    neurons: Neurons, neuron: Neuron, boost: Boost, moment: float, q: float, where: int, log: Log
) -> None:
    """Write down a change of sign of the output weight on the way, away from all planes."""
    if neurons.sign[neuron.who] < 0.0 and where != TURN and boost.plus * boost.minus > 0.0:
        flip = 0.5 * np.log(boost.minus / boost.plus)
        if 0.0 < flip <= q:
            note(log, moment + flip / boost.speed, neuron.who, -1, 0, FLIP)


@kernel
def _apply(
    neuron: Neuron, where: int, push: Array, forces: Forces, planes: Planes, moment: float, log: Log
) -> bool:
    """Apply the event that a neuron has come to; False at a crossroads, where it stops."""
    if where == TURN:
        turn(neuron, forces.low, forces.high, planes, log, moment)
        return True
    arrival = neuron.a[0] * push
    on = planes_met(neuron, where, arrival, _slack(neuron))
    if meet(neuron, on, arrival, forces.low, forces.high, planes, log, moment):
        return True
    land(neuron.w, on, planes)
    return False


@kernel
def _is_ray(row: NDArray[Any], planes: Planes) -> bool:
    """Whether what is across the pull stays so when the forces change."""
    held = np.flatnonzero(row == SLIDE)
    normal, _ = inverse_gram(planes.gram, held)
    axis = np.zeros(planes.U.shape[1])
    dual = np.zeros((len(held), len(axis)))
    for p in range(len(held)):
        for q in range(len(held)):
            for r in range(len(axis)):
                dual[p, r] += normal[p, q] * planes.U[held[q], r]
    return ray_of(row, planes, held, dual, axis)


@kernel
def _rescaled(neuron: Neuron) -> float:
    """Move a power of two from a neuron to its log scale, exactly; returns the change of that."""
    top = abs(neuron.a[0])
    for q in range(len(neuron.w)):
        top = max(top, abs(neuron.w[q]))
    if top == 0.0 or 0.25 <= top <= 4.0:
        return 0.0
    exponent = np.floor(np.log2(top))
    factor = 2.0**-exponent
    neuron.a[0] *= factor
    for q in range(len(neuron.w)):
        neuron.w[q] *= factor
    for p in range(len(neuron.z)):
        neuron.z[p] *= factor
    return exponent * 0.6931471805599453


@kernel
def _replace(
    g: Array, push: Array, before: int, after: int, p: int, forces: Forces, planes: Planes
) -> None:
    """Account for a plane that was crossed; what slides is summed anew anyhow."""
    if before == after or before >= SLIDE or after >= SLIDE:
        return
    change = forces.high[p] - forces.low[p]
    if before == ABOVE:
        change = -change
    for q in range(len(g)):
        g[q] += change * planes.U[p, q]
    for k in range(len(push)):
        push[k] += change * planes.gram[p, k]


@kernel
def drift_all(
    neurons: Neurons, moving: NDArray[Any], forces: Forces, planes: Planes, begin: Array,
    span: float, log: Log, work: Array,
) -> int:  # fmt: skip
    """Carry the ``moving`` neurons from ``begin`` (m,) to ``span``; the first that stops, THROUGH,
    or PAUSED, if no ``work`` (1,) is left.

    ``begin`` is the moment each of them has reached.
    """
    for j in range(len(moving)):
        if moving[j] and begin[j] < span:
            begin[j] = drift(neurons, j, forces, planes, begin[j], span, log, work)
            if begin[j] < span:
                return j if work[0] >= 0.0 else PAUSED
    return THROUGH


@kernel
def any_below(a: Array, w: Array, sigma: Array, cid: NDArray[Any], level: float) -> bool:
    """Whether ``log(a^2 + |w|^2) + 2 sigma`` of some living neuron lies below ``level``."""
    m, d = w.shape
    for j in range(m):
        if cid[j] >= 0:
            size = a[j] * a[j]
            for q in range(d):
                size += w[j, q] * w[j, q]
            if size == 0.0 or np.log(size) + 2.0 * sigma[j] < level:
                return True
    return False
