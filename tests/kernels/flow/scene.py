"""Bundles for the kernels of the flow, made by plain NumPy from points and weights."""

from __future__ import annotations

import numpy as np

import reluflow as rf
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.start import begin_at
from reluflow.engines.flow.state import start
from reluflow.engines.flow.tableau import FOUR
from reluflow.kernels.flow.collocation import System
from reluflow.kernels.flow.layout import Limits, Neurons, Path, Planes
from reluflow.kernels.flow.neuron import Log, Neuron

S = FOUR.stages


def planes_with(U, owner=None, length=None, y=None):
    """Planes with normals along the rows of ``U``; without more, a point of length one on each."""
    U = np.array(U, dtype=float)
    U = np.ascontiguousarray(U / np.linalg.norm(U, axis=1)[:, None])
    owner = np.arange(len(U)) if owner is None else np.array(owner)
    length = np.ones(len(owner)) if length is None else np.array(length, dtype=float)
    y = np.zeros(len(owner)) if y is None else np.array(y, dtype=float)
    both = np.zeros(len(U), dtype=bool)
    both[owner[length < 0]] = True
    gram = U @ U.T
    np.fill_diagonal(gram, 1.0)
    return Planes(U, np.ascontiguousarray(gram), both, owner.astype(np.int64), length, y)


def planes_at(X, y=None):
    """One plane for each of the points, none of them parallel."""
    return planes_with(X, length=np.linalg.norm(X, axis=1), y=y)


def points_of(planes):
    """The points (n, d)."""
    return planes.length[:, None] * planes.U[planes.owner]


def pulls_on(c, planes):
    """``(low, high)`` (..., P): sums of the forces below and above each plane, point by point."""
    c = np.asarray(c)
    low, high = np.zeros((2, *c.shape[:-1], len(planes.U)))
    for i, p in enumerate(planes.owner):
        side = high if planes.length[i] > 0 else low
        side[..., p] += planes.length[i] * c[..., i]
    return low, high


def balances(a, w, sigma):
    """Sign and log-size of ``a^2 - |w|^2``; zero below rounding."""
    norms = np.linalg.norm(w, axis=1)
    gap = (np.abs(a) - norms) * (np.abs(a) + norms)
    gap = np.where(np.abs(gap) <= 1e-14 * norms**2, 0.0, gap)
    with np.errstate(divide="ignore"):
        return np.sign(gap), np.log(np.abs(gap)) + 2.0 * sigma


def neurons_with(a, w, planes, mode=None, sigma=0.0):
    """Neurons with modes by their signs, unless given; arrays are copies."""
    a, w = np.array(a, dtype=float), np.array(w, dtype=float)
    sigma = np.full(len(a), sigma, dtype=float)
    z = np.ascontiguousarray(w @ planes.U.T)
    mode = (z > 0).astype(np.int8) if mode is None else np.array(mode, dtype=np.int8)
    z[mode >= 2] = 0.0
    sign, log_balance = balances(a, w, sigma)
    return Neurons(
        a, w, sigma, mode, z, np.exp(2 * sigma), sign, log_balance, np.zeros_like(w),
        np.full(len(a), np.nan),
    )  # fmt: skip


def one_neuron(a, w, planes, row=None, weight=0.0, balance=None):
    """A neuron of the automaton, in its row by signs unless given."""
    w = np.array(w, dtype=float)
    z = planes.U @ w
    row = (z > 0).astype(np.int8) if row is None else np.array(row, dtype=np.int8)
    z[row >= 2] = 0.0
    if balance is None:
        balance = a * a - w @ w
    return Neuron(7, np.array([float(a)]), w, z, row, float(balance), float(weight))


def empty_log(capacity=400):
    """A list of events without any."""
    return Log(np.zeros((capacity, 5)), np.zeros(1, np.int64))


def rows_in(log):
    """The events written down."""
    return log.rows[: int(log.used[0])]


def path_of(low, high, step=1.0, hidden=False, nodes=FOUR.tables.nodes):
    """Forces of the planes on a step from their values at the nodes."""
    gaps = nodes[:, None] - nodes[None, :] + np.eye(len(nodes))
    low, high = np.ascontiguousarray(low), np.ascontiguousarray(high)
    return Path(nodes.copy(), 1.0 / gaps.prod(axis=1), low, high, float(step), hidden)


