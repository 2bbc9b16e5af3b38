"""Time of the geometry functions at three sizes each, with the growth exponent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks import growth_exponent, seconds
from reluflow import Dataset, Network, geometry, losses

UNIFORM = SimpleNamespace(support=(-2.0, 2.0), cdf=lambda x: np.clip((x + 2.0) / 4.0, 0.0, 1.0))


def rows() -> Iterator[dict[str, Any]]:
    """Yield one row per function: name, sizes, CPU seconds (least of three), growth exponent."""
    for name, sizes, prepare in CASES:
        times = [seconds(prepare(size)) for size in sizes]
        exponent = round(growth_exponent(sizes, times), 2)
        yield {"name": name, "sizes": sizes, "seconds": times, "exponent": exponent}


def network(width: int, d: int) -> Network:
    rng = np.random.default_rng(width)
    return Network(rng.normal(size=width), rng.normal(size=(width, d)))


def on_width(function: Callable[[Network], object], d: int) -> Callable[[int], Any]:
    return lambda width: partial(function, network(width, d))


def kernel_case(n: int) -> Callable[[], object]:
    rng = np.random.default_rng(n)
    data, net = Dataset(rng.normal(size=(n, 16)), np.ones(n)), network(200, 16)
    return lambda: geometry.tangent_kernel(data, net)


def sharpness_case(width: int) -> Callable[[], object]:
    """The whole matrix, its range, and Lanczos."""
    rng = np.random.default_rng(width)
    data = Dataset(rng.normal(size=(64, 16)), rng.normal(size=64))
    net = network(width, 16)
    return lambda: geometry.hessian_spectrum(data, net)


def classified(n: int) -> tuple[Dataset, Network]:
    """A network of width 60 near a KKT point, 20 neurons sliding on each of two points.

    The six points x = -2, -1.2, -0.3, 0.4, 1.1, 2 of the maximum-margin example, others between.
    """
    rng = np.random.default_rng(n)
    products = [(0.0, 1.0), (2 / 0.7, -0.8 / 0.7), (-2 / 0.9, -0.6 / 0.9)]
    W = np.repeat([np.array(p) / np.sqrt(np.hypot(*p)) for p in products], 20, axis=0)
    a = np.repeat([-1.0, 1.0, 1.0], 20) * np.linalg.norm(W, axis=1)
    net = Network(a, W * (1.0 + 1e-4 * rng.normal(size=(60, 1))), -0.5 * np.log(20.0))
    slack = np.concatenate([rng.uniform(-0.3, 0.4, n // 3), rng.uniform(1.1, 2.0, n - n // 3 - 6)])
    x = np.concatenate([[-2.0, -1.2, -0.3, 0.4, 1.1, 2.0], slack])
    return Dataset(np.column_stack([x, np.ones(n)]), np.where((x >= -0.3) & (x <= 0.4), -1, 1)), net


def kkt_case(n: int) -> Callable[[], object]:
    data, net = classified(n)
    return lambda: geometry.kkt(data, net)


def margin_case(n: int) -> Callable[[], object]:
    data, net = classified(n)
    return lambda: geometry.smoothed_margin(data, net, losses.Logistic())


def population_error(net: Network) -> float:
    return geometry.population_error(net, network(5, 2), UNIFORM)


def population_loss(net: Network) -> float:
    return geometry.log_population_loss(net, network(5, 2), UNIFORM, losses.Logistic())


def sign_changes(net: Network) -> Any:
    return geometry.sign_changes(net, (-2.0, 2.0))


CASES: list[tuple[str, list[int], Callable[[int], Any]]] = [
    ("max_angle, d = 16, width", [200, 800, 3200], on_width(geometry.max_angle, 16)),
    ("pairwise_angles, d = 16, width", [50, 200, 800], on_width(geometry.pairwise_angles, 16)),
    ("effective_rank, d = 64, width", [200, 800, 3200], on_width(geometry.effective_rank, 64)),
    ("tangent_kernel, d = 16, width 200, n", [64, 256, 1024], kernel_case),
    ("hessian_spectrum, d = 16, n = 64, width", [50, 200, 800], sharpness_case),
    ("smoothed_margin, width 60, n", [100, 1000, 10000], margin_case),
    ("kkt, width 60, n", [30, 100, 300], kkt_case),
    ("linear_regions, width", [64, 512, 4096], on_width(geometry.linear_regions, 2)),
    ("sign_changes, width", [64, 512, 4096], on_width(sign_changes, 2)),
    ("population_error, width", [64, 512, 4096], on_width(population_error, 2)),
    ("population_loss, width", [16, 64, 256], on_width(population_loss, 2)),
]
