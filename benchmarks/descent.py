"""Gradient descent beside the usual loops: CPU time for the same number of steps, one thread.

Whole training: points ``x ~ N(mu, I/d)`` with a unit ``mu``, labels ``relu(mu . x)``, balanced
start of scale 4^-6. Shared rows: the same with neurons already aligned, so that most of them are
active on the same points. The other loops cost the same in every step; they are timed over fewer
steps and scaled up.

To the limit: the event-driven descent of ``steps=inf`` beside our own plain loop over the same
iterations. Quiet: few changes of the pattern, all of them jumped to. Dense: small steps make
neurons chatter about points, so most of the way is iterated, and little may be lost by looking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import reluflow as rf
from benchmarks import seconds

SCALE = 4.0**-6
LR = 0.1


def correlated(n: int, d: int, m: int, *, aligned: bool, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    mu = rng.normal(size=d)
    mu /= np.linalg.norm(mu)
    X = mu + rng.normal(size=(n, d)) / np.sqrt(d)
    Z = rng.normal(size=(m, d)) / np.sqrt(d * m)
    signs = rng.choice([-1.0, 1.0], m)
    if aligned:
        Z, signs = mu / np.sqrt(m) + 0.1 * Z, np.ones(m)
    W = SCALE * Z
    net = rf.Network(signs * np.linalg.norm(W, axis=1), W)
    return rf.Dataset(X, np.maximum(X @ mu, 0.0)), net


def numpy_loop(data: Any, net: Any, steps: int) -> None:
    X, y, a, W = data.X, data.y, net.a.copy(), net.W.copy()
    for _ in range(steps):
        P = X @ W.T
        H = np.maximum(P, 0.0)
        c = (y - H @ a) / len(y)
        pull = ((P > 0.0) * c[:, None]).T @ X
        a, W = a + LR * (c @ H), W + LR * a[:, None] * pull


def torch_loop(data: Any, net: Any, steps: int) -> None:
    import torch

    torch.set_num_threads(1)
    hidden = torch.nn.Linear(data.d, net.width, bias=False, dtype=torch.float64)
    output = torch.nn.Linear(net.width, 1, bias=False, dtype=torch.float64)
    model = net.to_torch(torch.nn.Sequential(hidden, torch.nn.ReLU(), output))
    optimiser = torch.optim.SGD(model.parameters(), lr=LR)
    X, y = torch.tensor(data.X), torch.tensor(data.y)
    for _ in range(steps):
        optimiser.zero_grad()
        loss = 0.5 * torch.nn.functional.mse_loss(model(X)[:, 0], y)
        loss.backward()
        optimiser.step()


def compare(
    name: str, problem: tuple[Any, Any], steps: int, others: dict[str, tuple[float, int]]
) -> Iterator[dict[str, Any]]:
    data, net = problem
    rf.descend(data, net, lr=LR, steps=1)  # compiles
    run = rf.descend(data, net, lr=LR, steps=steps)
    ours = seconds(lambda: rf.descend(data, net, lr=LR, steps=steps))
    loops: dict[str, Callable[[Any, Any, int], None]] = {"NumPy": numpy_loop, "PyTorch": torch_loop}
    for other, (target, sample) in others.items():
        row: dict[str, Any] = {"name": f"{name}, {other} loop", "ours_s": ours, "target": target}
        try:
            loops[other](data, net, 3)
        except ImportError:
            yield row | {"note": "skipped: PyTorch is missing (pip install 'reluflow[bench]')"}
            continue
        theirs = seconds(partial(loops[other], data, net, sample)) * steps / sample
        rows = len(np.unique(run.final.preactivations(data.X).T > 0.0, axis=0))
        yield row | {
            "other_s": theirs,
            "ratio": theirs / ours,
            "note": f"{steps} steps, {rows} activation rows at the end",
        }


def quiet(n: int, d: int, seed: int) -> tuple[Any, Any, float]:
    """One neuron and positive labels from a random start: points switch once or twice."""
    data = rf.datasets.bartlett(n, d, n_positive=n, seed=seed)
    net = rf.networks.gaussian(n, 1, sigma_hidden=0.02, sigma_output=1.0, seed=seed)
    return data, rf.Network([1.0], net.W), 1e-6 / float(np.linalg.eigvalsh(data.gram)[-1])


def dense(n: int, d: int, seed: int) -> tuple[Any, Any, float]:
    """Two neurons that are active everywhere at the start, with a step 10^4 times shorter."""
    data = rf.datasets.bartlett(n, d, seed=seed)
    return data, rf.networks.by_preactivations(data, 0.005, [1, -1]), 1e-4 / d


def to_the_limit(
    name: str, problem: tuple[Any, Any, float], target: float
) -> Iterator[dict[str, Any]]:
    data, net, lr = problem
    options = {"lr": lr, "loss": rf.losses.Square("1/2"), "train": "hidden", "record": 2}
    run = rf.descend(data, net, steps=np.inf, **options)
    ours = seconds(lambda: rf.descend(data, net, steps=np.inf, **options))
    total, sample = int(run.stats["iterations"]), 20_000
    plain = seconds(lambda: rf.descend(data, net, steps=sample, **options)) * total / sample
    yield {
        "name": f"{name}, plain loop",
        "ours_s": ours,
        "other_s": plain,
        "ratio": plain / ours,
        "target": target,
        "note": f"{run.status}, {total} iterations, pattern changes at {run.stats['changes']}",
    }


def rows() -> Iterator[dict[str, Any]]:
    yield from to_the_limit("to the limit, quiet, n=100, d=150", quiet(100, 150, seed=0), 1000.0)
    yield from to_the_limit("to the limit, dense, n=40, d=2000", dense(40, 2000, seed=0), 0.75)
    yield from compare(
        "whole training, n=d=16, m=200",
        correlated(16, 16, 200, aligned=False, seed=0),
        50_000,
        {"PyTorch": (20.0, 300), "NumPy": (5.0, 1000)},
    )
    yield from compare(
        "shared rows, n=d=1024, m=200",
        correlated(1024, 1024, 200, aligned=True, seed=0),
        1000,
        {"PyTorch": (10.0, 5), "NumPy": (10.0, 5)},
    )
