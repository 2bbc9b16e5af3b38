"""Minimum, saddle, dead: against finite differences and known points."""

import numpy as np
import pytest

import reluflow as rf
from reluflow.geometry import stationary, stationary_point


def loss_of(data, theta, m, loss):
    table = theta.reshape(m, data.d + 1)
    return loss.value(rf.Network(table[:, 0], table[:, 1:]).predict(data.X), data.y)


@pytest.mark.parametrize("loss", [rf.losses.Square(), rf.losses.Square("1/n")])
def test_the_hessian_is_that_of_the_loss(loss):
    rng = np.random.default_rng(0)
    data = rf.Dataset(rng.normal(size=(5, 2)), rng.normal(size=5))
    a, W = rng.normal(size=3), rng.normal(size=(3, 2))
    z = W @ data.X.T
    on = z > 0
    c = loss.forces(a @ np.maximum(z, 0), data.y)
    bend = np.full(5, loss.kappa(5))
    found = stationary._hessian(data.X, a, z, on, c, bend)
    theta, h = np.column_stack([a, W]).ravel(), 1e-4
    steps = h * np.eye(len(theta))
    expected = [
        [
            sum(
                s * t * loss_of(data, theta + s * u + t * v, 3, loss)
                for s in (1, -1)
                for t in (1, -1)
            )
            / (4 * h * h)
            for v in steps
        ]
        for u in steps
    ]
    np.testing.assert_allclose(found, expected, atol=1e-5)


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


def test_neurons_on_planes_make_it_unsure():
    data = rf.Dataset([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], [1.0, -1.0, -1.0])
    on_a_plane = stationary_point(data, rf.Network([1.0], [[1.0, 0.0]]))
    assert on_a_plane.kind == "minimum"
    assert not on_a_plane.sure
    assert "2 pairs" in on_a_plane.text
    assert stationary_point(data, rf.Network([1.0], [[1.0, -0.5]])).sure


def test_a_way_down_beyond_a_plane_is_found():
    data = rf.Dataset([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0])
    found = stationary_point(data, rf.Network([1.0], [[1.0, 0.0]]))
    assert (found.kind, found.sure) == ("saddle", True)
    assert "beyond it" in found.text


def test_large_networks_are_looked_at_neuron_by_neuron(monkeypatch):
    monkeypatch.setattr(stationary, "LARGEST", 3)
    data = rf.Dataset([[1.0, 0.0], [-1.0, 0.0]], [1.0, -1.0])
    net = rf.Network([0.5, 2.0, 0.5], [[0.5, 0.0], [0.25, 0.0], [0.5, 0.0]])
    found = stationary_point(data, net)
    assert found.kind == "minimum"
    assert not found.sure
    assert "neuron by neuron" in found.text


def test_dead_networks():
    data = rf.Dataset([[1.0, 0.0]], [1.0])
    assert stationary_point(data, rf.Network([1.0], [[-1.0, 0.0]])).kind == "dead"
    revived = stationary_point(data, rf.Network([1.0, 0.0], [[-1.0, 0.0], [0.0, 0.0]]))
    assert revived.kind == "saddle"
