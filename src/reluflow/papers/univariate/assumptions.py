"""The hypotheses of the univariate paper, one row each, and what single rows ask."""

from __future__ import annotations

import numpy as np

from reluflow.losses import Square
from reluflow.network import Network
from reluflow.papers.univariate.case import LATE, LEVEL, Univariate
from reluflow.papers.univariate.constants import example_1, logistic_counterexample, region_bound
from reluflow.papers.univariate.paper import paper
from reluflow.theory.verdicts import Finding, Unresolved, at_least, at_most, holds, undecided
from reluflow.trajectory import Mode, Status, Trajectory

FEWEST = 16
GROWN = float(np.log(10.0))


@paper.assumption("A1", "Points on the line with a bias, (x, 1), and labels -1 or 1")
def on_the_line(case: Univariate) -> Finding:
    """The setting."""
    note = "" if case.is_line else f"points have {case.data.d} coordinates, or no bias"
    return holds(case.is_line and case.is_classification, note=note)


@paper.assumption("A2", "All inputs differ (Theorem 4.2): smallest gap above 0", needs=["A1"])
def distinct(case: Univariate) -> Finding:
    """Strictly increasing inputs."""
    gap = float(np.diff(case.x).min()) if case.data.n > 1 else np.inf
    return holds(gap > 0.0, gap, 0.0, "" if gap > 0.0 else "inputs repeat")


@paper.assumption(
    "A3", "Labels are signs of the teacher (Assumption 2.2): labels that differ", needs=["A1"]
)
def teacher_labels(case: Univariate) -> Finding:
    """The teacher network is part of the data."""
    if not isinstance(case.data.teacher, Network):
        return holds(False, note="the data have no teacher network")
    zeros = int(np.count_nonzero(case.teacher_values == 0.0))
    note = f"teacher of width {case.teacher.width}, {case.switches} label switches in the sample"
    if zeros:
        note += f"; the teacher is exactly 0 (label -1) at {zeros} points"
    return at_most(case.wrong_labels, 0, note=note)


@paper.assumption("A4", "Normal independent start (Assumption 2.1): p-value of a test")
def normal_start(case: Univariate) -> Finding:
    """A test that speaks only against; too few weights decide nothing."""
    if case.net.width < FEWEST:
        raise Unresolved(
            f"{case.net.width} neurons are too few for a test of their law; {FEWEST} decide"
        )
    note = "Kolmogorov-Smirnov; a pass says that nothing speaks against it"
    return at_least(case.start_p_value, LEVEL, note=note)


@paper.assumption("A5a", "Theorem 3.1: width k >= 6144 R^4 log(24 r/delta)/rho", needs=["A3"])
def wide_enough(case: Univariate) -> Finding:
    """The first constant."""
    note = (
        f"r={case.teacher.width}, R={case.radius:.4g}, rho={case.shortest_stretch:.4g}, "
        f"C={case.density_bound:.4g}, n={case.data.n}, delta={case.delta:g}"
    )
    return at_least(case.net.width, case.required.width, note=note)


@paper.assumption(
    "A5b", "Theorem 3.1: sigma_h >= 4200 n^2 C R^3.5 sqrt(r k)/(delta rho)", needs=["A3"]
)
def hidden_scale(case: Univariate) -> Finding:
    """The second; without a density the least C possible is used, which can only refute."""
    error, estimated = _sampling(case, 0, case.sigma_hidden, case.flat.W.size)
    found = at_least(case.sigma_hidden, case.required.sigma_hidden, error, note=estimated)
    if case.density is None and found.margin >= 0.0:
        note = "the density is not given; the bound used C = 1/(2R), the least; density= decides"
        return undecided(case.sigma_hidden, case.required.sigma_hidden, note)
    return found


@paper.assumption("A5c", "Theorem 3.1: sigma_o <= 1/(4 k R sigma_h log(6 k/delta))", needs=["A3"])
def output_scale(case: Univariate) -> Finding:
    """The third."""
    error, estimated = _sampling(case, 1, case.sigma_output, case.net.width)
    return at_most(case.sigma_output, case.required.sigma_output, error, note=estimated)


def _sampling(case: Univariate, layer: int, sigma: float, count: int) -> tuple[float, str]:
    """Two standard errors of an estimated deviation, none of a given one."""
    if case.sigmas[layer] is not None:
        return 0.0, ""
    return 2.0 * sigma / float(np.sqrt(2 * count)), "estimated from the weights"


@paper.assumption("A7", "Exponential or logistic loss")
def classification_loss(case: Univariate) -> Finding:
    """A loss of the margin, for every run."""
    wrong = [run for run in case.subject.runs if isinstance(run.loss_function, Square)]
    return holds(not wrong, note="the square loss has no margin" if wrong else "")


@paper.assumption("A8", "Gradient flow, both layers trained")
def gradient_flow(case: Univariate) -> Finding:
    """Descent, or one layer fixed, is an experiment."""
    other = [run for run in case.subject.runs if not case.is_flow(run)]
    return holds(not other, note="descent, or one layer fixed: an experiment" if other else "")


