"""One training from a tiny scale, as figures 1, 3 and 4 show it, with what theory says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.engines import descend, flow
from reluflow.limits import SaddleToSaddle
from reluflow.losses import logsumexp
from reluflow.papers.orthogonal.figures.problems import covered, half_epochs
from reluflow.papers.orthogonal.measure import half_times, log_outputs
from reluflow.theory.results import ended
from reluflow.trajectory import Trajectory

SNAPSHOTS = (-1000, 1000, 3000, 31000)  # epochs around the first jump
Measured = dict[str, Any]


def staircase(parameters: Mapping[str, Any], seed: int) -> Measured:
    """One training from a tiny scale by descent or flow: losses, fits, norms, snapshots."""
    n, m, log_scale = parameters["n"], parameters["m"], -parameters["log_inverse_scale"]
    lr = parameters["lr"]
    data, net, process = covered(n, m, log_scale, seed)
    predicted = half_epochs(process, log_scale, lr)
    if parameters["engine"] == "flow":
        predicted = process.sharp_times(log_scale) / lr
    settle = 20.0 / (lr * process.kappa * float(process.norms.min()))
    end = float(np.ceil(predicted[-1] + settle))
    shots = snapshots(predicted, end)
    grid = recorded_epochs(predicted, end, settle, shots)
    if parameters["engine"] == "descent":
        run = descend(data, net, lr=lr, steps=int(end), record=grid)
    else:
        run = ended(flow(data, net, t_end=lr * end, record=lr * grid, rtol=1e-9))
    measured = half_epochs_of(run, process, lr)
    return {
        **_curves(run, data, lr),
        **_shots(run, process, shots, lr, seed),
        "predicted": predicted,
        "leading": process.times * -log_scale / lr,
        "measured": measured,
        "plateaus": process.losses,
        "fitted": np.cumsum([0, *(len(points) for points in process.fitted)]).astype(float),
        "slopes": growth(process, lr, parameters["engine"]),
        "gaps": process.margins * process.norms * process.kappa * -log_scale,
        "group": np.array([_jump_of(process, j) for j in range(m)], dtype=float),
        "minimum": process.minimal_squared_norm,
        "limit": process.squared_norm,
        "reached": run.final.squared_norm,
    }


def growth(process: SaddleToSaddle, lr: float, engine: str) -> Array:
    """Predicted growth of log norms per epoch, a row for each plateau, a column for each neuron."""
    rates = lr * process.race.slopes
    rates = np.log1p(rates) if engine == "descent" else rates
    per_neuron = np.zeros((len(rates), len(process.signs)))
    for g, neurons in enumerate(process.members):
        per_neuron[:, neurons] = rates[:, g, None]
    return np.asarray(per_neuron)


def recorded_epochs(predicted: Array, end: float, settle: float, shots: Array) -> Array:
    """Whole epochs: an even grid, a fine one around each jump, and the snapshots."""
    near = np.concatenate([epoch + np.linspace(-settle, settle, 41) for epoch in predicted])
    grid = np.concatenate([np.linspace(0.0, end, 600), near, shots])
    return np.asarray(np.unique(np.clip(np.round(grid), 0.0, end)))


def snapshots(predicted: Array, end: float) -> Array:
    """Start, middle of the first plateau, and around the first jump (as many as the run has)."""
    first = float(np.round(predicted[0]))
    times = [0.0, np.round(0.5 * first), *(first + offset for offset in SNAPSHOTS)]
    return np.asarray(np.clip(np.array(times), 0.0, end))


def half_epochs_of(run: Trajectory, process: SaddleToSaddle, lr: float) -> Array:
    """Measured half times in epochs; between two epochs by the slope of the logarithm."""
    if run.engine == "flow":
        return np.asarray(half_times(run, process) / lr)
    found = []
    for neurons, Y in zip(process.groups, process.norms, strict=True):
        logs = np.array([logsumexp(2.0 * row) for row in log_outputs(run)[:, neurons]])
        k = int(np.flatnonzero(logs >= np.log(Y / 2.0))[0])
        low, high = int(run.t[k - 1]), int(run.t[k])
        while high - low > 1:
            middle = (low + high) // 2
            above = _height(run, middle, neurons, Y) >= 0.0
            low, high = (low, middle) if above else (middle, high)
        left, right = (_height(run, epoch, neurons, Y) for epoch in (low, high))
        found.append(low - left / (right - left))
    return np.array(found)


def _height(run: Trajectory, epoch: int, neurons: NDArray[np.intp], Y: float) -> float:
    log_square = float(logsumexp(2.0 * run.at(epoch).log_outputs[neurons]))
    return log_square - float(np.log(Y / 2.0))


def _curves(run: Trajectory, data: Dataset, lr: float) -> Measured:
    steps = run.t if run.engine == "descent" else run.t / lr
    nets = [run.network(k) for k in range(len(run.t))]
    outputs = np.array([net.predict(data.X) for net in nets])
    return {
        "epochs": np.asarray(steps, dtype=float),
        "log_loss": np.asarray(run.log_loss, dtype=float),
        "count": (np.abs(outputs) >= 0.5 * np.abs(data.y)).sum(axis=1).astype(float),
        "log_norms": np.array([net.log_norms for net in nets]),
    }


def _shots(
    run: Trajectory, process: SaddleToSaddle, shots: Array, lr: float, seed: int
) -> Measured:
    """Directions seen in a random plane, the predicted ones, and the cosines between them."""
    data = run.data
    rng = np.random.default_rng([seed, 4])
    plane = np.linalg.qr(rng.standard_normal((data.d, 2)))[0]
    masks = run.active(t=0.0) & (run.net.signs[:, None] * data.y > 0.0)
    seen, expected, cosines, log_norms = [], [], [], []
    for k, epoch in enumerate(shots):
        net = run.at(int(epoch)) if run.engine == "descent" else run.at(lr * float(epoch))
        goal = predicted_directions(process, data, masks, 0 if k < 3 else 1)
        seen.append(net.directions @ plane)
        expected.append(goal @ plane)
        cosines.append(np.einsum("ij,ij->i", net.directions, goal))
        log_norms.append(net.log_norms)
    dormant = np.ones(len(masks), dtype=bool)
    dormant[process.groups[0]] = False
    overlapping = masks[:, process.fitted[0]].any(axis=1)
    return {
        "shot_epochs": np.asarray(shots, dtype=float),
        "shot_seen": np.array(seen),
        "shot_expected": np.array(expected),
        "shot_cosines": np.array(cosines),
        "shot_log_norms": np.array(log_norms),
        "dormant": dormant.astype(float),
        "turning": (dormant & overlapping).astype(float),
    }


def predicted_directions(
    process: SaddleToSaddle, data: Dataset, masks: NDArray[np.bool_], plateau: int
) -> Array:
    """Unit directions on a plateau: the unfitted labels of a mask, or the fit of a past jump."""
    left = np.ones(data.n, dtype=bool)
    chosen = masks.copy()
    for group, points in zip(process.groups[:plateau], process.fitted, strict=False):
        left[points] = False
        chosen[group] = np.isin(np.arange(data.n), points)
    jumped = np.concatenate([np.empty(0, dtype=np.intp), *process.groups[:plateau]])
    dormant = np.setdiff1d(np.arange(len(masks)), jumped)
    chosen[dormant] &= left
    directions = (chosen * np.abs(data.y)) @ data.X
    norms = np.linalg.norm(directions, axis=1)
    return np.asarray(directions / np.where(norms > 0.0, norms, 1.0)[:, None])


def _jump_of(process: SaddleToSaddle, j: int) -> int:
    """Number of the jump of a neuron; -1 if it never jumps."""
    return next((k for k, group in enumerate(process.groups) if j in group), -1)
