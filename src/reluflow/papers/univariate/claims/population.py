"""Claims about probabilities and the population (Theorems 3.1, 3.2, Corollary 5.1): U15 - U22."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.densities import Density
from reluflow.geometry import population_error, population_loss, sign_changes
from reluflow.losses import Square
from reluflow.network import Network
from reluflow.papers.univariate.assumptions import separates
from reluflow.papers.univariate.case import LATE, Univariate
from reluflow.papers.univariate.claims.limit import limit_regions
from reluflow.papers.univariate.constants import least_wrong_cells, loss_floor, region_bound
from reluflow.papers.univariate.field import field
from reluflow.papers.univariate.paper import paper
from reluflow.theory.fits import share, share_at_least
from reluflow.theory.verdicts import Finding, Unresolved, at_least, at_most, holds
from reluflow.trajectory import Status, Trajectory

_DRAWS = 400
_SAMPLES = 100_000
_BLOCK = 1 << 22  # pre-activations held at once


THEOREM_3_1 = ("A3", "A4", "A5a", "A5b", "A5c", "A7", "A8")


@paper.claim(
    "U15",
    "Theorem 3.1: runs reach loss 1/(2n) with probability 1 - delta: share of the runs",
    needs=THEOREM_3_1,
)
def optimisation(case: Univariate) -> Finding:
    """Each run by its own number of points; ones that stopped while moving decide nothing."""
    reached = [reaches(run) for run in case.runs]
    open_ = sum(not met and not at_rest(run) for met, run in zip(reached, case.runs, strict=True))
    if open_:
        raise Unresolved(
            f"{open_} of {len(reached)} runs ended above 1/(2n) while still moving; continue them"
        )
    return share_at_least(sum(reached), len(reached), 1.0 - case.delta)


def reaches(run: Trajectory) -> bool:
    """Whether the loss of a run falls to 1/(2n), n the number of its own points."""
    return bool(run.log_loss.min() <= -float(np.log(2.0 * run.data.n)) * (1.0 - 1e-12))


def at_rest(run: Trajectory) -> bool:
    """Whether a run ended where the rescaled gradient vanishes: its loss will not fall further."""
    loss = run.loss_function
    if isinstance(loss, Square) or run.status in (Status.STATIONARY, Status.CONVERGED):
        return True
    flat = run.final.flat()
    return field(run.data, flat.a, flat.W, loss, run.modes(-1)).squared_norm <= 1e-6


@paper.claim(
    "U25",
    "Theorem 2.3: loss to 0 and at most 32 r + 67 regions with probability 1 - delta: share",
    needs=["A2", "A3", "A4", "A9", "A7", "A8", "density"],
    regime=["late", "outgrown"],
)
def end_to_end(case: Univariate) -> Finding:
    """The main theorem but for its sample size, whose constant C_0 is not known.

    What it says about the population error is noted as the constant that the runs would need.
    """
    r, good, constants = case.teacher.width, 0, []
    bound = region_bound(r)
    for run in case.runs:
        low, high = limit_regions(run, bound) if reaches(run) else (0, 0)
        early = low <= bound or -float(run.log_loss[-1]) < LATE
        if not (reaches(run) or at_rest(run)) or (high > bound and early):
            raise Unresolved(
                f"a run ended above 1/(2n) while still moving, or early, with {low} to {high} "
                "regions; continue it"
            )
        good += reaches(run) and high <= bound
        error = max(population_error(run.final, case.teacher, case.known_density()), 1e-12)
        cost = r * math.log(1.0 / error) + math.log(2.0 / case.delta)
        constants.append(run.data.n * error / cost)
    found = share_at_least(good, len(case.runs), 1.0 - case.delta)
    return replace(found, note=f"{found.note}; C_0 would be {max(constants):.3g}")


@paper.claim(
    "U17",
    "Identity of Theorem 3.2: mass of {y N <= 0} that so few live neurons must get wrong",
    needs=["A3", "density"],
)
def wrong_mass(case: Univariate) -> Finding:
    """A count: it holds for any network, and the loss above it is noted."""
    density, teacher, net = case.known_density(), case.teacher, case.run.final
    cells = cell_masses(density, teacher)
    alive = live_neurons(net, density)
    least = least_wrong_cells(len(cells), alive)
    # each quantile of the cells is one point a cell; the worst case is wrong in the lightest
    bound = float(np.sort(cells)[:least].sum())
    alpha = net.width / teacher.width
    note = f"{alive} of {net.width} neurons live, {len(cells)} stretches, at least {least} wrong"
    loss = case.run.loss_function
    if not isinstance(loss, Square):
        risk = population_loss(net, teacher, density, loss)
        note += f"; population loss {risk:.4g}, stated floor {loss_floor(alpha):.4g}"
    return at_least(mass_not_right(net, teacher, density), bound - 1e-12, note=note)


@paper.claim(
    "U18",
    "Theorem 3.2: a quarter of the neurons starts dead for x > 0 with probability 1/4: share",
    needs=["positive", "A4"],
)
def quarter_dead(case: Univariate) -> Finding:
    """Over draws of the subject's own start; P[Bin(k, 1/4) >= k/4] is at least 1/4 for any k."""
    draws = case.draw(_DRAWS)
    dead = sum(_dead_share(net) >= 0.25 for _, net in draws)
    return share_at_least(dead, len(draws), 0.25)


