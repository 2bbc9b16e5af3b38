"""Numbers of a run that do not fit each other are refused; those of every true run fit."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import reluflow as rf
from reluflow import files, run_relations
from reluflow.errors import InputError
from reluflow.trajectory import from_parts

GOLDEN = Path(__file__).parent / "data" / "golden" / "0.1.0"


def check(run, work=np.inf):
    run_relations.check(run.data, run.loss_function, run.states, run.log_loss, work=work)


def with_states(run, name, change):
    array = run.states[name].copy()
    change(array)
    return replace(run, states={**run.states, name: array})


def put(where, value):
    def change(array):
        array[where] = value

    return change


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*-*.rf")), ids=lambda path: path.stem)
def test_true_runs_fit(path):
    check(rf.load(path))


@pytest.mark.parametrize("name", ["flow-square", "flow-logistic", "descent-logistic"])
@pytest.mark.parametrize("factor", [1.01, 1e9])
def test_weights_that_do_not_have_the_recorded_loss_are_refused(name, factor):
    run = rf.load(GOLDEN / f"{name}.rf")
    changed = with_states(run, "a", lambda a: np.multiply(a, factor, out=a))
    with pytest.raises(InputError, match=r"record 0 has the log-loss .* but its network has"):
        check(changed)


def test_a_misclassified_point_with_a_huge_weight_is_no_rounding():
    """A file in which one scale had become exp(255) once loaded, and then hung in `at`."""
    run = rf.load(GOLDEN / "flow-logistic.rf")
    with pytest.raises(InputError, match="record 2 has the log-loss"):
        check(with_states(run, "log_scale", put((2, 1), 255.0)))


@pytest.mark.parametrize(("name", "value"), [("log_scale", 1e15), ("a", 1e308)])
def test_outputs_of_a_flow_are_floats(name, value):
    run = rf.load(GOLDEN / "flow-logistic.rf")
    with pytest.raises(InputError, match="the outputs of record 2 leave the range of floats"):
        check(with_states(run, name, put((2, 3), value)))


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_modes_are_those_of_the_weights(mode):
    run = rf.load(GOLDEN / "flow-square.rf")
    z = run.network(1).preactivations(run.data.X).T
    j, i = np.argwhere(np.abs(z) > 0.01)[0]
    if mode == run.states["mode"][1, j, i]:
        check(run)
        return
    with pytest.raises(InputError, match=rf"`states.mode` is {mode} for neuron {j} and point {i}"):
        check(with_states(run, "mode", put((1, j, i), mode)))


@pytest.mark.parametrize("name", ["a", "W", "log_scale", "log_scale_out"])
def test_a_dead_neuron_does_not_move(name):
    data = rf.Dataset([[1.0, 0.0], [0.0, 1.0]], [1.0, 0.5])
    net = rf.Network([1.0, 1.0], [[0.5, 0.5], [-1.0, -1.0]])
    run = rf.flow(data, net, t_end=3.0, record=5)
    check(run)
    with pytest.raises(InputError, match=rf"`states.{name}` changes after record 1 for the dead"):
        check(with_states(run, name, put((2, 1), -3.0)))


def test_some_records_are_enough_for_a_large_run():
    run = rf.load(GOLDEN / "descent-square.rf")
    changed = with_states(run, "a", put((3, 0), 9.0))
    check(changed, work=1.0)  # the first and the last only
    with pytest.raises(InputError, match="record 3"):
        check(changed)
    with pytest.raises(InputError, match="record 6"):
        check(with_states(run, "a", put((6, 0), 9.0)), work=1.0)


def problems():
    rng = np.random.default_rng(5)
    losses = [rf.losses.Square(), rf.losses.Square("1/2"), rf.losses.Exponential(),
              rf.losses.Logistic()]  # fmt: skip
    for k in range(24):
        loss, train = losses[k % 4], "hidden" if k % 3 == 0 else "both"
        n, d, m = (int(size) for size in rng.integers(1, 7, 3))
        X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-1, 1)
        y = rng.normal(size=n) if k % 4 < 2 else np.sign(rng.normal(size=n))
        scale = float(rng.choice([0.0, -5.0, -200.0]))
        net = rf.Network(rng.normal(size=m), rng.normal(size=(m, d)), scale)
        yield rf.Dataset(X, y), net, {"loss": loss, "train": train}


@pytest.mark.parametrize("problem", list(problems()), ids=range(24))
def test_what_engines_make_is_never_refused(problem):
    data, net, options = problem
    span = 5.0 / np.abs(data.X).max() ** 2
    run = rf.flow(data, net, t_end=span, record=9, rtol=1e-6, **options)
    for made in (
        run,
        rf.flow(run, t_end=2 * span, record=9),
        rf.flow(data, net, t_end=span, record=[0.3 * span, 0.4 * span], **options),
        rf.descend(data, net, lr=1e-3, steps=50, record=9, **options),
    ):
        manifest, arrays = files.decode(made.to_bytes(), None, "run")
        check(from_parts(manifest["fields"], arrays))
