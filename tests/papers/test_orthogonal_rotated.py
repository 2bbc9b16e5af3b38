"""The checks do not depend on the basis in which the points are given."""

import numpy as np
import pytest

import reluflow as rf

from .orthogonal_problems import prepared, row


@pytest.mark.parametrize("id", ["A2", "O2", "O9", "O25", "O26", "O27"])
def test_rows_hold_for_rotated_points_at_a_deep_scale(id):
    data = rf.datasets.orthonormal(6, d=8, rotate=True, seed=1)
    net = rf.networks.balanced(8, 7, log_scale=-300.0, directions="sphere", seed=101)
    case = prepared(rf.flow(data, net))
    assert np.array_equal(case.data.gram, np.eye(6))
    assert row(id, case).verdict == "PASS"
