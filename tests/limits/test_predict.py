"""Predict: which limit is chosen, what it says, and that it says so when none applies."""

import numpy as np
import pytest

import reluflow as rf
from reluflow.errors import InputError


def balanced(seed, m, d, signs=None):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(m, d))
    s = np.sign(rng.normal(size=m)) if signs is None else signs
    return rf.Network(s * np.linalg.norm(W, axis=1), W, -40.0)


def test_correlated_data_get_the_bundle():
    X = np.array([[1.0, 0.1], [1.0, -0.2], [0.9, 0.3]])
    data = rf.Dataset(X, X[:, 0], teacher=[1.0, 0.0])
    answer = rf.limits.predict(data, balanced(0, 8, 2))
    assert answer.method == "bundle"
    assert isinstance(answer.detail, rf.limits.Bundle)
    assert answer.network is answer.detail.network
    assert "below pi/4 as the theorem asks" in answer.reason
    wide = rf.Dataset([[1.0, 1.1], [1.0, 0.9]], [1.0, 1.0], teacher=[1.0, 0.0])
    assert "outside the theorem" in rf.limits.predict(wide, balanced(0, 8, 2)).reason


def test_orthonormal_data_get_the_jump_process():
    data = rf.Dataset(np.eye(3), [1.0, -2.0, 3.0])
    answer = rf.limits.predict(data, balanced(1, 20, 3))
    assert answer.method == "saddle_to_saddle"
    assert isinstance(answer.detail, rf.limits.SaddleToSaddle)
    assert answer.network.predict(data.X) == pytest.approx(data.y, rel=1e-13)
    assert "every point is fitted" in answer.reason
    one_sign = rf.limits.predict(data, balanced(1, 20, 3, np.ones(20)))
    assert "1 points have no matching neuron" in one_sign.reason


def test_single_unit_point_satisfies_both_and_they_agree():
    data = rf.Dataset([[0.6, 0.8]], [1.7], teacher=[1.02, 1.36])
    net = balanced(5, 9, 2)
    answer = rf.limits.predict(data, net)
    process = rf.limits.saddle_to_saddle(data, net)
    assert answer.method == "bundle"
    assert answer.network.a == pytest.approx(process.network.a, abs=1e-14)
    assert pytest.approx(process.network.W, abs=1e-14) == answer.network.W


def test_nothing_applies_and_every_failure_is_listed():
    data = rf.Dataset([[1.0, 0.0], [-1.0, 0.5]], [1.0, -1.0])
    answer = rf.limits.predict(data, rf.Network([2.0], [[1.0, 0.0]]))
    assert answer.method is None
    assert answer.network is None
    assert answer.detail is None
    before, after = answer.reason.split(" saddle_to_saddle: ")
    for words in ("not balanced", "inner product -1", "label y[1] is -1"):
        assert words in before
    for words in ("not balanced", "not orthonormal"):
        assert words in after


def test_dead_network_on_correlated_data_is_not_predicted():
    X = np.array([[1.0, 0.1], [1.0, -0.2]])
    answer = rf.limits.predict(rf.Dataset(X, X[:, 0]), rf.Network([-1.0], [[1.0, 0.0]]))
    assert answer.method is None
    assert "J+ is empty" in answer.reason


def test_tie_on_shared_points_leaves_the_limit_undecided():
    data = rf.Dataset(np.eye(3), [1.0, 2.0, 1.0])
    W = np.array([[2.0, 2.0, -1.0], [-1.0, 2.0, 2.0]])
    answer = rf.limits.predict(data, rf.Network([3.0, 3.0], W))
    assert answer.method is None
    assert answer.network is None
    assert "neurons 0 and 1 tie at jump 0" in answer.reason
    assert answer.detail.is_degenerate


def test_mismatched_sizes_are_refused():
    with pytest.raises(InputError, match="points have 3 coordinates but the network takes 2"):
        rf.limits.predict(rf.Dataset(np.eye(3), np.ones(3)), rf.Network([1.0], [[1.0, 0.0]]))