def _dead_share(net: Network) -> float:
    """Share of the neurons with w < 0 and b < 0: zero on every positive input, for ever."""
    return float((net.mantissa.W < 0.0).all(axis=1).mean())


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
    return int(
        np.count_nonzero((net.preactivations(ends) > 0).any(axis=0) & (net.mantissa.a != 0.0))
    )


def mass_not_right(net: Network, teacher: Network, density: Density) -> float:
    """Mass of ``{y N <= 0}``: where N = 0 it is wrong for both labels."""
    low, high = density.support
    w, b = net.mantissa.W[net.mantissa.W[:, 0] != 0.0].T
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


@paper.claim(
    "U20",
    "Corollary 5.1: population error falls at least like 1/n: slope of log error against log n",
    needs=["A3", "density", "sizes"],
)
def error_rate(case: Univariate) -> Finding:
    """One-sided: a faster fall obeys it; C_0 is not known, so only the rate is checked."""
    slope, error = rate(errors_by_size(case.runs, case.known_density()))
    return at_most(slope, -0.7, 2.0 * error, note=f"slope {slope:.3f} +- {2 * error:.2g}")


def errors_by_size(runs: tuple[Trajectory, ...], density: Density) -> dict[int, list[float]]:
    """Population errors of separating runs, by sample size."""
    groups: dict[int, list[float]] = defaultdict(list)
    for run in runs:
        teacher = run.data.teacher
        if isinstance(teacher, Network) and separates(run):
            groups[run.data.n].append(population_error(run.final, teacher, density))
    return dict(groups)


def rate(groups: dict[int, list[float]]) -> tuple[float, float]:
    """Slope of the log mean error against log n, and its standard error from the seeds."""
    sizes = np.log(np.array(sorted(groups), dtype=np.float64))
    means = np.array([np.mean(groups[n]) for n in sorted(groups)])
    if np.any(means <= 0.0):
        raise Unresolved(
            "all errors vanish at some n; there is no logarithm to fit; more runs decide"
        )
    spread = np.array([np.std(groups[n]) / math.sqrt(len(groups[n])) for n in sorted(groups)])
    centred = sizes - sizes.mean()
    weights = centred / (centred @ centred)
    return float(weights @ np.log(means)), float(np.linalg.norm(weights * spread / means))


@paper.claim(
    "U22",
    "Identity: population error, exact against sampling (share of wrong points)",
    needs=["A3", "density"],
)
def sampling(case: Univariate) -> Finding:
    """The exact integral lies in the interval of a hundred thousand points, however rare errors."""
    density, teacher = case.known_density(), case.teacher
    net = case.run.final
    exact = population_error(net, teacher, density)
    x = density.sample(_SAMPLES, 0)
    wrong = np.count_nonzero(predicts_positive(net, x) != predicts_positive(teacher, x))
    found = share(int(wrong), _SAMPLES)
    inside = found.low <= exact <= found.high
    return holds(inside, found.value, exact, f"error {exact:.6g}; {found.text}")


def predicts_positive(net: Network, x: Array) -> NDArray[np.bool_]:
    """Whether ``N(x) > 0``, in blocks of points: wide networks would need points times neurons."""
    flat = net.flat()
    step = max(1, _BLOCK // flat.width)
    parts = [
        flat.predict(np.column_stack([part, np.ones(len(part))])) > 0.0
        for part in np.split(x, range(step, len(x), step))
    ]
    return np.concatenate(parts)
