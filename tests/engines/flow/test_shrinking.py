"""Neurons that shrink for ever: their balance, their rows and what is outside the span stay."""

import numpy as np
import pytest

import reluflow as rf
from reluflow.engines.flow import step as coupled


def test_balanced_neurons_that_shrink_keep_their_balance_and_never_die():
    """Positive neurons on two orthonormal points with negative labels: each loses one point."""
    rng = np.random.default_rng(0)
    W = np.abs(rng.normal(size=(200, 2)))
    W /= np.linalg.norm(W, axis=1)[:, None]
    a = np.where(np.arange(200) % 2 == 0, 1.0, -1.0)
    run = rf.flow(rf.Dataset(np.eye(2), [-1.3, -0.7]), rf.Network(a, W, -770.0), rtol=1e-9)
    kinds = run.events["kind"].tolist()
    assert (kinds.count("deactivate"), kinds.count("die")) == (100, 0)
    for k in range(len(run.t)):
        net = run.network(k)
        np.testing.assert_allclose(net.log_outputs, net.log_norms, rtol=0, atol=1e-10)


@pytest.mark.parametrize("loss", ["exponential", "square"])
def test_what_is_outside_the_span_of_the_points_stays_when_the_rest_shrinks(loss):
    data = rf.Dataset([[0.0, -1.0]], [1.0])
    net = rf.Network([-1.0, np.sqrt(2.0)], [[0.0, -1.0], [1.0, 1.0]], -100.0)
    stop = {"stop_log_loss": -200.0} if loss == "exponential" else {}
    run = rf.flow(data, net, loss=loss, **stop)
    assert run.status in ("stationary", "converged", "stop_loss")
    log_scale, W = run.final.log_scale, run.final.mantissa.W
    outside = np.log(W[1, 0]) + log_scale[1]
    assert outside == pytest.approx(-100.0)


@pytest.mark.parametrize("seed", range(5))
def test_a_neuron_in_the_span_of_fewer_points_than_inputs_has_no_part_outside_of_it(seed):
    """Two balanced neurons along one point: one shrinks by what the other grows, exactly."""
    x = np.random.default_rng(seed).normal(size=4)
    net = rf.Network([1.0, -1.0], np.stack([x, x]) / np.linalg.norm(x), -100.0)
    end = rf.flow(rf.Dataset(x[None], [-2.0]), net).final
    assert end.log_outputs[0] < -190.0  # far below the rounding of its start
    np.testing.assert_allclose(end.log_norms, end.log_outputs, rtol=1e-12)
    assert end.log_outputs.sum() == pytest.approx(-200.0, rel=1e-9)


def test_neurons_on_the_plane_of_all_points_with_no_output_weight_stay():
    """Products with the points are exactly zero; in a basis of their span they are rounding."""
    x = np.array([0.75, -2.875, -1.125])
    W = np.array([[0.875, -0.1875, 1.0625], [1.0, 0.46875, -0.53125]])
    assert not (W @ x).any()
    data = rf.Dataset([x, -x], [-1.0, 1.0])
    run = rf.flow(data, rf.Network([0.0, 0.0], W), loss="logistic", t_end=8.0)
    assert run.status == "t_end"
    np.testing.assert_allclose(run.final.W, W, rtol=0, atol=1e-15)
    np.testing.assert_allclose(run.final.a, 0.0, atol=1e-15)


def test_a_step_that_no_size_makes_good_ends_in_a_failure_with_a_reason(monkeypatch):
    """Margins of 1e16 are known to units only: no step is accurate, however short."""
    none = coupled.Attempt(None, None, np.empty((0, 5)))
    monkeypatch.setattr(coupled, "attempt", lambda *given: none)
    data = rf.Dataset([[1.0, 0.5]], [1.0])
    run = rf.flow(data, rf.Network([1.0], [[1.0, 1.0]]), loss="exponential", t_end=1.0)
    assert run.status == "failed"
    assert "rounding" in run.reason


@pytest.mark.parametrize("log_scale", [-1e14, -1e16, -1e100, -1e290])
def test_scales_so_deep_that_time_does_not_resolve_a_step(log_scale, tmp_path):
    """After the plateau the clock starts again; the end does not know how long the wait was.

    How neurons of one bundle share it is known to the spacing of their log scales only.
    """
    data = rf.datasets.cone(3, 3, half_angle=0.7, seed=17)

    def run(scale):
        return rf.flow(data, rf.networks.balanced(3, 20, log_scale=scale, seed=1), rtol=1e-9)

    deep, shallow = run(log_scale), run(-1e4)
    assert deep.status == "converged"
    assert deep.t[-1] == pytest.approx(deep.t[1], rel=1e-9)
    probes = np.random.default_rng(0).normal(size=(20, 3))
    np.testing.assert_allclose(deep.final.predict(probes), shallow.final.predict(probes), atol=1e-7)
    assert (np.diff(deep.t) >= 0.0).all()
    deep.save(tmp_path / "deep.npz")
    again = rf.load(tmp_path / "deep.npz")
    np.testing.assert_array_equal(again.final.W, deep.final.W)
    assert np.isfinite(again.at(t=0.5 * deep.t[-1]).log_scale).all()
