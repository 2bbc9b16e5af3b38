"""Mutated files are refused or can be used: no crash, no hang, no foreign exception.

A few hundred here, the long figure with ``make test-long``; ``campaign.py`` runs any number. What
once went wrong is kept in ``cases`` and tried every time.
"""

import shutil
from pathlib import Path

import pytest

from fuzz.campaign import campaign
from fuzz.mutations import MUTATIONS, mutation
from fuzz.uses import use

CASES = sorted((Path(__file__).parent / "cases").iterdir())
FEW = {"damaged": 300, "sealed": 100, "toml": 200, "csv": 200, "link": 200}
MANY = {"damaged": 15_000, "sealed": 5_000, "toml": 5_000, "csv": 5_000, "link": 5_000}
PEAK_BYTES = 2**30


def assert_clean(outcome):
    assert outcome.bad == {}
    assert outcome.peak_bytes < PEAK_BYTES


@pytest.mark.parametrize("kind", FEW)
def test_mutations_are_refused_or_used(kind):
    outcome = campaign(kind, FEW[kind])
    assert_clean(outcome)
    if kind != "damaged":  # a damaged file never loads
        assert outcome.counts["used"] >= FEW[kind] // 10
    else:
        assert outcome.counts["used"] == 0


@pytest.mark.long
@pytest.mark.parametrize("kind", MANY)
def test_many_mutations_are_refused_or_used(kind):
    assert_clean(campaign(kind, MANY[kind], seed=1))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_once_went_wrong(case, tmp_path):
    path = tmp_path / case.name
    shutil.copy(case, path)
    assert use(case.name.split("-")[0], path) in ("refused", "used")


@pytest.mark.parametrize("kind", MUTATIONS)
def test_a_mutation_is_known_by_its_number(kind):
    assert mutation(kind, 7, seed=0) == mutation(kind, 7, seed=0)
    assert len({mutation(kind, number, seed=0) for number in range(20)}) > 10
