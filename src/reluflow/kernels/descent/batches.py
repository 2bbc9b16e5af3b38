r"""Compiled descent as practised: batches of points, momentum, noisy labels, weight decay.

Symbols as in `descent`: points ``X`` (n, d), neurons ``2^e_j (a_j, W_j)``, forces
``c_i = -dL/dh_i``. Step k sees the points B of its batch, with labels
:math:`y_i + \sigma \xi_{ik}`, and moves by a velocity (heavy ball),

.. math:: v \leftarrow \beta v - \eta\,(\nabla L_B(\theta) + \mu\,\theta), \qquad
          \theta \leftarrow \theta + v ,

where :math:`\nabla L_B` is n / |B| times the part of the gradient that the batch makes. Given the
forces this is linear in a neuron's own weights and velocity, so powers of two commute with it.

Batch and noise of a step are functions of the seed and its number (`philox`), all else of the
weights and velocities before it: a run continued from a copy of them repeats bitwise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.kernels.descent.forces import forces
from reluflow.kernels.descent.patterns import SUMS, fourth_power
from reluflow.kernels.descent.weights import (
    DIVERGED,
    DONE,
    LARGEST,
    STOPPED,
    UNCHANGED,
    WATCH,
    WINDOW,
)
from reluflow.kernels.kernel import kernel
from reluflow.kernels.philox import normal, shuffle, uniform

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

# the streams of random numbers
ORDER, DRAWN, LABELS = 0, 1, 2
# a velocity below this share of the weights is none: it would fade into numbers that cost time
FAINT = 1e-40
BLOCK = 256  # points whose outputs are formed together when the loss of all is asked for


class Problem(NamedTuple):
    """What is minimised, and how.

    ``size`` is that of a batch, 0 for all points; every ``look`` steps, an epoch, the loss of all
    points may be asked for; ``is_drawn``: batches are drawn with replacement.
    """

    X: Array
    y: Array
    loss: int
    shares: bool
    kappa: float
    lr: float
    momentum: float
    decay: float
    noise: float
    key: int
    size: int
    is_drawn: bool
    look: int
    moves_hidden: bool
    moves_output: bool
    slope: float = 0.0


class Work(NamedTuple):
    """Neurons, their velocities, and room for a batch; ``epoch`` is the one ``order`` is of."""

    a: Array
    W: Array
    e: Indices
    power: Array
    velocity_a: Array
    velocity: Array
    order: Indices
    epoch: Indices
    points: Indices
    rows: Array
    labels: Array
    z: Array
    pull: Array
    h: Array
    c: Array
    all_h: Array
    all_c: Array
    old_outputs: Array
    old_weights: Array
    old_velocity_a: Array
    old_velocity: Array


def workspace(
    problem: Problem, a: Array, W: Array, e: Indices, velocity_a: Array, velocity: Array
) -> Work:
    """Memory for `run`, holding neurons and velocities."""
    (m, d), n = W.shape, len(problem.y)
    room = max(problem.size, min(n, BLOCK)) if problem.size else n
    return Work(
        a=a.copy(),
        W=np.array(W, order="C"),
        e=e.copy(),
        power=np.array([fourth_power(int(k)) for k in e]),
        velocity_a=velocity_a.copy(),
        velocity=np.array(velocity, order="C"),
        order=np.arange(n),
        epoch=np.full(1, -1),
        points=np.arange(room),
        rows=np.zeros((room, d)),
        labels=np.zeros(room),
        z=np.zeros(m * room),
        pull=np.zeros((m, d)),
        h=np.zeros(room),
        c=np.zeros(room),
        all_h=np.zeros(n),
        all_c=np.zeros(n),
        old_outputs=np.zeros(m),
        old_weights=np.zeros((m, d)),
        old_velocity_a=np.zeros(m),
        old_velocity=np.zeros((m, d)),
    )


@kernel
def choose(problem: Problem, work: Work, iteration: int) -> int:
    """Put the points of a step into ``points``; return how many they are."""
    n, size = len(problem.y), problem.size
    if problem.is_drawn:
        for k in range(size):
            work.points[k] = int(uniform(problem.key, iteration, k, DRAWN) * n)
        return size
    if size == 0:  # all points, in their order
        for k in range(n):
            work.points[k] = k
        return n
    epoch, first = iteration // problem.look, (iteration % problem.look) * size
    if work.epoch[0] != epoch:
        shuffle(work.order, problem.key, epoch, ORDER)
        work.epoch[0] = epoch
    count = min(size, n - first)
    for k in range(count):
        work.points[k] = work.order[first + k]
    return count


@kernel
def disturb(problem: Problem, work: Work, iteration: int, count: int) -> None:
    """Put the noise of the labels of a step into ``labels``."""
    for k in range(count):
        draw = normal(problem.key, iteration, work.points[k], LABELS)
        work.labels[k] = problem.noise * draw


@kernel(fastmath=SUMS)
def outputs(problem: Problem, work: Work, count: int) -> None:
    """Fill ``z`` (neurons, points) and ``h`` for the points chosen."""
    m, rows, h, slope = len(work.a), work.rows, work.h, problem.slope
    for k in range(count):
        i = work.points[k]
        for q in range(rows.shape[1]):
            rows[k, q] = problem.X[i, q]
        h[k] = 0.0
    z = work.z[: m * count].reshape(m, count)
    np.dot(work.W, rows[:count].T, z)
    for j in range(m):
        factor = work.power[j] * work.a[j]
        for k in range(count):
            h[k] += factor * max(z[j, k], slope * z[j, k])


@kernel
def log_loss_of_all(problem: Problem, work: Work) -> float:
    """The log-loss over all points; what was chosen is forgotten."""
    n, room = len(problem.y), len(work.points)
    for first in range(0, n, room):
        count = min(room, n - first)
        for k in range(count):
            work.points[k] = first + k
        outputs(problem, work, count)
        for k in range(count):
            work.all_h[first + k] = work.h[k]
    log_loss: float = forces(problem.loss, False, problem.kappa, work.all_h, problem.y, work.all_c)
    return log_loss


@kernel
def look_at_batch(problem: Problem, work: Work, iteration: int) -> tuple[int, float]:
    """Fill ``z``, ``h``, ``c`` for the points of a step; their number and their log-loss."""
    count = choose(problem, work, iteration)
    outputs(problem, work, count)
    for k in range(count):
        work.labels[k] = problem.y[work.points[k]]
    kappa = problem.kappa * (len(problem.y) / count)
    log_loss: float = forces(
        problem.loss, problem.shares, kappa, work.h[:count], work.labels[:count], work.c[:count]
    )
    if problem.noise > 0.0:
        disturb(problem, work, iteration, count)
        for k in range(count):
            work.c[k] += kappa * work.labels[k]
    return count, log_loss


@kernel(fastmath=SUMS)
def move_hidden(problem: Problem, work: Work, j: int) -> float:
    """Move the hidden weights of neuron j along its pull; return the length (sum norm)."""
    W, v, pull = work.W, work.velocity, work.pull
    factor, shrink = problem.lr * work.a[j], problem.lr * problem.decay
    moved, size = 0.0, 0.0
    for q in range(W.shape[1]):
        v[j, q] = problem.momentum * v[j, q] + (factor * pull[j, q] - shrink * W[j, q])
        W[j, q] += v[j, q]
        moved += abs(v[j, q])
        size += abs(W[j, q])
    if moved < FAINT * size:
        for q in range(W.shape[1]):
            v[j, q] = 0.0
    return moved


@kernel(fastmath=SUMS)
def move(problem: Problem, work: Work, count: int) -> bool:
    """Move all neurons, both layers from old values; False if a weight would leave the floats."""
    m, c, a, va = len(work.a), work.c, work.a, work.velocity_a
    lr, shrink, slope = problem.lr, problem.lr * problem.decay, problem.slope
    z = work.z[: m * count].reshape(m, count)
    total = 0.0
    for j in range(m):
        lift = 0.0
        if slope == 0.0:  # a loop of its own: the order of its sum shall not change
            for k in range(count):
                force = c[k] if z[j, k] > 0.0 else 0.0
                lift += force * z[j, k]
                z[j, k] = force
        else:
            for k in range(count):
                force = c[k] if z[j, k] > 0.0 else slope * c[k]
                lift += force * z[j, k]
                z[j, k] = force
        if problem.moves_output:
            va[j] = problem.momentum * va[j] + (lr * lift - shrink * a[j])
            total += abs(va[j])
    if problem.moves_hidden:
        np.dot(z, work.rows[:count], work.pull)
        for j in range(m):
            total += move_hidden(problem, work, j)
    if problem.moves_output:
        for j in range(m):
            a[j] += va[j]
            if abs(va[j]) < FAINT * abs(a[j]):
                va[j] = 0.0
    return bool(total < LARGEST)


@kernel
def normalise(work: Work) -> None:
    """Bring mantissas outside the window back by exact powers of two, velocities with them."""
    for j in range(len(work.a)):
        top = abs(work.a[j])
        for q in range(work.W.shape[1]):
            top = max(top, abs(work.W[j, q]))
        if top > 0.0 and not 2.0**-WINDOW <= top <= 2.0**WINDOW:
            shift = math.frexp(top)[1]
            factor = math.ldexp(1.0, -shift)
            work.a[j] *= factor
            work.velocity_a[j] *= factor
            for q in range(work.W.shape[1]):
                work.W[j, q] *= factor
                work.velocity[j, q] *= factor
            work.e[j] += shift
            work.power[j] = fourth_power(work.e[j])


@kernel
def remember(work: Work) -> None:
    """Copy weights and velocities, for `is_unchanged` after the step."""
    work.old_outputs[:] = work.a
    work.old_weights[:] = work.W
    work.old_velocity_a[:] = work.velocity_a
    work.old_velocity[:] = work.velocity


@kernel
def is_unchanged(problem: Problem, work: Work) -> bool:
    """Whether the weights are bitwise those remembered, and the velocities where they count."""
    same = np.all(work.old_outputs == work.a) and np.all(work.old_weights == work.W)
    if same and problem.momentum > 0.0:
        same = np.all(work.old_velocity_a == work.velocity_a) and np.all(
            work.old_velocity == work.velocity
        )
    return bool(same)


@kernel
def run(
    problem: Problem, work: Work, iteration: int, steps: int, stop: float, ceiling: float
) -> tuple[int, int, float, float]:
    """Do at most ``steps`` steps from ``iteration``, in place; as `descent.run`.

    With batches the loss of all points is compared with ``stop`` every ``look`` steps, that of the
    batch with ``ceiling``, and the least loss on the way is not known (-inf): what is returned
    does not depend on where a run is cut into pieces.
    """
    end, is_full = iteration + steps, problem.size == 0
    least, log_loss, seen, count = np.inf if is_full else -np.inf, np.nan, np.nan, 0
    repeats = is_full and problem.noise == 0.0
    both = problem.moves_hidden and problem.moves_output
    while True:
        is_due = iteration % problem.look == 0
        if both and iteration % WINDOW == 0:
            normalise(work)
        if is_full:
            count, log_loss = look_at_batch(problem, work, iteration)
            if not log_loss <= ceiling:
                return DIVERGED, iteration, log_loss, least
            least = min(least, log_loss)
        elif iteration == end or (is_due and not math.isnan(stop)):
            log_loss = log_loss_of_all(problem, work)
            if not log_loss < np.inf:
                return DIVERGED, iteration, log_loss, least
        if is_due and log_loss <= stop:
            return STOPPED, iteration, log_loss, least
        if iteration == end:
            return DONE, iteration, log_loss, least
        if not is_full:
            count, seen = look_at_batch(problem, work, iteration)
            if not seen <= ceiling:
                return DIVERGED, iteration, seen, least
        watched = repeats and iteration % WATCH == 0
        if watched:
            remember(work)
        if not move(problem, work, count):
            return DIVERGED, iteration, log_loss if is_full else seen, least
        if watched and is_unchanged(problem, work):
            return UNCHANGED, iteration, log_loss, least
        iteration += 1
