"""The computations behind the univariate figures: pure functions of parameters and a seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.geometry import (
    linear_regions,
    margin,
    population_error,
    population_loss,
    resolved_regions,
)
from reluflow.interpolators import max_margin
from reluflow.network import Network
from reluflow.papers.univariate.claims.population import live_neurons, mass_not_right
from reluflow.papers.univariate.constants import example_1
from reluflow.papers.univariate.figures import along
from reluflow.papers.univariate.figures.problems import (
    LOSSES,
    MAX_SECONDS,
    density,
    outcome,
    sample,
    start,
    teacher,
    train,
)
from reluflow.trajectory import Trajectory

Values = dict[str, Any]


def history(parameters: Mapping[str, Any], seed: int) -> Values:
    """Regions, margins, alignment and KKT residuals along one run."""
    run = train(parameters, seed)
    return {**outcome(run), **along.history(run), "optimum": max_margin(run.data).margin}


def ending(parameters: Mapping[str, Any], seed: int) -> Values:
    """The limit of one run: regions, whether they are settled, population error, margin."""
    run = train(parameters, seed)
    found = outcome(run)
    values = {**found, "regions": -1, "resolved": False, "error": np.nan, "margin": np.nan}
    if found["separated"]:
        values["error"] = population_error(run.final, teacher(parameters["r"]), density())
        values["margin"] = margin(run.data, run.final)
        counted = resolved_regions(run)
        values |= {"regions": counted.count, "resolved": counted.resolved}
        values |= {"fewest": int(counted.table[0].min()), "most": int(counted.table[0].max())}
    return values


def portrait(parameters: Mapping[str, Any], seed: int) -> Values:
    """The function of one run at several loss levels, its kinks, breakpoints and slides."""
    run = train(parameters, seed)
    return {**outcome(run), **portrait_of(run, parameters["levels"])}


def portrait_of(run: Trajectory, levels: list[float]) -> Values:
    """The same for a run that is there."""
    ends = run.data.X[:, 0].min(), run.data.X[:, 0].max()
    pad = 0.15 * (ends[1] - ends[0])
    end = -float(run.log_loss[-1])
    reached = [level for level in levels if -run.log_loss[0] < level < end * (1 - 1e-9)] + [end]
    nets = [run.at(log_loss=-level) for level in reached[:-1]] + [run.final]
    positions, jumps = along.kinks_of(run.final)
    x = np.unique(np.concatenate([np.linspace(ends[0] - pad, ends[1] + pad, 401), positions]))
    x = x[(x >= ends[0] - pad) & (x <= ends[1] + pad)]
    F, places, shares = along.breakpoints(run)
    slide_F, slide_x = along.slides(run)
    return {
        "x": x,
        "levels": np.array(reached),
        "values": np.array([along.function_values(net, x) for net in nets]),
        "kinks": positions,
        "jumps": jumps,
        "points": run.data.X[:, 0],
        "labels": run.data.y,
        "F": F,
        "breakpoints": places,
        "shares": shares,
        "slide_F": slide_F,
        "slide_x": slide_x,
    }


def lazy(parameters: Mapping[str, Any], seed: int) -> Values:
    """Movement of the hidden layer when the loss first is 1/(2n), and regions then and later.

    ``sigma`` is the hidden deviation; the output deviation is the largest that Theorem 3.1 allows.
    """
    from reluflow.engines import flow
    from reluflow.networks import gaussian

    k, sigma = parameters["width"], parameters["sigma"]
    output = 1.0 / (4.0 * k * sigma * np.log(6.0 * k / 0.1))
    data = sample(parameters, seed)
    rng = np.random.default_rng([seed, 1])
    net = gaussian(2, k, sigma_hidden=sigma, sigma_output=output, seed=rng)
    goal = -float(np.log(2.0 * data.n))
    # the part of the start that never moves fades only once |theta|^2 is far above its norm
    level = parameters["level"] * max(1.0, sigma**2)
    run = flow(
        data,
        net,
        loss=LOSSES["exponential"],
        stop_log_loss=-float(level),
        max_seconds=MAX_SECONDS,
    )
    found = {**outcome(run), "reached": bool(run.log_loss.min() <= goal)}
    if not found["reached"]:
        return {**found, "movement": np.nan, "displacement": np.nan, "then": -1, "later": -1}
    then = run.at(log_loss=goal)
    counts = [linear_regions(end, along.TOL_X, along.TOL_JUMPS[1]) for end in (then, run.final)]
    return {**found, **_movement(net, then), "then": counts[0], "later": counts[1]}


def _movement(before: Network, after: Network) -> Values:
    old, new = before.flat().W, after.flat().W
    bends = (old[:, 0] != 0.0) & (new[:, 0] != 0.0)
    shift = np.abs(new[bends, 1] / new[bends, 0] - old[bends, 1] / old[bends, 0])
    return {
        "movement": float(np.linalg.norm(new - old) / np.linalg.norm(old)),
        "displacement": float(np.median(shift)),
    }


def cells(parameters: Mapping[str, Any], seed: int) -> Values:
    """Theorem 3.2: alternating cells on the positive axis, a start of width k.

    ``cells`` is M, ``per_cell`` the number of points in each; the teacher has M - 1 sign changes.
    """
    from reluflow.datasets import sample_1d, teacher_1d
    from reluflow.densities import union
    from reluflow.engines import flow
    from reluflow.networks import gaussian

    M, k = parameters["cells"], parameters["width"]
    # cells of length 1/2 around 1, ..., M, brought into (0, 1] to keep the problem of unit size
    law = union([((i - 0.25) / M, (i + 0.25) / M) for i in range(1, M + 1)])
    target = teacher_1d([(i + 0.5) / M for i in range(1, M)])
    rng = np.random.default_rng([seed, 0])
    data = sample_1d(target, parameters["per_cell"] * M, density=law, seed=rng)
    sigma = parameters["sigma"]
    rng = np.random.default_rng([seed, 1])
    net = gaussian(2, k, sigma_hidden=sigma, sigma_output=parameters["output"], seed=rng)
    threshold = -float(np.log(data.n))
    run = flow(
        data,
        net,
        loss=LOSSES["exponential"],
        t_end=parameters["t_end"],
        stop_log_loss=threshold - 1e-9,
        max_seconds=MAX_SECONDS,
    )
    return {
        **outcome(run),
        "reached": bool(run.log_loss.min() < threshold),
        "dead": int(np.count_nonzero((net.mantissa.W < 0.0).all(axis=1))),
        "alive": live_neurons(run.final, law),
        "mass": mass_not_right(run.final, target, law),
        "risk": population_loss(run.final, target, law, LOSSES["exponential"]),
    }


def basin(parameters: Mapping[str, Any], seed: int) -> Values:
    """Example 1 with its second neuron moved off zero; how large the margin becomes."""
    from reluflow.engines import flow

    data, net = example_1()
    angle = 2.0 * np.pi * float(np.random.default_rng(seed).random())
    size = parameters["size"]
    a, W = net.a.copy(), net.W.copy()
    W[1] = size * np.cos(angle), size * np.sin(angle)
    a[1] = size
    run = flow(
        data,
        Network(a, W),
        loss=LOSSES["exponential"],
        stop_log_loss=-float(parameters["level"]),
        max_seconds=MAX_SECONDS,
    )
    return {**outcome(run), "angle": angle, "margin": margin(data, run.final)}


def both_losses(parameters: Mapping[str, Any], seed: int) -> Values:
    """The same start trained with both losses: how far apart their directions are at equal F."""
    runs = {name: train(parameters, seed, loss=name) for name in LOSSES}
    first, second = runs.values()
    low = max(-float(run.log_loss[0]) for run in runs.values())
    high = min(-float(run.log_loss[-1]) for run in runs.values())
    levels = np.geomspace(max(0.2, low * 1.001), high, 25)[:-1]
    apart = [_apart(first, second, float(F)) for F in levels]
    x = np.linspace(-1.15, 1.15, 301)
    values: Values = {"levels": levels, "apart": np.array(apart), "x": x}
    for name, run in runs.items():
        found = outcome(run)
        values |= {f"{name}_{key}": value for key, value in found.items()}
        values[f"{name}_values"] = along.function_values(run.final, x)
        values[f"{name}_margin"] = margin(run.data, run.final)
        right = found["separated"]
        values[f"{name}_regions"] = resolved_regions(run).count if right else -1
    return {**values, "points": first.data.X[:, 0], "labels": first.data.y}


def _apart(first: Trajectory, second: Trajectory, F: float) -> float:
    units = [_unit(run.at(log_loss=-F)) for run in (first, second)]
    return float(np.linalg.norm(units[0] - units[1]))


def _unit(net: Network) -> Array:
    flat = net.flat()
    theta = np.concatenate([flat.a, flat.W.ravel()])
    return np.asarray(theta / np.linalg.norm(theta))


def steps(parameters: Mapping[str, Any], seed: int) -> Values:
    """Descent with the loss-based step ``alpha``, beside the flow at the same loss.

    ``chatter`` is the largest angle between a kink that the flow holds on a point and that point's
    plane, over the last records; ``drift`` that of the balance over ``|theta|^2``.
    """
    from reluflow.engines import LossBased, descend, flow

    data, net = sample(parameters, seed), start(parameters, seed)
    loss, goal = LOSSES["exponential"], -float(parameters["level"])
    alpha = parameters["alpha"]
    guide = flow(data, net, loss=loss, stop_log_loss=goal, max_seconds=MAX_SECONDS)
    run = descend(
        data,
        net,
        lr=LossBased(alpha),
        steps=int(parameters["clock"] / alpha),
        loss=loss,
        stop_log_loss=goal,
        max_seconds=MAX_SECONDS,
    )
    drift = np.abs(run.final.balance - net.balance).max() / run.final.squared_norm
    return {
        **outcome(run),
        "reached": bool(run.log_loss[-1] <= goal),
        "drift": float(drift),
        "apart": float(np.linalg.norm(_unit(run.final) - _unit(guide.final))),
        "chatter": _chatter(data, run, guide.final),
    }


def _chatter(data: Dataset, run: Trajectory, guide: Network) -> float:
    def sine(net: Network) -> Array:
        return np.asarray(
            np.abs(data.X @ net.directions.T) / np.linalg.norm(data.X, axis=1)[:, None]
        )

    held = (sine(guide) < 1e-9) & (np.abs(guide.flat().a) > 1e-3 * np.abs(guide.flat().a).max())
    if not held.any():
        return float("nan")
    last = range(max(0, len(run.t) - 5), len(run.t))
    return max(float(sine(run.network(k))[held].max()) for k in last)
