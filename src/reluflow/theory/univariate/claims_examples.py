"""Claims about worked examples and counts: U13, U14, U18, U19, U21."""

from __future__ import annotations

import numpy as np

from reluflow.datasets.univariate import teacher_1d
from reluflow.geometry import linear_regions, sign_changes
from reluflow.interpolators.max_margin import max_margin
from reluflow.losses import Exponential, Logistic
from reluflow.network import Network
from reluflow.theory.univariate.case import Case
from reluflow.theory.univariate.constants import (
    capacity_example,
    example_1,
    example_1_log_time,
    example_1_optimum,
    logistic_counterexample,
    quarter_tail,
)
from reluflow.theory.verdicts import Claims, NotApplicable, Outcome, Verdict, at_least, at_most
from reluflow.trajectory import Trajectory

claims = Claims()

# loss 1e-10000
_DEEP = -1e4 * float(np.log(10.0))


@claims("U13", "Example 1 down to loss 1e-10000: largest error of norm, optimum and log t")
def _closed_form(case: Case) -> Outcome:
    data, net = example_1()
    optimum = abs(max_margin(data).value - example_1_optimum())
    errors = {"the optimum 4/sqrt(17)": optimum}
    for loss in (Exponential(), Logistic()):
        run = case.subject.flow(data, net, loss=loss, stop_log_loss=_DEEP)
        errors |= {f"{name}, {loss.name} loss": error for name, error in _example(run).items()}
    worst = max(errors, key=lambda name: errors[name])
    return at_most(errors[worst], 1e-6, note=f"worst: {worst}")


def _example(run: Trajectory) -> dict[str, float]:
    """Errors of the norm (2 when margins are 1), the direction, the regions and the times."""
    flat = run.final.flat()
    q = float((flat.predict(run.data.X) * run.data.y).min())
    logistic = run.loss_function.name == "logistic"
    squares = [float(run.network(k).flat().a[0] ** 2) for k in range(1, len(run.t))]
    times = [example_1_log_time(square, logistic=logistic) for square in squares]
    moved = np.abs(flat.W[:, 0]).max() + np.abs(flat.W[1]).max() + abs(flat.a[1])
    # slopes that are rounding would put a kink beyond 1e12
    small = np.abs(flat.W) <= 1e-12 * np.abs(flat.W).max()
    rounded = Network(flat.a, np.where(small, 0.0, flat.W))
    return {
        "norm": abs(flat.squared_norm / q - 2.0),
        "direction": float(moved),
        "regions": abs(linear_regions(rounded) - 1.0),
        "log t": float(np.abs(run.log_t[1:] - times).max()),
    }


@claims("U14", "Logistic loss below 1/n does not separate: limit of the loss, against log(2)/2")
def _logistic_threshold(case: Case) -> Outcome:
    data, net = logistic_counterexample()
    loss = Logistic()
    start = loss.value(net.predict(data.X), data.y)
    if not start < 1.0 / data.n:
        return Outcome(Verdict.FAIL, start, 1.0 / data.n, "the example does not start below 1/n")
    run = case.subject.flow(data, net, loss=loss)
    note = f"L(0) = {start:.4f} < 1/n, limit {run.loss[-1]:.8f}, status `{run.status}`"
    return at_most(abs(float(run.loss[-1]) - 0.5 * float(np.log(2.0))), 1e-6, note=note)


@claims("U18", "P[Bin(k, 1/4) >= k/4] >= 1/4 for every width up to this one: smallest")
def _quarter(case: Case) -> Outcome:
    widths = range(1, min(case.start.width, 4000) + 1)
    return at_least(min(quarter_tail(k) for k in widths), 0.25 - 1e-12)


@claims("U19", "Width m changes sign at most m + 1 times, and 5 times for some m = 4")
def _capacity(case: Case) -> Outcome:
    example, places = capacity_example()
    signs = np.sign(example.predict(np.column_stack([places, np.ones(len(places))])))
    attained = len(sign_changes(example))
    if attained != 5 or not np.array_equal(signs, [1, -1, 1, -1, 1, -1]):
        return Outcome(
            Verdict.FAIL, attained, 5, "the width-4 example does not change sign 5 times"
        )
    if not case.is_line:
        raise NotApplicable("needs points (x, 1) on the line (A1 fails)")
    nets = [case.subject.net, *(run.final for run in case.subject.runs)]
    excess = max(len(sign_changes(net)) - net.width for net in nets)
    return at_most(excess, 1, note="sign changes minus width; the width-4 example attains 5")


@claims("U21", "Teacher with chosen zeros: sign changes where they were asked for, and no others")
def _teacher(case: Case) -> Outcome:
    zeros, source = _zeros(case)
    worst = 0.0
    for label in (-1, 1):
        for strict in (False, True):
            built = teacher_1d(zeros, first_label=label, strict=strict)
            found = sign_changes(built)
            if len(found) != len(zeros):
                note = f"{len(zeros)} zeros asked for ({source}), {len(found)} found"
                return Outcome(Verdict.FAIL, len(found), len(zeros), note)
            worst = max(worst, float(np.abs(found - zeros).max(initial=0.0)))
    size = max(1.0, float(np.abs(zeros).max(initial=0.0)))
    gaps = np.diff(zeros)
    note = f"{len(zeros)} zeros, {source}"
    note += f", at least {gaps.min():.4g} apart" if len(gaps) else ""
    return at_most(worst, 1e-12 * size, note=note)


def _zeros(case: Case) -> tuple[np.ndarray, str]:
    """Sign changes of the teacher; without one, midpoints between unlike neighbours."""
    try:
        return sign_changes(case.teacher), "those of the teacher"
    except NotApplicable:
        data = case.data
    order = np.argsort(data.X[:, 0], kind="stable")
    x, y = data.X[order, 0], data.y[order]
    switch = np.flatnonzero(y[1:] != y[:-1])
    return 0.5 * (x[switch] + x[switch + 1]), "between points of unlike labels"
