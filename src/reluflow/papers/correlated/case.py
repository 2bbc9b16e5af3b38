r"""The case of the correlated-inputs paper: data, start, runs, and everything derived from them.

Letters of the paper: :math:`H = \frac1n \sum_i x_i x_i^T` with eigenvalues
:math:`\eta_1 > \dots > \eta_d` and unit eigenvectors :math:`u_k` (rows of ``vectors``), signed so
that :math:`\nu^*_k = u_k \cdot v^* \ge 0`; :math:`\gamma = H v^*`; :math:`k = |\gamma|`;
:math:`\lambda = e^{\text{log\_scale}}`. Times are those of the loss
:math:`L = \frac1{2n} \sum_i (y_i - h(x_i))^2`; runs of the square loss with another factor are
converted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array, number
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.interpolators import RankVersusNorm, rank_versus_norm
from reluflow.limits import Bundle, Yardsticks, bundle, yardsticks
from reluflow.limits.hypotheses import common_scale, largest_angle, teacher_vector
from reluflow.losses import Square
from reluflow.network import Network
from reluflow.theory.case import Case
from reluflow.theory.subject import Subject
from reluflow.theory.verdicts import NotApplicable, Unresolved
from reluflow.trajectory import Status, Trajectory

RTOL = 1e-11  # of the runs that a check starts itself
LOST = 0.1  # rounding of logs of norms beyond which rows about single neurons say nothing


class Correlated(Case):
    """What the claims read; quantities are computed when first asked for."""

    def prepare(self, *, eps: float = 0.25) -> None:
        """Check that the runs are of one problem.

        Parameters
        ----------
        eps : float
            The parameter of the analysis, in (0, 1/4].
        """
        self.eps = number(eps, "eps", above=0.0, at_most=0.25)
        _check_runs(self.subject)
        flows = [run for run in self.subject.runs if run.engine == "flow"]
        self.flows = sorted(flows, key=lambda run: -common_scale(run.net)[0])
        self.log_scale, self.relative = common_scale(self.net)
        self.kept: dict[str, Any] = {}  # what several claims of a phase share

    @property
    def net(self) -> Network:
        """The start at the smallest scale given."""
        return self.flows[-1].net if self.flows else self.subject.net

    def describe(self) -> str:
        """One line on what is checked."""
        data, net = self.data, self.net
        runs = f", {len(self.subject.runs)} runs" if len(self.subject.runs) > 1 else ""
        return (
            f"{data.n} points in {data.d} dimensions ({data.name or 'given data'}), {net.width} "
            f"neurons, ln(scale) = {self.log_scale:.6g}{runs}, eps = {self.eps:g}"
        )

    # ------------------------------------------------------------------ data

    @cached_property
    def teacher(self) -> Array:
        """The vector whose ReLU labels the points."""
        vector, reasons = teacher_vector(self.data)
        if vector is None:
            raise NotApplicable(f"there is no teacher neuron: {'; '.join(reasons)}")
        return vector

    @cached_property
    def angle(self) -> float:
        """Largest angle between the teacher and a point."""
        return largest_angle(self.teacher, self.data.X)

    @cached_property
    def spectrum(self) -> tuple[Array, Array]:
        """Eigenvalues of H, largest first, and its eigenvectors as rows, signed by the teacher."""
        roots, vectors = np.linalg.svd(self.data.X / np.sqrt(self.data.n))[1:]
        eta = np.zeros(self.data.d)
        eta[: len(roots)] = roots**2
        return eta, vectors * np.where(vectors @ self.teacher < 0, -1.0, 1.0)[:, None]

    @property
    def eta(self) -> Array:
        """Eigenvalues of H."""
        return self.spectrum[0]

    @cached_property
    def target(self) -> Array:
        """Coordinates of the teacher along the eigenvectors, all at least 0."""
        return np.asarray(self.spectrum[1] @ self.teacher)

    @cached_property
    def H(self) -> Array:
        """Second moments of the points."""
        return np.asarray(self.data.X.T @ self.data.X / self.data.n)

    # ------------------------------------------------------------------ yardsticks

    @cached_property
    def sticks(self) -> Yardsticks:
        """Yardsticks of the start."""
        return yardsticks(self.data, self.net)

    @property
    def k(self) -> float:
        """Rate of growth in the first phase, the norm of gamma."""
        return float(np.linalg.norm(self.sticks.gamma))

    @property
    def positive(self) -> Sequence[int]:
        """J+: neurons with positive output weight, active on some point."""
        return [int(j) for j in self.sticks.positive]

    @cached_property
    def moving(self) -> list[int]:
        """J+ and J-: the neurons that cross points."""
        return sorted(int(j) for j in (*self.sticks.positive, *self.sticks.negative))

    @property
    def T1(self) -> float:
        """End of the first phase."""
        return self.sticks.T1(self.eps)

    @property
    def begin(self) -> float:
        """Where the second phase is looked at from: T1, or T0 where that is later."""
        return max(self.T1, self.sticks.T0)

    @cached_property
    def bundle(self) -> Bundle:
        """The limit network and the slope of its angles."""
        return bundle(self.data, self.net)

    @cached_property
    def rank(self) -> RankVersusNorm:
        """V, M and the verdict of Theorem 8."""
        return rank_versus_norm(self.labelled)

    @cached_property
    def labelled(self) -> Dataset:
        """The data with the teacher that its labels have, whether it was given or not."""
        return Dataset(self.data.X, self.data.y, teacher=self.teacher, name=self.data.name)

    # ------------------------------------------------------------------ runs

    @cached_property
    def run(self) -> Trajectory:
        """The flow at the smallest scale given; started here if no flow is given."""
        return self.flows[-1] if self.flows else self.started(self.log_scale, max_seconds=None)

    @cached_property
    def small(self) -> list[Trajectory]:
        """The flows that a limit at small scales speaks about: within Assumption 2, or the last."""
        bound = self.sticks.log_scale_bound(self.eps)
        return [r for r in self.flows if common_scale(r.net)[0] <= bound] or [self.run]

    @cached_property
    def rate(self) -> float:
        """How many units of the paper's time pass in one of the run's."""
        return time_rate(self.run)

    @property
    def rtol(self) -> float:
        """Relative accuracy of the run."""
        return max(float(self.run.options.get("rtol", 1e-8)), 1e-13)

    @cached_property
    def departed(self) -> bool:
        """Whether the run gets past T2."""
        from reluflow.papers.correlated.moments import after_departure

        return bool(after_departure(self))

    def growth(self, net: Network, chosen: NDArray[np.intp]) -> tuple[Array, float]:
        """Logs of norms over those of the start, and their error.

        Log scales are subtracted first: where a neuron still has the scale it started with, nothing
        is lost, however deep that is.
        """
        start, moved = self.net.with_scale(0.0), net.with_scale(0.0)
        shift = (net.log_scale - self.net.log_scale)[chosen]
        size = np.abs(net.log_scale[chosen])[shift != 0.0]
        error = 4.0 * float(np.spacing(size).max(initial=0.0)) + 1e-14
        return moved.log_norms[chosen] - start.log_norms[chosen] + shift, error

    def neuron_rounding(self) -> float:
        """Rounding of logs of single norms and angles; undecided where it hides them."""
        ulp = 4.0 * float(np.spacing(2.0 * abs(self.log_scale)))
        if ulp > LOST:
            raise Unresolved(
                f"ln(scale) is known to {ulp:.2g}, and so are logs of single neurons; a start with "
                "a larger delta allows a larger scale, which would show them"
            )
        return ulp

    def at_twice_the_scale(self) -> Self:
        """The case with the flow from the square root of the scale: further from the limit."""
        return self.on(self.started(0.5 * self.log_scale, rtol=self.rtol))

    def at_scale(self, log_scale: float) -> Network:
        """The start at another scale."""
        return self.net.with_scale(self.relative + log_scale)

    def started(
        self, log_scale: float, *, rtol: float = RTOL, stop: float = -np.inf, **options: Any
    ) -> Trajectory:
        """A run of the flow at a scale, to its limit or a log-loss; never the same one twice."""
        key = (log_scale, rtol, stop)
        if key not in self._started:
            options |= {} if np.isinf(stop) else {"stop_log_loss": stop}
            try:
                self._started[key] = self.subject.flow(
                    self.data, self.at_scale(log_scale), rtol=rtol, record=400, **options
                )
            except Unresolved as reason:  # the next claim need not wait for it again
                self._started[key] = reason
        found = self._started[key]
        if isinstance(found, Unresolved):
            raise found
        return found

    def converged(self, log_scales: Sequence[float]) -> list[Trajectory]:
        """Runs to the limit at these scales: given ones where they are, otherwise started."""
        given = {
            common_scale(run.net)[0]: run for run in self.flows if run.status is Status.CONVERGED
        }
        return [given[s] if s in given else self.started(s) for s in log_scales]


def time_rate(run: Trajectory) -> float:
    """How many units of time of the loss (1/2n) sum r^2 pass in one of the run's."""
    loss = run.loss_function
    assert isinstance(loss, Square)  # `_check_runs` has seen to it
    return float(loss.kappa(run.data.n) * run.data.n)


def _check_runs(subject: Subject) -> None:
    """Refuse runs of another loss, of one layer, or of different problems."""
    for k, run in enumerate(subject.runs):
        if not isinstance(run.loss_function, Square):
            raise InputError(
                f"run {k} has the {run.loss_function.name} loss. The paper is about the square "
                "loss. Train with rf.losses.Square()."
            )
        if run.options.get("train") == "hidden":
            raise InputError(
                f"run {k} trains the hidden layer only. The paper trains both layers. "
                'Use train="both".'
            )
        same = (
            np.array_equal(run.data.X, subject.data.X)
            and np.array_equal(run.data.y, subject.data.y)
            and np.array_equal(run.net.mantissa.W, subject.net.mantissa.W)
            and np.array_equal(run.net.mantissa.a, subject.net.mantissa.a)
        )
        if not same:
            raise InputError(
                f"run {k} has other data or another start than run 0. Claims about scales compare "
                "one start at several scales. Check each problem on its own."
            )
