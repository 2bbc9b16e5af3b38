"""States: what is refused and with which words, and the documents made of them."""

import math

import msgspec
import numpy as np
import pytest

import reluflow as rf
from reluflow import spec
from reluflow.explore import documents, presets
from reluflow.explore.state import (
    Drawn,
    Given,
    Move,
    State,
    StateError,
    from_json,
    of_values,
    to_json,
)

LINE = State(
    X=[[-1.0, 1.0], [0.5, 1.0], [1.5, 1.0]], y=[0.5, -0.4, 1.0], net=Drawn(width=6, seed=2)
)
GIVEN = State(
    line=False,
    X=[[1.0, 0.2], [-0.3, 1.0]],
    y=[1.0, -1.0],
    net=Given(a=[1.0, -0.5], W=[[0.3, 0.4], [0.1, -0.7]], log_scale=[0.0, -3.0]),
    moves=[Move(neuron=1, angle=2.0, flip=True)],
    loss="logistic",
    log_scale=-2.5,
    stop_log_loss=-5.0,
)
OUTPUT = State(X=LINE.X, y=LINE.y, net=LINE.net, train="output", rates=(1.0, 3.0), log_scale=-1.0)
LAZY = State(X=LINE.X, y=LINE.y, net=LINE.net, train="linearised", log_scale=1.0)
RATED = State(X=LINE.X, y=LINE.y, net=LINE.net, rates=(0.25, 2.0), log_scale=-3.0)
FADING = State(X=LINE.X, y=LINE.y, net=LINE.net, decay=0.05, log_scale=-2.0)
LEAKY = State(X=LINE.X, y=LINE.y, net=LINE.net, slope=0.2, log_scale=-2.0)
EVERY = [LINE, GIVEN, OUTPUT, LAZY, RATED, FADING, LEAKY]


def changed(state, **fields):
    return {**to_json(state), **fields}


@pytest.mark.parametrize("state", [*EVERY, *(preset.state for preset in presets._all())])
def test_a_state_survives_json(state):
    assert from_json(msgspec.json.decode(msgspec.json.encode(to_json(state)))) == state


@pytest.mark.parametrize(
    ("fields", "words", "points"),
    [
        ({"X": [[0.0, 0.0], [1.0, 1.0], [2.0, 1.0]], "line": False}, "point 0 is the origin", (0,)),
        ({"loss": "logistic", "y": [1.0, 0.3, -1.0]}, "label 0.3 of point 1", (1,)),
        (
            {"loss": "exponential", "X": [[1.0, 1.0], [2.0, 1.0], [1.0, 1.0]], "y": [1, 1, -1]},
            "points 0 and 2 coincide",
            (0, 2),
        ),
        ({"X": [[1.0, 1.0]] * 41, "y": [1.0] * 41}, "41 points: the explorer takes 1 to 40", ()),
        ({"X": [], "y": []}, "0 points", ()),
        ({"y": [1.0]}, "have 1 labels", ()),
        ({"X": [[1.0, 1.0], [1.0], [2.0, 1.0]]}, "coordinates", ()),
        ({"X": [[1.0, 2.0], [1.0, 1.0], [2.0, 1.0]]}, r"rows \(x, 1\)", ()),
        ({"net": {"kind": "drawn", "width": 401}}, "<= 400", ()),
        ({"net": {"kind": "drawn", "file": "/etc/passwd"}}, "unknown field", ()),
        ({"net": {"kind": "given", "a": [1.0], "W": [[1.0]]}}, "need 2 coordinates", ()),
        ({"net": {"kind": "given", "a": [1.0], "W": []}}, "as many rows", ()),
        ({"moves": [{"neuron": 50}]}, "neuron 50 cannot be turned", ()),
        ({"log_scale": -1e9}, "log_scale", ()),
        ({"rtol": 1.0}, "rtol", ()),
        ({"train": "none"}, "train", ()),
        ({"rates": [1.0]}, "rates", ()),
        ({"rates": [0.0, 1.0]}, "rates", ()),
        ({"decay": -0.1}, "decay", ()),
        ({"decay": 0.1, "train": "hidden"}, "weight decay is 0.1.*both layers", ()),
        ({"decay": 0.1, "rates": [1.0, 2.0]}, "weight decay is 0.1.*rates 1 and 1", ()),
        ({"slope": 1.0}, "slope", ()),
        ({"train": "hidden", "rates": [1.0, 2.0]}, "output weights is 2.*hidden weights are", ()),
        ({"train": "output", "rates": [0.5, 2.0]}, "hidden weights is 0.5.*output weights are", ()),
        ({"v": 2}, "v", ()),
        ({"surprise": 1}, "unknown field", ()),
        ({"X": [[math.nan, 1.0], [0.0, 1.0], [2.0, 1.0]]}, r"X\[0\]\[0\]", ()),
        ({"X": [[1e9, 1.0], [0.0, 1.0], [2.0, 1.0]]}, "<= 1000000", ()),
    ],
)
def test_what_cannot_be_explored_is_refused_with_a_sentence(fields, words, points):
    with pytest.raises(StateError, match=words) as caught:
        from_json(changed(LINE, **fields))
    assert caught.value.points == points


@pytest.mark.parametrize("raw", [None, [], 3, "x", {}, {"X": 1}, {"X": [["a"]], "y": [1]}])
def test_anything_else_is_refused_too(raw):
    with pytest.raises(StateError, match="cannot be used"):
        from_json(raw)