def limits_with(**changes):
    """Limits under which no event may lie inside a step, but for ``changes``."""
    plain = Limits(
        1e-13, 0.0, near=1e-11, far=1e-11, unit=0.0, light=0.0, late=0.0, tail=1.0, most=np.inf,
        turn=np.inf, known=0.0,
    )  # fmt: skip
    return plain._replace(**{name: float(value) for name, value in changes.items()})


def carry_by_dense_solve(a, w, g, step, A, weights, hidden):
    """Collocation of ``a' = w.g, w' = a g`` with all stage values unknown: node and end values."""
    stages, d = g.shape
    size = 1 + d
    matrix = np.eye(stages * size)
    L = np.zeros((stages, size, size))
    for k in range(stages):
        if not hidden:
            L[k, 0, 1:] = g[k]
        L[k, 1:, 0] = g[k]
    for k in range(stages):
        for r in range(stages):
            block = slice(k * size, (k + 1) * size), slice(r * size, (r + 1) * size)
            matrix[block] -= step * A[k, r] * L[r]
    start_value = np.concatenate([[a], w])
    nodes = np.linalg.solve(matrix, np.tile(start_value, stages)).reshape(stages, size)
    slopes = np.einsum("kpq,kq->kp", L, nodes)
    return nodes, start_value + step * weights @ slopes


# ---------------------------------------------------------------------- starts of steps


def begun(seed, loss=None, hidden=False, shared=False, m=9, mixed=True):
    """The start of a step of a random problem; ``mixed``: one neuron slides, one is dead.

    ``shared``: some points lie on lines of others, on either side.
    """
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(5, 3)), rng.normal(size=5)
    if shared:
        X = np.concatenate([X, [2.0 * X[2], -0.5 * X[0], X[1]]])
        y = rng.normal(size=8)
    loss = loss or rf.losses.Square()
    if loss != rf.losses.Square():
        y = np.sign(y)
    net = rf.Network(rng.normal(size=m), rng.normal(size=(m, 3)))
    problem = Problem(rf.Dataset(X, y), net, loss, "hidden" if hidden else "both")
    state = start(problem)
    if mixed:
        state.mode[0] = 0
        normal = problem.planes.U[2]
        state.w[1] -= (state.w[1] @ normal) * normal
        state.mode[1] = (state.w[1] @ problem.planes.U.T > 0).astype(np.int8)
        state.mode[1, 0], state.mode[1, 2] = 1, 2
        problem.sign[:], problem.log_balance[:] = balances(state.a, state.w, state.sigma)
    return begin_at(problem, state)


def system_of(at, values=None, vectors=None):
    """The equations of a step, without eigenvectors unless given."""
    values = np.empty(0) if values is None else values
    vectors = np.empty((0, 0)) if vectors is None else vectors
    problem = at.problem
    return System(
        at.neurons, at.classes, problem.planes, problem.law, at.h, at.c, at.kernel, values, vectors,
        at.rounding,
    )  # fmt: skip


def active_points(mode, planes):
    """Which points (..., n) are active in rows (..., P)."""
    own = np.asarray(mode)[..., planes.owner]
    return np.where(planes.length > 0, own == 1, own == 0)


def pulls_of(at, c):
    """``g`` (S, m, d) of every neuron, by least squares where it slides."""
    planes = at.problem.planes
    low, high = pulls_on(c, planes)
    g = np.zeros((len(c), len(at.state.a), planes.U.shape[1]))
    for j, row in enumerate(at.state.mode):
        if at.classes.cid[j] < 0:
            continue
        held = planes.U[row == 2]
        for k in range(len(c)):
            f = np.where(row == 1, high[k], np.where(row == 0, low[k], 0.0))
            g[k, j] = f @ planes.U
            if len(held):
                g[k, j] -= np.linalg.lstsq(held, held @ g[k, j], rcond=None)[0]
    return g


def nobody_sure(at):
    """No class is known to leave its slide."""
    return np.zeros(len(at.classes.face), dtype=bool)
