"""The case: what the checks of the univariate paper read, computed once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from reluflow.checks import Array, number
from reluflow.dataset import Dataset
from reluflow.densities import Density
from reluflow.errors import InputError
from reluflow.geometry import KKT, ResolvedRegions, kkt, resolved_regions, sign_changes
from reluflow.interpolators.max_margin import MaxMargin, max_margin
from reluflow.losses import Exponential, Logistic, Square
from reluflow.network import Network
from reluflow.theory.subject import Subject
from reluflow.theory.univariate.constants import Requirements, optimisation_requirements
from reluflow.theory.verdicts import NotApplicable, Unresolved
from reluflow.trajectory import Trajectory

# F = -log L that a late claim needs, and where a run started here ends
LATE = 999.0  # so that a run that stops at a log-loss of -1000, up to its rounding, is late
STOP_LOG_LOSS = -1e4
# level of the test of normality: a start is called not normal only beyond doubt
LEVEL = 1e-3


@dataclass(frozen=True)
class Case:
    """Data, runs and options, with what the claims derive from them.

    Attributes
    ----------
    subject : Subject
        What was given.
    density : Density or None
        The law of the inputs, where known; population claims need it.
    delta : float
        Failure probability of the theorems.
    sigmas : (hidden, output)
        Standard deviations of the start; None where they are to be estimated from it.
    """

    subject: Subject
    density: Density | None
    delta: float
    sigmas: tuple[float | None, float | None]
    given_loss: Exponential | Logistic
    _late: dict[float, Network] = field(default_factory=dict, repr=False)

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

    @property
    def data(self) -> Dataset:
        """The data, if they are points on the line with labels -1 and 1."""
        if not self.is_line:
            raise NotApplicable("needs points (x, 1) on the line (A1 fails)")
        if not self.is_classification:
            raise NotApplicable("needs labels -1 or 1 (A1 fails)")
        return self.subject.data

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
            raise NotApplicable("the data have no teacher network")
        return found

    @cached_property
    def teacher_values(self) -> Array:
        """Outputs of the teacher at the points."""
        return self.teacher.predict(self.data.X)

    @cached_property
    def wrong_labels(self) -> int:
        """How many labels differ from the teacher's sign (the sign of zero is -1)."""
        return int(np.count_nonzero(np.where(self.teacher_values > 0, 1.0, -1.0) != self.data.y))

    def labelled_by_teacher(self) -> Network:
        """The teacher, if all labels are its signs."""
        if self.wrong_labels:
            raise NotApplicable(f"{self.wrong_labels} labels are not the teacher's (A3 fails)")
        return self.teacher

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
        if self.density is None:
            raise NotApplicable("needs the law of the inputs; pass `density=`")
        return self.density

    @cached_property
    def sigma_hidden(self) -> float:
        """Standard deviation of the hidden weights at the start."""
        given = self.sigmas[0]
        return float(np.sqrt(np.mean(self.start.W**2))) if given is None else given

    @cached_property
    def sigma_output(self) -> float:
        """Standard deviation of the output weights at the start."""
        given = self.sigmas[1]
        return float(np.sqrt(np.mean(self.start.a**2))) if given is None else given

    @cached_property
    def start(self) -> Network:
        """The network at the start, scales multiplied in."""
        return self.subject.net.flat()

    @cached_property
    def start_p_value(self) -> float:
        """Smaller p-value of Kolmogorov-Smirnov tests that the two layers are normal."""
        from scipy.stats import kstest

        layers = [(self.start.W.ravel(), self.sigma_hidden), (self.start.a, self.sigma_output)]
        # deviation 0 is a legal law: all weights are zero
        return min(
            float(kstest(values / sigma, "norm").pvalue) if sigma else float(not values.any())
            for values, sigma in layers
        )

    @cached_property
    def required(self) -> Requirements:
        """Theorem 3.1 for this width and hidden deviation."""
        return optimisation_requirements(
            self.data.n,
            max(1, self.teacher.width),
            self.radius,
            self.shortest_stretch,
            self.density_bound,
            self.delta,
            width=self.start.width,
            sigma_hidden=self.sigma_hidden,
        )

    def unmet_requirements(self) -> list[str]:
        """Sentences on the conditions of Theorem 3.1 that do not hold."""
        have, need = self.start, self.required
        rows = (
            ("width", have.width, "at least", need.width, have.width >= need.width),
            (
                "sigma_h",
                self.sigma_hidden,
                "at least",
                need.sigma_hidden,
                self.sigma_hidden >= need.sigma_hidden,
            ),
            (
                "sigma_o",
                self.sigma_output,
                "at most",
                need.sigma_output,
                self.sigma_output <= need.sigma_output,
            ),
        )
        return [
            f"{name} is {a:.3g}, {word} {b:.3g} asked" for name, a, word, b, met in rows if not met
        ]

    # ------------------------------------------------------------------ the run

    @cached_property
    def run(self) -> Trajectory:
        """The first run given, or one started here down to log-loss -1e4."""
        if self.subject.runs:
            return self.subject.run
        return self.subject.flow(
            self.data, self.subject.net, loss=self.given_loss, stop_log_loss=STOP_LOG_LOSS
        )

    @property
    def runs(self) -> tuple[Trajectory, ...]:
        """All runs: those given, or the one started here."""
        return self.subject.runs or (self.run,)

    @property
    def loss(self) -> Exponential | Logistic:
        """The loss of the run, if it is one of classification."""
        if self.subject.runs:
            return margin_loss(self.subject.run)
        return self.given_loss

    def flow_run(self) -> Trajectory:
        """The run, if it is a gradient flow of both layers with a classification loss."""
        margin_loss(self.run)
        if not is_flow(self.run):
            raise NotApplicable("is about gradient flow of both layers (A8 fails)")
        return self.run

    @property
    def log_threshold(self) -> float:
        """Logarithm of loss(0)/n, below which every point is classified correctly."""
        return self.loss.log_at_zero - float(np.log(self.data.n))

    @cached_property
    def reached(self) -> bool:
        """Whether the loss of the run fell below loss(0)/n."""
        return bool(self.run.log_loss.min() < self.log_threshold)

    def separated_run(self) -> Trajectory:
        """The flow, if its loss fell below loss(0)/n."""
        run = self.flow_run()
        if not self.reached:
            raise NotApplicable(
                f"the loss never fell below loss(0)/n (A6 fails); the run ended as `{run.status}`"
            )
        return run

    def late_run(self) -> Trajectory:
        """The flow, if it went far beyond the threshold."""
        run = self.separated_run()
        if self.level < LATE:
            raise Unresolved(
                f"the run ends at log-loss {-self.level:.4g}; limits are judged below -{LATE:g}"
            )
        return run

    @cached_property
    def level(self) -> float:
        """F = -log L at the end."""
        return -float(self.run.log_loss[-1])

    def at_level(self, F: float) -> Network:
        """The network where -log L was F."""
        if F not in self._late:
            end = abs(F - self.level) <= 1e-9 * self.level
            self._late[F] = self.run.final if end else self.run.at(log_loss=-F)
        return self._late[F]

    @cached_property
    def records(self) -> list[Network]:
        """The recorded networks."""
        return [self.run.network(k) for k in range(len(self.run.t))]

    @cached_property
    def decades(self) -> tuple[float, ...]:
        """F at the end and one and two decades before, while the loss is below loss(0)/n."""
        return tuple(
            F for F in (self.level, self.level / 10, self.level / 100) if self.log_threshold > -F
        )

    def kkt_at(self, F: float) -> KKT:
        """The approximate KKT certificate where -log L was F."""
        return kkt(self.data, self.at_level(F))

    @cached_property
    def late_kkt(self) -> KKT:
        """The certificate at the end."""
        return self.kkt_at(self.level)

    @cached_property
    def regions(self) -> ResolvedRegions:
        """The region count of the limit and whether it is settled."""
        return resolved_regions(self.run)

    @cached_property
    def optimum(self) -> MaxMargin:
        """The global maximum margin over all widths."""
        return max_margin(self.data)


