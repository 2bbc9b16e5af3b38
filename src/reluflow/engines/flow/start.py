"""What a step knows before it begins; reused when the step is tried again with another size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.state import State
from reluflow.kernels.flow.begin import begin, keep_still
from reluflow.kernels.flow.classes import outputs as node_state
from reluflow.kernels.flow.classes import rescale, rows_of
from reluflow.kernels.flow.collocation import System
from reluflow.kernels.flow.forces import speeds
from reluflow.kernels.flow.layout import SLIDE, Neurons, Rows
from reluflow.kernels.flow.planes import is_pulled

_NO_VALUES, _NO_VECTORS = np.empty(0), np.empty((0, 0))


@dataclass(eq=False)
class Start:
    """What a step knows before it begins; reused when the step is tried again with another size.

    ``stiffness`` bounds the rates of the outputs; ``speeds`` holds ``|g|`` of each class and
    ``fastest`` the largest of them.
    """

    problem: Problem
    state: State
    classes: Rows
    neurons: Neurons
    h: Array
    rounding: float
    c: Array
    kernel: Array
    stiffness: float
    speeds: Array
    log_loss: float

    @cached_property
    def fastest(self) -> float:
        """The largest ``|g|``."""
        return float(self.speeds.max(initial=0.0))

    @cached_property
    def pulls(self) -> Array:
        """The pull of each point (n,), ``|c x|``."""
        return np.asarray(np.abs(self.c * self.problem.planes.length))

    @property
    def drowned(self) -> float:
        """The rounding of the outputs over the labels: from huge starts they are all but lost."""
        return self.rounding / self.problem.output_scale if self.problem.is_square else 0.0

    @property
    def most_noise(self) -> float:
        """A bound on the rounding of the forces, to a few of its own roundings."""
        return max(2e-16 * float(self.pulls.sum()), 1e-300)

    @cached_property
    def noise(self) -> float:
        """The rounding of the forces.

        A sliding point is felt through the active ones that its plane balances, not by itself.
        """
        planes = self.problem.planes
        face = self.classes.face[:, planes.owner]
        felt = (face != SLIDE if planes.slope > 0.0 else face == self.problem.side).any(axis=0)
        return max(2e-16 * float(self.pulls[felt].sum()), 1e-300)

    @cached_property
    def resting(self) -> list[int]:
        """Neurons that slide on dependent planes."""
        rows = self.classes
        if rows.free.all():
            return []
        found: list[int] = np.flatnonzero((rows.cid >= 0) & ~rows.free[rows.cid]).tolist()
        return found

    @cached_property
    def strongest(self) -> float:
        """The largest force."""
        return float(np.abs(self.c).max())

    @cached_property
    def system(self) -> System:
        """All of it as kernels take it, without eigenvectors."""
        problem = self.problem
        return System(
            self.neurons, self.classes, problem.planes, problem.law, self.h, self.c, self.kernel,
            _NO_VALUES, _NO_VECTORS, self.rounding,
        )  # fmt: skip

    @cached_property
    def stiff_system(self) -> System:
        """The same with eigenvalues and eigenvectors."""
        plain, (values, vectors) = self.system, self.eigen
        return System(
            plain.neurons, plain.rows, plain.planes, plain.law, plain.h, plain.c, plain.kernel,
            values, vectors, plain.rounding,
        )  # fmt: skip

    @cached_property
    def whole(self) -> Start:
        """The same with the tangent kernel."""
        if len(self.kernel):
            return self
        whole = begin_whole(self.problem, self.state)
        # some neurons may have been left out of the classes; see `riders`
        return replace(whole, classes=self.classes, speeds=self.speeds)

    @cached_property
    def eigen(self) -> tuple[Array, Array]:
        """Rates and modes of the residual: eigenvalues and eigenvectors of kappa K."""
        values, vectors = np.linalg.eigh(self.problem.kappa * self.kernel)
        return np.maximum(values, 0.0), np.ascontiguousarray(vectors)


def classes_of(rows: Rows, cid: NDArray[np.int64]) -> tuple[NDArray[np.int64], Rows]:
    """The classes that occur in ``cid`` (-1: none), and `Rows` of these alone."""
    kinds = np.flatnonzero(np.bincount(cid + 1, minlength=len(rows.face) + 1)[1:])
    number = np.full(len(rows.face) + 1, -1)  # the last is that of neurons without a class
    number[kinds] = np.arange(len(kinds))
    counts = np.diff(rows.begin)[kinds]
    begin = np.concatenate([[0], np.cumsum(counts)])
    slides = np.repeat(rows.begin[kinds] - begin[:-1], counts) + np.arange(begin[-1])
    return kinds, Rows(
        number[cid], rows.face[kinds], begin, rows.plane[slides], rows.dual[slides],
        rows.lift[slides], rows.free[kinds], rows.ray[kinds], rows.axis[kinds],
    )  # fmt: skip


def begin_at(problem: Problem, state: State) -> Start:
    """Collect the quantities at the start of a step; rescales the state."""
    if problem.is_crowd:
        return _begin_crowd(problem, state)
    return begin_whole(problem, state)


def _begin_crowd(problem: Problem, state: State) -> Start:
    """The same without the kernel, of n^2 numbers; its trace bounds the rates of the outputs."""
    a, w, planes, law = state.a, state.w, problem.planes, problem.law
    fixed = np.zeros(len(a), np.bool_)
    if law.hidden:
        fixed[:] = a == 0.0
    else:
        rescale(a, w, state.sigma)
        for j in np.flatnonzero(a == 0.0):
            fixed[j] = not (w[j].any() and is_pulled(state.mode[j], planes.both))
    rows = rows_of(state.mode, planes, fixed)
    if not law.hidden:
        keep_still(w, state.sigma, state.still, state.still_sigma, rows)
    z, weight, h, most = node_state(a, w, state.sigma, state.mode, planes)
    c = problem.forces(h)
    neurons = Neurons(
        a, w, state.sigma, state.mode, z, weight, problem.sign, problem.log_balance, state.still,
        state.still_sigma,
    )  # fmt: skip
    squares = weight * (a**2 + np.einsum("jd,jd->j", w, w))
    bound = (law.kappa or 1.0) * float(squares.sum()) * float(np.square(planes.length).sum())
    return Start(
        problem, state, rows, neurons, h, 4e-16 * max(most, problem.output_scale), c, _NO_VECTORS,
        bound, speeds(c, rows, planes), problem.log_loss(h),
    )  # fmt: skip


def begin_whole(problem: Problem, state: State) -> Start:
    """Everything a step knows before it begins, the tangent kernel too."""
    begun = begin(
        state.a, state.w, state.sigma, state.mode, state.still, state.still_sigma,
        problem.planes, problem.law,
    )  # fmt: skip
    # outputs are sums that may cancel: their rounding is that of the largest sum of sizes
    rounding = 4e-16 * max(begun.most, problem.output_scale)
    neurons = Neurons(
        state.a, state.w, state.sigma, state.mode, begun.z, begun.weight, problem.sign,
        problem.log_balance_at(state.t), state.still, state.still_sigma,
    )  # fmt: skip
    return Start(
        problem, state, begun.rows, neurons, begun.h, rounding, begun.c, begun.kernel,
        begun.stiffness, begun.speeds, problem.log_loss(begun.h),
    )  # fmt: skip
