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
        kept={
            "a": rng.normal(size=(k, m)),
            "W": rng.normal(size=(k, m, d)),
            "log_scale": np.full((k, m), -1e6),
            "log_scale_out": np.full((k, m), -1e6),
            "exponent": np.zeros((k, m), dtype=np.int64),
            "moved": np.ones((k, m), dtype=bool),
            "least": -t - 800.0,
        },
        final=net.with_scale(0.0),
        status=Status.STEPS,
        events=EVENTS,
        stats={"form": "weights", "iterations": k - 1, "final_log_loss": -t[-1] - 800.0},
        options={"lr": 0.1, "alpha": None, "steps": k - 1, "train": "both"},
    )
    return replace(run, **changes)


def a_sound_run(**changes):
    """The same with the losses of its networks, whose outputs are zero in floats."""
    run = a_run(**changes)
    log_loss = run.loss_function.log_value(np.zeros(run.data.n), run.data.y)
    return replace(run, log_loss=np.full(len(run.t), log_loss))


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
    assert set(one.kept) == set(two.kept)
    for name, array in one.kept.items():
        assert array.tobytes() == two.kept[name].tobytes()


def test_saving_and_loading(tmp_path):
    run = a_sound_run()
    run.save(tmp_path / "run.rf")
    loaded = rf.load(tmp_path / "run.rf")
    assert_same(run, loaded)
    loaded.save(tmp_path / "again.rf")
    assert (tmp_path / "run.rf").read_bytes() == (tmp_path / "again.rf").read_bytes()


@given(
    status=st.sampled_from(list(Status)),
    reason=st.text(st.characters(codec="utf-8")),
    limit_error=st.floats(),
    least=hnp.arrays("f8", 4),
    counts=st.dictionaries(  # names of its own: those of the engines are counts, and checked
        st.text(st.characters(codec="ascii")).map("own {}".format), st.integers(), max_size=3
    ),
    loss_function=st.sampled_from(
        [losses.Square("1/2"), losses.Exponential(), losses.Logistic(), losses.Square("1/n")]
    ),
)
def test_any_run_reads_back_equal(tmp_path_factory, counts, least, **changes):
    path = tmp_path_factory.mktemp("runs") / "run.rf"
    run = a_sound_run(**changes)
    run = replace(run, stats={**counts, **run.stats}, kept={**run.kept, "least": least})
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
    data = rf.Dataset(np.eye(3)[:2], [1, 1], **extra)
    a_sound_run(data=data).save(tmp_path / "run.rf")
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
    assert run.network(2).mantissa.a.tolist() == run.kept["a"][2].tolist()
    assert repr(run) == "Trajectory(descent, steps, t=3, log_loss=-803, events=2)"


def test_states_are_the_true_weights_and_keep_the_split():
    scale = np.array([[0.0, 0.0], [-1.0, 2.0], [-1e6, 0.5], [3.0, -1e6]])
    run = a_run()
    run = replace(run, kept={**run.kept, "log_scale": scale, "log_scale_out": -scale / 2})
    for k in range(len(run.t)):
        net = run.network(k)
        np.testing.assert_allclose(run.states["a"][k], net.a, rtol=1e-14)
        np.testing.assert_allclose(run.states["W"][k], net.W, rtol=1e-14)
        np.testing.assert_array_equal(run.states["mantissa_W"][k], net.mantissa.W)
    assert not run.states["W"][2, 0].any()  # below the range of floats
    table = run.to_xarray()
    for name in ("a", "W", "mantissa_a", "mantissa_W", "log_scale", "log_scale_out"):
        np.testing.assert_array_equal(table[name], run.states[name])


def test_networks_of_a_run_take_points_as_the_data_were_given(tmp_path):
    data = rf.Dataset([0.3, -1.0], [1.0, -1.0], bias=True)
    start = rf.Network([0.5, -0.5], [[0.5, 0.1], [-0.4, 0.2]])
    run = rf.descend(data, start, lr=0.1, steps=20)
    run.save(tmp_path / "run.rf")
    again = rf.load(tmp_path / "run.rf")
    assert again.data.bias
    assert again.data == run.data
    for found in (run, again):
        for net in (found.net, found.final, found.at(7), found.network(3)):
            np.testing.assert_array_equal(net.predict([0.3, -1.0]), net.predict(data.X))


