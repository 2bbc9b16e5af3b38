r"""One step of the coupled flow: collocation in output space, stiff or not.

Given the modes, the flow is determined by the forces ``c(t)`` (n numbers): neurons are carried by
linear equations. The step looks for the forces at the Radau nodes such that the outputs of the
carried neurons give back the same forces,

.. math:: h_k = \mathrm{outputs}\Bigl(\text{neurons carried by } c\Bigr)(t_k), \quad c_k = c(h_k),

by Newton's method with the matrix :math:`I + H A \otimes \hat K J`: :math:`\hat K` is the tangent
kernel at the start of the step, :math:`J = -dc/dh`. That is the Radau IIA method of order
``2 STAGES - 1``, L-stable, in n unknowns per node instead of m(d+1). With the forces found, every
class is carried to the end of the step by Gauss collocation, a Lorentz transformation: balance and
Minkowski products are kept to rounding.

Numerics
--------
Order 7 between events. Steps are limited by accuracy, not stability. One step costs
``O(rows n^2 + m n + n^3)`` per Newton iteration, independent of d.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow import tableau
from reluflow.engines.flow.clock import log_elapsed, log_slowness
from reluflow.engines.flow.modes import Classes, tangent_kernel
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.state import ON_PLANE, Modes, State
from reluflow.kernels import collocation as kernel

# below this product of step and stiffness plain iteration converges fast enough
PICARD_LIMIT = 1e-3
MAX_ITERATIONS = 12
# the defect at the start of the step is of order STAGES, the error at its end of 2 STAGES - 1
POWER = (2 * tableau.STAGES - 1) / tableau.STAGES
# measured: the power of the defect overestimates the error by this much or more
CALIBRATION = 0.02
# error of Radau IIA on exp(q), divided by q: 24*6 / (2 * 5040 * 40320) for four stages
GROWTH_ERROR = 3.5e-7


@dataclass(frozen=True, eq=False)
class Start:
    """What a step knows before it begins; reused when the step is tried again with another size."""

    state: State
    classes: Classes
    z: Array
    weight: Array
    h: Array
    rounding: float
    c: Array
    kernel: Array
    kappa: float
    stiffness: float

    @cached_property
    def eigen(self) -> tuple[Array, Array]:
        """Rates and modes of the residual: eigenvalues and eigenvectors of kappa K."""
        values, vectors = np.linalg.eigh(self.kappa * self.kernel)
        return np.maximum(values, 0.0), vectors


@dataclass(frozen=True)
class Stretch:
    """A solved step: outputs and forces at the Radau nodes, the error relative to the tolerance."""

    step: float
    h: Array
    c: Array
    error: float
    boost: float
    iterations: int


@dataclass(frozen=True)
class Moved:
    """Neurons at the end of a step, the first exit of each, and crossings already carried out.

    ``crossings`` has rows (tau, neuron, point, new mode).
    """

    a: Array
    w: Array
    mode: Modes
    tau: Array
    point: Array
    crossings: Array


def begin(problem: Problem, state: State, classes: Classes) -> Start:
    """Collect the quantities at the start of a step."""
    z = state.preactivations(problem)
    weight = state.weights(problem)
    h = state.outputs(problem, z)
    # outputs are sums that may cancel: their rounding is that of the largest sum of sizes
    sizes = (weight * np.abs(state.a)) @ np.where(state.mode == 1, np.abs(z), 0.0)
    rounding = 4e-16 * max(float(sizes.max()), problem.output_scale)
    K = tangent_kernel(state.a, z, weight, state.mode, problem.gram, classes, problem.hidden)
    stiffness = float(np.abs(K).sum(axis=1).max()) * problem.kappa
    c = problem.forces(h)
    return Start(state, classes, z, weight, h, rounding, c, K, problem.kappa, stiffness)


def solve(problem: Problem, at: Start, step: float, rtol: float) -> Stretch | None:
    """Solve the collocation equations of one step; None if the iteration does not converge."""
    goal = max(_goal(problem, at, rtol), at.rounding)
    newton = _newton_square if problem.is_square else _newton_margin
    return newton(problem, at, step, goal, rtol)


def _newton_square(
    problem: Problem, at: Start, step: float, goal: float, rtol: float
) -> Stretch | None:
    r"""Iterate on the forces: ``c - kappa (y - out(c)) = 0``.

    With the forces as unknowns the rounding of the outputs enters divided by :math:`1 + H\lambda`;
    recomputed from the outputs they would be multiplied by it when the step is carried out.
    """
    stiff = step * at.stiffness >= PICARD_LIMIT
    c = at.c - np.outer(tableau.RADAU * step, at.kappa * (at.kernel @ at.c))
    if stiff:
        c = _linear_guess(at, step)
        values, vectors = at.eigen
        blocks = np.linalg.inv(
            np.eye(tableau.STAGES) + step * values[:, None, None] * tableau.RADAU_A
        )
    previous = np.inf
    for iteration in range(1, MAX_ITERATIONS + 1):
        out = outputs(problem, at, c, step)
        if not np.all(np.isfinite(out)):
            return None
        change = problem.kappa * (problem.y - out) - c
        size = float(np.abs(change).max()) / problem.kappa
        if stiff:
            change = np.einsum("ekl,le->ke", blocks, change @ vectors) @ vectors.T
        c = c + change
        if size <= goal or (size > 0.5 * previous and size <= 100.0 * at.rounding):
            return Stretch(step, out, c, *_error(problem, at, out, c, step, rtol), iteration)
        if size > 2.0 * previous and iteration > 2:
            return None
        previous = size
    return None


def _newton_margin(
    problem: Problem, at: Start, step: float, goal: float, rtol: float
) -> Stretch | None:
    """Iterate on the outputs: ``h - out(c(h)) = 0``, with the shares' own Jacobian at each node."""
    h = at.h + np.outer(tableau.RADAU * step, at.kernel @ at.c)
    stages, n = h.shape
    previous = np.inf
    for iteration in range(1, MAX_ITERATIONS + 1):
        c = problem.forces(h)
        out = outputs(problem, at, c, step)
        if not np.all(np.isfinite(out)):
            return None
        change = out - h
        if step * at.stiffness >= PICARD_LIMIT:
            jacobians = np.stack([at.kernel @ problem.force_jacobian(row) for row in h])
            matrix = np.einsum("kq,qij->kiqj", step * tableau.RADAU_A, jacobians)
            matrix = matrix.reshape(stages * n, stages * n) + np.eye(stages * n)
            change = np.linalg.solve(matrix, change.ravel()).reshape(stages, n)
        h = h + change
        size = float(np.abs(change).max())
        if size <= goal or (size > 0.5 * previous and size <= 100.0 * at.rounding):
            c = problem.forces(h)
            return Stretch(step, h, c, *_error(problem, at, h, c, step, rtol), iteration)
        if size > 2.0 * previous and iteration > 2:
            return None
        previous = size
    return None


