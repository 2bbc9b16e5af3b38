"""Minimum, saddle, dead: against known points and steps around them."""

import numpy as np
import pytest

import reluflow as rf
from reluflow.geometry import piece_hessian, stationary, stationary_point


def test_kinds_of_trained_networks():
    data = rf.datasets.orthonormal(3, labels="positive", seed=0)
    net = rf.networks.balanced(3, 12, log_scale=-2.0, directions="sphere", seed=0)
    run = rf.flow(data, net)
    assert run.status == "converged"
    assert stationary_point(data, run.final).kind == "fit"
    early = stationary_point(data, run.at(t=0.5))
    assert early.kind == "moving"
    assert early.gradient > 1e-3


def test_a_plateau_is_a_saddle_and_says_how_steep():
    data = rf.datasets.orthonormal(4, seed=1)
    net = rf.networks.balanced(data.d, 30, log_scale=-40.0, directions="sphere", seed=1)
    plateau = rf.limits.saddle_to_saddle(data, net).saddle(1)
    tiny = 1e-12 * net.directions
    flat = plateau.flat()
    a = np.where(flat.a == 0.0, 1e-12, flat.a)
    W = np.where(flat.a[:, None] == 0.0, tiny, flat.W)
    found = stationary_point(data, rf.Network(a, W))
    assert found.kind == "saddle"
    assert found.curvature < -1e-3
    assert found.sure
    assert stationary_point(data, flat).kind == "saddle"  # neurons exactly at zero


def test_a_neuron_that_a_plane_pushes_back_has_ended():
    data = rf.Dataset([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], [1.0, -1.0, -1.0])
    pushed_back = stationary_point(data, rf.Network([1.0], [[1.0, 0.0]]))
    assert (pushed_back.kind, pushed_back.sure) == ("minimum", True)
    assert stationary_point(data, rf.Network([1.0], [[1.0, -0.5]])).sure


@pytest.mark.parametrize("seed", [0, 1, 4, 5])
def test_where_the_flow_ends_sliding_it_is_a_minimum_and_steps_around_it_go_up(seed):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-2.0, 2.0, 8))
    data = rf.Dataset(x, np.sin(2.0 * x) + 0.3 * rng.normal(size=8), bias=True)
    run = rf.flow(data, rf.networks.balanced(2, 12, log_scale=-3.0, seed=seed))
    assert run.status == "stationary"
    assert (run.modes(-1) == 2).any()
    found = stationary_point(data, run.final, active=run.active(-1))
    assert found.kind == "minimum", found.text
    alive = (run.modes(-1) > 0).any(axis=1)
    net, loss = run.final, rf.losses.Square()
    least = loss.value(net.predict(x), data.y)
    for _ in range(200):
        steps = 1e-4 * rng.normal(size=(net.width, 3)) * alive[:, None]
        near = rf.Network(net.a + steps[:, 0], net.W + steps[:, 1:])
        assert loss.value(near.predict(data.X), data.y) >= least * (1.0 - 1e-12)


def test_between_two_planes_the_hessian_decides_along_them():
    """A neuron held from both sides, of which the other one makes a saddle or not."""
    X = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.2]]
    data = rf.Dataset(X, [1.0, -1.0, 1.0])
    held = rf.Network([1.0], [[1.0, 0.0]])
    c = rf.losses.Square().forces(held.predict(data.X), data.y)
    on, rests = np.array([[True, False, False]]), np.array([[False, True, False]])
    pull, between, pattern = stationary._pulls(data.X, on, rests, c)
    assert np.linalg.norm(pull) < 1e-12
    assert not between.any()  # nothing pulls across: the plane is needed on one side only
    assert pattern.tolist() == on.tolist()
    pulled = np.array([0.5, -1.0, 0.0])
    mixed = rf.Dataset([[1.0, 0.8], [0.0, 1.0], [-1.0, 0.2]], data.y)
    pull, between, _ = stationary._pulls(mixed.X, on, rests, pulled)
    assert between.tolist() == rests.tolist()
    np.testing.assert_allclose(pull, [[0.5, 0.0]], atol=1e-12)  # 0.4 of the push holds it


def test_a_dead_neuron_that_a_push_would_revive_makes_it_unsure():
    data = rf.Dataset([[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]], [1.0, -1.0, -1.0])
    net = rf.Network([1.0, -1.0], [[1.0, -0.5], [-1.0, -1.0]])
    found = stationary_point(data, net)
    assert (found.kind, found.sure) == ("minimum", False)
    assert "1 dead neuron on the plane" in found.text


def test_a_way_down_beyond_a_plane_is_found():
    data = rf.Dataset([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0])
    found = stationary_point(data, rf.Network([1.0], [[1.0, 0.0]]))
    assert (found.kind, found.sure) == ("saddle", True)
    assert "beyond it" in found.text


def test_large_networks_are_decided_as_a_whole(monkeypatch):
    data = rf.Dataset([[1.0, 0.0], [-1.0, 0.0]], [1.0, -1.0])
    net = rf.Network([0.5, 2.0, 0.5], [[0.5, 0.0], [0.25, 0.0], [0.5, 0.0]])
    small = stationary_point(data, net)
    monkeypatch.setattr(piece_hessian, "LARGEST", 3)
    for work in (2e9, 0.0):  # on the range, by Lanczos
        monkeypatch.setattr(piece_hessian, "WORK", work)
        found = stationary_point(data, net)
        assert (found.kind, found.sure) == (small.kind, small.sure) == ("minimum", True)
        assert found.curvature == pytest.approx(small.curvature, abs=1e-9)


def test_a_search_that_does_not_converge_is_not_sure(monkeypatch):
    def unfinished(hessian, k):
        return piece_hessian.Extremes(np.array([np.nan]), np.ones(1), 0.0, False, "lanczos")

    monkeypatch.setattr(stationary, "extremes", unfinished)
    data = rf.Dataset([[1.0, 0.0], [-1.0, 0.0]], [1.0, -1.0])
    found = stationary_point(data, rf.Network([1.0], [[1.0, 0.0]]))
    assert (found.kind, found.sure) == ("minimum", False)
    assert "did not converge" in found.text


def test_dead_networks():
    data = rf.Dataset([[1.0, 0.0]], [1.0])
    assert stationary_point(data, rf.Network([1.0], [[-1.0, 0.0]])).kind == "dead"
    revived = stationary_point(data, rf.Network([1.0, 0.0], [[-1.0, 0.0], [0.0, 0.0]]))
    assert revived.kind == "saddle"
