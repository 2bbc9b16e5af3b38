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
    beyond = rf.limits.predict(wide, balanced(0, 8, 2))
    assert "no theorem says that training ends here" in beyond.reason
    assert answer.proved
    assert not beyond.proved


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


def counterexample():
    """The light point is switched off while the heavy ones are fitted, so rank 1 is not found.

    The light point has a positive product with both heavy ones and with the teacher, and a negative
    one with the teacher's projection on their span.
    """
    angle, v = np.pi / 4 + 0.011, np.array([0.0, 0.0, 1.0])
    polar = [(0.79050423, 2.83269522), (angle, 2.77063107), (angle, 0.0)]
    unit = [(np.sin(t) * np.cos(p), np.sin(t) * np.sin(p), np.cos(t)) for t, p in polar]
    X = np.array(unit) * np.array([100.0, 100.0, 0.1])[:, None]
    Q = np.linalg.qr(X[:2].T)[0]
    return rf.Dataset(X, X @ v, teacher=v), Q @ (Q.T @ v)


def test_v9_positive_products_do_not_suffice_beyond_a_quarter_of_pi():
    data, seen = counterexample()
    assert data.gram.min() > 0.0
    assert seen @ data.X[2] < 0.0
    net = rf.networks.balanced(3, 12, log_scale=-30.0, directions="sphere", seed=4)
    answer = rf.limits.predict(data, net)
    assert answer.method == "bundle"
    assert not answer.proved
    assert "no theorem" in answer.reason
    run = rf.flow(data, net, max_seconds=60.0)
    end = run.final.flat()
    sizes = np.abs(end.a) * np.linalg.norm(end.W, axis=1)
    large = end.W[sizes > 1e-3 * sizes.max()]
    elsewhere = abs(end.squared_norm - answer.network.squared_norm) > 0.1
    assert elsewhere or np.linalg.matrix_rank(large, tol=1e-3) > 1


def test_v10_a_limit_of_the_square_loss_is_not_stated_for_another():
    data = rf.Dataset(np.eye(3), [1.0, -1.0, 1.0])
    net = balanced(1, 20, 3)
    assert rf.limits.predict(data, net).method == "saddle_to_saddle"
    answer = rf.limits.predict(data, net, loss="logistic")
    assert answer.method != "saddle_to_saddle"
    assert "correlated: square loss" in answer.tested
    assert any(text.startswith("separable: ") for text in answer.tested)
    points = rf.Dataset([[1.0, 0.1], [1.0, -0.2]], [1.0, 1.0], teacher=[1.0, 0.0])
    assert rf.limits.predict(points, balanced(0, 8, 2)).method == "bundle"
    assert rf.limits.predict(points, balanced(0, 8, 2), loss="logistic").method != "bundle"
    with pytest.raises(InputError, match="must be 'square', 'exponential', 'logistic'"):
        rf.limits.predict(data, net, loss="hinge")
    with pytest.raises(InputError, match="`loss` is 3; it must be"):
        rf.limits.predict(data, net, loss=3)


def test_separable_classes_get_two_hard_margin_vectors():
    data = rf.papers.named("separable").generators["orthant"](10, 4, seed=3)
    net = rf.networks.balanced(4, 20, log_scale=-8.0, seed=2)
    answer = rf.limits.predict(data, net, loss=rf.losses.Logistic())
    assert answer.method == "hard_margin"
    margins = data.y * answer.network.predict(data.X)
    assert margins.min() == pytest.approx(1.0)
    run = rf.flow(data, net, loss=rf.losses.Logistic(), stop_log_loss=-1e4)
    best = rf.geometry.margin(data, answer.network)
    assert rf.geometry.margin(data, run.final) == pytest.approx(best, rel=2e-3)


def test_v1_near_orthonormal_points_are_judged_by_the_scale():
    """At scale 1e-100 a deviation of 6e-11 revives points; the flow ends elsewhere."""
    X = np.eye(4) + 6e-11 * (np.ones((4, 4)) - np.eye(4))
    data = rf.Dataset(X, [1.0, 1.4, 0.6, -0.8])
    net = rf.networks.balanced(4, 8, directions="sphere", seed=5)
    deep, shallow = net.with_scale(-230.0), net.with_scale(-4.0)
    assert rf.limits.predict(data, deep).network is None
    assert "allowed at this scale" in rf.limits.predict(data, deep).reason
    assert rf.limits.predict(data, shallow).method == "saddle_to_saddle"
