"""What the page of a high-dimensional study shows of its runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.figures import Axis, Figure, Line, Panel, Rule
from reluflow.figures.description import DASHES
from reluflow.interpolators import single_relu
from reluflow.papers.highdim.draws import trace_of
from reluflow.papers.highdim.figures import panels
from reluflow.papers.highdim.paper import paper
from reluflow.theory.contract import Comparison, Findings, LabelledRun, Said, Section
from reluflow.trajectory import Status, Trajectory

SHOWN = 4  # neurons drawn, at most


@dataclass(frozen=True, eq=False)
class View:
    """A run seen through its pre-activations and duals."""

    run: Trajectory

    @cached_property
    def y(self) -> Array:
        """Labels."""
        return self.run.data.y

    @cached_property
    def signs(self) -> Array:
        """Output signs."""
        return np.asarray(self.run.net.signs)

    @cached_property
    def l1(self) -> float:
        """Trace of the covariance."""
        return trace_of(self.run.data)

    @cached_property
    def W(self) -> Array:
        """Hidden weights at the records, the limit last where there is one (k, m, d)."""
        nets = [self.run.network(k) for k in range(len(self.run.t))]
        return np.array([net.flat().W for net in nets])

    @cached_property
    def P(self) -> Array:
        """Pre-activations at the records (k, m, n)."""
        return np.asarray(self.W @ self.run.data.X.T)

    @cached_property
    def B(self) -> Array:
        """Duals times ``l1`` at the records (k, m, n)."""
        flat = self.P.reshape(-1, self.run.data.n)
        found = np.linalg.lstsq(self.run.data.gram, flat.T, rcond=None)[0]
        return np.asarray(self.l1 * found.T.reshape(self.P.shape))

    @cached_property
    def events(self) -> NDArray[np.void]:
        """Changes of the pattern: the run's own, or those its records show."""
        own = self.run.events
        kinds = np.isin(own["kind"], ["activate", "deactivate", "slide"])
        if self.run.engine == "flow" or "last_change" in self.run.stats:
            return np.asarray(own[kinds])
        active = np.array([self.run.active(k) for k in range(len(self.run.t))])
        return panels.changes_of_records(self.run.t, active)

    @property
    def freeze(self) -> float | None:
        """The iteration from which the pattern stays, where that is certified."""
        if self.run.stats.get("frozen_from") is None:
            return None
        return float(self.run.stats["last_change"])

    @property
    def last(self) -> float:
        """The last iteration worth drawing."""
        changes = float(self.events["t"].max()) if len(self.events) else 1.0
        return float(min(self.run.t[-1], max(100.0, 4.0 * changes)))

    def star(self, k: int) -> Array | None:
        """The shortest fit of the points of the neuron's sign that is off elsewhere (m <= 2)."""
        labels = self.signs[k] * self.y
        if not (labels > 0.0).any() or (self.signs == self.signs[k]).sum() > 1:
            return None
        try:
            return np.asarray(single_relu(Dataset(self.run.data.X, labels)).W[0])
        except InputError:
            return None  # dependent points that contradict each other

    def law(self, k: int) -> float:
        """Leading order of the distance to the shortest fit, after a step of descent."""
        off = self.signs[k] * self.y <= 0.0
        eps, size = self.P[0, k, off], np.abs(self.y[off])
        kick = float(self.run.options["lr"]) * self.l1
        return math.sqrt(float(((kick * (size + eps) - eps) ** 2).sum()) / self.l1)


@paper.page
def findings(runs: Sequence[LabelledRun]) -> Findings:
    """Primal variables, primal and dual, patterns and distances of the first run."""
    view = View(runs[0].run)
    shown = range(min(len(view.signs), SHOWN))
    sections = [_primal(view, shown), _dual(view, shown), _patterns(view, shown)]
    distances = _distances(view, shown)
    if distances is not None:
        sections.append(distances)
    return Findings(tuple(sections), _comparisons(view))


def _title(view: View, k: int) -> str:
    if len(view.signs) == 1:
        return "the neuron"
    return f"neuron {k}, output {'+1' if view.signs[k] > 0 else '-1'}"


def _primal(view: View, shown: Sequence[int]) -> Section:
    t = view.run.t
    kept = t <= view.last
    listed = tuple(
        panels.primal(
            _title(view, k),
            t[kept],
            view.P[kept, k],
            view.y,
            float(view.signs[k]),
            view.freeze,
            view.last,
        )
        for k in shown
    )
    figure = Figure(
        "primal",
        "Pre-activations through training",
        listed,
        columns=2,
        caption="Each curve is one training point; zero is the boundary of activity.",
    )
    return Section(
        "Primal variables",
        f"The pre-activation x_i . w of every point, by class. {_frozen(view)}",
        (figure,),
        (
            Said(
                "The first step throws the points of the other sign below zero, where they stay "
                "for ever, and the others rise to their labels.",
                (_first_step(view),),
            ),
        ),
    )


