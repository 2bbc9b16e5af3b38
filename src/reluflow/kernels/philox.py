r"""Random numbers that are functions of a key and a counter: Philox4x32-10.

Salmon, Moraes, Dror, Shaw (2011), "Parallel random numbers: as easy as 1, 2, 3". The draw number
``index`` of step ``step`` needs none of the draws before it, so any step of a run can be repeated
by itself. A call gives 128 bits; ``stream`` keeps draws for different ends apart.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from reluflow.kernels.kernel import kernel

Indices = NDArray[np.int64]

ROUNDS = 10
MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
WEYL = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
SPARE = np.uint64(11)  # of 64 bits a float holds 53


@kernel
def philox(key: int, step: int, index: int, stream: int) -> tuple[np.uint64, np.uint64]:
    """Two words of 64 random bits; the counter is (step low, step high, index, stream)."""
    key_0, key_1 = np.uint64(key) & LOW, np.uint64(key) >> HALF
    x_0, x_1 = np.uint64(step) & LOW, np.uint64(step) >> HALF
    x_2, x_3 = np.uint64(index) & LOW, np.uint64(stream) & LOW
    for _ in range(ROUNDS):
        one, two = MULTIPLIERS[0] * x_0, MULTIPLIERS[1] * x_2
        x_0, x_2 = (two >> HALF) ^ x_1 ^ key_0, (one >> HALF) ^ x_3 ^ key_1
        x_1, x_3 = two & LOW, one & LOW
        key_0, key_1 = (key_0 + WEYL[0]) & LOW, (key_1 + WEYL[1]) & LOW
    return (x_0 << HALF) | x_1, (x_2 << HALF) | x_3


@kernel
def uniform(key: int, step: int, index: int, stream: int) -> float:
    """A number in [0, 1), a multiple of 2^-53."""
    word, _ = philox(key, step, index, stream)
    return float(word >> SPARE) * 2.0**-53


@kernel
def normal(key: int, step: int, index: int, stream: int) -> float:
    """A standard normal number, by Box and Muller."""
    one, two = philox(key, step, index, stream)
    radius = math.sqrt(-2.0 * math.log((float(one >> SPARE) + 0.5) * 2.0**-53))
    return radius * math.cos(2.0 * math.pi * float(two >> SPARE) * 2.0**-53)


@kernel
def shuffle(order: Indices, key: int, step: int, stream: int) -> None:
    """Fill ``order`` with a random permutation (Fisher and Yates)."""
    for i in range(len(order)):
        order[i] = i
    for i in range(len(order) - 1, 0, -1):
        j = int(uniform(key, step, i, stream) * (i + 1))
        order[i], order[j] = order[j], order[i]
