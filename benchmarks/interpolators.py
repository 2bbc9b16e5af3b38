"""Time of the interpolators at three sizes each, with the growth exponent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import growth_exponent, seconds
from reluflow import Dataset, datasets, interpolators


def rows() -> Iterator[dict[str, Any]]:
    """Yield one row per function: name, sizes, CPU seconds (least of three), growth exponent."""
    for name, sizes, prepare in CASES:
        times = [seconds(prepare(size)) for size in sizes]
        exponent = round(growth_exponent(sizes, times), 2)
        yield {"name": name, "sizes": sizes, "seconds": times, "exponent": exponent}


def regression(n: int) -> Dataset:
    """n points in three dimensions, labels of both signs."""
    rng = np.random.default_rng(n)
    return Dataset(rng.normal(size=(n, 3)), rng.normal(size=n))


def intervals(n: int) -> Dataset:
    """n points on the line whose labels change sign four times."""
    x = np.sort(np.random.default_rng(n).uniform(-2.0, 2.0, n))
    return datasets.from_points(x, np.where(np.sin(4.0 * x) > 0, 1.0, -1.0))


def on(
    function: Callable[..., object], data: Callable[[int], Dataset], *more: Any
) -> Callable[[int], Callable[[], object]]:
    def prepare(size: int) -> Callable[[], object]:
        drawn = data(size)
        return lambda: function(drawn, *more)

    return prepare


def tall(n: int) -> Dataset:
    return datasets.gaussian(n, 10 * n, seed=n)


def cone(d: int) -> Dataset:
    return datasets.cone(d, d, half_angle=0.6, seed=d)


CASES = (
    ("min_norm, d = 3, by n", (6, 12, 24), on(interpolators.min_norm, regression)),
    ("rank_versus_norm, by d = n", (4, 6, 8), on(interpolators.rank_versus_norm, cone)),
    ("single_relu, d = 10 n, by n", (20, 40, 80), on(interpolators.single_relu, tall)),
    ("two_relu, d = 10 n, by n", (10, 20, 40), on(interpolators.two_relu, tall)),
    ("multi_relu, d = 10 n, signs ++-, by n", (8, 16, 32),
     on(interpolators.multi_relu, tall, [1, 1, -1])),
    ("max_margin, by n", (50, 150, 500), on(interpolators.max_margin, intervals)),
)  # fmt: skip
