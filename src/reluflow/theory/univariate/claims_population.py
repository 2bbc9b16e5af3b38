"""Claims about probabilities and the population (Theorems 3.1, 3.2, Corollary 5.1): U15 - U22."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.densities import Density
from reluflow.geometry import population_error, population_loss, sign_changes
from reluflow.network import Network
from reluflow.theory.univariate.case import LEVEL, Case, is_flow, margin_loss
from reluflow.theory.univariate.constants import least_wrong_cells, printed_loss_floor
from reluflow.theory.univariate.field import field
from reluflow.theory.verdicts import Claims, NotApplicable, Outcome, Unresolved, at_least, at_most
from reluflow.trajectory import Trajectory

claims = Claims()

_CONFIDENCE = 0.95
_SAMPLES = 100_000
_BLOCK = 1 << 22  # pre-activations held at once


@claims("U15", "Theorem 3.1: runs reach loss 1/(2n) with probability 1 - delta: share of the runs")
def _optimisation(case: Case) -> Outcome:
    case.labelled_by_teacher()
    if short := case.unmet_requirements():
        raise NotApplicable(f"the constants of Theorem 3.1 are not met: {'; '.join(short)}")
    if case.start_p_value < LEVEL:
        raise NotApplicable("the start is not normal (A4 fails)")
    goal = -float(np.log(2.0 * case.data.n))
    for run in case.runs:
        margin_loss(run)
        if not is_flow(run):
            raise NotApplicable("is about gradient flow of both layers (A8 fails)")
    reached = [bool(run.log_loss.min() <= goal * (1.0 - 1e-12)) for run in case.runs]
    open_ = sum(not met and not at_rest(run) for met, run in zip(reached, case.runs, strict=True))
    if open_:
        raise Unresolved(f"{open_} of {len(reached)} runs ended above 1/(2n) while still moving")
    return share_at_least(sum(reached), len(reached), 1.0 - case.delta)


def at_rest(run: Trajectory) -> bool:
    """Whether a run ended where the rescaled gradient vanishes: its loss will not fall further."""
    flat = run.final.flat()
    found = field(run.data, flat.a, flat.W, margin_loss(run))
    return found.squared_norm <= 1e-6


def share_at_least(successes: int, trials: int, share: float) -> Outcome:
    """Whether a probability is at least ``share``, by the Clopper-Pearson interval (95 %).

    Examples
    --------
    >>> share_at_least(40, 40, 0.9).verdict.value, share_at_least(2, 40, 0.9).verdict.value
    ('PASS', 'FAIL')
    """
    from scipy.stats import binomtest

    interval = binomtest(successes, trials).proportion_ci(_CONFIDENCE, method="exact")
    note = f"{successes} of {trials}; 95 % interval {interval.low:.3f} to {interval.high:.3f}"
    if interval.low < share <= interval.high:
        raise Unresolved(f"{note}: more runs are needed to decide on {share:g}")
    return at_least(successes / trials, share, note=note)


@claims("U17", "Theorem 3.2: mass of {y N <= 0} that so few live neurons must get wrong")
def _wrong_mass(case: Case) -> Outcome:
    density, teacher = case.known_density(), case.labelled_by_teacher()
    run = case.run
    margin_loss(run)
    net = run.final
    cells = cell_masses(density, teacher)
    alive = live_neurons(net, density)
    least = least_wrong_cells(len(cells), alive)
    if least == 0:
        raise NotApplicable(
            f"the bound is empty: {alive} live neurons can alternate on {len(cells)} stretches"
        )
    # each quantile of the cells is one point a cell; the worst case is wrong in the lightest
    bound = float(np.sort(cells)[:least].sum())
    alpha = net.width / teacher.width
    risk = population_loss(net, teacher, density, margin_loss(run))
    note = (
        f"{alive} of {net.width} neurons live, {len(cells)} stretches, at least {least} wrong; "
        f"population loss {risk:.4g}, printed floor {printed_loss_floor(alpha):.4g}"
    )
    return at_least(mass_not_right(net, teacher, density), bound - 1e-12, note=note)


def cell_masses(density: Density, teacher: Network) -> Array:
    """Masses of the stretches of one label; stretches without mass join their neighbours."""
    low, high = density.support
    cuts = sign_changes(teacher, (low, high))
    masses = np.diff(density.cdf(np.concatenate([[low], cuts, [high]])))
    kept = [float(masses[0])]
    same = masses[0] > 0.0
    for mass in masses[1:]:
        if mass > 0.0 and same:
            kept.append(float(mass))
        else:
            # an empty stretch ends the alternation: the next one has the label before it
            kept[-1] += float(mass)
            same = not same
    return np.array(kept)


def live_neurons(net: Network, density: Density) -> int:
    """Neurons that are not zero everywhere on the support."""
    ends = np.column_stack([np.array(density.support), np.ones(2)])
    return int(np.count_nonzero((net.preactivations(ends) > 0).any(axis=0) & (net.a != 0.0)))


def mass_not_right(net: Network, teacher: Network, density: Density) -> float:
    """Mass of ``{y N <= 0}``: where N = 0 it is wrong for both labels."""
    low, high = density.support
    w, b = net.W[net.W[:, 0] != 0.0].T
    cuts = [sign_changes(net, (low, high)), sign_changes(teacher, (low, high)), -b / w]
    nodes = np.unique(np.concatenate([[low, high], *cuts]))
    nodes = nodes[(nodes >= low) & (nodes <= high)]
    middle = np.column_stack([0.5 * (nodes[1:] + nodes[:-1]), np.ones(len(nodes) - 1)])
    flat = net.flat()
    size = np.maximum(middle @ flat.W.T, 0.0) @ np.abs(flat.a)
    value = flat.predict(middle)
    sign = np.where(np.abs(value) <= 1e-12 * size, 0.0, np.sign(value))
    label = np.where(teacher.predict(middle) > 0.0, 1.0, -1.0)
    return math.fsum(np.diff(density.cdf(nodes))[sign != label])


@claims("U20", "Corollary 5.1: population error falls like 1/n: slope of log error against log n")
def _error_rate(case: Case) -> Outcome:
    density = case.known_density()
    case.labelled_by_teacher()
    groups = errors_by_size(case.runs, density)
    seeds = min((len(errors) for errors in groups.values()), default=0)
    if len(groups) < 3 or seeds < 20:
        raise NotApplicable(
            f"needs runs at 3 sizes n or more with 20 seeds each; there are {len(groups)} sizes "
            f"with at least {seeds} (the figure univariate/fig-generalisation makes them)"
        )
    slope, error = rate(groups)
    note = "C_0 is not known: only the rate can be checked"
    return at_most(abs(slope + 1.0), 0.3, error=error, note=f"slope {slope:.3f}; {note}")


def errors_by_size(runs: tuple[Trajectory, ...], density: Density) -> dict[int, list[float]]:
    """Population errors of separating runs, by sample size."""
    groups: dict[int, list[float]] = defaultdict(list)
    for run in runs:
        teacher = run.data.teacher
        if isinstance(teacher, Network) and np.all(run.data.y * run.final.predict(run.data.X) > 0):
            groups[run.data.n].append(population_error(run.final, teacher, density))
    return dict(groups)


def rate(groups: dict[int, list[float]]) -> tuple[float, float]:
    """Slope of the log mean error against log n, and its standard error from the seeds."""
    sizes = np.log(np.array(sorted(groups), dtype=np.float64))
    means = np.array([np.mean(groups[n]) for n in sorted(groups)])
    if np.any(means <= 0.0):
        raise Unresolved("all errors vanish at some n; there is no logarithm to fit")
    spread = np.array([np.std(groups[n]) / math.sqrt(len(groups[n])) for n in sorted(groups)])
    centred = sizes - sizes.mean()
    weights = centred / (centred @ centred)
    return float(weights @ np.log(means)), float(np.linalg.norm(weights * spread / means))


@claims("U22", "Population error, exact against sampling: distance in standard errors")
def _sampling(case: Case) -> Outcome:
    density, teacher = case.known_density(), case.teacher
    net = case.run.final
    exact = population_error(net, teacher, density)
    x = density.sample(_SAMPLES, 0)
    sampled = float(np.mean(predicts_positive(net, x) != predicts_positive(teacher, x)))
    note = f"error {exact:.6g}, sampled {sampled:.6g} with {_SAMPLES} points"
    if exact == 0.0:
        return at_most(sampled, 0.0, note=note)
    deviation = math.sqrt(exact * (1.0 - exact) / _SAMPLES)
    return at_most(abs(sampled - exact) / deviation, 4.0, note=note)


def predicts_positive(net: Network, x: Array) -> NDArray[np.bool_]:
    """Whether ``N(x) > 0``, in blocks of points: wide networks would need points times neurons."""
    flat = net.flat()
    step = max(1, _BLOCK // flat.width)
    parts = [
        flat.predict(np.column_stack([part, np.ones(len(part))])) > 0.0
        for part in np.split(x, range(step, len(x), step))
    ]
    return np.concatenate(parts)
