"""The generator of random numbers: published answers, and that draws look as they should."""

import numpy as np
import pytest

from reluflow.kernels import philox

# Random123 (Salmon et al.), kat_vectors: counter, key, answer
ANSWERS = (
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((2**32 - 1,) * 4, (2**32 - 1,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
)


@pytest.mark.parametrize(("counter", "key", "answer"), ANSWERS)
def test_the_published_answers(counter, key, answer):
    def joined(low, high):
        return np.uint64(low | high << 32)

    one, two = philox.philox(
        joined(*key), joined(*counter[:2]), np.uint64(counter[2]), np.uint64(counter[3])
    )
    assert (int(one), int(two)) == (answer[0] << 32 | answer[1], answer[2] << 32 | answer[3])


def test_normal_numbers_have_the_moments_of_normal_numbers():
    draws = np.array([philox.normal(7, step, 0, 2) for step in range(20_000)])
    assert abs(draws.mean()) < 0.03
    assert abs(draws.var() - 1.0) < 0.05
    assert abs((draws**4).mean() - 3.0) < 0.3


def test_a_shuffle_is_a_permutation_and_every_place_is_as_likely():
    order, counts = np.zeros(5, np.int64), np.zeros((5, 5))
    for step in range(5_000):
        philox.shuffle(order, 3, step, 0)
        assert sorted(order) == list(range(5))
        counts[np.arange(5), order] += 1
    assert np.abs(counts / 1_000 - 1.0).max() < 0.15
