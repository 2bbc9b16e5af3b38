"""Specifications: from a TOML text to a run, with every mistake named by its place."""

import contextlib
import inspect
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reluflow as rf
from reluflow import spec
from reluflow.builders import generators, initialisations
from reluflow.errors import FileError, InputError

DATA = "[data]\nX = [[1.0, 0.0], [0.0, 1.0]]\ny = [1.0, -1.0]\n"
CENTRED = '[data]\ngenerator = "centred"\nd = 4\n'
INIT = '[network]\ninit = "balanced"\nwidth = 6\n'
DESCENT = '[engine]\nname = "descent"\nlr = 0.1\nsteps = 10\n'


def test_inline_arrays():
    task = spec.parse(f"{DATA}[network]\na = [1]\nW = [[1, 2]]\nlog_scale = -1e6\n{DESCENT}")
    assert task.data == rf.Dataset(np.eye(2), [1.0, -1.0])
    assert task.net == rf.Network([1.0], [[1.0, 2.0]], -1e6)
    assert task.loss == rf.losses.Square()
    assert (task.engine.lr, task.engine.steps, task.engine.record) == (0.1, 10.0, 200)


def test_generators_take_their_own_arguments_and_the_dimension_of_the_data():
    task = spec.parse(CENTRED + "n = 7\nrho = 0.5\n" + INIT + "log_scale = -20\n" + DESCENT)
    assert (task.data.n, task.data.d) == (7, 4)
    assert (task.net.width, task.net.d) == (6, 4)
    assert task.net.log_scale.tolist() == [-20.0] * 6


def test_the_seed_decides_both_draws_independently():
    one, two = (spec.parse(f"seed = 3\n{CENTRED}{INIT}{DESCENT}") for _ in range(2))
    assert one.data == two.data
    assert one.net == two.net
    other = spec.parse(f"seed = 3\n{CENTRED}{INIT}{DESCENT}", seed=4)
    assert other.data != one.data
    assert other.net != one.net
    wider = spec.parse(f"seed = 3\n{CENTRED}{INIT.replace('6', '9')}{DESCENT}")
    assert wider.data == one.data
    assert not np.array_equal(one.data.X[0], one.net.W[0])


def test_a_seed_of_a_section_is_kept():
    text = f"{CENTRED}seed = 11\n{INIT}seed = 12\n{DESCENT}"
    task = spec.parse(text, seed=99)
    assert task.data == rf.datasets.centred(4, seed=11)
    assert task.net == rf.networks.balanced(4, 6, seed=12)


def test_univariate_data_from_nested_tables():
    task = spec.parse(
        '[data]\ngenerator = "sample_1d"\nn = 9\nteacher = { zeros = [-0.5, 0.25] }\n'
        f'density = {{ name = "uniform", lo = -1.0, hi = 1.0 }}\n{INIT}'
        f'[loss]\nname = "logistic"\n{DESCENT}'
    )
    assert task.data.X.shape == (9, 2)
    assert set(task.data.y) <= {-1.0, 1.0}
    assert task.loss == rf.losses.Logistic()


def test_networks_by_preactivations_get_the_data():
    task = spec.parse(
        f'{DATA}[network]\ninit = "by_preactivations"\neps = [[0.1, 0.2]]\nsigns = [1]\n{DESCENT}'
    )
    assert task.net.preactivations(task.data.X) == pytest.approx(np.array([[0.1], [0.2]]))


def test_files_are_looked_up_beside_the_specification(tmp_path):
    (tmp_path / "points.csv").write_text("a,b,y\n1,2,3\n4,5,6\n")
    rf.Network([1.0], [[1.0, 2.0]], -5.0).save(tmp_path / "start.rf")
    (tmp_path / "my run!.toml").write_text(
        f'[data]\nfile = "points.csv"\nlabel = "y"\n[network]\nfile = "start.rf"\n{DESCENT}'
    )
    task = spec.load(tmp_path / "my run!.toml")
    assert task.data.y.tolist() == [3.0, 6.0]
    assert task.net.log_scale.tolist() == [-5.0]
    assert task.name == "my_run_"


