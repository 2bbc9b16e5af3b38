"""The numbers of every figure are those of ``expected.json``, within the tolerance it states."""

import math

import pytest

from reluflow.studies import recipe_named
from studies import expected

KEPT = expected.load()
QUICK = ("orthogonal/fig5", "separable/fig-angle", "univariate/fig-function")  # two seconds each


@pytest.mark.parametrize("name", KEPT)
def test_every_number_has_a_source_an_interval_and_a_tolerance(name):
    assert recipe_named(name).id == name
    assert KEPT[name]["numbers"]
    for row in KEPT[name]["numbers"]:
        assert row["source"]
        assert row["low"] is not None or row["high"] is not None
        assert row["value"] is None or row["tolerance"] >= expected.RELATIVE * abs(row["value"])
    assert all(rows > 0 for rows in KEPT[name]["rows"].values())


def test_every_figure_is_kept():
    """`python tests/studies/expected.py` computes those that are missing."""
    assert sorted(KEPT) == sorted(expected.names())


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in KEPT]
)
def test_a_figure_comes_to_its_numbers_again(name):
    found, kept = expected.numbers(name), KEPT[name]
    assert [row["text"] for row in found["numbers"]] == [row["text"] for row in kept["numbers"]]
    assert found["rows"].keys() == kept["rows"].keys()
    for table, rows in kept["rows"].items():
        assert abs(found["rows"][table] - rows) <= expected.OF_ROWS * rows
    moved = [
        f"{mine['text']}: {mine['value']}, was {row['value']}"
        for mine, row in zip(found["numbers"], kept["numbers"], strict=True)
        if not _same(mine["value"], row["value"], row["tolerance"])
    ]
    assert moved == []
    assert [row["verdict"] for row in found["numbers"]] == [
        row["verdict"] for row in kept["numbers"]
    ]


def _same(value, kept, tolerance):
    if value is None or kept is None:
        return value is kept
    return abs(value - kept) <= tolerance


def test_the_tolerance_of_a_number():
    assert expected.tolerance(2.0, 1.0, 5.0) == pytest.approx(0.1)
    assert expected.tolerance(2.0, 2.0, 5.0) == pytest.approx(2e-6)
    assert expected.tolerance(3e-14, -math.inf, 1e-9) == pytest.approx(1e-10, rel=1e-3)
    assert _same(1.0, 1.005, 0.01)
    assert not _same(1.0, 1.05, 0.01)
    assert not _same(None, 1.0, 0.01)