def test_a_bias_that_does_not_fit_the_points_is_refused(tmp_path):
    run = a_sound_run()
    fields, arrays = files.decode(run.to_bytes(), "trajectory", "run")
    fields["fields"]["bias"] = True
    files.write(tmp_path / "run.rf", "trajectory", fields["fields"], arrays)
    with pytest.raises(FileError, match="`bias` does not fit the last coordinate"):
        rf.load(tmp_path / "run.rf")


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
    run = a_sound_run(events=np.array(rows, EVENT_DTYPE))
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
    a_sound_run().save(path)
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
        ({"without": "final.a"}, "'final.a' is missing"),
        ({"without": "states.W"}, "'states.W' is missing"),
        ({"fields": {"status": "fine"}}, "'fine' is not a valid Status"),
        ({"fields": {"engine": "magic"}}, "`engine` is 'magic'"),
        ({"fields": {"reason": 3}}, "`reason` is 3, not a text"),
        ({"fields": {"loss": {"name": "hinge"}}}, r"`loss\.name` is 'hinge'"),
        ({"fields": {"loss": 3}}, "`loss` is 3, not a mapping"),
        ({"fields": {"limit_error": "small"}}, "`limit_error` is 'small', not a number"),
        ({"fields": {"limit_error": 10**400}}, "`limit_error` is <an integer of about 401 digits>"),
        ({"fields": {"options": {}}}, "`options.train` is missing"),
        ({"fields": {"stats": {}}}, "`stats.form` is missing"),
        ({"fields": {"provenance": {"versions": 3}}}, "`provenance.versions` is 3"),
        (
            {"fields": {"provenance": {"versions": {"numerics": "1"}}}},
            "`provenance.versions.numerics` is '1', not an integer",
        ),
        (
            {"fields": {"provenance": {"versions": {"numpy": 2}}}},
            "`provenance.versions.numpy` is 2, not a text",
        ),
        ({"arrays": {"t": np.zeros(9)}}, r"`log_t` has shape \(4,\), not \(9,\) \(records\)"),
        ({"arrays": {"t": np.float64(3)}}, r"`t` has shape \(\); it needs 1 axes"),
        ({"arrays": {"t": np.array([0.0, 2.0, 1.0, 3.0])}}, "`t` falls from record 1"),
        ({"arrays": {"t": np.array([0.0, 1.0, 2.0, np.nan])}}, r"`t` is nan at \[3\]"),
        ({"arrays": {"t": np.array([0.0, 1.0, 2.0, 4.0])}}, "`log_t` is 1.09.* `t` is 4.0"),
        ({"arrays": {"t": np.array([0.0, 0.5, 2.0, 3.0])}}, "`log_t` is 0.0 at record 1"),
        ({"arrays": {"t": np.arange(4)}}, "`t` has dtype int64, not float64"),
        ({"arrays": {"t": np.arange(4.0).astype(">f8")}}, "`t` has dtype >f8"),
        ({"arrays": {"events": np.zeros(3)}}, "events have another layout"),
        ({"arrays": {"events": EVENTS[:, None]}}, "events have another layout"),
        ({"arrays": {"data.X": np.full((2, 3), np.nan)}}, "`X` has 6 non-finite entries"),
        ({"arrays": {"data.y": np.zeros(5)}}, "`X` has 2 rows but `y` has 5 labels"),
        ({"arrays": {"data.y": np.zeros(2)}}, "needs labels -1 or 1"),
        ({"arrays": {"states.W": np.zeros((4, 5, 3))}}, "`states.W` has shape .* not .*neurons"),
        ({"arrays": {"states.a": np.full((4, 2), np.inf)}}, "`states.a` is inf at"),
        ({"arrays": {"states.new": np.zeros((3, 2))}}, "`states.new` has shape .* for 4 records"),
        ({"arrays": {"states.moved": np.ones((4, 2))}}, "`states.moved` has dtype float64"),
        ({"arrays": {"net.a": np.zeros(3)}}, "`net.a` has shape"),
        ({"arrays": {"final.log_scale": np.full(2, 1e301)}}, "`final.log_scale` is 1e.301"),
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


MODES = np.zeros((2, 2, 2), np.int8)