def outputs(problem: Problem, at: Start, c: Array, step: float) -> Array:
    """Outputs (S, n) at the nodes of neurons carried by forces ``c`` (S, n) at the nodes."""
    rho = at.classes.forces(c)
    gx, gam = pulls(problem, at.classes, rho)
    return np.asarray(
        kernel.node_outputs(
            at.state.a,
            at.z,
            at.weight,
            at.classes.cid,
            at.classes.active,
            rho,
            gx,
            gam,
            step,
            tableau.RADAU_A,
            problem.hidden,
        )
    )


def pulls(problem: Problem, classes: Classes, rho: Array) -> tuple[Array, Array]:
    """The vectors ``g`` (C, S, d) of forces ``rho`` and their products with the points."""
    gx = (rho.reshape(-1, problem.n) @ problem.X).reshape(*rho.shape[:2], problem.d)
    gam = (gx.reshape(-1, problem.d) @ problem.X.T).reshape(rho.shape)
    for slide in classes.slides:
        gam[slide.index][:, slide.points] = 0.0
    return gx, gam


def speeds(problem: Problem, classes: Classes, c: Array) -> Array:
    """``|g|`` of each class in forces ``c`` (n,)."""
    g = classes.forces(c[None])[:, 0] @ problem.X
    return np.asarray(np.sqrt(np.einsum("cd,cd->c", g, g)))


