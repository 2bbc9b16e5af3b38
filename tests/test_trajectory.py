"""Trajectory: what is saved is what is loaded; unusable files are refused by name."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import reluflow as rf
from reluflow import files, losses
from reluflow.errors import FileError, InputError, MissingExtraError
from reluflow.trajectory import EVENT_DTYPE, EVENT_KINDS, Status

EVENTS = np.array(
    [(0.5, np.log(0.5), 1, 0, "activate"), (2.0, np.log(2.0), 0, -1, "die")], dtype=EVENT_DTYPE
)


def a_run(k=4, m=2, d=3, **changes):
    rng = np.random.default_rng(1)
    net = rf.Network(rng.normal(size=m), rng.normal(size=(m, d)), -1e6)
    t = np.arange(float(k))
    with np.errstate(divide="ignore"):
        log_t = np.log(t)
    run = rf.Trajectory(
        engine="descent",
        data=rf.Dataset(rng.normal(size=(2, d)), [1.0, -1.0], name="toy"),
        net=net,
        loss_function=losses.Logistic(),
        t=t,
        log_t=log_t,
        log_loss=-t - 800.0,
        states={
            "a": rng.normal(size=(k, m)),
            "W": rng.normal(size=(k, m, d)),
            "log_scale": np.full((k, m), -1e6),
            "log_scale_out": np.full((k, m), -1e6),
            "exponents": np.zeros((k, m), dtype=np.int64),
        },
        final=net.with_scale(0.0),
        status=Status.STEPS,
        events=EVENTS,
        stats={"steps": 3},
        options={"lr": 0.1},
    )
    return replace(run, **changes)


def assert_same(one, two):
    assert (one.engine, one.status, one.stats) == (two.engine, two.status, two.stats)
    assert one.reason == two.reason
    assert (one.options, one.provenance) == (two.options, two.provenance)
    assert one.data == two.data
    assert one.net == two.net
    assert one.final == two.final
    assert one.loss_function == two.loss_function
    assert np.array_equal(one.limit_error, two.limit_error, equal_nan=True)
    for name in ("t", "log_t", "log_loss", "events"):
        assert getattr(one, name).dtype == getattr(two, name).dtype
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()
    assert set(one.states) == set(two.states)
    for name, array in one.states.items():
        assert array.tobytes() == two.states[name].tobytes()


def test_saving_and_loading(tmp_path):
    run = a_run()
    run.save(tmp_path / "run.rf")
    loaded = rf.load(tmp_path / "run.rf")
    assert_same(run, loaded)
    loaded.save(tmp_path / "again.rf")
    assert (tmp_path / "run.rf").read_bytes() == (tmp_path / "again.rf").read_bytes()


@given(
    status=st.sampled_from(list(Status)),
    reason=st.text(st.characters(codec="utf-8")),
    limit_error=st.floats(),
    log_loss=hnp.arrays("f8", 4),
    stats=st.dictionaries(st.text(st.characters(codec="ascii")), st.integers(), max_size=3),
    loss_function=st.sampled_from(
        [losses.Square("1/2"), losses.Exponential(), losses.Logistic(), losses.Square("1/n")]
    ),
)
def test_any_run_reads_back_equal(tmp_path_factory, **changes):
    path = tmp_path_factory.mktemp("runs") / "run.rf"
    run = a_run(**changes)
    run.save(path)
    assert_same(run, rf.load(path))


@pytest.mark.parametrize(
    "extra",
    [
        {"teacher": [1.0, 2.0, 3.0]},
        {"teacher": rf.Network([1.0], [[1.0, 0.0, 0.0]], -3.0)},
        {"spectrum": [2.0, 1.0], "ambient_dim": 10**9},
    ],
)
def test_what_is_known_about_the_data_is_kept(extra, tmp_path):
    data = rf.Dataset(np.eye(3), [1, 1, 1], **extra)
    a_run(data=data).save(tmp_path / "run.rf")
    loaded = rf.load(tmp_path / "run.rf").data
    assert loaded.ambient_dim == data.ambient_dim
    assert np.array_equal(loaded.spectrum, data.spectrum)
    if isinstance(data.teacher, rf.Network):
        assert loaded.teacher == data.teacher
    else:
        assert np.array_equal(loaded.teacher, data.teacher)


def test_the_file_carries_versions_threads_and_the_specification(tmp_path):
    run = a_run()
    with_spec = replace(run, provenance={**run.provenance, "spec": {"name": "x"}, "seed": 7})
    with_spec.save(tmp_path / "run.rf")
    manifest, _ = files.read(tmp_path / "run.rf")
    assert manifest["versions"]["reluflow"] == rf.__version__
    kept = manifest["fields"]["provenance"]
    assert kept["versions"]["numpy"] == np.__version__
    assert kept["threads"]["OMP_NUM_THREADS"] == "1"
    assert (kept["spec"], kept["seed"]) == ({"name": "x"}, 7)


def test_losses_below_the_range_are_zero_and_above_it_infinite():
    run = a_run(log_loss=np.array([800.0, 0.0, -1e7, -np.inf]))
    assert run.loss.tolist() == [np.inf, 1.0, 0.0, 0.0]


def test_recorded_networks_and_repr():
    run = a_run()
    assert run.network(2).a.tolist() == run.states["a"][2].tolist()
    assert repr(run) == "Trajectory(descent, steps, t=3, log_loss=-803, events=2)"


def test_every_status_has_a_sentence_and_is_its_own_text():
    assert {str(status) for status in Status} == {
        *("converged", "stationary", "stop_loss", "t_end"),
        *("steps", "unchanged", "diverged", "budget", "failed", "interrupted"),
    }
    assert len({status.text for status in Status}) == len(Status)
    assert Status("steps") is Status.STEPS


def test_ends_that_were_asked_for_are_told_from_others():
    asked = [status for status in Status if status.is_asked_for]
    assert asked == ["converged", "stationary", "stop_loss", "t_end", "steps"]


def test_the_reason_is_told_with_the_status():
    run = a_run(status=Status.FAILED, reason="400 attempts at one step")
    assert run.ending == (
        "the engine could not go on; .final is the last good state (400 attempts at one step)"
    )
    assert repr(run).endswith("events=2, reason='400 attempts at one step')")
    assert run.to_xarray().attrs["reason"] == "400 attempts at one step"
    assert a_run().ending == Status.STEPS.text
    assert a_run().reason == ""


def test_kinds_of_events_fit_and_branches_are_listed(tmp_path):
    rows = [(1.0, 0.0, 0, -1, kind) for kind in EVENT_KINDS]
    run = a_run(events=np.array(rows, EVENT_DTYPE))
    run.save(tmp_path / "run.rf")
    loaded = rf.load(tmp_path / "run.rf")
    assert loaded.events["kind"].tolist() == list(EVENT_KINDS)
    assert loaded.branches["kind"].tolist() == ["branch"]
    assert not len(a_run().branches)


def test_files_without_a_reason_load(tmp_path):
    rewrite(tmp_path / "run.rf", without="reason")
    assert rf.load(tmp_path / "run.rf").reason == ""


def test_a_run_is_frozen():
    with pytest.raises(AttributeError):
        a_run().status = Status.T_END


@pytest.mark.parametrize("arguments", [{}, {"t": 1.0, "log_t": 0.0}])
def test_at_needs_exactly_one_target(arguments):
    with pytest.raises(InputError, match=r"Give exactly one of t, log_t, log_loss"):
        a_run().at(**arguments)


def test_to_xarray_keeps_the_records():
    table = a_run().to_xarray()
    assert table["W"].dims == ("t", "neuron", "coordinate")
    assert table["log_loss"].sel(t=2.0).item() == -802.0
    assert table.attrs["status"] == "steps"
    assert table.attrs["reluflow"] == rf.__version__


def test_to_xarray_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'reluflow\[xarray\]'"):
        a_run().to_xarray()


def rewrite(path, fields=None, arrays=None, without=None):
    """Change parts of a saved run and seal it again with right checksums."""
    a_run().save(path)
    manifest, stored = files.read(path)
    changed = {**manifest["fields"], **(fields or {})}
    kept = {**stored, **(arrays or {})}
    changed.pop(without, None)
    kept.pop(without, None)
    files.write(path, "trajectory", changed, kept)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"without": "status"}, "'status' is missing"),
        ({"without": "data.X"}, "'data.X' is missing"),
        ({"without": "final.a"}, "'a' is missing"),
        ({"without": "states.W"}, "'W' is missing"),
        ({"fields": {"status": "fine"}}, "'fine' is not a valid Status"),
        ({"fields": {"engine": "magic"}}, "`engine` is 'magic'"),
        ({"fields": {"reason": 3}}, "`reason` is 3, not a text"),
        ({"fields": {"loss": {"name": "hinge"}}}, r"`loss\.name` is 'hinge'"),
        ({"fields": {"loss": 3}}, "cannot be used"),
        ({"arrays": {"t": np.zeros(9)}}, "records have different lengths"),
        ({"arrays": {"t": np.float64(3)}}, "cannot be used"),
        ({"arrays": {"events": np.zeros(3)}}, "events another layout"),
        ({"arrays": {"data.X": np.full((2, 3), np.nan)}}, "`X` has 6 non-finite entries"),
        ({"arrays": {"data.y": np.zeros(5)}}, "`X` has 2 rows but `y` has 5 labels"),
        ({"arrays": {"states.W": np.zeros((4, 5, 3))}}, "`W` has 5 rows but `a` has 2"),
    ],
)
def test_a_sound_file_with_unusable_contents_is_refused(changes, message, tmp_path):
    rewrite(tmp_path / "run.rf", **changes)
    with pytest.raises(FileError, match=rf"run\.rf is whole but its contents .*{message}"):
        rf.load(tmp_path / "run.rf")


def test_a_network_file_is_not_a_run(tmp_path):
    a_run().net.save(tmp_path / "net.rf")
    with pytest.raises(FileError, match="holds a network, not a trajectory"):
        rf.load(tmp_path / "net.rf")
