"""The computations behind the figures: pure functions of parameters and a seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from reluflow.dataset import Dataset
from reluflow.engines import flow
from reluflow.limits import alternating
from reluflow.limits import saddle_to_saddle_from_masks as from_masks
from reluflow.losses import Square
from reluflow.network import Network
from reluflow.networks import balanced, fan_in_uniform
from reluflow.papers.orthogonal.claims.convergence import compact
from reluflow.papers.orthogonal.figures.problems import covered, near_orthogonal
from reluflow.papers.orthogonal.measure import half_times, network_at, parameter_error
from reluflow.theory.results import ended
from reluflow.trajectory import Trajectory

Measured = dict[str, Any]


def norm_of_descent(parameters: Mapping[str, Any], seed: int) -> Measured:
    """Squared norm that plain descent reaches on unit vectors, with limit process and optimum."""
    from reluflow.kernels import orthonormal

    data, net = _norm_problem(parameters, seed)
    flat = net.flat()
    a, c = flat.a.copy(), flat.W.copy()
    stop = 2.0 * data.n * parameters["target"]
    rate = parameters["lr"] / data.n
    epochs, squares = orthonormal.run(a, c, data.y, rate, int(parameters["epochs"]), stop)
    reached = {"squared_norm": float(a @ a + (c * c).sum()), "loss": 0.5 * squares / data.n}
    return {
        **reached,
        **_norms_around(data, net),
        "epochs": float(epochs),
        "reached": bool(squares <= stop),
    }


def norm_of_flow(parameters: Mapping[str, Any], seed: int) -> Measured:
    """The same start by gradient flow; time is counted in epochs of the same length."""
    data, net = _norm_problem(parameters, seed)
    run = flow(data, net, stop_loss=parameters["target"], rtol=1e-7)
    return {
        "status": str(run.status),
        "squared_norm": run.final.squared_norm,
        "loss": float(np.exp(run.log_loss[-1])),
        **_norms_around(data, net),
        "epochs": float(run.t[-1]) / parameters["lr"],
        "reached": bool(run.status in ("stop_loss", "converged")),
    }


def norm_of_limit(parameters: Mapping[str, Any], seed: int) -> Measured:
    """Squared norms of the limit process over its minimum, several random starts."""
    n, m = parameters["n"], parameters["m"]
    rng = np.random.default_rng(seed)
    ratios, scaled, jumps = [], [], []
    for _ in range(parameters["starts"]):
        y = rng.standard_normal(n)
        signs = rng.choice([-1.0, 1.0], size=m)
        process = from_masks(rng.random((m, n), dtype=np.float32) < 0.5, signs, y)
        if process.interpolates:
            ratios.append(process.squared_norm / process.minimal_squared_norm)
            scaled.append(process.squared_norm / (np.abs(y).max() * np.sqrt(n)))
            jumps.append(len(process.times))
    return {
        "ratios": np.array(ratios),
        "scaled": np.array(scaled),
        "jumps": np.array(jumps, dtype=float),
        "interpolating": len(ratios),
    }


def convergence(parameters: Mapping[str, Any], seed: int) -> Measured:
    """Distance of the flow at one scale to the jump process: times, exponents, parameters."""
    n, m, L = parameters["n"], parameters["m"], parameters["log_inverse_scale"]
    data, net, process = covered(n, m, -L, seed)
    run = ended(flow(data, net, rtol=1e-10))
    times = half_times(run, process)
    taus, least = compact(process, parameters["compact"])
    errors = [
        parameter_error(
            network_at(run, float(tau) * L),
            process.saddle(int(np.searchsorted(process.times, tau, side="right"))),
        )
        for tau in taus
    ]
    grid = np.unique(np.concatenate([np.linspace(0.0, 1.2 * process.times[-1], 40), process.times]))
    logs = np.array([network_at(run, float(tau) * L).log_norms for tau in grid])
    return {
        "time_error": float(np.abs(times / L - process.times).max()),
        "sharp_error": float(np.abs(times - process.sharp_times(-L)).max()),
        "exponent_error": float(np.abs(logs / L - process.exponents(grid)).max()),
        "parameter_error": float(max(errors)),
        "delta": least,
        "norm_gap": abs(run.final.squared_norm / process.squared_norm - 1.0),
        "in_order": bool((np.diff(times) > 0.0).all()),
    }


def deformed_staircase(parameters: Mapping[str, Any], seed: int) -> Measured:
    """Flow on nearly orthogonal points with the alternating prediction beside it."""
    n, d, m = parameters["n"], parameters["d"], parameters["m"]
    L = parameters["log_inverse_scale"]
    data, net = near_orthogonal(n, d, m, parameters["strength"], seed)
    guess = alternating(data, net)
    run = ended(flow(data, net.with_scale(-L), rtol=1e-8, record=400))
    taus = np.linspace(0.0, 1.25 * float(guess.times[-1]), 300)
    loss = np.array([_loss(network_at(run, L * float(tau)), data) for tau in taus])
    edges = np.append(0.0, guess.times)
    middles = 0.5 * (edges[:-1] + edges[1:])
    seen = np.array([_loss(network_at(run, L * float(tau)), data) for tau in middles])
    levels = 0.5 * (guess.losses[:-1] + guess.losses[1:])
    off_diagonal = data.gram - np.diag(np.diag(data.gram))
    return {
        "tau": taus,
        "loss": loss,
        "times": guess.times,
        "plateaus": guess.losses,
        "plateaus_of_flow": seen,
        "half_times": np.array([_time_of_loss(run, float(x)) / L for x in levels]),
        "coherence": float(np.abs(off_diagonal).max()),
        "squared_norm": run.final.squared_norm,
        "predicted_norm": guess.squared_norm,
        "interpolates": bool(run.status == "converged"),
    }


def _loss(net: Network, data: Dataset) -> float:
    return Square().value(net.predict(data.X), data.y)


def _time_of_loss(run: Trajectory, level: float) -> float:
    """When the loss first falls to a level, from the records and the run's dense output."""
    below = np.flatnonzero(run.loss <= level)
    if not len(below) or below[0] == 0:
        return float("nan")
    low, high = float(run.t[below[0] - 1]), float(run.t[below[0]])
    while high - low > 1e-6 * high:
        middle = 0.5 * (low + high)
        reached = _loss(run.at(middle), run.data) <= level
        low, high = (low, middle) if reached else (middle, high)
    return high


def _norm_problem(parameters: Mapping[str, Any], seed: int) -> tuple[Dataset, Network]:
    """Unit vectors with Gaussian labels; a small balanced start or the usual fan-in one."""
    n, m = parameters["n"], parameters["m"]
    # labels depend on their own seed alone, so that runs of many widths can share them
    y = np.random.default_rng(parameters["label_seed"]).standard_normal(n)
    if parameters["init"] == "fan_in":
        return Dataset(np.eye(n), y), fan_in_uniform(n, m, seed=seed)
    size = np.log(parameters["lambda0"] / np.sqrt(m))
    return Dataset(np.eye(n), y), balanced(n, m, log_scale=size, directions="sphere", seed=seed)


def _norms_around(data: Dataset, net: Network) -> Measured:
    """What the norm reached is compared with."""
    process = from_masks(net.mantissa.W > 0.0, net.signs, data.y)
    return {
        "start": net.squared_norm,
        "limit": process.squared_norm,
        "limit_interpolates": process.interpolates,
        "optimum": process.minimal_squared_norm,
    }
