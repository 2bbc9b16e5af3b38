"""Computations behind the figures: tasks of a sweep, pure functions of parameters and a seed.

Data and start of a trial come from two streams of its seed, so the same trial has the same points
and neurons at every scale.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow import datasets, geometry, networks
from reluflow.dataset import Dataset
from reluflow.engines import descend, flow
from reluflow.limits import bundle, yardsticks
from reluflow.limits.bundle import failures
from reluflow.losses import Square
from reluflow.network import Network
from reluflow.trajectory import Trajectory

Numbers = dict[str, Any]
STOP_MSE = 1e-9
LR = 0.01  # of the authors, on the mean squared error
ITERATIONS = 2e7  # of the authors at most
DIRECT = 1e-10  # neurons share their steps: angles of directions are right to 1e-16
CARRYING = 1e-3  # share of the largest norm from which a neuron counts at the end
RTOLS = (1e-2, 1e-4, 1e-6)
COARSE_POWER = 0  # at scales of 1 and above angles are of order one: two digits show them


def trial(parameters: Mapping[str, Any], seed: int) -> tuple[Dataset, Network]:
    """Data and network of a trial; the scale is ``4 ** parameters["power"]``."""
    rng = np.random.default_rng([seed, 0])
    d = int(parameters["d"])
    if parameters["scheme"] == "cone":
        data = datasets.cone(d, d, half_angle=float(parameters["half_angle"]), seed=rng)
    else:
        make = datasets.centred if parameters["scheme"] == "centred" else datasets.uncentred
        data = make(d, seed=rng)
    scale = float(parameters["power"]) * math.log(4.0)
    start = np.random.default_rng([seed, 1])
    return data, networks.balanced(d, int(parameters["width"]), log_scale=scale, seed=start)


def train(data: Dataset, net: Network, parameters: Mapping[str, Any], **options: Any) -> Trajectory:
    """Train as the authors do, on the mean squared error, by the flow or by their descent."""
    settings = {"loss": Square("1/n"), "stop_loss": STOP_MSE, **options}
    if parameters.get("engine", "flow") == "descent":
        return descend(data, net, lr=LR, steps=ITERATIONS, **settings)
    for rtol in RTOLS if parameters["power"] >= COARSE_POWER else RTOLS[1:]:
        run = flow(data, net, t_end=LR * ITERATIONS, rtol=rtol, **settings)
        if run.status.is_asked_for:  # coarse steps that fail are repeated with finer ones
            break
    return run


def active(data: Dataset, net: Network) -> NDArray[np.intp]:
    """J+ of a start: positive output weight, active on some point (its plane does not count)."""
    return np.flatnonzero((net.signs > 0) & (net.mantissa.W @ data.X.T > 0).any(axis=1))


def final_angles(parameters: Mapping[str, Any], seed: int) -> Numbers:
    """Largest and mean angle at the end of training, nuclear norm, and the closed-form slope.

    The slope is nan where inner products are not all positive.
    """
    data, net = trial(parameters, seed)
    run = train(data, net, parameters, record=20)
    chosen = active(data, net)
    log_slope = math.nan if failures(data, net) else bundle(data, net).log_angle_slope
    return {
        "log_angle": _log_angle(run, chosen),
        "mean_angle": geometry.mean_angle(run.final, chosen),
        "nuclear_norm": geometry.nuclear_norm(run.final),
        "squared_norm": run.final.squared_norm,
        "log_slope": log_slope,
        "status": str(run.status),
        "t": float(run.t[-1]) * (LR if run.engine == "descent" else 1.0),
        "log_loss": float(run.log_loss[-1]),
    }


def _log_angle(run: Trajectory, chosen: NDArray[np.intp]) -> float:
    """Logarithm of the largest angle; conserved products below what directions can tell."""
    angle = geometry.max_angle(run.final, chosen)
    if angle > DIRECT or run.engine == "descent":
        return math.log(angle) if angle > 0 else -math.inf
    return run.log_max_angle(float(run.t[-1]), chosen.tolist())


def moments(run: Trajectory, count: int) -> Iterator[tuple[float, Network]]:
    """Iterations of the authors and networks: geometric in time for the flow, records of descent.

    The flow takes few, long steps; a smooth curve needs moments between them.
    """
    if run.engine == "descent":
        for k in range(len(run.t)):
            yield float(run.t[k]), run.network(k)
        return
    end = float(run.t[-1])
    yield 0.0, run.net
    for t in np.geomspace(min(LR, 0.5 * end), end, count)[:-1]:
        yield float(t) / LR, run.at(float(t))
    yield end / LR, run.network(len(run.t) - 1)


def losses(parameters: Mapping[str, Any], seed: int) -> Numbers:
    """Training and test loss through training, in iterations of the authors."""
    data, net = trial(parameters, seed)
    run = train(data, net, parameters, record=300)
    inputs = np.random.default_rng([seed, 2]).standard_normal((64, data.d))
    assert isinstance(data.teacher, np.ndarray)
    labels = np.maximum(inputs @ data.teacher, 0.0)
    loss = Square("1/n")
    rows = [
        (
            iteration,
            loss.log_value(now.predict(data.X), data.y),
            float(np.mean((now.predict(inputs) - labels) ** 2)),
        )
        for iteration, now in moments(run, 250)
    ]
    iterations, log_loss, test_loss = (np.array(column) for column in zip(*rows, strict=True))
    return {
        "iterations": iterations,
        "log_loss": log_loss,
        "test_loss": test_loss,
        "growth": float(np.linalg.norm(data.y @ data.X / data.n)),
        "status": str(run.status),
    }


def coordinates(parameters: Mapping[str, Any], seed: int) -> Numbers:
    """Coordinates of v* - v along the eigenvectors of the data, norms of the network, in time.

    The flow runs to its limit: a loss of 1e-9 would leave the last coordinates unlearned.
    """
    data, net = trial(parameters, seed)
    run = flow(data, net, loss=Square("1/n"), rtol=1e-8, record=100)
    chosen = active(data, net)
    teacher = np.asarray(data.teacher)
    vectors = np.linalg.svd(data.X / np.sqrt(data.n))[2]
    vectors = vectors * np.where(vectors @ teacher < 0, -1.0, 1.0)[:, None]
    iterations, left, nuclear, norms = [], [], [], []
    for iteration, now in moments(run, 300):
        flat = now.flat()
        iterations.append(iteration)
        left.append(vectors @ (teacher - flat.a[chosen] @ flat.W[chosen]))
        nuclear.append(geometry.nuclear_norm(flat))
        norms.append(flat.squared_norm)
    return {
        "iterations": np.array(iterations),
        "left": np.array(left),
        "target": vectors @ teacher,
        "nuclear_norm": np.array(nuclear),
        "squared_norm": np.array(norms),
        "is_positive": float(data.gram.min()) > 0.0,
        "status": str(run.status),
    }


def two_teachers(parameters: Mapping[str, Any], seed: int) -> Numbers:
    """Largest angle in each of the two groups, squared norm, and the loss through training."""
    rng = np.random.default_rng([seed, 0])
    data = datasets.two_teachers(
        int(parameters["d"]),
        rho=float(parameters["rho"]),
        uncentred=bool(parameters["uncentred"]),
        seed=rng,
    )
    scale = float(parameters["power"]) * math.log(4.0)
    start = np.random.default_rng([seed, 1])
    net = networks.balanced(data.d, int(parameters["width"]), log_scale=scale, seed=start)
    run = train(data, net, parameters, record=300)
    angles = []
    for sign in (1.0, -1.0):
        own = (net.mantissa.W @ data.X[np.sign(data.y) == sign].T > 0).any(axis=1)
        group = np.flatnonzero((net.signs == sign) & own)
        angles.append(run.log_max_angle(float(run.t[-1]), group.tolist()) if len(group) > 1 else 0)
    return {
        "log_angle_positive": float(angles[0]),
        "log_angle_negative": float(angles[1]),
        "squared_norm": run.final.squared_norm,
        "iterations": run.t / LR,
        "log_loss": run.log_loss,
        "status": str(run.status),
    }


def rank_shares(parameters: Mapping[str, Any], seed: int) -> Numbers:
    """How many random data sets of a cone have V > 1, and whether the rank-2 network agrees.

    V is compared with 1 exactly; on the first few data sets the network of the theorem's proof is
    built and must beat rank 1 exactly when V > 1.
    """
    from reluflow.interpolators import rank_versus_norm
    from reluflow.interpolators.half_network import bend_exactly

    d, count = int(parameters["d"]), int(parameters["count"])
    rng = np.random.default_rng([seed, 0])
    above = undecided = agreed = compared = 0
    for k in range(count):
        data = datasets.cone(d, d, half_angle=float(parameters["half_angle"]), seed=rng)
        teacher = np.asarray(data.teacher)
        value = bend_exactly(data.X, np.linalg.solve(data.X.T, teacher)).value
        above += value > 1.0 + 1e-9
        undecided += abs(value - 1.0) <= 1e-9
        if k < int(parameters["compared"]):
            answer = rank_versus_norm(data)
            network = answer.counterexample
            beats = network is not None and network.squared_norm < 2.0 - 1e-12
            agreed += beats == (value > 1.0)
            compared += 1
    return {"above": above, "undecided": undecided, "agreed": agreed, "compared": compared}


def wider_cone(parameters: Mapping[str, Any], seed: int) -> Numbers:
    """What training ends in on points within a cone of any angle below pi/2 around the teacher.

    Angles are between the neurons that carry the network at the end: beyond pi/4 some of those that
    started active may be left behind small.
    """
    data, net = trial(parameters, seed)
    run = flow(data, net, stop_loss=1e-16, max_events=100_000, record=20)
    norms = run.final.log_norms
    carrying = np.flatnonzero(norms > norms.max() + math.log(CARRYING))
    log_angle = run.log_max_angle(float(run.t[-1]), carrying.tolist())
    kinds = run.events["kind"]
    return {
        "log_angle": float(max(log_angle, -1e4)),
        "log_loss": float(max(run.log_loss[-1], -1e4)),
        "squared_norm": run.final.squared_norm,
        "nuclear_norm": geometry.nuclear_norm(run.final),
        "is_positive": float(data.gram.min()) > 0.0,
        "is_monotone": yardsticks(data, net).valid,
        "slides": int((kinds == "slide").sum()),
        "carrying": len(carrying),
        "largest_angle": float(np.arccos((data.X @ np.asarray(data.teacher)).min())),
        "status": str(run.status),
    }
