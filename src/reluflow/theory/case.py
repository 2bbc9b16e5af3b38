"""Case: a subject seen by a paper, with what every paper needs, computed once.

A paper derives its own case from `Case` and adds cached properties. The keyword parameters of its
`prepare` method are the options of ``reluflow.theory.check`` for that paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.losses import Loss, Square
from reluflow.network import Network
from reluflow.theory.fits import Fit, line
from reluflow.theory.subject import Subject
from reluflow.theory.verdicts import Check, Unresolved, Verdict
from reluflow.trajectory import Mode, Status, Trajectory

if TYPE_CHECKING:
    from reluflow.theory.paper import Paper

CERTIFIED = (Status.CONVERGED, Status.STATIONARY)
FAR_LEVEL = 1e4  # -log loss to which a run of a margin loss is continued
DECADES = 2
PER_DECADE = 4
BALANCED = 1e-9


class Case:
    """What claims read. Everything is computed when first asked for and then kept.

    Attributes
    ----------
    subject : Subject
        What was given.
    paper : Paper
        Whose case it is.
    found : dict
        Verdicts of the paper's assumptions on this case.
    """

    def __init__(self, paper: Paper, subject: Subject, **options: Any) -> None:
        self.paper, self.subject = paper, subject
        self.options = dict(options)
        self.found: dict[str, Check] = {}
        self._started: dict[Any, Trajectory | Unresolved] = {}
        self.prepare(**options)

    def prepare(self) -> None:
        """Check the subject and the options; a paper's own case names them as parameters."""

    def describe(self) -> str:
        """One line on what is checked."""
        data, net = self.subject.data, self.subject.net
        runs = len(self.subject.runs)
        what = f"{runs} run{'s' if runs != 1 else ''}" if runs else "a start, no run"
        name = data.name or "given data"
        return f"{name}: {data.n} points in {data.d} dimensions, {net.width} neurons, {what}"

    # ------------------------------------------------------------------ what was given

    @property
    def data(self) -> Dataset:
        """The points and labels of the subject, never others."""
        return self.subject.data

    @property
    def net(self) -> Network:
        """The start of the subject."""
        return self.subject.net

    @property
    def loss(self) -> Loss:
        """The loss of the runs; the square loss where there is none."""
        return self.subject.runs[0].loss_function if self.subject.runs else Square()

    @cached_property
    def run(self) -> Trajectory:
        """The first run given, or one started from the pair."""
        return self.subject.runs[0] if self.subject.runs else self.start()

    @property
    def runs(self) -> tuple[Trajectory, ...]:
        """The runs given, or the one started here."""
        return self.subject.runs or (self.run,)

    def start(self) -> Trajectory:
        """A run of the flow on the subject's pair; a paper may start it otherwise."""
        return self.subject.flow(self.data, self.net, loss=self.loss, max_seconds=None)

    def met(self, id: str) -> bool:
        """Whether an assumption of the paper passes on this case."""
        return self.paper.judged(self, id).verdict is Verdict.PASS

    @property
    def signs(self) -> Array:
        """Signs of the output weights at the start."""
        return self.net.signs

    def is_flow(self, run: Trajectory | None = None) -> bool:
        """Whether a run (the first if none is named) is gradient flow of both layers."""
        run = self.run if run is None else run
        return run.engine == "flow" and run.options.get("train", "both") == "both"

    def balanced(self) -> bool:
        """Whether every neuron starts with ``|a| = |w|`` (or is zero)."""
        norms, outputs = self.net.log_norms, self.net.log_outputs
        zero = np.isneginf(norms) & np.isneginf(outputs)
        with np.errstate(invalid="ignore"):
            gap = np.where(zero, 0.0, np.abs(norms - outputs))
        size = 1.0 + np.abs(np.where(np.isfinite(norms), norms, 0.0))
        return bool((gap <= BALANCED + 1e-15 * size).all())

    # ------------------------------------------------------------------ patterns

    def active(self, k: int) -> NDArray[np.bool_]:
        """Who is active on which point at record k, from the modes of the run; -1 is the end."""
        return self.run.active(k)

    def patterns(self) -> Iterator[tuple[float, NDArray[np.bool_]]]:
        """The patterns of the run, each with the log-time from which it holds: events replayed."""
        run = self.run
        modes = run.modes(t=0.0).copy()
        after = {"activate": Mode.ACTIVE, "deactivate": Mode.INACTIVE, "slide": Mode.SLIDING}
        yield -np.inf, modes == Mode.ACTIVE
        events = run.events[np.isin(run.events["kind"], list(after))]
        for log_t in np.unique(events["log_t"]):
            for event in events[events["log_t"] == log_t]:
                modes[event["neuron"], event["point"]] = after[str(event["kind"])]
            yield float(log_t), modes == Mode.ACTIVE

    @cached_property
    def live(self) -> NDArray[np.intp]:
        """Neurons that still act on some point at the end: active there, weight not zero."""
        on = (self.run.modes(-1) != Mode.INACTIVE).any(axis=1)
        return np.flatnonzero(on & np.isfinite(self.run.final.log_outputs))

    # ------------------------------------------------------------------ time and accuracy

    @cached_property
    def error(self) -> float:
        """Relative error of what is read off the run.

        The tolerance of a flow, the rounding of descent, and the error of a certified limit; for
        single neurons also the rounding of deep scales.
        """
        return error_of(self.run)

    @cached_property
    def tolerance(self) -> float:
        """Relative error of outputs, directions and rates: deep scales do not touch them."""
        return tolerance_of(self.run)

    @cached_property
    def is_certified(self) -> bool:
        """Whether the run ended in a certified limit: no time is later than that."""
        return self.run.status in CERTIFIED

    def clock(self, since: float) -> Array:
        """Times of the records since a moment, from the run's own steps; negative before it.

        At deep scales one ulp of ``t`` may exceed the time that matters: the difference is taken
        here, and records at equal ``t`` keep their order.
        """
        elapsed = np.asarray(self.run.t) - since
        ulp = np.spacing(np.abs(self.run.t))
        return np.where(np.abs(elapsed) <= ulp, 0.0, elapsed)

    @cached_property
    def late_run(self) -> Trajectory:
        """The run continued far enough to judge a limit; see `late`."""
        run = self.run
        if self.is_certified or isinstance(run.loss_function, Square) or run.engine != "flow":
            return run
        if -float(run.log_loss[-1]) >= 0.9 * FAR_LEVEL or self.subject.engines is None:
            return run
        return self.subject.proceed(run, stop_log_loss=-FAR_LEVEL, max_seconds=None)

    def late(self) -> Trajectory:
        """The subject's run, continued where it stopped too early and starting is allowed."""
        return self.late_run

    @cached_property
    def level(self) -> float:
        """``F = -log L`` at the end of the late run."""
        return -float(self.late_run.log_loss[-1])

    def at_level(self, log_loss: float) -> Network:
        """The network of the late run where the log-loss was this."""
        if abs(log_loss + self.level) <= 1e-9 * abs(self.level):
            return self.late_run.final
        return self.late_run.at(log_loss=log_loss)

    @cached_property
    def decades(self) -> Array:
        """Levels F spread evenly in log F over the last two decades, points separated."""
        begin = max(-float(self.late_run.log_loss[0]), self.separated)
        first = max(begin, self.level / 10**DECADES, 1e-3 * self.level)
        if not self.level > first > 0.0:
            return np.array([self.level])
        count = max(2, round(PER_DECADE * math.log10(self.level / first)) + 1)
        return np.geomspace(first, self.level, count)

    @cached_property
    def separated(self) -> float:
        """The level F from which every point is classified: ``L < loss(0)/n``."""
        if isinstance(self.late_run.loss_function, Square):
            return -math.inf
        return (1.0 + 1e-9) * math.log(self.data.n) - self.late_run.loss_function.log_at_zero

    def late_measures(self, measure: Callable[[Network], float]) -> tuple[Array, Array]:
        """Levels of `decades`, and a measure of the networks there."""
        if self.level < self.separated:
            raise Unresolved("the run ends before the points are separated; continue it")
        nets = [self.at_level(-float(F)) for F in self.decades]
        return self.decades, np.array([float(measure(net)) for net in nets])

    @staticmethod
    def fit(x: Sequence[float] | Array, y: Sequence[float] | Array) -> Fit:
        """A least-squares line with the standard error of its slope."""
        return line(x, y)

    # ------------------------------------------------------------------ more runs, more draws

    def flow(self, data: Dataset, net: Network, **options: Any) -> Trajectory:
        """Start a run of the flow, if that is allowed; undecided where it does not end."""
        run = self.subject.flow(data, net, **options)
        if run.status is Status.BUDGET:
            raise Unresolved(f"a run of the flow did not end: {run.ending}; a longer one decides")
        return run

    def draw(self, count: int) -> list[tuple[Dataset, Network]]:
        """So many further problems from the subject's own generator; the claim needs it."""
        return self.subject.draw(count)

    def on(self, *runs: Trajectory) -> Self:
        """The same case on other runs: of another scale, or cut earlier."""
        first = runs[0]
        subject = Subject(first.data, first.net, runs, self.subject.engines, self.subject.drawer)
        return type(self)(self.paper, subject, **self.options)


def error_of(run: Trajectory) -> float:
    """Relative error of a run: tolerance of a flow, rounding of descent, error of a limit."""
    size = math.sqrt(run.final.squared_norm) if math.isfinite(run.limit_error) else 0.0
    relative = run.limit_error / size if size > 0.0 else 0.0
    rounding = 1e-15 * (1.0 + float(np.abs(run.net.log_scale).max(initial=0.0)))
    return max(tolerance_of(run), relative, rounding)


def tolerance_of(run: Trajectory) -> float:
    """Relative error of a run's steps: ten times the tolerance of a flow, rounding of descent."""
    return 10.0 * float(run.options.get("rtol", 1e-13)) if run.engine == "flow" else 1e-12
