"""A stop at a tiny loss is reached, though rounding hides its last digits."""

import numpy as np
import pytest

import reluflow as rf


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("loss", [1e-14, 1e-16, 1e-18])
def test_stop_just_above_the_target_does_not_step_forever(seed, loss):
    data = rf.datasets.cone(3, 3, half_angle=0.52 if seed % 2 else 1.29, seed=seed)
    net = rf.networks.balanced(3, 50, log_scale=-6 * np.log(4), seed=seed)
    run = rf.flow(data, net, stop_loss=loss, record=20)
    assert run.status == "stop_loss"
    # residuals of 1e-9 are known to 1e-16
    assert run.log_loss[-1] == pytest.approx(np.log(loss), abs=1e-5)
    assert run.stats["steps"] < 500


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [8.0, 16.0, 32.0])
@pytest.mark.parametrize("stop", [1e-15, 1e-16, 1e-18])
def test_a_loss_at_the_rounding_of_outputs_that_cancel_is_reached(seed, size, stop):
    """A network doubled with opposite outputs: large neurons, small labels."""
    x, y = [-2.0, -1.2, -0.4, 0.5, 1.1, 2.0], [0.5, -0.5, 0.3, -0.4, 0.6, 0.1]
    data = rf.datasets.from_points(x, y)
    half = rf.networks.gaussian(data.d, 40, sigma_hidden=0.4, sigma_output=0.4, seed=seed)
    a, W = np.append(half.a, -half.a), np.vstack([half.W, half.W])
    run = rf.flow(data, rf.Network(size * a, size * W), stop_loss=stop, max_seconds=60.0)
    assert run.status in ("stop_loss", "converged")
    assert run.loss[-1] <= 3.0 * stop
    assert run.stats["steps"] < 1000
