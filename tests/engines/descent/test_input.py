"""Arguments that cannot be used: the fact, the consequence, the remedy."""

import numpy as np
import pytest

import reluflow as rf

DATA = rf.Dataset([[1.0, 0.5], [0.2, -1.0]], [1.0, -1.0])
REGRESSION = rf.Dataset([[1.0, 0.5], [0.2, -1.0]], [0.3, -1.0])
NET = rf.Network([1.0, -1.0], [[1.0, 0.0], [0.0, 1.0]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": 0.0}, r"`lr` is 0; it must be above 0"),
        ({"lr": -0.1}, r"`lr` is -0.1; it must be above 0"),
        ({"lr": np.nan}, r"`lr` is nan. Pass a finite number"),
        ({"lr": np.inf}, r"`lr` is inf"),
        ({"lr": "fast"}, r"`lr` is 'fast', not a number"),
        ({"lr": rf.LossBased(0.1)}, r"LossBased with the square loss. .* Pass a number"),
        ({"steps": -1}, r"`steps` is -1; it must be at least 0"),
        ({"steps": 2.5}, r"`steps` is 2.5, not a whole number"),
        ({"steps": np.nan}, r"`steps` is nan"),
        ({"steps": np.inf}, r"no limit can be certified .*`stop_loss` or `max_seconds`"),
        (
            {"steps": np.inf, "train": "hidden", "loss": rf.losses.Logistic()},
            r'train="hidden" and the logistic loss: no limit can be certified',
        ),
        ({"train": "outer"}, r"`train` is 'outer'; it must be one of 'both', 'hidden', 'output'"),
        (
            {"loss": "squared"},
            r"`loss` is 'squared'; it must be 'square', 'exponential', 'logistic'",
        ),
        ({"stop_loss": -1.0}, r"`stop_loss` is -1; it must be at least 0"),
        ({"stop_loss": np.nan}, r"`stop_loss` is nan"),
        ({"stop_log_loss": np.nan}, r"`stop_log_loss` is nan"),
        ({"stop_loss": 1e-3, "stop_log_loss": -7.0}, r"both given. They say the same thing"),
        ({"max_seconds": 0}, r"`max_seconds` is 0; it must be above 0"),
        ({"record": 1}, r"`record` is 1; it must be at least 2"),
        ({"record": 2.5}, r"`record` is 2.5, not a whole number"),
        ({"record": []}, r"`record` is an empty array"),
        ({"record": [0.5]}, r"asks for iteration 0.5 of a run of 10 steps"),
        ({"record": [3, -2]}, r"asks for iteration -2"),
        ({"record": [3, 11]}, r"asks for iteration 11 of a run of 10 steps"),
        ({"record": [[1, 2]]}, r"`record` has shape \(1, 2\)"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(rf.errors.InputError, match=message):
        rf.descend(DATA, NET, **({"lr": 0.1, "steps": 10} | options))


def test_bad_data_and_networks():
    with pytest.raises(rf.errors.InputError, match=r"got \(Network, Dataset\). Pass a Dataset"):
        rf.descend(NET, DATA, lr=0.1, steps=10)
    with pytest.raises(rf.errors.InputError, match=r"takes 3 inputs but the points have 2"):
        rf.descend(DATA, rf.Network([1.0], [[1.0, 2.0, 3.0]]), lr=0.1, steps=10)
    with pytest.raises(rf.errors.InputError, match=r"needs labels -1 or 1; y\[0\] is 0.3"):
        rf.descend(REGRESSION, NET, lr=0.1, steps=10, loss=rf.losses.Exponential())


def test_infinite_steps_are_legal_with_a_stop():
    net = rf.Network([1.0, -1.0], [[1.0, 0.0], [0.0, -1.0]])
    run = rf.descend(DATA, net, lr=0.1, steps=np.inf, stop_loss=1e-6)
    assert run.status == "stop_loss"
    assert run.options["steps"] == np.inf