def a_flow_file(path, fields=None, arrays=None, without=None):
    run = rf.flow(
        rf.Dataset([[1.0, 0.2], [0.3, 1.0]], [1.0, -0.7]),
        rf.Network([0.5, -0.4], [[0.4, 0.3], [-0.2, 0.5]]),
        t_end=1.0,
        record=2,
    )
    manifest, stored = files.decode(run.to_bytes(), None, "run")
    changed, kept = {**manifest["fields"], **(fields or {})}, {**stored, **(arrays or {})}
    kept.pop(without, None)
    files.write(path, "trajectory", changed, kept)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"without": "states.mode"}, "'states.mode' is missing"),
        ({"arrays": {"states.mode": MODES[:, :, :1]}}, "`states.mode` has shape .*, points"),
        ({"arrays": {"states.mode": MODES.astype(np.int64)}}, "`states.mode` has dtype int64"),
        ({"arrays": {"states.mode": MODES + np.int8(4)}}, "`states.mode` is 4 at"),
        ({"arrays": {"states.mode": MODES - np.int8(1)}}, "`states.mode` is -1 at"),
        ({"arrays": {"states.W": np.ones((2, 2, 9))}}, "`states.W` has shape"),
        ({"arrays": {"states.step": np.zeros(2)}}, "`states.step` is 0.0 at"),
        ({"arrays": {"states.step": np.array([1.0, np.inf])}}, "`states.step` is inf at"),
        ({"arrays": {"states.clock": np.array([0.0, np.nan])}}, "`states.clock` is nan at"),
        ({"arrays": {"states.still": np.zeros((2, 2, 3))}}, "`states.still` has shape"),
        ({"arrays": {"states.still": np.zeros((2, 1, 2))}}, "`states.still` has shape"),
        ({"arrays": {"states.still": np.zeros((2, 2))}}, "`states.still` has shape"),
        ({"arrays": {"states.still": np.full((2, 2, 1), np.nan)}}, "`states.still` is nan at"),
        ({"arrays": {"states.still_sigma": np.zeros((2, 3))}}, "`states.still_sigma` has shape"),
        (
            {"arrays": {"states.still_sigma": np.full((2, 2), np.inf)}},
            "`states.still_sigma` is inf at",
        ),
        ({"fields": {"options": {"train": "both"}}}, "`options.rtol` is missing"),
        ({"fields": {"options": {"train": "all", "rtol": 1e-8}}}, "`train` is 'all'"),
        ({"fields": {"options": {"train": "both", "rtol": 0.0}}}, "`rtol` is 0"),
        ({"fields": {"options": {"train": "both", "rtol": True}}}, "`rtol` is True, not a number"),
        ({"fields": {"stats": {"iterations": "many"}}}, "`iterations` is 'many', not an integer"),
    ],
)
def test_what_compiled_code_relies_on_is_checked(changes, message, tmp_path):
    """Each of these loaded once, and then ended the interpreter, hung, or raised on use."""
    a_flow_file(tmp_path / "run.rf", **changes)
    with pytest.raises(FileError, match=rf"run\.rf is whole but its contents .*{message}"):
        rf.load(tmp_path / "run.rf")


@pytest.mark.parametrize("coordinates", [0, 1, 2])
def test_records_of_neurons_that_stand_still_are_kept(coordinates, tmp_path):
    still, sigma = np.ones((2, 2, coordinates)), np.array([[np.nan, 1.0], [0.0, -1.0]])
    a_flow_file(tmp_path / "run.rf", arrays={"states.still": still, "states.still_sigma": sigma})
    run = rf.load(tmp_path / "run.rf")
    np.testing.assert_array_equal(run.kept["still"], still)
    np.testing.assert_array_equal(run.kept["still_sigma"], sigma)


def test_the_numerics_version_is_kept_and_may_be_absent(tmp_path):
    for versions in ({"reluflow": "0.1.0"}, {"reluflow": "0.2.0", "numerics": 7}):
        rewrite(tmp_path / "run.rf", fields={"provenance": {"versions": versions}})
        assert rf.load(tmp_path / "run.rf").provenance["versions"] == versions


