"""Speed of the limits at three sizes each, with the growth exponent in the size that varies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np

import reluflow as rf


def rows() -> Iterator[dict[str, Any]]:
    """One row a function: name, sizes, seconds (best of two) and exponent."""
    yield _row("limits.yardsticks, m = 1000, d = 20, n =", (100, 200, 400), _yardsticks)
    yield _row("limits.yardsticks.at, m = 1000, d = 20, n =", (100, 200, 400), _state)
    yield _row("limits.bundle, n = 50, d = 20, m =", (500, 1000, 2000), _bundle)
    yield _row("limits.saddle_to_saddle, m = 50, n = d =", (128, 256, 512), _orthonormal)
    yield _row(
        "limits.saddle_to_saddle_from_masks, m = 200, n =", (10_000, 30_000, 100_000), _masks
    )
    yield _row("limits.predict, m = 200, n = d =", (25, 50, 100), _predict)


def _row(
    name: str, sizes: tuple[int, ...], prepare: Callable[[int], Callable[[], object]]
) -> dict[str, Any]:
    prepare(sizes[0])()  # compile
    seconds = [_best(prepare(size)) for size in sizes]
    exponent = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    return {"name": name, "sizes": sizes, "seconds": seconds, "exponent": exponent}


def _best(call: Callable[[], object], repeats: int = 2) -> float:
    times = []
    for _ in range(repeats):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return min(times)


def _correlated(n: int, d: int, m: int) -> tuple[rf.Dataset, rf.Network]:
    rng = np.random.default_rng(0)
    teacher = np.eye(d)[0]
    X = teacher + 0.4 * rng.normal(size=(n, d)) / np.sqrt(d)
    W = rng.normal(size=(m, d)) / np.sqrt(d * m)
    signs = rng.choice([-1.0, 1.0], m)
    net = rf.Network(signs * np.linalg.norm(W, axis=1), W, -20.0)
    return rf.Dataset(X, X @ teacher, teacher=teacher), net


def _yardsticks(n: int) -> Callable[[], object]:
    data, net = _correlated(n, 20, 1000)
    return lambda: rf.limits.yardsticks(data, net)


def _state(n: int) -> Callable[[], object]:
    sticks = rf.limits.yardsticks(*_correlated(n, 20, 1000))
    return lambda: sticks.at(0.5 * sticks.T0)


def _bundle(m: int) -> Callable[[], object]:
    data, net = _correlated(50, 20, m)
    return lambda: rf.limits.bundle(data, net)


def _orthonormal(n: int) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    W, signs = rng.normal(size=(50, n)), rng.choice([-1.0, 1.0], 50)
    data = rf.Dataset(np.eye(n), rng.normal(size=n))
    net = rf.Network(signs * np.linalg.norm(W, axis=1), W, -200.0)
    return lambda: rf.limits.saddle_to_saddle(data, net).sharp_times(-500.0)


def _masks(n: int) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    masks, signs = rng.random((200, n)) < 0.5, rng.choice([-1.0, 1.0], 200)
    y = rng.normal(size=n)
    return lambda: rf.limits.saddle_to_saddle_from_masks(masks, signs, y)


def _predict(n: int) -> Callable[[], object]:
    data, net = _correlated(n, n, 200)
    return lambda: rf.limits.predict(data, net)


if __name__ == "__main__":
    for row in rows():
        figures = ", ".join(
            f"{s}: {t:.3g} s" for s, t in zip(row["sizes"], row["seconds"], strict=True)
        )
        print(f"{row['name']} {figures} (exponent {row['exponent']:.2f})")
