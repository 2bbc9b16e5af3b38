"""Orthogonally separable classes: two directions survive.

M. Phuong and C. H. Lampert (ICLR 2021): for points with positive products within a class and none
positive between classes, the flow of a logistic loss from a small balanced start ends with patterns
that stay and with every live neuron along one of two hard-margin vectors, one a class. H. Min,
E. Mallada and R. Vidal (ICLR 2024) bound the time of alignment by O(log n / sqrt(mu)) and show a
stable rank of at most 2. Statements were checked against the abstracts and introductions of both;
the constant 16 of S3 and the margin of S7 are reconstructed here.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

import reluflow as rf
from reluflow.theory import Case, Expectation, Finding, at_most, falls, holds
from reluflow.theory.wrong import forged, stuck, turned

LATE = 999.0  # -log loss from which limits are judged
SMALL = 0.05  # largest output at the start
ALIGNED = 16.0  # of the alignment time, in units of log n/(x_min sqrt(mu))


class Classes(Case):
    """Two classes, their hard-margin vectors, and angles to them."""

    @cached_property
    def own(self) -> np.ndarray:
        """Points whose label has the neuron's sign, (m, n)."""
        return np.asarray(self.signs[:, None] * self.data.y > 0.0)

    @cached_property
    def products(self) -> np.ndarray:
        """Cosines of labelled points, ``y_i y_k cos(x_i, x_k)``: all positive if separable."""
        unit = self.data.X / np.linalg.norm(self.data.X, axis=1)[:, None]
        z = self.data.y[:, None] * unit
        return np.asarray(z @ z.T)

    @cached_property
    def vectors(self) -> dict[float, np.ndarray]:
        """The hard-margin vector of each class: shortest w with w.x >= 1 on its points."""
        y = self.data.y
        return {s: hard_margin(self.data.X[y == s]) for s in (1.0, -1.0) if (y == s).any()}

    def angles(self, net: rf.Network) -> np.ndarray:
        """Angle of each live neuron to the vector of its sign; pi where there is no such class."""
        goals = [self.vectors.get(float(s), np.full(net.d, np.nan)) for s in self.signs[self.live]]
        v = np.array(goals).reshape(-1, net.d)
        u, v = net.directions[self.live], v / np.linalg.norm(v, axis=1)[:, None]
        half = np.arctan2(np.linalg.norm(u - v, axis=1), np.linalg.norm(u + v, axis=1))
        return np.asarray(np.nan_to_num(2.0 * half, nan=np.pi))

    def start(self) -> rf.Trajectory:
        """The exponential loss down to log-loss -1e4."""
        how = {"loss": "exponential", "stop_log_loss": -1e4, "max_seconds": None}
        return self.subject.flow(self.data, self.net, **how)

    @cached_property
    def aligned_at(self) -> float:
        """When the last live neuron gets the pattern of its class for good (time of the run)."""
        mine = np.isin(self.run.events["neuron"], self.live)
        return float(self.run.events["t"][mine].max(initial=0.0))

    @cached_property
    def unit(self) -> float:
        """``log n/(x_min sqrt(mu))`` in time of the run, whose loss is a mean and not a sum."""
        slope = 1.0 if self.loss.name == "exponential" else 0.5
        least = np.linalg.norm(self.data.X, axis=1).min() * np.sqrt(self.products.min())
        return float(np.log(max(self.data.n, 2)) / least * self.data.n / slope)


def hard_margin(X: np.ndarray) -> np.ndarray:
    """The shortest w with ``w.x >= 1`` for all rows: along the shortest point of their hull."""
    Z = X / np.linalg.norm(X, axis=1).min()  # so that the hull is about as far away as its weight
    fit = rf.geometry.nnls(np.vstack([Z.T, np.ones(len(Z))]), np.append(np.zeros(Z.shape[1]), 1.0))
    w = Z.T @ fit.x
    return np.asarray(w / (X @ w).min())


PRESET = {
    "data": {"generator": "separable/orthant", "n": 12, "d": 6},
    "network": {"init": "balanced", "width": 30, "log_scale": -6.0, "directions": "sphere"},
    "loss": {"name": "exponential"},
    "engine": {"name": "flow", "stop_log_loss": -1e4},
}