def descent_file(path, stats=None, options=None, arrays=None, **settings):
    data = rf.Dataset([[1.0, 0.2, 0.1]], [1.0])
    run = rf.descend(
        data, rf.Network([0.5], [[0.4, 0.3, 0.2]]), lr=0.1, record=3, train="hidden", **settings
    )
    manifest, stored = files.decode(run.to_bytes(), None, "run")
    fields = manifest["fields"]
    fields["stats"].update(stats or {})
    fields["options"].update(options or {})
    files.write(path, "trajectory", fields, {**stored, **(arrays or {})})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stats": {"form": "magic"}}, "`stats.form` is 'magic'"),
        ({"stats": {"form": "weights"}}, "'states.exponent' is missing"),
        ({"options": {"train": "both"}}, "`stats.form` is 'gram', which its options never"),
        ({"stats": {"iterations": 5.0}}, "`iterations` is 5.0, not an integer"),
        ({"stats": {"iterations": True}}, "`iterations` is True, not an integer"),
        ({"stats": {"iterations": 2}}, "`t` ends at 5, after the last iteration"),
        ({"stats": {"final_log_loss": None}}, "`final_log_loss` is None, not a number"),
        ({"options": {"lr": None}}, "its step is neither"),
        ({"options": {"alpha": 0.1, "lr": None}}, "its step is neither"),
        ({"options": {"lr": -1}}, "`lr` is -1"),
        ({"arrays": {"states.dual": np.zeros((3, 1, 2))}}, "`states.dual` has shape"),
        ({"arrays": {"states.dual": np.full((3, 1, 1), np.nan)}}, "`states.dual` is nan"),
    ],
)
def test_what_descent_relies_on_is_checked(changes, message, tmp_path):
    descent_file(tmp_path / "run.rf", steps=5, **changes)
    with pytest.raises(FileError, match=message):
        rf.load(tmp_path / "run.rf")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stats": {"form": "gram"}}, "'states.dual' is missing"),
        ({"options": {"batch": 0}}, "`batch` is 0"),
        ({"options": {"batch": 2}}, "`options.batch` is 2, more than there are points"),
        ({"options": {"replacement": 1}}, "`replacement` is 1, neither true nor false"),
        ({"options": {"momentum": 1.0}}, "`momentum` is 1; it must be below 1"),
        ({"options": {"momentum": 0.0}}, "`states.velocity_a` does not fit the momentum"),
        ({"options": {"seed": -1}}, "`seed` is -1"),
        ({"options": {"train": "linearised"}}, "which descent does not have"),
        ({"arrays": {"states.velocity_W": np.zeros((3, 1, 2))}}, "`states.velocity_W` has shape"),
    ],
)
def test_what_batches_rely_on_is_checked(changes, message, tmp_path):
    descent_file(tmp_path / "run.rf", steps=5, momentum=0.5, batch=1, seed=0, **changes)
    with pytest.raises(FileError, match=message):
        rf.load(tmp_path / "run.rf")


@pytest.mark.parametrize(
    ("options", "arrays", "message"),
    [
        ({"train": "both"}, {}, "`options.train` is 'both', which no run of its form has"),
        ({"rates": [1.0]}, {}, r"`options.rates` is \[1.0\], not a pair"),
        ({"rates": [1.0, 0.0]}, {}, "`rates` is 0; it must be above 0"),
        ({}, {"states.outputs": np.zeros((3, 2))}, "`states.outputs` has shape"),
        ({}, {"states.outputs": np.full((3, 1), 7.0)}, "but its network has"),
        ({}, {"states.mode": np.full((3, 1, 1), 2, np.int8)}, "`states.mode` is 2"),
    ],
)
def test_what_fixed_features_rely_on_is_checked(options, arrays, message, tmp_path):
    data = rf.Dataset([[1.0, 0.2, 0.1]], [1.0])
    net = rf.Network([0.5], [[0.4, 0.3, 0.2]])
    run = rf.flow(data, net, train="linearised", record=3)
    manifest, stored = files.decode(run.to_bytes(), None, "run")
    manifest["fields"]["options"].update(options)
    files.write(tmp_path / "run.rf", "trajectory", manifest["fields"], {**stored, **arrays})
    with pytest.raises(FileError, match=message):
        rf.load(tmp_path / "run.rf")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stats": {"frozen_from": "x"}}, "`frozen_from` is 'x', not an integer"),
        ({"arrays": {"states.restart_t": np.full(3, 10**9)}}, "`states.restart_t` lies after"),
        ({"arrays": {"states.restart_burst": np.zeros(3, np.int64)}}, "restart_burst` is 0"),
        ({"arrays": {"states.moved": np.full((3, 1), 2, np.uint8).view(bool)}}, "neither true nor"),
    ],
)
def test_what_descent_to_the_limit_relies_on_is_checked(changes, message, tmp_path):
    descent_file(tmp_path / "run.rf", steps=np.inf, **changes)
    with pytest.raises(FileError, match=message):
        rf.load(tmp_path / "run.rf")


@pytest.mark.parametrize(
    "change",
    [{"neuron": 2}, {"neuron": -1}, {"point": 2}, {"point": -2}, {"kind": "fly"}, {"t": -1.0}],
)
def test_events_name_what_is_there(change, tmp_path):
    events = EVENTS.copy()
    for name, value in change.items():
        events[name][1] = value
    rewrite(tmp_path / "run.rf", arrays={"events": events})
    with pytest.raises(FileError, match="event 1 names no neuron, point, kind or time"):
        rf.load(tmp_path / "run.rf")


def test_arrays_of_later_releases_are_kept(tmp_path):
    extra = np.zeros((4, 2))
    rewrite(tmp_path / "run.rf", arrays={"states.new": extra})
    assert np.array_equal(rf.load(tmp_path / "run.rf").kept["new"], extra)
