"""Weights and events as arrays for the page."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.network import Network
from reluflow.trajectory import EVENT_KINDS, Trajectory

LOW = -3e38  # the logarithm of a zero weight: single floats end there, and the page clips it


def of_records(run: Trajectory) -> dict[str, NDArray[Any]]:
    """All weights at all records."""
    a, W = np.asarray(run.kept["a"]), np.asarray(run.kept["W"])
    size = np.linalg.norm(W, axis=2)
    with np.errstate(divide="ignore"):
        log_w = np.log(size) + run.kept["log_scale"]
        log_a = np.log(np.abs(a)) + run.kept["log_scale_out"]
    u = W / np.where(size > 0, size, 1.0)[:, :, None]
    return {
        "log_t": run.log_t.astype(np.float64),
        "log_loss": run.log_loss.astype(np.float64),
        "u": u.astype(np.float32),
        "log_w": np.maximum(log_w, LOW).astype(np.float32),
        "log_a": np.maximum(log_a, LOW).astype(np.float32),
        "sign": np.sign(a).astype(np.int8),
    }


def of_events(run: Trajectory, most: int) -> dict[str, NDArray[Any]]:
    """The first events, and the modes before them."""
    events = run.events[:most]
    kinds = {kind: k for k, kind in enumerate(EVENT_KINDS)}
    return {
        "event_log_t": events["log_t"].astype(np.float64),
        "event_neuron": events["neuron"].astype(np.int32),
        "event_point": events["point"].astype(np.int32),
        "event_kind": np.array([kinds[k] for k in events["kind"].tolist()], dtype=np.uint8),
        "mode": run.modes(0).astype(np.uint8),
    }


def of_network(net: Network, prefix: str, start: Network | None = None) -> dict[str, NDArray[Any]]:
    """A single network for the page; with its ``start``, of the network linearised there."""
    more = {} if start is None else {f"{prefix}_tangent": tangent(start, net.a, net.W)}
    return more | {
        f"{prefix}_u": net.directions.astype(np.float32),
        f"{prefix}_log_w": np.maximum(net.log_norms, LOW).astype(np.float32),
        f"{prefix}_log_a": np.maximum(net.log_outputs, LOW).astype(np.float32),
        f"{prefix}_sign": np.sign(net.signs).astype(np.int8),
    }


def tangent(start: Network, a: Array, W: Array) -> NDArray[np.float64]:
    r"""Vectors e (..., m, d) of the linearised network, which is linear where no neuron turns on.

    .. math:: h(x) = \sum_{w^0_j \cdot x > 0} e_j \cdot x, \qquad
              e_j = a^0_j w_j + (a_j - a^0_j)\, w^0_j .

    All digits are sent: at a large start its parts cancel.
    """
    flat = start.flat()
    return np.asarray(flat.a[:, None] * W + (a - flat.a)[..., None] * flat.W)