@paper.assumption(
    "A6",
    "Theorem 4.1: the loss falls below loss(0)/n (log of the smallest loss)",
    needs=["A1", "A7"],
)
def threshold(case: Univariate) -> Finding:
    """Stated as 1/n, which is loss(0)/n for the exponential loss and too weak for the logistic."""
    bound = case.log_threshold
    note = (
        "stated as 1/n, which does not separate points for the logistic loss; loss(0)/n does"
        if case.loss.name == "logistic"
        else "for the exponential loss loss(0)/n is 1/n"
    )
    lowest = float(case.run.log_loss.min())
    return holds(lowest < bound, lowest, bound, f"{note}; the run ended as `{case.run.status}`")


# ---------------------------------------------------------------------- what single rows ask


@paper.condition(
    "late", f"-log L is above {LATE:g} at the end, or the end is certified", needs=["A7"]
)
def late(case: Univariate) -> Finding:
    """Limits of t are judged late; a certified end is late."""
    if case.late_run.status in (Status.CONVERGED, Status.STATIONARY):
        return holds(True, case.level, LATE, f"the run ended as `{case.late_run.status}`")
    return at_least(case.level, LATE, note=f"the run ends at log-loss {-case.level:.4g}")


@paper.condition("outgrown", "weights have outgrown their start: |theta|^2 at the end over it")
def outgrown(case: Univariate) -> Finding:
    """While the start is a part of them directions are far from limits; certified ends are late."""
    if case.late_run.status in (Status.CONVERGED, Status.STATIONARY):
        return holds(True, note=f"the run ended as `{case.late_run.status}`")
    grown = case.late_run.final.log_squared_norm - case.net.log_squared_norm
    return at_least(grown, GROWN, note="natural logarithm")


@paper.condition("records", "the run has two records below loss(0)/n", needs=["A6"])
def records(case: Univariate) -> Finding:
    """Monotonicity needs two of them."""
    return at_least(int((case.run.log_loss < case.log_threshold).sum()), 2.0)


@paper.condition("density", "the law of the inputs is given (option density)")
def density(case: Univariate) -> Finding:
    """Claims about the population."""
    return holds(case.density is not None, note="" if case.density is not None else "not given")


@paper.condition("positive", "all inputs are positive, as in the lower bound of Theorem 3.2")
def positive_inputs(case: Univariate) -> Finding:
    """There a neuron with w < 0 and b < 0 is dead for every sample."""
    low = case.density.support[0] if case.density is not None else float(case.data.X[:, 0].min())
    return holds(low > 0.0, low, 0.0)


@paper.condition(
    "wide", "the width allows more regions than the bound of Theorem 4.2 (k + 1)", needs=["A1"]
)
def wide(case: Univariate) -> Finding:
    """A network of width k has at most k + 1 regions: below the bound nothing is said."""
    return at_least(case.net.width + 1, region_bound(case.switches) + 1)


@paper.condition("dead", "some neuron is inactive on every point at the start")
def dead(case: Univariate) -> Finding:
    """What U16 is about."""
    count = int((case.run.modes(t=0.0) == Mode.INACTIVE).all(axis=1).sum())
    return at_least(count, 1.0)


@paper.condition("example 1", "the subject is Example 1: x = 4, -4, labels 1, its start")
def is_example(case: Univariate) -> Finding:
    """Two positive points; one constant neuron, one zero neuron."""
    return holds(_same(case, *example_1()))


@paper.condition("counterexample", "the subject is the logistic example: x = 1, -1, one neuron")
def is_counterexample(case: Univariate) -> Finding:
    """Logistic loss below 1/n, one point never seen."""
    logistic = bool(case.subject.runs) and case.subject.runs[0].loss_function.name == "logistic"
    return holds(logistic and _same(case, *logistic_counterexample()))


def separates(run: Trajectory) -> bool:
    """Whether the last network classifies every point of the sample."""
    return bool(np.all(run.data.y * run.final.predict(run.data.X) > 0.0))


def _same(case: Univariate, data: object, net: Network) -> bool:
    given = case.net.flat()
    return (
        np.array_equal(case.data.X, data.X)  # type: ignore[attr-defined]
        and np.array_equal(case.data.y, data.y)  # type: ignore[attr-defined]
        and np.array_equal(given.a, net.a)
        and np.array_equal(given.W, net.W)
    )


@paper.condition("sizes", "runs that separate at 3 sample sizes or more, 20 seeds each (least)")
def sizes(case: Univariate) -> Finding:
    """What a rate in n needs; the figure univariate/fig-generalisation makes such runs."""
    runs = [run for run in case.subject.runs if separates(run)]
    counts = np.unique([run.data.n for run in runs], return_counts=True)[1]
    least = int(counts.min(initial=10**9)) if len(counts) >= 3 else 0
    return at_least(least, 20.0, note=f"{len(counts)} sizes")


@paper.assumption(
    "A9", "Theorem 2.3: the constants of Theorem 3.1 for half of delta (least ratio)", needs=["A3"]
)
def end_to_end(case: Univariate) -> Finding:
    """24, 4200 and 6 double."""
    need = case.required_end_to_end
    ratios = (
        case.net.width / need.width,
        case.sigma_hidden / need.sigma_hidden,
        need.sigma_output / max(case.sigma_output, 1e-300),
    )
    return at_least(min(ratios), 1.0)
