"""Gradient flow beside the usual tools: CPU time in one run, one thread.

Each row is a line of the same list: sliding neurons, a whole training, size, independence of the
initial scale and of the width, late losses. ``ratio`` says how many times faster the flow is; where
a row compares the flow with itself it is the time of the easy case over that of the hard one, and
where it has a budget, the budget over what was used.

SciPy's absolute tolerance is set far below the weights: with the default, which is of the size of
the weights of a small start, RK45 does not solve the problem.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import reluflow as rf
from benchmarks import seconds

LOG4 = float(np.log(4.0))
STOP = 5e-10  # mean squared error 1e-9, in units of the loss "1/2n"
LR = 0.02  # step of the loops in units of that loss: lr = 0.01 on the mean squared error
RTOL = 1e-6  # of SciPy
ATOL = 1e-12
SEEDS = range(5)
SKIPPED = "skipped: PyTorch is missing (pip install 'reluflow[bench]')"

Row = dict[str, Any]


def rows() -> Iterator[Row]:
    """Yield the rows, the cheap ones first."""
    warm_up()
    yield from sliding()
    yield from whole_training()
    yield scale()
    yield width("log scale -100", -100.0, 1 / 150)
    yield width("scale 4^-6", -6 * LOG4, 1 / 300)
    yield late_loss()
    yield from size(64, budget_s=10.0)
    yield from size(256, budget_s=60.0)


def warm_up() -> None:
    """Compile everything on problems of no size."""
    data, net = correlated(4, 20, -2 * LOG4, 0)
    rf.flow(data, net, stop_loss=1e-6)
    rf.flow(data, net.with_scale(-100.0), stop_loss=1e-6)
    rf.flow(six_points(), six_points_start(), loss=rf.losses.Exponential(), stop_log_loss=-10.0)


def correlated(d: int, width: int, log_scale: float, seed: int) -> tuple[rf.Dataset, rf.Network]:
    """Centred correlated data with n = d, and a balanced start."""
    data = rf.datasets.centred(d=d, seed=seed)
    return data, rf.networks.balanced(d, width, log_scale=log_scale, seed=seed + 1)


# ---------------------------------------------------------------------- rows


def sliding() -> Iterator[Row]:
    """Neurons that slide on planes, at RK45's own tolerance and at a hundredth of it."""
    data, net = correlated(4, 200, -2 * LOG4, 0)
    begin, start = time.process_time(), flat_state(net)
    other = rk45(data, start, 0.0, 20.0)
    theirs = time.process_time() - begin
    for rtol, tolerance in ((RTOL, "the same tolerance"), (1e-8, "a hundredth of its tolerance")):
        run = rf.flow(data, net, t_end=20.0, rtol=rtol)
        ours = seconds(lambda rtol=rtol: rf.flow(data, net, t_end=20.0, rtol=rtol))
        gap = np.abs(other.y[:, -1] - flat_state(run.final)).max()
        mode = run.states["mode"][-1]
        pairs = int((mode[(mode == 1).any(axis=1)] >= 2).sum())
        yield {
            "name": f"sliding, d=n=4, m=200, scale 4^-2, t=20, SciPy RK45, {tolerance}",
            "ours_s": ours,
            "other_s": theirs,
            "ratio": theirs / ours,
            "target": 30.0,
            "note": f"{pairs} pairs slide at the end; RK45: {other.nfev} evaluations, "
            f"{gap:.0e} from the flow",
        }


