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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow import tableau
from reluflow.engines.flow.clock import log_elapsed, log_slowness
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.state import ON_PLANE, Modes, State
from reluflow.kernels import collocation as kernel
from reluflow.kernels.attempts import attempt as kernel_attempt
from reluflow.kernels.layout import Neurons, Rows
from reluflow.kernels.starts import prepare

# below this product of step and stiffness plain iteration converges fast enough
PICARD_LIMIT = 1e-3
_NO_VALUES, _NO_VECTORS = np.empty(0), np.empty((0, 0))


@dataclass(eq=False)
class Start:
    """What a step knows before it begins; reused when the step is tried again with another size.

    ``stiffness`` bounds the rates of the residual; ``speeds`` holds ``|g|`` of each class and
    ``fastest`` the largest of them.
    """

    state: State
    classes: Rows
    neurons: Neurons
    h: Array
    rounding: float
    c: Array
    kernel: Array
    kappa: float
    stiffness: float
    speeds: Array
    fastest: float
    log_loss: float

    @cached_property
    def eigen(self) -> tuple[Array, Array]:
        """Rates and modes of the residual: eigenvalues and eigenvectors of kappa K."""
        values, vectors = kernel.eigen(self.kernel, self.kappa)
        return values, vectors


class Stretch(NamedTuple):
    """A solved step: outputs and forces at the Radau nodes, the error relative to the tolerance.

    ``bend`` is what a linear forecast missed of the unknowns at the nodes, ``boost`` the largest
    angle by which a neuron turns, or would if it crossed a plane.
    """

    step: float
    h: Array
    c: Array
    error: float
    boost: float
    iterations: int
    bend: Array


class Leaving(NamedTuple):
    """Ends of slides, for each sliding point of each class; see `kernels.carrying.releases`."""

    tau: Array
    unit: Array
    up: NDArray[np.bool_]


class Moved(NamedTuple):
    """Neurons at the end of a step, the first exit of each, and crossings already carried out.

    ``met`` lists the neurons with an exit (``tau <= 1``) that is still to be handled;
    ``crossings`` has rows (tau, neuron, point, new mode). The ``light`` neurons have not been
    carried unless the step is ``whole``.
    """

    a: Array
    w: Array
    mode: Modes
    tau: Array
    point: NDArray[np.int64]
    met: NDArray[np.int64]
    crossings: Array
    light: NDArray[np.bool_]
    whole: bool
    leaving: Leaving


def begin(problem: Problem, state: State) -> Start:
    """Collect the quantities at the start of a step; rescales the state."""
    *rows, z, weight, h, c, K, speeds, scales = prepare(
        state.a, state.w, state.sigma, state.mode, problem.points, problem.is_square,
        problem.is_logistic, problem.kappa, problem.hidden,
    )  # fmt: skip
    # outputs are sums that may cancel: their rounding is that of the largest sum of sizes
    rounding = 4e-16 * max(float(scales[0]), problem.output_scale)
    classes = Rows(*rows)
    neurons = Neurons(state.a, state.w, z, weight, state.mode)
    return Start(
        state, classes, neurons, h, rounding, c, K, problem.kappa, float(scales[1]), speeds,
        float(scales[2]), problem.log_loss(h),
    )  # fmt: skip


def attempt(
    problem: Problem,
    at: Start,
    step: float,
    rtol: float,
    longer: Stretch | None,
    heavy: NDArray[np.bool_],
    light_bound: float,
    near: float,
    far: float,
    patient: bool = True,
) -> tuple[Stretch, Moved] | tuple[Stretch | None, None]:
    """Solve one step and carry the neurons to its end; see `kernels.attempts`.

    ``longer`` is a solved step from the same start: it tells what a linear forecast will miss.
    The stretch is None if the iteration does not converge, the neurons if the error is too large.
    """
    stiff = step * at.stiffness >= PICARD_LIMIT
    bend, ratio = np.zeros((tableau.STAGES, problem.n)), 1.0
    if longer is not None:
        bend, ratio = longer.bend, step / longer.step
    values, vectors, goal = _NO_VALUES, _NO_VECTORS, 1e-3 * rtol
    if problem.is_square:
        goal *= float(np.abs(at.c).max()) / at.kappa
        if stiff:
            values, vectors = at.eigen
    log = np.empty((64 + at.neurons.z.size, 4))
    logistic = None if problem.is_square else problem.is_logistic
    try:
        iterations, h, c, bend, error, boost, light, *rest = kernel_attempt(
            at.neurons, at.classes, problem.points, tableau.TABLES, problem.law, logistic, at.h,
            at.c, at.kernel, values, vectors, stiff, at.fastest, at.rounding, step, rtol, bend,
            ratio, max(goal, at.rounding), heavy, light_bound, at.stiffness, near, far, ON_PLANE,
            patient, log,
        )  # fmt: skip
    except np.linalg.LinAlgError:  # Newton's matrix is singular to rounding: too long a step
        return None, None
    if not iterations:
        return None, None
    if not problem.is_square and error <= 1.0:
        error += _clock_error(problem, at, h, step) / rtol
    stretch = Stretch(step, h, c, error, boost, iterations, bend)
    if error > 1.0:
        return stretch, None
    tau, unit, up, a, w, mode, exits, point, met, used, whole = rest
    return stretch, Moved(
        a, w, mode, exits, point, met, log[:used], light, whole, Leaving(tau, unit, up)
    )


def outputs(problem: Problem, at: Start, c: Array, step: float) -> Array:
    """Outputs (S, n) at the nodes of neurons carried by forces ``c`` (S, n) at the nodes."""
    return np.asarray(
        kernel.node_outputs(
            c, at.neurons, at.classes, problem.X, step, tableau.RADAU_A, problem.hidden
        )
    )


def _clock_error(problem: Problem, at: Start, h: Array, step: float) -> float:
    """Error of the elapsed time, from interpolants of the clock with and without the start."""
    slowness = np.array([log_slowness(problem, row) for row in (at.h, *h)])
    cut = np.concatenate([[tableau.RADAU_TO_START @ slowness[1:]], slowness[1:]])
    gap = abs(log_elapsed(slowness, step) - log_elapsed(cut, step))
    return float(gap ** (1.0 + 1.0 / tableau.STAGES))