def test_messages_name_the_file(tmp_path):
    (tmp_path / "x.toml").write_text(f"{DATA}{INIT}[engine]\nname = 'descent'\nlr = 0\nsteps = 1\n")
    with pytest.raises(InputError, match=r"x\.toml: `\$\.engine\.lr` is 0\. Expected"):
        spec.load(tmp_path / "x.toml")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"\xff\xfe", "is not text"),
        (b"\xef\xbb\xbfseed = 1", "data` is missing"),
    ],
)
def test_files_that_are_no_specification(body, message, tmp_path):
    (tmp_path / "x.toml").write_bytes(body)
    with pytest.raises(InputError, match=message):
        spec.load(tmp_path / "x.toml")


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FileError, match=r"cannot read .*none\.toml \(No such file"):
        spec.load(tmp_path / "none.toml")
    with pytest.raises(FileError, match="is a folder, not an ordinary file"):
        spec.load(tmp_path)


def test_every_engine_argument_can_be_given():
    task = spec.parse(
        f'{DATA}{INIT}[engine]\nname = "flow"\nt_end = inf\nrtol = 1e-6\nmax_events = 9\n'
        'train = "hidden"\nstop_log_loss = -1e7\nrecord = [1.0, 2.0]\nmax_seconds = 5\n'
    )
    engine = task.engine
    assert (engine.t_end, engine.rtol, engine.max_events) == (np.inf, 1e-6, 9)
    assert (engine.train, engine.stop_log_loss, engine.record) == ("hidden", -1e7, [1.0, 2.0])


@pytest.mark.parametrize("table", spec.ENGINES.items(), ids=lambda item: item[0])
def test_the_document_has_the_arguments_of_the_engines(table):
    """A new argument of an engine must be reachable from a file, and no other."""
    name, struct = table
    function = {"descent": rf.descend, "flow": rf.flow}[name]
    arguments = set(inspect.signature(function).parameters)
    assert set(struct.__struct_fields__) == arguments - {
        "data",
        "net",
        "loss",
        "progress",
        "on_interrupt",
        "stop",
    }


def test_every_generator_and_initialisation_is_offered():
    assert {"centred", "bartlett", "orthonormal", "sample_1d", "from_points"} <= set(generators())
    assert {"balanced", "gaussian", "by_preactivations"} <= set(initialisations())
    assert not {"from_csv", "teacher_1d", "effective_dimensions"} & set(generators())


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_any_text_is_parsed_or_refused(text):
    with pytest.raises(InputError):
        spec.parse(text)


toml_values = st.one_of(
    st.integers(-5, 5).map(str),
    st.sampled_from(["nan", "inf", "-inf", "true", '"x"', '""', "[]", "[[]]", "{}", "1e300"]),
    st.sampled_from(["[1.0, -1.0]", "[[1.0, 0.0], [0.0, 1.0]]", "0.5", "2024-01-01", "[nan]"]),
)
tables = {
    "": ["name", "seed", "loss"],
    "data": ["generator", "file", "X", "y", "d", "label", "teacher"],
    "network": ["init", "file", "a", "W", "width", "log_scale"],
    "loss": ["name", "factor"],
    "engine": ["name", "lr", "steps", "record", "stop_loss", "train", "rtol"],
}


@given(st.sampled_from(sorted(tables)).flatmap(
    lambda table: st.tuples(st.just(table), st.sampled_from(tables[table]), toml_values)
))  # fmt: skip
def test_one_wrong_value_anywhere_is_a_task_or_a_clear_refusal(change):
    """Fuzzing one field at a time: nothing but our own errors may come out."""
    table, field, value = change
    document = {
        "": {},
        "data": {"X": "[[1.0, 0.0], [0.0, 1.0]]", "y": "[1.0, -1.0]"},
        "network": {"init": '"balanced"', "width": "3"},
        "loss": {"name": '"square"'},
        "engine": {"name": '"descent"', "lr": "0.1", "steps": "2"},
    }
    document[table][field] = value
    text = "".join(
        (f"[{name}]\n" if name else "") + "".join(f"{k} = {v}\n" for k, v in fields.items())
        for name, fields in document.items()
    )
    with contextlib.suppress(InputError, FileError):
        task = spec.parse(text)
        assert task.net.d == task.data.d