def whole_training() -> Iterator[Row]:
    """Centred d = n = 16 to a mean squared error of 1e-9: medians of five seeds."""
    ours, alike, torch_s, scipy_s, steps, work = [], [], [], [], [], []
    for seed in SEEDS:
        data, net = correlated(16, 200, -6 * LOG4, seed)
        ours.append(seconds(lambda d=data, n=net: rf.flow(d, n, stop_loss=STOP)))
        alike.append(seconds(lambda d=data, n=net: rf.flow(d, n, stop_loss=STOP, rtol=RTOL)))
        run = rf.flow(data, net, stop_loss=STOP)
        t = float(run.t[-1])
        steps.append(t / LR)
        work.append(run.stats["steps"])
        scipy_s.append(rk45_seconds(data, net, t))
        if has_torch():
            torch_s.append(steps[-1] * torch_seconds_a_step(data, net))
    name = "whole training, d=n=16, m=200, scale 4^-6, five seeds"
    shared = {"ours_s": statistics.median(ours)}
    if torch_s:
        loops = [a / b for a, b in zip(torch_s, ours, strict=True)]
        yield {
            "name": f"{name}, PyTorch loop",
            **shared,
            "other_s": statistics.median(torch_s),
            "ratio": statistics.median(loops),
            "target": 1000.0,
            "note": f"{statistics.median(steps):.3g} steps of the loop, extrapolated from 300; "
            f"{statistics.median(work)} of the flow",
        }
    else:
        yield {"name": f"{name}, PyTorch loop", **shared, "target": 1000.0, "note": SKIPPED}
    for mine, tolerance in ((alike, "the same tolerance"), (ours, "a hundredth of its tolerance")):
        solver = [a / b for a, b in zip(scipy_s, mine, strict=True)]
        yield {
            "name": f"{name}, SciPy RK45, {tolerance}",
            "ours_s": statistics.median(mine),
            "other_s": statistics.median(scipy_s),
            "ratio": statistics.median(solver),
            "target": 100.0,
            "note": "extrapolated from t = 200 .. 400",
        }


def scale() -> Row:
    easy, hard = (training_seconds(16, 200, log_scale) for log_scale in (-10.0, -1e5))
    return {
        "name": "scale, log scale -1e5 against -10, d=n=16, m=200",
        "ours_s": hard,
        "other_s": easy,
        "ratio": easy / hard,
        "target": 0.5,
        "note": f"takes {hard / easy:.2f} times as long",
    }


def width(name: str, log_scale: float, target: float) -> Row:
    narrow = training_seconds(16, 200, log_scale)
    wide = training_seconds(16, 20_000, log_scale, limit_s=2 * narrow / target)
    given_up = " or more: given up" if wide > 1.9 * narrow / target else ""
    return {
        "name": f"width, m=20,000 against 200, d=n=16, {name}",
        "ours_s": wide,
        "other_s": narrow,
        "ratio": narrow / wide,
        "target": target,
        "note": f"{wide / narrow:.0f} times as long for 100 times the neurons{given_up}",
    }


def late_loss() -> Row:
    data, net, loss = six_points(), six_points_start(), rf.losses.Exponential()
    run = rf.flow(data, net, loss=loss, stop_log_loss=-23026.0)
    ours = seconds(lambda: rf.flow(data, net, loss=loss, stop_log_loss=-23026.0), repeats=1)
    return {
        "name": "late loss, six points on the line, width 100, log-loss -23,026",
        "ours_s": ours,
        "ratio": 10.0 / ours,
        "target": 1.0,
        "note": f"budget 10 s; {run.status}, log t {run.log_t[-1]:.6g}, {run.stats['steps']} steps",
    }