def _linear_guess(at: Start, step: float) -> Array:
    """Forces at the nodes if the kernel stayed as it is: exact for the last, linear phase."""
    values, vectors = at.eigen
    decay = np.exp(-np.outer(tableau.RADAU * step, values))
    return np.asarray((decay * (vectors.T @ at.c)) @ vectors.T)


def _goal(problem: Problem, at: Start, rtol: float) -> float:
    """Size of a Newton change that ends the iteration: well below the tolerance."""
    if problem.is_square:
        return 1e-3 * rtol * float(np.abs(problem.y - at.h).max())
    return 1e-3 * rtol


def _error(
    problem: Problem, at: Start, h: Array, c: Array, step: float, rtol: float
) -> tuple[float, float]:
    r"""Return ``(error / rtol, fastest boost of the step)``.

    The force polynomial misses the known start value by a defect of order S. At the end of a step
    the error is of order 2S-1, because Radau nodes make the defect orthogonal to polynomials. So
    the relative defect to the power (2S-1)/S measures the error per unit of progress.
    """
    size = np.abs(c).max(axis=0)
    largest = max(
        float((size * problem.lengths).max()), float((np.abs(at.c) * problem.lengths).max())
    )
    if largest == 0.0:
        return 0.0, 0.0
    defect = np.abs(tableau.RADAU_TO_START @ c - at.c) * problem.lengths
    relative = float(defect.max()) / largest
    share = largest / (problem.force_scale * float(problem.lengths.max()))
    fastest = max(float(speeds(problem, at.classes, row).max(initial=0.0)) for row in (at.c, c[-1]))
    boost = step * fastest
    error = CALIBRATION * relative**POWER
    error *= min(share, 1.0) * max(1.0, min(step * problem.rate, 1e3))
    if not problem.is_square:
        error += _clock_error(problem, at, h, step)
    if not problem.hidden:
        error += GROWTH_ERROR * boost ** (2 * tableau.STAGES - 1)
    return error / rtol, boost


def _clock_error(problem: Problem, at: Start, h: Array, step: float) -> float:
    """Error of the elapsed time, from interpolants of the clock with and without the start."""
    slowness = np.array([log_slowness(problem, row) for row in (at.h, *h)])
    cut = np.concatenate([[tableau.RADAU_TO_START @ slowness[1:]], slowness[1:]])
    gap = abs(log_elapsed(slowness, step) - log_elapsed(cut, step))
    return float(gap ** (1.0 + 1.0 / tableau.STAGES))


def carry(
    problem: Problem,
    at: Start,
    stretch: Stretch,
    light: NDArray[np.bool_],
    can_flip: NDArray[np.bool_],
) -> Moved:
    """Carry all neurons to the end of a solved step; see `kernels.collocation.advance`."""
    rho = at.classes.forces(tableau.RADAU_TO_GAUSS @ stretch.c)
    gx, gam = pulls(problem, at.classes, rho)
    forces = np.concatenate([at.c[None], stretch.c])
    hold = at.classes.forces(forces)
    pull, push = pulls(problem, at.classes, hold)
    log = np.empty((64 + at.z.size, 4))
    a, w, mode, tau, point, used = kernel.advance(
        at.state.a,
        at.state.w,
        at.z,
        at.classes.cid,
        at.state.mode,
        light,
        can_flip,
        ON_PLANE * at.state.reach(problem),
        forces,
        tableau.START_RADAU,
        hold,
        pull,
        push,
        rho,
        gam,
        gx,
        problem.X,
        problem.gram,
        stretch.step,
        tableau.GAUSS,
        tableau.GAUSS_A,
        tableau.GAUSS_B,
        tableau.PATH_BERNSTEIN,
        problem.hidden,
        log,
    )
    return Moved(a, w, mode, tau, point, log[:used])
