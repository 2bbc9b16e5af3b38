"""Computations behind the figures of high-dimensional regression, each a pure function of its
parameters and a seed.

Letters as in `reluflow.papers.highdim`: n points, dimension d, step ``1/(C l1)``, one positive
neuron unless signs are given; ``w*`` is the shortest fit (problem (7)).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.datasets import gaussian
from reluflow.engines import descend, flow
from reluflow.interpolators import single_relu
from reluflow.losses import Square
from reluflow.network import Network
from reluflow.networks import by_preactivations
from reluflow.papers.highdim.draws import (
    Problem,
    assigned_start,
    positive_start,
    random_start,
    step_size,
    trace_of,
)
from reluflow.trajectory import Trajectory

HALF = Square("1/2")
MAX_SECONDS = 300.0
Values = dict[str, Any]


def train(problem: Problem, record: Any = 2) -> Trajectory:
    """Descent to its limit."""
    return descend(
        problem.data,
        problem.net,
        lr=problem.lr,
        steps=math.inf,
        loss=HALF,
        train="hidden",
        record=record,
        max_seconds=MAX_SECONDS,
    )


def gap(parameters: Mapping[str, Any], seed: int) -> Values:
    """Distance of the limit to ``w*``, one neuron from a small positive start.

    ``n``, ``d``, ``constant``; isotropic data of any d, or a ``spectrum`` with all coordinates
    stored, rescaled to trace 1.
    """
    C = float(parameters["constant"])
    if "spectrum" in parameters:
        kind = parameters["spectrum"]
        data = gaussian(
            parameters["n"],
            parameters["d"],
            spectrum=kind if isinstance(kind, str) else tuple(kind),
            coordinates=parameters.get("coordinates", "gaussian"),
            seed=seed,
        )
        trace = trace_of(data)
        assert data.spectrum is not None
        data = Dataset(data.X / math.sqrt(trace), data.y, spectrum=data.spectrum / trace)
        net = by_preactivations(data, 0.02 * float(np.abs(data.y).min()) / C, [1])
        problem = Problem(data, net, step_size(data, C))
    else:
        problem = positive_start(parameters["n"], parameters["d"], constant=C, seed=seed)
    run = train(problem)
    data, off = problem.data, problem.data.y < 0.0
    star, l1 = single_relu(data), trace_of(data)
    kick = problem.lr * l1
    eps = float((problem.net.W @ data.X.T)[0, 0])
    law = math.sqrt(float((((np.abs(data.y[off]) + eps) * kick - eps) ** 2).sum()) / l1)
    return {
        "distance": float(np.linalg.norm(run.final.flat().W - star.W)),
        "length": math.sqrt(star.value),
        "law": law,
        "negatives": float(np.linalg.norm(data.y[off])),
        "positives": float(np.linalg.norm(data.y[~off])),
        "count": int(off.sum()),
        "l1": l1,
        "kick": kick,
        "freeze": int(run.stats["last_change"]),
        "certified": star.certified,
    }


def freeze(parameters: Mapping[str, Any], seed: int) -> Values:
    """Draws that are frozen on the right pattern after one step, and in the end."""
    n, d, C = parameters["n"], parameters["d"], float(parameters["constant"])
    at_once = in_the_end = 0
    for k in range(parameters["draws"]):
        problem = positive_start(n, d, constant=C, eps=0.005, seed=draw_seed(seed, k))
        run = train(problem)
        right = bool((run.active(-1)[0] == (problem.data.y > 0.0)).all())
        at_once += right and run.stats["last_change"] <= 1
        in_the_end += right
    return {"draws": parameters["draws"], "at_once": at_once, "in_the_end": in_the_end}


def draw_seed(seed: int, k: int) -> int:
    """A seed for the k-th draw of a batch."""
    return int(np.random.SeedSequence([seed, k]).generate_state(1, np.uint64)[0] >> np.uint64(1))


def primal(parameters: Mapping[str, Any], seed: int) -> Values:
    """Pre-activations and duals of a run at all recorded iterations.

    ``neurons`` is "one", "two" or "many"; ``regime`` "high" (d >> n), "moderate" (d near n) or
    "random" (a random start in high dimension).
    """
    problem = primal_problem(parameters, seed)
    run = train(problem, record=400)
    data, net = problem.data, problem.net.flat()
    P0 = net.W @ data.X.T
    B0 = np.linalg.solve(data.gram, P0.T).T
    B = np.asarray(run.kept["dual"])
    return {
        "t": run.t,
        "P": P0 + B @ data.gram,
        "B": (B0 + B) * trace_of(data),
        "limit": _limit(run),
        "y": data.y,
        "signs": net.a,
        "event_t": run.events["t"],
        "event_neuron": run.events["neuron"],
        "event_point": run.events["point"],
        "changes": int(run.stats["changes"]),
        "freeze": int(run.stats["last_change"]),
        "settles": run.stats["frozen_from"] is not None,
        "status": str(run.status),
    }


def _limit(run: Trajectory) -> Array:
    """Pre-activations of the limit (m, n), positive on active points only."""
    P = run.final.flat().W @ run.data.X.T
    return np.asarray(np.where(run.active(-1), P, np.minimum(P, 0.0)))


SIGNS = {"one": (1.0,), "two": (1.0, -1.0), "many": (1.0, 1.0, -1.0, -1.0)}


def primal_problem(parameters: Mapping[str, Any], seed: int) -> Problem:
    """The problem of `primal`."""
    n, d, regime = parameters["n"], parameters["d"], parameters["regime"]
    s, C = SIGNS[parameters["neurons"]], float(parameters["constant"])
    if regime == "random":
        base = random_start(n, d, parameters["sigma"], constant=C, seed=seed)
        rng = np.random.default_rng([seed, 2])
        W = rng.normal(size=(len(s), base.data.d)) * parameters["sigma"] / math.sqrt(d)
        return Problem(base.data, Network(s, W), base.lr)
    if len(s) > 2:
        return assigned_start(n, d, s, eps=0.15, constant=C, seed=seed)
    return positive_start(n, d, constant=C, eps=0.02, signs=s, seed=seed)


def step(parameters: Mapping[str, Any], seed: int) -> Values:
    """Distance of the limits for several steps, and of the flow, to ``w*`` and to each other."""
    problem = positive_start(parameters["n"], parameters["d"], eps=1e-3, seed=seed)
    data = problem.data
    star, l1 = single_relu(data), trace_of(data)
    continuous = flow(data, problem.net, loss=HALF, train="hidden", record=2)
    goal, size = continuous.final.flat().W, math.sqrt(star.value)
    constants = np.array(parameters["constants"], dtype=np.float64)
    to_star, to_flow, changes = [], [], []
    for C in constants:
        run = train(Problem(data, problem.net, 1.0 / (C * l1)))
        W = run.final.flat().W
        to_star.append(float(np.linalg.norm(W - star.W)) / size)
        to_flow.append(float(np.linalg.norm(W - goal)) / size)
        changes.append(int(run.stats["changes"]))
    off = data.y < 0.0
    return {
        "constants": constants,
        "to_star": np.array(to_star),
        "to_flow": np.array(to_flow),
        "changes": np.array(changes),
        "law": float(np.linalg.norm(data.y[off])) / math.sqrt(l1) / size,  # times 1/C
        "flow_gap": float(np.linalg.norm(goal - star.W)) / size,
        "flow_status": str(continuous.status),
    }


def revival(parameters: Mapping[str, Any], seed: int) -> Values:
    """Positive points that start inactive under a random start, and those that end active."""
    n, d, scale = parameters["n"], parameters["d"], float(parameters["scale"])
    asleep = awake = 0
    worst = 0.0
    for k in range(parameters["draws"]):
        problem = random_start(
            n, d, scale / math.sqrt(d), n_positive=parameters["n_positive"], seed=draw_seed(seed, k)
        )
        run, y = train(problem), problem.data.y
        start, p = run.active(t=0.0)[0], _limit(run)[0]
        asleep += int(((y > 0.0) & ~start).sum())
        awake += int(((y > 0.0) & ~start & (p > 0.0)).sum())
        risk = 0.5 * float(((np.maximum(p, 0.0) - y) ** 2).sum())
        off = 0.5 * float((y[p <= 0.0] ** 2).sum())
        worst = max(worst, abs(risk - off) / (0.5 * float(y @ y)))
    return {"asleep": asleep, "awake": awake, "identity": worst}


def coverage(parameters: Mapping[str, Any], seed: int) -> Values:
    """Random starts of k neurons a sign: how many cover all points, how many runs fit them all.

    ``draws`` are trained; ten times as many starts are looked at.
    """
    n, d, k = parameters["n"], parameters["d"], parameters["k"]
    s, draws = np.repeat([1.0, -1.0], k), parameters["draws"]
    covered = fitted = 0
    for number in range(10 * draws):
        base = random_start(n, d, 0.5, constant=2.0 * k, seed=draw_seed(seed, number))
        rng = np.random.default_rng([seed, number])
        net = Network(s, rng.normal(size=(2 * k, base.data.d)) * 0.5 / math.sqrt(d))
        active = net.W @ base.data.X.T > 0.0
        covered += bool((active & (s[:, None] * base.data.y > 0.0)).any(axis=0).all())
        if number < draws:
            fitted += str(train(Problem(base.data, net, base.lr)).status) == "converged"
    return {"draws": draws, "starts": 10 * draws, "covered": covered, "fitted": fitted}
