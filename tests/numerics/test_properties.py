"""Balance is kept, the loss falls, limits are as near as they say, rotations change nothing."""

import numpy as np
import pytest

import reluflow as rf
from numerics import properties

FEW = {"balance": range(6), "falls": range(4), "limits": [2, 3, 6], "turned": [1, 2, 3, 5]}
MANY = {"balance": 260, "falls": 200, "limits": 3000, "turned": 500}


@pytest.mark.parametrize("name", FEW)
def test_a_property_holds_on_a_few_problems(name):
    found = properties.examined(name, FEW[name])
    assert found["beyond"] == {}
    assert found["cases"] >= 3


@pytest.mark.long
@pytest.mark.parametrize("name", MANY)
def test_a_property_holds_on_many_problems(name):
    found = properties.examined(name, range(MANY[name]))
    print(name, found)
    allowed = found["cases"] // 20 if name == "limits" else 0
    assert len(found["beyond"]) <= allowed
    assert found["cases"] >= MANY[name] // 4


def test_a_run_that_loses_its_balance_is_seen(monkeypatch):
    true = properties.run(3, record=100)
    shifted = {
        **true.kept,
        "a": true.kept["a"] * (1.0 + 1e-9 * np.arange(len(true.t)))[:, None],
    }

    class Wrong:
        kept, options = shifted, true.options

    monkeypatch.setattr(properties, "run", lambda seed, **options: Wrong)
    assert properties.balance_drift(3) > 1e-12


def test_a_run_that_ends_elsewhere_is_seen(monkeypatch):
    true = properties.run(3)

    def run(seed, **options):
        if options:
            return true
        off = rf.Network(
            true.final.mantissa.a, true.final.mantissa.W * (1.0 + 1e-3), true.final.log_scale
        )
        return type("Wrong", (), {**vars(true), "final": off, "branches": true.branches})

    monkeypatch.setattr(properties, "run", run)
    assert properties.error_ratio(3) > 10.0
