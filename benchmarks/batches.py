"""Mini-batches beside full-batch descent: CPU time for each example that a step looks at.

``ratio`` is the time of full-batch descent for an example over that of a batch: 1 / 1.5 = 0.67 or
more is asked for. Every step moves every neuron, whatever the size of the batch, and full-batch
descent forms forces once for all neurons with equal rows. Ordinary data have nearly as many rows as
neurons; on a network that has aligned, with few rows, a full step costs little more than to move
the neurons, and no batch can come near it for an example.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import reluflow as rf
from benchmarks import seconds
from benchmarks.descent import correlated

LR = 0.01
TARGET = 1.0 / 1.5


def ordinary(n: int, d: int, m: int, seed: int) -> tuple[Any, Any]:
    """Gaussian points, labels of a noisy neuron, weights of size 0.1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.maximum(X @ rng.normal(size=d) / np.sqrt(d), 0.0) + 0.1 * rng.normal(size=n)
    return rf.Dataset(X, y), rf.Network(0.1 * rng.normal(size=m), 0.1 * rng.normal(size=(m, d)))


def compare(
    name: str,
    problem: tuple[Any, Any],
    batch: int,
    *,
    lr: float = LR,
    epochs: int | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Equal numbers of examples, so that many epochs of batches make as many full steps."""
    data, net = problem
    epochs = epochs or max(20, 2_000_000 // (data.n * net.width))
    steps = epochs * (data.n // batch)

    def full(count: int) -> None:
        rf.descend(data, net, lr=lr, steps=count, record=2, progress=False)

    def batches(count: int) -> None:
        options = {"batch": batch, "seed": 0, **more}
        rf.descend(data, net, lr=lr, steps=count, record=2, progress=False, **options)

    full(1)
    batches(1)
    other, ours = seconds(lambda: full(epochs)), seconds(lambda: batches(steps))
    return {
        "name": f"{name}, batch {batch}",
        "ours_s": ours,
        "other_s": other,
        "ratio": other / ours,
        "target": TARGET,
        "note": f"{epochs} epochs, {1e9 * ours / (epochs * data.n):.0f} ns an example",
    }


def rows() -> Iterator[dict[str, Any]]:
    """Ordinary regression of several sizes, momentum, and a small start that aligns."""
    for n, d, m, batch in ((1000, 20, 100, 32), (1000, 20, 100, 8), (300, 20, 200, 32)):
        yield compare(f"ordinary, n={n}, d={d}, m={m}", ordinary(n, d, m, 0), batch)
    yield compare("the same with momentum", ordinary(1000, 20, 100, 0), 32, momentum=0.9)
    yield compare("ordinary, n=1000, d=200, m=200", ordinary(1000, 200, 200, 0), 64)
    yield compare("ordinary, n=20, d=5, m=50", ordinary(20, 5, 50, 0), 4)
    start = correlated(16, 16, 200, aligned=False, seed=0)
    yield compare("from a small start, n=d=16, m=200", start, 4, lr=0.1, epochs=20_000)
