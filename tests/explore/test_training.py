"""Ways of training: what the page is told of fixed features, and what theory says of them."""

import numpy as np
import pytest

from reluflow.explore import compute, jobs
from reluflow.explore.state import Drawn, State, from_json
from reluflow.network import Network

from .helpers import never

X, Y = [[-1.0, 1.0], [0.5, 1.0], [1.5, 1.0]], [0.5, -0.4, 1.0]


def told(**fields):
    return compute.full(State(X=X, y=Y, net=Drawn(width=6, seed=2), **fields), never)


def values(result, prefix, at):
    """What the page draws at inputs x of a line: vectors where the start is on."""
    on = np.column_stack([at, np.ones_like(at)]) @ result.arrays["u"][0].T > 0
    vectors = result.arrays[prefix]
    e = vectors[-1] if vectors.ndim == 3 else vectors
    return (on * (np.column_stack([at, np.ones_like(at)]) @ e.T)).sum(axis=1)


@pytest.mark.parametrize("log_scale", [-2.0, 0.0, 3.0])
def test_the_linearised_network_is_drawn_by_its_own_outputs(log_scale):
    found = told(train="linearised", log_scale=log_scale)
    outputs = found.run.kept["outputs"][-1]
    size = np.abs(found.run.net.predict(X)).max() + 1.0
    assert values(found, "tangent", np.array(X)[:, 0]) == pytest.approx(outputs, abs=1e-12 * size)
    assert outputs == pytest.approx(Y, abs=1e-8)
    between = np.array([-3.0, -0.2, 0.9, 4.0])
    assert values(found, "tangent", between) == pytest.approx(
        values(found, "limit_tangent", between), abs=1e-6 * size
    )
    assert found.header["numbers"]["trained"]["loss"] < 1e-12
    assert found.header["numbers"]["predicted"]["loss"] < 1e-12
    assert found.header["numbers"]["trained"]["norm"] == pytest.approx(
        found.header["numbers"]["predicted"]["norm"], rel=1e-9
    )


def test_output_weights_alone_reach_the_limit_of_their_features():
    found = told(train="output", log_scale=-1.0, rates=(1.0, 4.0))
    assert found.header["predicted"]["method"] == "kernel"
    assert found.run.final.predict(X) == pytest.approx(Y, abs=1e-8)
    assert np.ptp(found.arrays["u"], axis=0).max() == 0.0
    assert "tangent" not in found.arrays


@pytest.mark.parametrize("fields", [{"train": "hidden"}, {"rates": (2.0, 1.0)}])
def test_no_theorem_and_no_guess_where_training_is_another(fields):
    state = State(X=X, y=Y, net=Drawn(width=6, seed=2), log_scale=-2.0, **fields)
    found = compute.draft(state, never)
    assert "method" not in found.header["predicted"]
    header, arrays = jobs.heuristic(state, found.run, never)
    assert header == {"skipped": True}
    assert arrays == {}


@pytest.mark.parametrize("train", ["output", "linearised"])
@pytest.mark.parametrize("loss", ["square", "exponential"])
def test_the_slow_lane_takes_fixed_features(train, loss):
    labels = Y if loss == "square" else [1.0, -1.0, 1.0]
    state = State(
        X=X, y=labels, net=Drawn(width=8, seed=3), log_scale=0.0, train=train, loss=loss
    )  # fmt: skip
    run = compute.train(state, state.rtol, 60.0, never)
    second, _ = jobs.second_tolerance(state, run, never)
    assert second["undecided"] is False
    strip, arrays = jobs.strip(state, run, never)
    assert min(strip["scales"]) >= -300.0
    assert ("strip_tangent" in arrays) == (train == "linearised")
    claims, _ = jobs.claims(state, run, never)
    assert "rows" not in claims


@pytest.mark.parametrize(
    ("fields", "title"),
    [
        ({"slope": 0.3}, "smallest norm"),
        ({"decay": 0.05}, "least loss and decay"),
        ({"slope": 0.3, "loss": "exponential", "y": [1.0, -1.0, 1.0]}, "largest margin"),
    ],
)
def test_the_extremal_network_is_that_of_the_activation_and_the_decay(fields, title):
    state = from_json({"v": 1, "X": X, "y": Y, **fields})
    run = compute.train(state, 1e-6, 60.0, never)
    assert run.final.slope == state.slope
    assert run.options.get("decay", 0.0) == state.decay
    told, arrays = jobs.extremal(state, run, never)
    assert told["title"] == title
    assert told["certified"]
    best = Network(
        arrays["extremal_sign"] * np.exp(arrays["extremal_log_a"]),
        arrays["extremal_u"] * np.exp(arrays["extremal_log_w"])[:, None],
        slope=state.slope,
    )
    reached, least = (
        float(state.loss_function().value(net.predict(X), np.array(state.y)))
        + 0.5 * state.decay * net.squared_norm
        for net in (run.final, best)
    )
    if state.is_regression:
        assert least <= reached + 1e-6
    else:
        assert told["numbers"]["margin"] >= compute.numbers(state, run.data, run.final)["margin"]


def test_sampling_of_fixed_features_can_be_stopped():
    state = State(X=X, y=[1.0, -1.0, 1.0], net=Drawn(width=8, seed=3), log_scale=0.0,
                  train="output", loss="logistic", stop_log_loss=-5.0)  # fmt: skip
    run = compute.train(state, state.rtol, 60.0, never)
    times = np.linspace(run.log_t[1], run.log_t[-1], 20)
    asked = iter([False, False, True])
    assert len(run.sample(times, stop=lambda: next(asked)).t) == 3
    assert len(run.sample(times).t) == 20
