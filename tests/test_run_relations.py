"""Numbers of a run that do not fit each other are refused; those of every true run fit."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import reluflow as rf
from numerics import degenerate, origins
from reluflow import files, run_relations
from reluflow.errors import InputError
from reluflow.trajectory import from_parts

GOLDEN = Path(__file__).parent / "data" / "golden" / "0.1.0"


def check(run, work=np.inf):
    run_relations.check(
        run.data, run.loss_function, run.kept, run.log_loss, t=run.t, options=run.options, work=work
    )


def with_states(run, name, change):
    array = run.kept[name].copy()
    change(array)
    return replace(run, kept={**run.kept, name: array})


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
    if mode == run.kept["mode"][1, j, i]:
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


def moved_start(run, **changes):
    """The run with another start, read from its bytes."""
    arrays = {**run.net.to_arrays(), **changes}
    return replace(run, net=rf.Network(**arrays)).to_bytes()


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("flow-square", {"a": np.array([1e308, 0.1, 0.1, 0.1])}),
        ("flow-square", {"log_scale_out": np.array([9e15, 0.0, 9e15, 0.0])}),
        ("flow-logistic", {"log_scale": np.array([-0.5, 0.2, 0.0, 1e16])}),
        ("flow-limit", {"log_scale_out": np.array([127.0, 127.0, -60.0, 127.0])}),
        ("flow-limit", {"log_scale": np.full(4, -61.0), "log_scale_out": np.full(4, -61.0)}),
        ("flow-hidden", {"a": np.array([0.7])}),
    ],
)
def test_a_start_that_the_records_do_not_come_from_is_refused(name, changes):
    """The engine goes on from a record with the invariants of the start: these once did not end."""
    run = rf.load(GOLDEN / f"{name}.rf")
    changes = {k: np.resize(v, run.net.width) for k, v in changes.items()}
    manifest, arrays = files.decode(moved_start(run, **changes), None, "x")
    with pytest.raises(InputError, match="does not come from the start of the run"):
        from_parts(manifest["fields"], arrays)


@pytest.mark.parametrize("record", [30, [0.5, 1.0]])
@pytest.mark.parametrize("seed", range(12))
def test_flows_of_all_kinds_come_from_their_start(seed, record):
    """Neurons that shrink, flip, die, slide, start at zero or on planes, at any scale."""
    problem = (degenerate.problem, degenerate.generic, origins.problem)[seed % 3](seed)
    if isinstance(record, list):
        record = [t for t in record if t <= problem.t_end] or [problem.t_end]
    run = problem.flow(record=record, max_seconds=60.0)
    manifest, arrays = files.decode(run.to_bytes(), None, "x")
    assert from_parts(manifest["fields"], arrays).status == run.status
    deep = rf.flow(problem.data, problem.net.with_scale(-300.0), loss=problem.loss, t_end=3.0)
    manifest, arrays = files.decode(deep.to_bytes(), None, "x")
    assert from_parts(manifest["fields"], arrays).status == deep.status


def test_counts_of_a_flow_are_integers():
    run = rf.load(GOLDEN / "flow-square.rf")
    manifest, arrays = files.decode(run.to_bytes(), None, "x")
    manifest["fields"]["stats"]["steps"] = None
    with pytest.raises(InputError, match="`steps` is None, not an integer"):
        from_parts(manifest["fields"], arrays)