def test_turned_neurons_keep_their_norms_and_the_others_their_bits():
    before = from_json(changed(LINE)).network()
    after = from_json(changed(LINE, moves=[{"neuron": 2, "angle": 0.7, "flip": True}])).network()
    assert after.log_norms == pytest.approx(before.log_norms, rel=1e-15)
    assert after.directions[2] == pytest.approx([math.cos(0.7), math.sin(0.7)])
    assert after.signs[2] == -before.signs[2]
    others = [0, 1, 3, 4, 5]
    assert np.array_equal(after.directions[others], before.directions[others])


@pytest.mark.parametrize("state", EVERY)
def test_toml_and_python_make_the_same_run(state, tmp_path):
    expected = rf.flow(state.dataset(), state.network(), **state.options())
    task = spec.parse(documents.to_toml(state))
    from_toml = task.start()
    space: dict = {}
    exec(documents.to_python(state).replace("print(run)", ""), space)
    for run in (from_toml, space["run"]):
        assert np.array_equal(run.log_t, expected.log_t)
        assert np.array_equal(run.kept["W"], expected.kept["W"])
    (tmp_path / "it.toml").write_text(documents.to_toml(state))
    again = documents.from_file(tmp_path / "it.toml")
    assert again.network().log_norms == pytest.approx(state.network().log_norms, rel=1e-15)
    for name in ("loss", "line", "train", "rates", "decay", "slope"):
        assert getattr(again, name) == getattr(state, name)


def test_a_run_file_is_the_run(tmp_path):
    name, body = documents.download(LINE, "run")
    (tmp_path / name).write_bytes(body)
    run = rf.load(tmp_path / name)
    expected = rf.flow(LINE.dataset(), LINE.network(), **LINE.options())
    assert np.array_equal(run.final.directions, expected.final.directions)


def test_a_file_of_descent_is_refused(tmp_path):
    text = documents.to_toml(LINE).replace(
        'name = "flow"', 'name = "descent"\nlr = 0.1\nsteps = 10'
    )
    (tmp_path / "it.toml").write_text(text.replace("rtol = 1e-08\n", ""))
    with pytest.raises(rf.InputError, match="shows the flow"):
        documents.from_file(tmp_path / "it.toml")


def test_values_become_states_and_come_back():
    net = rf.Network(
        [1.0, -2.0], [[1.0, 0.0], [0.3, 0.4]], [-3.0, -5.0], log_scale_out=[-2.0, -5.0]
    )
    data = rf.Dataset([[1.0, 0.3], [0.2, 1.0]], [1.0, 2.0])
    back = of_values(data, net)
    assert back.dataset() == data
    assert back.network() == net
    assert not back.line
    run = rf.flow(data, net, loss=rf.losses.Square("1/2"), rtol=1e-6)
    assert documents.from_run(run).network() == net
    assert documents.from_run(run).factor == "1/2"


@pytest.mark.parametrize("state", EVERY)
def test_a_run_becomes_the_state_it_started_from(state):
    run = rf.flow(state.dataset(), state.network(), **state.options())
    back = documents.from_run(run)
    again = rf.flow(back.dataset(), back.network(), **back.options())
    for name in ("train", "rates", "decay", "slope"):
        assert getattr(back, name) == getattr(state, name)
    # a classifier's run ends where its loss is that of the last record, to rounding
    np.testing.assert_allclose(again.final.W, run.final.W, rtol=1e-7)
    np.testing.assert_allclose(again.final.a, run.final.a, rtol=1e-7)


@pytest.mark.parametrize(
    ("text", "X", "y", "line"),
    [
        ("x,y\n1,2\n3,4\n", [[1.0, 1.0], [3.0, 1.0]], [2.0, 4.0], True),
        ("1 2\n3 4", [[1.0, 1.0], [3.0, 1.0]], [2.0, 4.0], True),
        ("1;2;3\n4;5;6", [[1.0, 2.0], [4.0, 5.0]], [3.0, 6.0], False),
        ("1\t2\n3\t4", [[1.0, 1.0], [3.0, 1.0]], [2.0, 4.0], True),
    ],
)
def test_pasted_tables_are_read(text, X, y, line):
    assert documents.from_csv_text(text) == (X, y, line)


def test_zero_is_an_ordinary_point_of_a_line_and_none_of_the_plane():
    assert documents.from_csv_text("x,y\n0,1\n-1,2\n") == ([[0, 1], [-1, 1]], [1, 2], True)
    with pytest.raises(rf.InputError, match="zero rows"):
        documents.from_csv_text("1,2,3\n0,0,2\n")


@pytest.mark.parametrize(
    "text", ["", "hello", "1,2\n3", "1,nan", "\n".join(["1,2"] * 41), "x" * 70000]
)
def test_tables_that_are_none_get_a_sentence(text):
    with pytest.raises(rf.InputError) as caught:
        documents.from_csv_text(text)
    assert "/" not in str(caught.value).replace("reluflow/", "")


def test_explore_refuses_what_it_cannot_show():
    from reluflow.explore.entry import state_of

    run = rf.descend(LINE.dataset(), LINE.network(), lr=0.01, steps=3)
    with pytest.raises(rf.InputError, match="shows the flow"):
        state_of(run)
    with pytest.raises(rf.InputError, match="Pass a Dataset"):
        state_of([[1.0]])
    assert state_of() == presets.first()
