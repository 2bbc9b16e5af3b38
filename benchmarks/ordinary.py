"""Ordinary regression, SciPy's solvers on it, and references: what `shapes` compares.

Gaussian inputs, labels of one ReLU neuron with noise, weights of size 0.1, to t = 10. References
are kept in the user's cache: they depend on the problem, not on this program.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import reluflow as rf
from benchmarks.flow import field, flat_state

T_END = 10.0
RTOL, ATOL = 1e-6, 1e-9  # of SciPy's solvers
FINE, FINE_ATOL = 1e-11, 1e-13  # of a reference
COARSE = 1e-8  # of one that takes too long at that
METHODS = ("RK45", "DOP853", "LSODA")
# LSODA keeps a dense Jacobian of m (d + 1) unknowns: beyond this, gigabytes
MOST_UNKNOWNS = 6000


class Shape(NamedTuple):
    """Points, inputs, neurons."""

    n: int
    d: int
    m: int

    @property
    def name(self) -> str:
        return f"{self.n}x{self.d}x{self.m}"


class OutOfTimeError(Exception):
    """A solver was stopped: it got to ``reached``."""

    def __init__(self, reached: float) -> None:
        super().__init__(f"stopped at t = {reached:.3g}")
        self.reached = reached


class Solution(NamedTuple):
    """Weights (m (d + 1),) at the end, CPU seconds, and evaluations of the field."""

    weights: Any
    seconds: float
    evaluations: int


class Reference(NamedTuple):
    """Weights at the end, and by which solver."""

    weights: Any
    by: str


def problem(shape: Shape, seed: int = 0) -> tuple[rf.Dataset, rf.Network]:
    """Data and start of one shape."""
    rng = np.random.default_rng([seed, *shape])
    X = rng.normal(size=(shape.n, shape.d))
    teacher = rng.normal(size=shape.d)
    y = np.maximum(X @ teacher / np.linalg.norm(teacher), 0.0) + 0.1 * rng.normal(size=shape.n)
    weights = 0.1 * rng.normal(size=(shape.m, shape.d + 1))
    return rf.Dataset(X, y), rf.Network(weights[:, 0].copy(), weights[:, 1:].copy())


def error(weights: Any, reference: Reference) -> float:
    """Largest difference of weights, as a share of the largest weight."""
    return float(np.abs(weights - reference.weights).max() / np.abs(reference.weights).max())


def scipy_solution(
    shape: Shape, method: str, limit_s: float, *, rtol: float = RTOL, atol: float = ATOL
) -> Solution:
    """SciPy's solution at t = 10, or `OutOfTimeError` after ``limit_s`` of CPU."""
    from scipy.integrate import solve_ivp

    data, net = problem(shape)
    inner, begin = field(data), time.process_time()

    def watched(t: float, state: Any) -> Any:
        if time.process_time() - begin > limit_s:
            raise OutOfTimeError(t)
        return inner(t, state)

    start = flat_state(net)
    # one long step would be all the output there is: only the end is kept
    found = solve_ivp(watched, (0.0, T_END), start, method, (T_END,), rtol=rtol, atol=atol)
    return Solution(found.y[:, -1], time.process_time() - begin, found.nfev)


def flow_solution(shape: Shape, rtol: float, limit_s: float) -> tuple[Solution, rf.Trajectory]:
    """Our solution at t = 10, or `OutOfTimeError` after ``limit_s``."""
    data, net = problem(shape)
    begin = time.process_time()
    run = rf.flow(data, net, t_end=T_END, rtol=rtol, max_seconds=limit_s)
    spent = time.process_time() - begin
    if str(run.status) != "t_end":
        raise OutOfTimeError(float(run.t[-1]))
    return Solution(flat_state(run.final), spent, run.stats["evaluations"]), run


def reference(shape: Shape, limit_s: float) -> Reference:
    """Weights at t = 10 to 1e-11, by the first solver that gets there in ``limit_s``.

    Where neurons slide an explicit solver takes steps as small as its tolerance, so the flow is
    asked first, then DOP853; if neither comes through, the flow at a tolerance of 1e-8, which is
    still far below the errors that are compared.
    """
    path = _cache() / f"{shape.name}.npz"
    if path.exists():
        kept = np.load(path)
        return Reference(kept["weights"], str(kept["by"]))
    found = _computed(shape, limit_s)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, weights=found.weights, by=found.by)
    return found


def _computed(shape: Shape, limit_s: float) -> Reference:
    tries = {
        f"flow {FINE:g}": lambda: flow_solution(shape, FINE, limit_s)[0],
        f"DOP853 {FINE:g}": lambda: scipy_solution(
            shape, "DOP853", limit_s, rtol=FINE, atol=FINE_ATOL
        ),
        f"flow {COARSE:g}": lambda: flow_solution(shape, COARSE, 10.0 * limit_s)[0],
    }
    for by, solve in tries.items():
        with suppress(OutOfTimeError):
            return Reference(solve().weights, by)
    raise OutOfTimeError(0.0)


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "reluflow" / "references-1"