def test_a_run_carries_its_specification_and_seed(tmp_path):
    task = spec.parse(f"seed = 5\n{CENTRED}{INIT}{DESCENT}")
    run = task.start()
    run.save(tmp_path / "run.rf")
    kept = rf.load(tmp_path / "run.rf").provenance
    assert kept["seed"] == 5
    assert kept["spec"]["data"] == {"generator": "centred", "d": 4}
    assert kept["versions"]["reluflow"] == rf.__version__


def test_starting_equals_calling_the_engine():
    task = spec.parse(f'{CENTRED}{INIT}[loss]\nname = "square"\nfactor = "1/n"\n{DESCENT}')
    run = task.start()
    same = rf.descend(task.data, task.net, lr=0.1, steps=10, loss=rf.losses.Square("1/n"))
    assert run.final == same.final
    assert run.status == "steps"


def test_the_loss_based_step(tmp_path):
    text = f'{DATA}{INIT}[loss]\nname = "logistic"\n{DESCENT.replace("0.1", "{ alpha = 0.2 }")}'
    task = spec.parse(text)
    run = task.start()
    same = rf.descend(
        task.data, task.net, lr=rf.LossBased(alpha=0.2), steps=10, loss=rf.losses.Logistic()
    )
    assert run.final == same.final


EXAMPLES = sorted(
    path
    for path in (Path(__file__).parents[1] / "examples").glob("*.toml")
    if path.stem not in ("sweep", "decay")  # plans of many runs, tested with sweeps and studies
)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_are_valid(path):
    assert spec.load(path).name


def test_there_are_examples_of_each_engine_and_each_source_of_data():
    texts = [path.read_text(encoding="utf-8") for path in EXAMPLES]
    for line in ('name = "descent"', 'name = "flow"', "generator =", "file =", "\nX ="):
        assert any(line in text for text in texts), line


PRACTICE = '[engine]\nname = "descent"\nlr = 0.01\nsteps = 20\n'


def test_batches_are_drawn_from_the_seed_of_the_document_or_their_own():
    options = "batch = 2\nmomentum = 0.5\ndecay = 0.1\nlabel_noise = 0.1\n"
    runs = [spec.parse(f"{DATA}{INIT}{PRACTICE}{options}").start(progress=False) for _ in "ab"]
    np.testing.assert_array_equal(runs[0].final.W, runs[1].final.W)
    assert (runs[0].options["batch"], runs[0].options["momentum"]) == (2, 0.5)
    own = spec.parse(f"{DATA}{INIT}{PRACTICE}{options}seed = 7\n").start(progress=False)
    assert own.options["seed"] == 7
    assert runs[0].options["seed"] != 7
    np.testing.assert_array_equal(own.net.W, runs[0].net.W)


def test_batches_with_replacement_are_a_table():
    text = f"{DATA}{INIT}{PRACTICE}batch = {{ size = 3, replacement = true }}\n"
    run = spec.parse(text).start(progress=False)
    assert (run.options["batch"], run.options["replacement"]) == (3, True)
    with pytest.raises(rf.InputError, match=r"unknown field `sise` - at `\$.engine.batch`"):
        spec.parse(text.replace("size", "sise"))


def test_layers_and_rates_are_fields_of_the_flow():
    flow = '[engine]\nname = "flow"\n'
    run = spec.parse(f'{DATA}{INIT}{flow}train = "linearised"\nrates = [1, 2]\n').start()
    assert (run.options["train"], run.options["rates"]) == ("linearised", [1.0, 2.0])
    with pytest.raises(rf.InputError, match=r"engine.rates"):
        spec.parse(f"{DATA}{INIT}{flow}rates = [1.0]\n")


def test_decay_is_a_field_of_the_flow():
    flow = '[engine]\nname = "flow"\nt_end = 2.0\n'
    run = spec.parse(f"{DATA}{INIT}{flow}decay = 0.1\n").start()
    assert run.options["decay"] == 0.1
    direct = rf.flow(run.data, run.net, t_end=2.0, decay=0.1)
    np.testing.assert_array_equal(run.final.W, direct.final.W)
    plain = spec.parse(f"{DATA}{INIT}{flow}").start()
    assert "decay" not in plain.options
