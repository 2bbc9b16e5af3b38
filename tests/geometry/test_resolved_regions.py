from dataclasses import dataclass, field

import numpy as np
import pytest

from reluflow import Network
from reluflow.errors import InputError
from reluflow.geometry import resolved_regions


@dataclass
class Run:
    """A run in closed form: the network is a function of F = -log loss."""

    network: object
    log_loss: np.ndarray
    asked: list = field(default_factory=list)

    @property
    def final(self):
        return self.network(-self.log_loss[-1])

    def at(self, *, log_loss):
        self.asked.append(log_loss)
        return self.network(-log_loss)


def dying(power, size=1.0):
    """|x| plus a neuron whose relative jump falls like F^-power."""

    def network(F):
        return Network([1.0, 1.0, size * F**-power], [[1.0, 0.0], [-1.0, 0.0], [1.0, -1.0]])

    return network


def test_settled_count():
    run = Run(dying(2.0), np.linspace(0.0, -1e4, 50))
    result = resolved_regions(run)
    assert result.resolved
    assert result.count == 2
    assert run.asked == [-1e3]
    assert result.levels == (1e4, 1e3)
    assert result.table.shape == (2, 5)
    assert (result.table == 2).all()
    assert result.tolerances[[0, -1]] == pytest.approx([1e-3, 1e-2])
    assert result.largest_discarded == pytest.approx(5e-9, rel=1e-3)
    assert result.smallest_kept == pytest.approx(1.0, rel=1e-3)


def test_a_jump_inside_the_decade_of_tolerances_is_not_resolved():
    result = resolved_regions(Run(dying(0.0, size=6e-3), np.array([0.0, -1e4])))
    assert not result.resolved
    assert set(result.table[0]) == {2, 3}
    assert np.array_equal(result.table[0], result.table[1])


def test_a_jump_that_died_in_the_last_decade_is_not_resolved():
    result = resolved_regions(Run(dying(3.0, size=1e8), np.array([0.0, -1e4])))
    assert (result.table[0] == 2).all()
    assert (result.table[1] == 3).all()
    assert not result.resolved
    assert result.count == 2


@pytest.mark.parametrize("log_loss", [[-100.0, -900.0], [0.5, 0.2], [-np.inf], [0.0, np.nan]])
def test_runs_without_a_tenth_of_f_are_not_resolved(log_loss):
    run = Run(lambda F: dying(2.0)(100.0), np.array(log_loss))
    result = resolved_regions(run)
    assert not result.resolved
    assert (result.table[1] == -1).all()
    assert result.count == 2
    assert run.asked == []


def test_tolerances_must_span_a_decade():
    run = Run(dying(2.0), np.linspace(0.0, -1e4, 50))
    with pytest.raises(InputError, match=r"`tol_jump\[1\]` is 0.005; it must be at least 0.01"):
        resolved_regions(run, tol_jump=(1e-3, 5e-3))
    wide = resolved_regions(run, tol_jump=(1e-4, 1e-2))
    assert wide.tolerances[0] == pytest.approx(1e-4)
