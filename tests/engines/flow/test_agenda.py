"""Crossings to come: how far a step may reach."""

import numpy as np
import pytest

from reluflow.engines.flow.agenda import CAUTION, Agenda
from reluflow.engines.flow.tolerances import LATE


def test_without_crossings_a_step_is_not_limited():
    assert Agenda().reach(3.0, 1e-8, 1.0, 0.0) == np.inf


@pytest.mark.parametrize(
    ("ahead", "size"),
    [(0.5, 1.0), (0.5, 1e-10), (1e-9, 1.0)],
    ids=["heavy", "light", "at once"],
)
def test_a_step_ends_where_the_kink_reaches_its_bound(ahead, size):
    agenda, bound, rate = Agenda(), 1e-8, 2.0
    agenda.expect(3.0, 1.0, np.array([ahead]), np.array([size]))
    step = agenda.reach(3.0, bound, rate, 0.0)
    passed_over = size * (rate * step) ** 2
    comes_late = size * (rate * (step - ahead)) ** 2 / LATE
    assert step > ahead
    assert min(passed_over, comes_late) == pytest.approx(CAUTION**2 * bound)


def test_the_nearest_limit_counts_and_crossings_behind_are_forgotten():
    agenda = Agenda()
    agenda.expect(0.0, 2.0, np.array([0.5, 0.25]), np.array([1.0, 1.0]))
    assert 0.5 < agenda.reach(0.0, 1e-10, 1.0, 0.0) < 0.501
    assert 0.4 < agenda.reach(0.6, 1e-10, 1.0, 0.0) < 0.401
    assert agenda.reach(1.2, 1e-10, 1.0, 0.0) == np.inf
    assert agenda.reach(0.0, 1e-10, 1.0, 0.0) == np.inf


def test_a_shorter_try_corrects_what_it_covers_and_keeps_the_rest():
    agenda = Agenda()
    agenda.expect(0.0, 2.0, np.array([0.2, 0.9]), np.array([1.0, 4.0]))
    agenda.expect(0.0, 1.0, np.array([0.7]), np.array([1.0]))
    np.testing.assert_allclose(agenda.moments, [0.7, 1.8])
    np.testing.assert_allclose(agenda.sizes, [1.0, 4.0])


def test_a_stiff_step_ends_before_the_outputs_react():
    agenda = Agenda()
    agenda.expect(0.0, 2.0, np.array([0.5]), np.array([1.0]))
    assert agenda.reach(0.0, 1e-4, 1.0, 1e6) == pytest.approx(1.0 + CAUTION * 1e-6, rel=1e-12)