paper = rf.Paper(
    "separable",
    title="Orthogonally separable classes: at most two directions survive",
    case=Classes,
    reference=rf.Reference(
        authors="M. Phuong, C. H. Lampert",
        title="The Inductive Bias of ReLU Networks on Orthogonally Separable Data. ICLR 2021",
        where="With H. Min, E. Mallada, R. Vidal. Early Neuron Alignment in Two-layer ReLU "
        "Networks with Small Initialization. ICLR 2024, arXiv 2307.12851",
    ),
    question="Do at most two directions survive, and are they the hard-margin vectors?",
    preset={"seed": 2, "study": {"title": "Two classes, two directions"}, **PRESET},
)


@paper.data
def orthant(n: int, d: int, *, apart: float = 0.2, seed: int | np.random.Generator) -> rf.Dataset:
    """Labelled points ``y_i x_i`` with positive coordinates, at least ``apart``: separable."""
    rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return rf.Dataset(y[:, None] * (apart + np.abs(rng.standard_normal((n, d)))), y, name="orthant")


@paper.assumption("A1", "products positive for equal labels, at most 0 for different ones (cosine)")
def separable(case: Classes) -> Finding:
    """Orthogonal separability; labels are -1 and 1."""
    if not (np.abs(case.data.y) == 1.0).all():
        return holds(False, note="labels are not -1 and 1")
    same = np.equal.outer(case.data.y, case.data.y)
    within, between = case.products[same].min(), case.products[~same].min(initial=1.0)
    note = f"{within:.3g} within a class, {-between:.3g} between classes"
    return holds(within > 0.0 and between >= 0.0, min(within, between), 0.0, note)


@paper.assumption("A2", "exponential or logistic loss")
def margin_loss(case: Classes) -> Finding:
    """A loss with an exponential tail."""
    return holds(all(run.loss_function.name != "square" for run in case.subject.runs))


@paper.assumption("A3", "gradient flow of both layers")
def gradient_flow(case: Classes) -> Finding:
    """Descent is an experiment."""
    return holds(all(case.is_flow(run) for run in case.subject.runs))


@paper.assumption("A4", "balanced start, |a_j| = |w_j|")
def balanced(case: Classes) -> Finding:
    """Output signs then never change."""
    return holds(case.balanced())


@paper.assumption("A5", "each class has a neuron of its sign that is active on one of its points")
def covered(case: Classes) -> Finding:
    """Otherwise nothing can learn the class."""
    seen = ((case.net.mantissa.W @ case.data.X.T > 0.0) & case.own).any(axis=1)
    missing = [s for s in np.unique(case.data.y) if not (seen & (case.signs == s)).any()]
    return holds(not missing, note=f"no neuron for label {missing[0]:g}" if missing else "")


@paper.condition("mu", "products between classes are negative, not zero (Min et al.)", needs=["A1"])
def strictly(case: Classes) -> Finding:
    """mu, the smallest labelled cosine."""
    return holds(case.products.min() > 0.0, case.products.min(), 0.0)


@paper.condition("small", "outputs at the start are small (largest)")
def small(case: Classes) -> Finding:
    """Residuals are at first as they are at zero."""
    return at_most(float(np.abs(case.net.predict(case.data.X)).max()), SMALL)


@paper.condition("unmoved", "outputs stay small until neurons are aligned (largest)", needs=["mu"])
def unmoved(case: Classes) -> Finding:
    """Later, forces fade like the loss, and neurons turn as slowly as they like."""
    net = case.run.at(t=min(ALIGNED * case.unit, float(case.run.t[-1])))
    return at_most(float(np.abs(net.predict(case.data.X)).max()), SMALL)


@paper.condition("late", "-log L is above 999 at the end, or the end is certified", needs=["A2"])
def late(case: Classes) -> Finding:
    """Limits are judged late."""
    ended = case.late().status in ("converged", "stationary")
    return holds(ended or case.level >= LATE, case.level)


SETTING = ("A1", "A2", "A3", "A4", "A5")


