"""Time of the interpolators at three sizes each, with the growth exponent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks import growth_exponent, seconds
from reluflow import Dataset, interpolators


def rows() -> Iterator[dict[str, Any]]:
    """Yield one row per function: name, sizes, CPU seconds, growth exponent, share certified."""
    for name, sizes, prepare in CASES:
        prepare(sizes[0])()  # imports
        times, certified = [], []
        for size in sizes:
            call = prepare(size)
            certified.append(_is_settled(call()))
            times.append(seconds(call, repeats=2))
        yield {
            "name": name,
            "sizes": sizes,
            "seconds": times,
            "exponent": round(growth_exponent(sizes, times), 2),
            "note": f"{sum(certified)} of {len(sizes)} certified",
        }


def _is_settled(answer: Any) -> bool:
    if isinstance(answer, interpolators.RankVersusNorm):
        return answer.min_rank_is_min_norm is not None
    return bool(answer.certified)


def normal(n: int, d: int) -> Dataset:
    rng = np.random.default_rng(n)
    return Dataset(rng.normal(size=(n, d)), rng.normal(size=n))


def highdim(n: int, d: int) -> Dataset:
    rng = np.random.default_rng(n)
    signs = np.where(np.arange(n) % 2, 1.0, -1.0)
    return Dataset(rng.normal(size=(n, d)), signs * rng.uniform(0.5, 2.0, n))


def taught(d: int) -> Dataset:
    """d points around a teacher, as in the experiments of the correlated setting."""
    rng = np.random.default_rng(d)
    while True:
        v = rng.normal(size=d)
        v /= np.linalg.norm(v)
        X = v + rng.normal(size=(d, d)) / np.sqrt(d)
        if (X @ v > 0).all():
            return Dataset(X, X @ v, teacher=v)


def classes(n: int, d: int) -> Dataset:
    data = normal(n, d)
    return Dataset(data.X, np.where(data.y > 0, 1.0, -1.0))


def waves(n: int) -> Dataset:
    x = np.random.default_rng(n).uniform(-1, 1, n)
    return Dataset(np.stack([x, np.ones(n)], axis=1), np.where(np.sin(6 * x) > 0, 1.0, -1.0))


def solve(function: Callable[..., object], *arguments: object) -> Callable[[], object]:
    return partial(function, *arguments)


SIGNS = [1, 1, -1, -1]
CASES: list[tuple[str, tuple[int, ...], Callable[[int], Callable[[], object]]]] = [
    ("min_norm, d = 3, n =", (8, 16, 32), lambda n: solve(interpolators.min_norm, normal(n, 3))),
    ("min_norm, n = d =", (5, 10, 20), lambda n: solve(interpolators.min_norm, normal(n, n))),
    (
        "min_norm, d = 100 n, n =",
        (10, 20, 40),
        lambda n: solve(interpolators.min_norm, highdim(n, 100 * n)),
    ),
    (
        "rank_versus_norm, d =",
        (3, 6, 12),
        lambda d: solve(interpolators.rank_versus_norm, taught(d)),
    ),
    (
        "single_relu, d = 2 n, n =",
        (50, 100, 200),
        lambda n: solve(interpolators.single_relu, highdim(n, 2 * n)),
    ),
    (
        "two_relu, d = n + 10, n =",
        (12, 25, 50),
        lambda n: solve(interpolators.two_relu, highdim(n, n + 10)),
    ),
    (
        "multi_relu, m = 4, d = 100 n, n =",
        (8, 16, 32),
        lambda n: solve(interpolators.multi_relu, highdim(n, 100 * n), SIGNS),
    ),
    ("max_margin, n =", (125, 250, 500), lambda n: solve(interpolators.max_margin, waves(n))),
    (
        "max_margin, d = 3, n =",
        (8, 16, 32),
        lambda n: solve(interpolators.max_margin, classes(n, 3)),
    ),
    (
        "min_norm, decay 0.01, d = 3, n =",
        (8, 16, 32),
        lambda n: partial(interpolators.min_norm, normal(n, 3), decay=0.01),
    ),
]
