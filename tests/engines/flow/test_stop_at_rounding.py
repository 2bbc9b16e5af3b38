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
