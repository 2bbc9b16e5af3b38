"""Two tolerances that disagree: a label just where the flow takes the one way or the other."""

import numpy as np
import pytest

from reluflow.explore import compute, jobs

from .helpers import between_two_ways, never, on_the_edge


@pytest.fixture(scope="module")
def edge():
    return between_two_ways()


def test_a_label_between_two_ways_is_undecided(edge):
    state = on_the_edge(edge)
    run = compute.train(state, state.rtol, 10.0, never)
    assert len(run.branches)  # unique, and yet rounding decides: the run itself sees the graze
    assert run.limit_error == np.inf
    told, _ = jobs.second_tolerance(state, run, never)
    assert told["undecided"] is True
    assert told["apart"] > 0.1
    assert "rounding decides which way" in told["note"]


@pytest.mark.parametrize("side", [-0.0004, 0.0004])
def test_on_either_side_of_it_both_agree(edge, side):
    state = on_the_edge(edge + side)
    run = compute.train(state, state.rtol, 10.0, never)
    told, _ = jobs.second_tolerance(state, run, never)
    assert told["undecided"] is False
    assert np.isfinite(told["apart"])