def size(d: int, *, budget_s: float) -> Iterator[Row]:
    """A whole training in a process of its own, for its time and its peak memory."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.flow", str(d), str(3 * budget_s)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[1],
    )
    found = json.loads(done.stdout)
    name = f"size, d=n={d}, m=200, scale 4^-6, to error 1e-9 or t = 4e5"
    yield {
        "name": f"{name}, seconds",
        "ours_s": found["seconds"],
        "ratio": budget_s / found["seconds"],
        "target": 1.0,
        "note": f"budget {budget_s:g} s; {found['status']} at t = {found['t']:.4g}, "
        f"{found['steps']} steps, {found['events']} events",
    }
    yield {
        "name": f"{name}, peak memory",
        "ratio": 1024.0 / found["megabytes"],
        "target": 1.0,
        "note": f"budget 1024 MB; {found['megabytes']:.0f} MB, the interpreter included",
    }


def size_alone(d: int, limit_s: float) -> None:
    """The other side of `size`: train, print the figures as JSON."""
    warm_up()
    data, net = correlated(d, 200, -6 * LOG4, 0)
    begin = time.process_time()
    run = rf.flow(data, net, stop_loss=STOP, t_end=4e5, max_seconds=limit_s)
    found = {
        "seconds": time.process_time() - begin,
        "megabytes": peak_megabytes(),
        "status": str(run.status),
        "t": float(run.t[-1]),
        "steps": run.stats["steps"],
        "events": len(run.events),
    }
    print(json.dumps(found))


def peak_megabytes() -> float:
    """Largest memory this process has held."""
    status = Path("/proc/self/status")
    if status.exists():  # `ru_maxrss` would be that of the parent, if larger
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 1024


# ---------------------------------------------------------------------- problems and competitors


@cache
def training_seconds(d: int, width: int, log_scale: float, limit_s: float | None = None) -> float:
    data, net = correlated(d, width, log_scale, 0)
    repeats = 3 if width <= 1000 else 1
    return seconds(lambda: rf.flow(data, net, stop_loss=STOP, max_seconds=limit_s), repeats=repeats)


def six_points() -> rf.Dataset:
    return rf.datasets.from_points([-2.0, -1.2, -0.3, 0.4, 1.1, 2.0], [1, 1, -1, -1, 1, 1])


def six_points_start() -> rf.Network:
    return rf.networks.gaussian(2, 100, sigma_hidden=0.1, sigma_output=0.1, seed=0)


def flat_state(net: rf.Network) -> Any:
    flat = net.flat()
    return np.concatenate([flat.a, flat.W.ravel()])


def field(data: rf.Dataset) -> Callable[[float, Any], Any]:
    """The gradient field as one writes it for a general solver."""
    X, y, n, d = data.X, data.y, data.n, data.d

    def slope(_: float, state: Any) -> Any:
        m = len(state) // (d + 1)
        a, W = state[:m], state[m:].reshape(m, d)
        P = X @ W.T
        H = np.maximum(P, 0.0)
        c = (y - H @ a) / n
        pull = ((P > 0.0) * c[:, None]).T @ X
        return np.concatenate([c @ H, (a[:, None] * pull).ravel()])

    return slope


def rk45(data: rf.Dataset, start: Any, begin: float, end: float) -> Any:
    from scipy.integrate import solve_ivp

    return solve_ivp(
        field(data), (begin, end), start, method="RK45", rtol=RTOL, atol=ATOL, t_eval=[end]
    )


def rk45_seconds(data: rf.Dataset, net: rf.Network, t: float) -> float:
    """SciPy's time to ``t``: measured to 200, then at the pace of 200 .. 400.

    After the alignment its steps are as long as stability allows, the same to the end.
    """
    begin = time.process_time()
    first = rk45(data, flat_state(net), 0.0, min(t, 200.0))
    early = time.process_time() - begin
    if t <= 200.0:
        return early
    begin = time.process_time()
    rk45(data, first.y[:, -1], 200.0, 400.0)
    return early + (time.process_time() - begin) * (t - 200.0) / 200.0


def has_torch() -> bool:
    from importlib.util import find_spec

    return find_spec("torch") is not None


def torch_seconds_a_step(data: rf.Dataset, net: rf.Network) -> float:
    """CPU time of one step of autograd and SGD, full batch, float64, one thread."""
    import torch

    torch.set_num_threads(1)
    hidden = torch.nn.Linear(data.d, net.width, bias=False, dtype=torch.float64)
    output = torch.nn.Linear(net.width, 1, bias=False, dtype=torch.float64)
    model = net.to_torch(torch.nn.Sequential(hidden, torch.nn.ReLU(), output))
    optimiser = torch.optim.SGD(model.parameters(), lr=LR)
    X, y = torch.tensor(data.X), torch.tensor(data.y)

    def loop(steps: int) -> None:
        for _ in range(steps):
            optimiser.zero_grad()
            loss = 0.5 * torch.nn.functional.mse_loss(model(X)[:, 0], y)
            loss.backward()
            optimiser.step()

    loop(20)
    return seconds(lambda: loop(300)) / 300


if __name__ == "__main__":
    size_alone(int(sys.argv[1]), float(sys.argv[2]))