@paper.claim("S1", "the loss tends to 0: log-loss at the end", needs=SETTING, regime=["late"])
def separates(case: Classes) -> Finding:
    """A certified end at a positive loss contradicts it."""
    run = case.late()
    if run.status in ("converged", "stationary"):
        return holds(False, run.log_loss[-1], note="the flow ends for good at a positive loss")
    return at_most(run.log_loss[-1], -np.log(case.data.n) - 1.0)


@paper.claim(
    "S2",
    "patterns freeze: live neurons are active exactly on their class (neurons that are not)",
    needs=SETTING,
    regime=["small", "late", "unmoved"],
)
def patterns_freeze(case: Classes) -> Finding:
    """Under A1 products with the own class never fall: late changes towards it are alignment."""
    active = case.late().active(-1)[case.live]
    wrong = int((active != case.own[case.live]).any(axis=1).sum())
    events = case.late().events
    losses = np.interp(events["log_t"], case.late().log_t, -case.late().log_loss)
    changes = np.isin(events["kind"], ("activate", "deactivate", "slide"))
    recent = events[changes & np.isin(events["neuron"], case.live) & (losses > 0.1 * case.level)]
    towards = np.where(case.own[recent["neuron"], recent["point"]], "activate", "deactivate")
    away = int((recent["kind"] != towards).sum())
    return holds(wrong + away == 0, wrong + away, 0.0, f"{len(recent)} late changes, {away} away")


@paper.claim(
    "S3",
    "alignment takes at most 16 log n/(x_min sqrt(mu)) (last change of a live neuron, this unit)",
    needs=[*SETTING, "mu"],
    regime=["small", "unmoved"],
)
def alignment_time(case: Classes) -> Finding:
    """The constant is reconstructed."""
    return at_most(case.aligned_at / case.unit, ALIGNED, case=case)


@paper.claim(
    "S4",
    "directions of live neurons tend to the two hard-margin vectors: power of -log L",
    needs=SETTING,
    regime=["small", "late", "unmoved"],
)
def directions(case: Classes) -> Finding:
    """The largest angle of a live neuron to the vector of its class."""
    return falls(case, lambda net: case.angles(net).max(initial=0.0))


@paper.claim("S5", "stable rank is at most 2 at the end", needs=SETTING, regime=["late"])
def rank_two(case: Classes) -> Finding:
    """Squared Frobenius norm over the squared largest singular value, corrections of order 1/F."""
    stable = excess_rank(case.late().final) + 2.0
    return at_most(stable, 2.0) if stable <= 2.0 else falls(case, excess_rank)


def excess_rank(net: rf.Network) -> float:
    """By how much the stable rank exceeds 2."""
    values = np.linalg.svd(net.flat().W, compute_uv=False)
    return float((values**2).sum() / values[0] ** 2) - 2.0


@paper.claim("S6", "KKT residual of the margin problem tends to 0", needs=SETTING, regime=["late"])
def kkt(case: Classes) -> Finding:
    """Relative stationarity residual."""
    return falls(case, lambda net: rf.geometry.kkt(case.data, net).eps_rel, error=1e-9)


@paper.claim(
    "S7",
    "the margin tends to 1/(2(|w+| + |w-|)): its relative gap, power of -log L",
    needs=SETTING,
    regime=["small", "late"],
)
def margin(case: Classes) -> Finding:
    """Derived from the limit: two neurons of squared norm 2|w| each."""
    best = 0.5 / sum(float(np.linalg.norm(w)) for w in case.vectors.values())
    gap = falls(case, lambda net: abs(1.0 - rf.geometry.margin(case.data, net) / best), error=1e-9)
    return replace(gap, note=f"limit {best:.6g}; {gap.note}")


@paper.example
def example(log_scale: float = -6.0) -> rf.Trajectory:
    """A small problem, late enough."""
    data = orthant(8, 4, seed=1)
    net = rf.networks.balanced(4, 12, log_scale=log_scale, directions="sphere", seed=3)
    run: rf.Trajectory = rf.flow(data, net, loss=rf.losses.Exponential(), stop_log_loss=-1e4)  # type: ignore[operator, unused-ignore]
    return run


for claim in (patterns_freeze, alignment_time, directions):
    claim.passes_on(lambda: example(-2000.0))
separates.fails_on(stuck)
directions.fails_on(lambda run: forged(run, turned(0.4)))
kkt.fails_on(lambda run: forged(run, turned(0.4)))
margin.fails_on(lambda run: forged(run, turned(1.0)))


