"""Quantities along one run: regions, margins, alignment, KKT residuals, functions, breakpoints."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.errors import InputError
from reluflow.geometry import kinks, kkt, linear_regions, margin, smoothed_margin
from reluflow.losses import Square
from reluflow.network import Network
from reluflow.papers.univariate.field import misalignment
from reluflow.trajectory import Trajectory

# tolerances of the region counts: position, and three relative jumps a decade apart
TOL_X = 1e-3
TOL_JUMPS = (1e-3, 10**-2.5, 1e-2)
# records measured at most, and those at which the KKT system is solved
RECORDS, CERTIFICATES = 90, 13
EARLIEST = 0.05


def measured_records(run: Trajectory, count: int = RECORDS) -> NDArray[np.intp]:
    """Records whose ``F = -log L`` are positive, at most so many, evenly in log F."""
    F = -run.log_loss
    usable = np.flatnonzero(F > EARLIEST)
    if not len(usable):
        return np.array([len(F) - 1])
    goals = np.linspace(np.log(F[usable[0]]), np.log(F[usable[-1]]), count)
    nearest = np.searchsorted(np.log(F[usable]), goals - 1e-12)
    return np.unique(usable[np.minimum(nearest, len(usable) - 1)])


def history(run: Trajectory) -> dict[str, Any]:
    """The quantities of the figures at the measured records of a run, as arrays.

    ``F``, ``log_t``; ``regions_low``, ``regions``, ``regions_high`` at the three tolerances;
    ``margin``, ``smoothed``, ``misalignment``; ``kkt_F``, ``kkt_eps``, ``kkt_delta`` where all
    points are right.
    """
    loss = run.loss_function
    if isinstance(loss, Square):
        raise InputError("a run with the square loss has no margin. Train a classifier.")
    kept = measured_records(run)
    nets = [run.network(int(k)) for k in kept]
    gammas = np.array([margin(run.data, net) for net in nets])
    counts = np.array([[linear_regions(net, TOL_X, tol) for tol in TOL_JUMPS] for net in nets])
    right = np.flatnonzero(gammas > 0.0)
    spread = np.linspace(0, max(0, len(right) - 1), min(CERTIFICATES, len(right)))
    chosen = right[np.unique(spread.round().astype(int))]
    certificates = [kkt(run.data, nets[k]) for k in chosen]
    return {
        "F": -run.log_loss[kept],
        "log_t": run.log_t[kept],
        "regions_low": counts[:, 0],
        "regions": counts[:, 1],
        "regions_high": counts[:, 2],
        "margin": gammas,
        "smoothed": np.array([smoothed_margin(run.data, net, loss) for net in nets]),
        "misalignment": np.array(
            [
                misalignment(run.data, net, loss, run.modes(int(k)))
                for k, net in zip(kept, nets, strict=True)
            ]
        ),
        "kkt_F": -run.log_loss[kept][chosen],
        "kkt_eps": np.array([found.eps_rel for found in certificates]),
        "kkt_delta": np.array([found.delta for found in certificates]),
    }


def function_values(net: Network, x: Array) -> Array:
    """``N(x) / |theta|^2``: the function of the direction."""
    flat = net.flat()
    return np.asarray(flat.predict(np.column_stack([x, np.ones(len(x))])) / flat.squared_norm)


def kinks_of(net: Network) -> tuple[Array, Array]:
    """Positions and relative jumps of the kinks that count."""
    found = kinks(net, TOL_X, TOL_JUMPS[0])
    return found.positions, found.relative_jumps


def breakpoints(run: Trajectory, count: int = 40) -> tuple[Array, Array, Array]:
    """``F`` (k,), breakpoints (k, count) and relative jumps (k, count) of the strongest neurons."""
    kept = measured_records(run)
    nets = [run.network(int(k)).flat() for k in kept]
    jumps = np.array([np.abs(net.a * net.W[:, 0]) for net in nets])
    with np.errstate(divide="ignore", invalid="ignore"):
        places = np.array([-net.W[:, 1] / net.W[:, 0] for net in nets])
    share = jumps / jumps.sum(axis=1, keepdims=True)
    strongest = np.sort(np.argsort(-share.max(axis=0), kind="stable")[:count])
    return -run.log_loss[kept], places[:, strongest], share[:, strongest]


def slides(run: Trajectory) -> tuple[Array, Array]:
    """``F`` and input of each start of a slide: a kink held on a point from then on."""
    events = run.events[run.events["kind"] == "slide"]
    F = -np.interp(events["log_t"], run.log_t, run.log_loss)
    return F, run.data.X[events["point"], 0]