def is_flow(run: Trajectory) -> bool:
    """Whether a run is gradient flow of both layers."""
    return run.engine == "flow" and run.options.get("train") == "both"


def margin_loss(run: Trajectory) -> Exponential | Logistic:
    """The loss of a run, if it is exponential or logistic."""
    if isinstance(run.loss_function, Square):
        raise NotApplicable("needs the exponential or logistic loss (A7 fails)")
    return run.loss_function


def prepare(
    subject: Subject,
    density: Any = None,
    delta: float = 0.1,
    sigma_hidden: float | None = None,
    sigma_output: float | None = None,
    loss: Any = None,
) -> Case:
    """Check the options and build the case.

    Parameters
    ----------
    subject : Subject
        Runs, or data and a start.
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
            f"`density` is {density!r}, which has no distribution function. Population errors are "
            "computed from it. Pass one of reluflow.densities."
        )
    chosen = Exponential() if loss is None else loss
    if not isinstance(chosen, (Exponential, Logistic)):
        raise InputError(
            f"`loss` is {loss!r}. The paper is about losses of a margin. Pass "
            "losses.Exponential() or losses.Logistic()."
        )
    hidden = None if sigma_hidden is None else number(sigma_hidden, "sigma_hidden", above=0.0)
    output = None if sigma_output is None else number(sigma_output, "sigma_output", at_least=0.0)
    return Case(
        subject, density, number(delta, "delta", above=0.0, below=1.0), (hidden, output), chosen
    )


def describe(case: Case) -> str:
    """One line on what is checked."""
    data, net = case.subject.data, case.subject.net
    label = data.name or "points"
    runs = len(case.subject.runs)
    what = f"{runs} run{'s' if runs != 1 else ''}" if runs else "a start"
    return f"{label}: n={data.n}, width {net.width}, {what}"
