"""Counting linear regions and convexity changes of networks of one real input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array, number
from reluflow.errors import InputError
from reluflow.geometry.pieces import kinks
from reluflow.network import Network


class Run(Protocol):
    """What `resolved_regions` asks of a run; a Trajectory has it."""

    @property
    def final(self) -> Network:
        """The last network."""

    @property
    def log_loss(self) -> Array:
        """The recorded log-losses."""

    def at(self, *, log_loss: float) -> Network:
        """The network at a log-loss."""


@dataclass(frozen=True, eq=False)
class ResolvedRegions:
    """A region count of a late network, and whether it can be trusted.

    Attributes
    ----------
    count : int
        Linear regions of the last network at the middle tolerance.
    resolved : bool
        All entries of the table exist and agree.
    table : (2, k) array of int
        Counts at F (first row) and F/10 (second row; -1 if the run never was there) for each
        tolerance; ``F = -log_loss`` at the end of the run.
    tolerances : (k,) array
        The relative jump tolerances, spanning at least a decade.
    levels : tuple of float
        F and F/10.
    smallest_kept, largest_discarded : float
        Relative jumps on either side of the middle tolerance, for the last network.
    """

    count: int
    resolved: bool
    table: NDArray[np.int64]
    tolerances: Array
    levels: tuple[float, float]
    smallest_kept: float
    largest_discarded: float


def linear_regions(
    net: Network,
    tol_x: float = 1e-9,
    tol_jump: float = 1e-9,
    *,
    interval: Sequence[float] = (-np.inf, np.inf),
) -> int:
    """Return the number of linear regions of a network of one real input: one more than its kinks.

    Parameters
    ----------
    net, tol_x, tol_jump
        As in `reluflow.geometry.kinks`. The defaults suit exact weights; late in training use
        1e-3 and 1e-2 to 1e-3, or `resolved_regions`.
    interval : pair of float
        Count inside this open interval only.

    Returns
    -------
    int
        Pieces of the function, 1 for a line.

    Examples
    --------
    >>> linear_regions(Network([1.0, 1.0], [[1.0, 0.0], [-1.0, 0.0]]))  # |x|
    2
    >>> linear_regions(Network([1.0, -1.0], [[1.0, 0.0], [-1.0, 0.0]]))  # x
    1
    """
    low, high = check_interval(interval)
    positions = kinks(net, tol_x, tol_jump).positions
    return 1 + int(np.count_nonzero((positions > low) & (positions < high)))


def resolved_regions(
    run: Run, *, tol_x: float = 1e-3, tol_jump: Sequence[float] = (1e-3, 1e-2)
) -> ResolvedRegions:
    """Count the linear regions that a run is converging to, and say whether the count is settled.

    At any finite time every neuron still bends the function; only the limit has few kinks. Jumps
    that vanish do so like powers of F, so a count is called resolved only if it is the same over a
    decade of jump tolerances, at the end of the run and where F was ten times smaller.

    Parameters
    ----------
    run : Trajectory
        Anything with ``final``, ``log_loss`` and ``at(log_loss=...)``.
    tol_x : float
        Tolerance of positions.
    tol_jump : pair of float
        Range of jump tolerances; five in geometric progression are tried.

    Returns
    -------
    ResolvedRegions
        The count, and whether it can be trusted.
    """
    low = number(tol_jump[0], "tol_jump[0]", above=0.0, below=1.0)
    high = number(tol_jump[1], "tol_jump[1]", at_least=10 * low * (1 - 1e-12), below=1.0)
    tolerances = np.geomspace(low, high, 5)
    level, early = _levels(run)
    rows = [[linear_regions(run.final, tol_x, float(tol)) for tol in tolerances]]
    if early is None:
        rows.append([-1] * len(tolerances))
    else:
        rows.append([linear_regions(early, tol_x, float(tol)) for tol in tolerances])
    table = np.array(rows, dtype=np.int64)
    middle = kinks(run.final, tol_x, float(tolerances[2]))
    return ResolvedRegions(
        count=1 + len(middle.positions),
        resolved=bool(np.all(table == table[0, 0])),
        table=table,
        tolerances=tolerances,
        levels=(level, level / 10),
        smallest_kept=middle.smallest_kept,
        largest_discarded=middle.largest_discarded,
    )


def convexity_changes(net: Network, tol_x: float = 1e-9, tol_jump: float = 1e-9) -> int:
    """Return how often a network of one real input changes between convex and concave.

    That is the number of sign alternations among its kinks, from left to right.

    Parameters
    ----------
    net : Network
        A network on the line, rows of hidden weights ``(w, b)``.
    tol_x, tol_jump : float
        As for `kinks`.

    Returns
    -------
    int
        How often the function turns from convex to concave or back.

    Examples
    --------
    >>> convexity_changes(Network([1.0, -2.0, 1.0], [[1.0, 1.0], [1.0, 0.0], [1.0, -1.0]]))
    2
    """
    signs = np.sign(kinks(net, tol_x, tol_jump).relative_jumps)
    return int(np.count_nonzero(signs[1:] != signs[:-1]))


def check_interval(interval: Any, *, finite: bool = False) -> tuple[float, float]:
    """Return the two ends, in order; infinite ones only where they make sense."""
    try:
        low, high = interval
    except (TypeError, ValueError):
        raise InputError(
            f"`interval` is {interval!r}, not two numbers. Pass (low, high)."
        ) from None
    low = number(low, "interval[0]", infinite=not finite)
    return low, number(high, "interval[1]", above=low, infinite=not finite)


def _levels(run: Run) -> tuple[float, Network | None]:
    """F at the end, and the network where F was a tenth of it (None if the run never was there)."""
    losses = np.asarray(run.log_loss, dtype=np.float64)
    finite = losses[np.isfinite(losses)]
    if len(finite) == 0:
        return float("nan"), None
    level = -float(finite[-1])
    if level <= 0.0 or float(finite.max()) < -level / 10:
        return level, None
    return level, run.at(log_loss=-level / 10)