def _first_step(view: View) -> str:
    """The claim about the first step, for one neuron, one of each sign, or more."""
    signs = len(np.unique(view.signs))
    return {(1, 1): "HD-13", (2, 2): "HD-23"}.get((len(view.signs), signs), "HD-25")


def _frozen(view: View) -> str:
    if view.freeze is not None:
        return f"The pattern is certified to stay from iteration {view.freeze:g} on."
    return "No freeze of the pattern is certified for this run."


def _dual(view: View, shown: Sequence[int]) -> Section:
    t = view.run.t
    moments = sorted({min(int(np.searchsorted(t, 1.0)), len(t) - 1), len(t) - 1})
    listed = tuple(
        panels.primal_dual(
            f"{_title(view, k)}, iteration {t[moment]:g}",
            view.P[moment, k],
            view.B[moment, k],
            view.y,
            float(view.signs[k]),
        )
        for k in shown[:2]
        for moment in moments
    )
    figure = Figure("primal_dual", "Primal and dual variables", listed, columns=len(moments))
    return Section(
        "Primal and dual",
        "Weights are combinations of the points, w = sum b_i x_i. A dual variable b_i moves only "
        "while its point is active.",
        (figure,),
        (
            Said(
                "The Gram matrix is nearly l_1 times the identity: primal and dual lie on a line, "
                "and a dual well below zero means an inactive point.",
                ("HD-04",),
            ),
        ),
    )


def _patterns(view: View, shown: Sequence[int]) -> Section:
    start = view.run.active(t=0.0)
    listed = tuple(
        panels.raster(
            _title(view, k), start[k], view.events, k, view.y, float(view.signs[k]), view.last
        )
        for k in shown
    )
    times = len(np.unique(view.events["t"]))
    return Section(
        "Pattern through training",
        f"On which points each neuron is active. The pattern changes "
        f"{times} {'time' if times == 1 else 'times'}. "
        f"{_frozen(view)}",
        (Figure("pattern", "Activation pattern", listed, columns=2),),
    )


def _distances(view: View, shown: Sequence[int]) -> Section | None:
    t = np.maximum(view.run.t, panels.START)
    layers: list[Line | Rule] = []
    for k in shown:
        star = view.star(k)
        if star is not None:
            gap = np.linalg.norm(view.W[:, k] - star, axis=1)
            layers.append(
                Line(t, gap, f"{_title(view, k)} to its shortest fit", k, DASHES[k % 4], width=1.6)
            )
            if view.run.engine == "descent":
                layers.append(Rule(view.law(k), "y", f"law, neuron {k}", k, "dot"))
    if not layers:
        return None
    panel = Panel(
        "", panels.iteration_axis(float(t[-1])), Axis("distance |w - w*|", "log"), tuple(layers)
    )
    return Section(
        "Distance to the minimum-norm solution",
        "Distance of the weights to the shortest fit w* through training; the dotted law is the "
        "leading order of what the first step of descent leaves, proportional to the step.",
        (Figure("distance", "Distance to the shortest fit", (panel,)),),
        (
            Said(
                "The limit of descent is close to w* and not equal to it: the distance is that of "
                "the first kick, of order sqrt(n/l_1), and relative to w* it does not vanish with "
                "the dimension.",
                ("HD-16" if len(view.signs) == 1 else "HD-24",),
            ),
        ),
    )


def _comparisons(view: View) -> tuple[Comparison, ...]:
    made = []
    run = view.run
    if view.freeze is not None:
        made.append(Comparison("freeze iteration", 1.0, view.freeze, "Theorems 1, 3, 5"))
    finished = run.status in (Status.CONVERGED, Status.STATIONARY) and run.engine == "descent"
    for k in range(len(view.signs)):
        star = view.star(k)
        if star is None or not finished:
            continue
        W = run.final.flat().W[k]
        gap, size = float(np.linalg.norm(W - star)), float(np.linalg.norm(star))
        made.append(
            Comparison(
                f"distance to the shortest fit, neuron {k}",
                view.law(k),
                gap,
                "leading order; corrections of order C sqrt(n/d)",
            )
        )
        made.append(
            Comparison(
                f"distance over the length of the shortest fit, neuron {k}",
                view.law(k) / size,
                gap / size,
                "does not vanish with the dimension",
            )
        )
    if finished:
        off = (view.signs[:, None] * view.y > 0.0).sum(axis=0) == 0
        least = 0.5 * float((view.y[off] ** 2).sum())
        risk = float(np.exp(run.stats["final_log_loss"]))
        made.append(Comparison("risk in the limit", least, risk, "the least possible"))
    return tuple(made)