@patterns_freeze.fails_on
@alignment_time.fails_on
def late_change(run: rf.Trajectory) -> rf.Trajectory:
    """A live neuron that loses a point at the very end."""
    j = int(np.argmax(run.final.log_norms))
    i = int(np.argmax(run.active(-1)[j]))
    log_t = 0.999 * float(run.log_t[-1])
    with np.errstate(over="ignore"):
        row = np.array([(np.exp(log_t), log_t, j, i, "deactivate")], run.events.dtype)
    return replace(run, events=np.concatenate([run.events, row]))


@rank_two.fails_on
def third_direction(run: rf.Trajectory) -> rf.Trajectory:
    """Neurons spread over the axes, for ever."""

    def spread(net: rf.Network, share: float) -> rf.Network:
        axes = np.eye(net.d)[np.arange(net.width) % net.d]
        W = axes * np.linalg.norm(net.mantissa.W, axis=1)[:, None]
        return rf.Network(net.mantissa.a, W, net.log_scale, log_scale_out=net.log_scale_out)

    return forged(run, spread)


@paper.section("Directions", "Largest angle of a live neuron to its hard-margin vector.")
def angles(case: Classes) -> rf.figures.Figure:
    """Against the loss level, both logarithmic."""
    levels, values = case.late_measures(lambda net: case.angles(net).max(initial=0.0))
    line = rf.figures.Line(levels, values, "largest angle", marker="circle")
    axes = rf.figures.Axis("-log loss", "log"), rf.figures.Axis("angle (radians)", "log")
    return rf.figures.Figure("angles", paper.title, (rf.figures.Panel("", *axes, (line,)),))


@paper.figure(
    "fig-angle",
    "Largest angle to the hard-margin vectors at the end, against width",
    quick={**PRESET, "sweep": {"repeats": 3, "grid": {"network.width": [8, 32]}}},
    full={**PRESET, "sweep": {"repeats": 20, "grid": {"network.width": [4, 8, 16, 32, 64, 128]}}},
)
def angle_by_width(results: list[Any]) -> tuple[rf.figures.Figure, list[Expectation]]:
    """Medians over draws; the limit does not depend on the width."""
    found: dict[int, list[float]] = {}
    for result in results:
        case = Classes(paper, rf.theory.subject_of(result.run, None))
        width = int(result.point.parameters["network"]["width"])
        found.setdefault(width, []).append(float(case.angles(result.run.final).max(initial=0.0)))
    middle = [np.median(found[width]) for width in sorted(found)]
    line = rf.figures.Line(np.array(sorted(found)), np.array(middle), "median", marker="circle")
    axes = rf.figures.Axis("width", "log"), rf.figures.Axis("largest angle (radians)", "log")
    figure = rf.figures.Figure("fig-angle", paper.title, (rf.figures.Panel("", *axes, (line,)),))
    worst = max(map(max, found.values()))
    return figure, [Expectation("largest angle of all draws", worst, 0.0, 0.3, "S4")]


@paper.predicts
def limit(data: rf.Dataset, net: rf.Network, loss: object) -> rf.limits.Prediction:
    """One neuron a class along its hard-margin vector, margin 1."""
    case = Classes(paper, rf.theory.subject_of((data, net), None))
    tested = tuple(paper[id].title for id in ("A1", "A2", "A4", "A5"))
    failed = [id for id in ("A1", "A4", "A5") if not case.met(id)]
    said = [f"{id} fails ({case.found[id].note or 'see A1 to A5'})" for id in failed]
    if loss.name == "square":  # type: ignore[attr-defined]
        said = ["the loss is square, not of a margin"]
    if said:
        return rf.limits.Prediction(None, "; ".join(said), None, None, tested)
    sizes = {s: float(np.linalg.norm(w)) for s, w in case.vectors.items()}
    W = [w / np.sqrt(sizes[s]) for s, w in case.vectors.items()]
    found = rf.Network([s * np.sqrt(sizes[s]) for s in sizes], W)
    reason = "Orthogonally separable classes: directions tend to the hard-margin vectors."
    return rf.limits.Prediction("hard_margin", reason, found, case.vectors, tested)
