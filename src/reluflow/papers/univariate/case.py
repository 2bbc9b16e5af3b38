"""The case: what the checks of the univariate paper read, computed once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from reluflow.checks import Array, number
from reluflow.densities import Density
from reluflow.errors import InputError
from reluflow.geometry import KKT, ResolvedRegions, kkt, resolved_regions, sign_changes
from reluflow.interpolators.max_margin import MaxMargin, max_margin
from reluflow.losses import Exponential, Logistic, Square
from reluflow.network import Network
from reluflow.papers.univariate.constants import Requirements, optimisation_requirements
from reluflow.theory.case import Case
from reluflow.theory.verdicts import NotApplicable
from reluflow.trajectory import Status, Trajectory

# F = -log L that a late claim needs, and where a run started here ends
LATE = 999.0  # so that a run that stops at a log-loss of -1000, up to its rounding, is late
STOP_LOG_LOSS = -1e4
# an open limit is followed so often, a hundredfold in F each time, and for so much work in all:
# attempted steps, each counted once and once more for every 2,000 pairs of a neuron and a point
# (10,000 of them take about three seconds)
LATER, WORK, PAIRS = 3, 10_000.0, 2_000.0
# level of the test of normality: a start is called not normal only beyond doubt
LEVEL = 1e-3


class Univariate(Case):
    """Data, runs and options, with what the claims derive from them."""

    def prepare(
        self,
        *,
        density: Any = None,
        delta: float = 0.1,
        sigma_hidden: float | None = None,
        sigma_output: float | None = None,
        loss: Any = None,
    ) -> None:
        """Check the options.

        Parameters
        ----------
        density : density of `reluflow.densities`, optional
            The law of the inputs: needed by claims about the population.
        delta : float
            Failure probability of Theorems 3.1 and 2.3.
        sigma_hidden, sigma_output : float, optional
            Standard deviations of the start; estimated from its weights if not given.
        loss : Exponential or Logistic, optional
            The loss of a run started here (exponential if not given).
        """
        if density is not None and not isinstance(density, Density):
            raise InputError(
                f"`density` is {density!r}, which has no distribution function. Population errors "
                "are computed from it. Pass one of reluflow.densities."
            )
        chosen = Exponential() if loss is None else loss
        if not isinstance(chosen, (Exponential, Logistic)):
            raise InputError(
                f"`loss` is {loss!r}. The paper is about losses of a margin. Pass "
                "losses.Exponential() or losses.Logistic()."
            )
        hidden = None if sigma_hidden is None else number(sigma_hidden, "sigma_hidden", above=0.0)
        least = None if sigma_output is None else number(sigma_output, "sigma_output", at_least=0.0)
        self.density: Density | None = density
        self.delta = number(delta, "delta", above=0.0, below=1.0)
        self.sigmas, self.given_loss = (hidden, least), chosen
        self._later: list[Trajectory | None] = []

    # ------------------------------------------------------------------ the data

    @cached_property
    def is_line(self) -> bool:
        """Whether the points are rows ``(x, 1)``."""
        data = self.subject.data
        return data.d == 2 and bool(np.all(data.X[:, 1] == 1.0))

    @cached_property
    def is_classification(self) -> bool:
        """Whether all labels are -1 or 1."""
        return bool(np.all(np.abs(self.subject.data.y) == 1.0))

    @cached_property
    def x(self) -> Array:
        """The inputs, sorted."""
        return np.sort(self.data.X[:, 0])

    @cached_property
    def switches(self) -> int:
        """How often the label changes along the sorted points (s)."""
        y = self.data.y[np.argsort(self.data.X[:, 0], kind="stable")]
        return int(np.count_nonzero(y[1:] != y[:-1]))

    @property
    def teacher(self) -> Network:
        """The teacher network of the data."""
        found = self.data.teacher
        if not isinstance(found, Network):
            raise InputError("the data have no teacher network")
        return found

    @cached_property
    def teacher_values(self) -> Array:
        """Outputs of the teacher at the points."""
        return self.teacher.predict(self.data.X)

    @cached_property
    def wrong_labels(self) -> int:
        """How many labels differ from the teacher's sign (the sign of zero is -1)."""
        return int(np.count_nonzero(np.where(self.teacher_values > 0, 1.0, -1.0) != self.data.y))

    # ------------------------------------------------------------------ numbers of Assumption 2.2

    @cached_property
    def radius(self) -> float:
        """R: a bound on the inputs, at least 1."""
        ends = self.density.support if self.density is not None else (self.x[0], self.x[-1])
        return max(1.0, abs(float(ends[0])), abs(float(ends[1])))

    @cached_property
    def shortest_stretch(self) -> float:
        """rho: the shortest stretch of one label inside [-R, R]."""
        R = self.radius
        zeros = sign_changes(self.teacher, (-R, R))
        return float(np.diff(np.concatenate([[-R], zeros, [R]])).min())

    @cached_property
    def density_bound(self) -> float:
        """C; without a density the least that any density on [-R, R] has, 1/(2R)."""
        return self.density.maximum if self.density is not None else 0.5 / self.radius

    def known_density(self) -> Density:
        """The density; claims about the population need it."""
        assert self.density is not None  # the assumption "density" has seen to it
        return self.density

    @cached_property
    def sigma_hidden(self) -> float:
        """Standard deviation of the hidden weights at the start."""
        given = self.sigmas[0]
        return float(np.sqrt(np.mean(self.flat.W**2))) if given is None else given

    @cached_property
    def sigma_output(self) -> float:
        """Standard deviation of the output weights at the start."""
        given = self.sigmas[1]
        return float(np.sqrt(np.mean(self.flat.a**2))) if given is None else given

    @cached_property
    def flat(self) -> Network:
        """The network at the start, scales multiplied in."""
        return self.subject.net.flat()

    @cached_property
    def start_p_value(self) -> float:
        """Smaller p-value of Kolmogorov-Smirnov tests that the two layers are normal."""
        from scipy.stats import kstest

        layers = [(self.flat.W.ravel(), self.sigma_hidden), (self.flat.a, self.sigma_output)]
        # deviation 0 is a legal law: all weights are zero
        return min(
            float(kstest(values / sigma, "norm").pvalue) if sigma else float(not values.any())
            for values, sigma in layers
        )

    @cached_property
    def required(self) -> Requirements:
        """Theorem 3.1 for this width and hidden deviation."""
        return self._required(end_to_end=False)

    @cached_property
    def required_end_to_end(self) -> Requirements:
        """Theorem 2.3 for this width and hidden deviation."""
        return self._required(end_to_end=True)

    def _required(self, *, end_to_end: bool) -> Requirements:
        return optimisation_requirements(
            self.data.n,
            max(1, self.teacher.width),
            self.radius,
            self.shortest_stretch,
            self.density_bound,
            self.delta,
            width=self.net.width,
            sigma_hidden=self.sigma_hidden,
            end_to_end=end_to_end,
        )

    # ------------------------------------------------------------------ the run

    def start(self) -> Trajectory:
        """A run of the flow down to log-loss -1e4, where the labels are classes."""
        if not self.is_classification:
            raise NotApplicable("needs a run, and the losses of the paper need labels -1 and 1")
        how = {"loss": self.given_loss, "stop_log_loss": STOP_LOG_LOSS, "max_seconds": None}
        return self.subject.flow(self.data, self.net, **how)

    @property
    def loss(self) -> Exponential | Logistic:
        """The loss of the run; that of a run started here where there is none."""
        if not self.subject.runs:
            return self.given_loss
        loss = self.subject.runs[0].loss_function
        if isinstance(loss, Square):
            raise InputError("the square loss has no margin")
        return loss

    @property
    def log_threshold(self) -> float:
        """Logarithm of loss(0)/n, below which every point is classified correctly."""
        return self.loss.log_at_zero - float(np.log(self.data.n))

    @cached_property
    def reached(self) -> bool:
        """Whether the loss of the run fell below loss(0)/n."""
        return bool(self.run.log_loss.min() < self.log_threshold)

    @cached_property
    def records(self) -> list[Network]:
        """The recorded networks."""
        return [self.run.network(k) for k in range(len(self.run.t))]

    def later_runs(self) -> Iterator[Trajectory]:
        """The late run continued a hundredfold in F, and again, as far as the work allowed goes.

        What is counted is work, not seconds: a busy machine gets the same runs.
        """
        for k in range(LATER if self.subject.engines is not None else 0):
            if k == len(self._later):
                self._later.append(self._hundredfold(self._later[-1] if k else self.late_run))
            run = self._later[k]
            if run is None:
                return
            yield run

    def _hundredfold(self, run: Trajectory | None) -> Trajectory | None:
        """A run continued to a hundred times its F; to ten times or more where work runs out."""
        assert run is not None
        begin = float(run.log_loss[-1])
        while run.log_loss[-1] > 100.0 * begin * (1.0 - 1e-9):
            if self._work(run) - self._work(self.late_run) > WORK:
                return run if run.log_loss[-1] <= 10.0 * begin else None
            level = max(100.0 * begin, 2.0 * float(run.log_loss[-1]))
            run = self.subject.proceed(run, stop_log_loss=level)
            if run.status is not Status.STOP_LOSS:
                return None
        return run

    def _work(self, run: Trajectory) -> float:
        attempts = int(run.stats["steps"]) + int(run.stats["rejected"])
        return float(attempts * (1.0 + self.net.width * self.data.n / PAIRS))

    @cached_property
    def late_kkt(self) -> KKT:
        """The approximate KKT certificate at the end of the late run."""
        return kkt(self.data, self.late_run.final)

    @cached_property
    def regions(self) -> ResolvedRegions:
        """The region count of the limit and whether it is settled."""
        return resolved_regions(self.late_run)

    @cached_property
    def optimum(self) -> MaxMargin:
        """The global maximum margin over all widths."""
        return max_margin(self.data)
