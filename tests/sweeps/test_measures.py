"""Measurements of a sweep: by name or from a file, as a table, as a CSV file, as a picture."""

import csv
import io

import numpy as np
import pytest

import reluflow as rf
from reluflow.cli import pictures
from reluflow.errors import InputError
from reluflow.figures import Line
from reluflow.sweeps import Plan, Point, Store, columns, execute, load, measures
from reluflow.sweeps.tables import to_csv

from .helpers import SWEEP

MEASURE = """
[measure]
angle = "max_angle"
norm = "squared_norm"
mine = "mine.py:spread"
"""


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("swept")
    (folder / "mine.py").write_text("def spread(run):\n    return abs(run.final.W).max()\n")
    plan = Plan.parse(SWEEP + MEASURE, folder=folder)
    store = Store(folder / "store")
    execute(plan, store, workers=0)
    return plan, store


def test_a_table_has_what_was_varied_and_what_was_measured(swept):
    plan, store = swept
    table = load(store, plan=plan)
    assert list(table.columns[:3]) == ["network.log_scale", "data.d", "seed"]
    assert list(table.columns[-3:]) == ["angle", "norm", "mine"]
    assert len(table) == 8
    for point, (_, row) in zip(plan.points, table.iterrows(), strict=True):
        run = store.load(point).run
        assert row["norm"] == run.final.squared_norm
        assert row["mine"] == np.abs(run.final.W).max()
        assert row["angle"] == rf.geometry.max_angle(run.final)
        assert row["data.d"] == point.parameters["data"]["d"]
        assert row["log_loss"] == run.log_loss[-1]


def test_a_store_alone_is_a_table_of_what_varies(swept):
    _, store = swept
    table = load(store.path, measure={"rank": "effective_rank"})
    assert {"network.log_scale", "data.d", "seed", "status", "rank"} <= set(table.columns)
    assert "network.width" not in table.columns  # the same everywhere
    assert table["rank"].between(1.0, 3.0).all()


def test_measurements_do_not_change_the_points():
    plain, measured = (Plan.parse(SWEEP + text) for text in ("", '[measure]\na = "alive"'))
    assert [p.id for p in plain.points] == [p.id for p in measured.points]


def test_the_csv_file_keeps_every_digit(swept):
    plan, store = swept
    table = columns(store, plan=plan)
    rows = list(csv.DictReader(io.StringIO(to_csv(table).decode())))
    assert [float(row["angle"]) for row in rows] == table["angle"]
    assert [row["status"] for row in rows] == table["status"]


@pytest.mark.parametrize("name", measures.MEASURES)
def test_every_measurement_is_a_number_where_it_applies(name):
    data = rf.Dataset([-1.0, 0.5, 2.0], [1.0, -1.0, 1.0], bias=True)
    net = rf.networks.balanced(2, width=30, directions="sphere", log_scale=-1.0, seed=0)
    run = rf.descend(data, net, lr=0.1, steps=2000, loss="exponential")
    found = measures.value(measures.MEASURES[name], run)
    if name == "distance_to_predicted":
        assert np.isnan(found)  # no limit theorem applies here
    elif name == "above_optimum":
        assert np.isnan(found)  # no fit, and no decay
    else:
        assert np.isfinite(found)
    if name == "excess_norm":
        assert found >= 1.0


def test_the_distance_to_a_predicted_limit_falls_with_the_scale():
    data = rf.datasets.orthonormal(3, labels="positive", seed=0)
    found = []
    for scale in (-3.0, -12.0):
        net = rf.networks.balanced(3, 8, log_scale=scale, directions="sphere", seed=0)
        found.append(measures.distance_to_predicted(rf.flow(data, net)))
    assert found[1] < 0.1 * found[0]


def test_results_without_a_run_have_no_measurement(tmp_path):
    store = Store(tmp_path)
    store.put(Point("train", {"d": 1}, seed=0), {"x": 2.0})
    table = columns(store, measure="alive")
    assert np.isnan(table["alive"][0])
    assert table["x"] == [2.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[measure]\na = "max_angel"', r"`\$.measure.a` is 'max_angel', no .* mean 'max_angle'"),
        ("[measure]\na = 3", r"`\$.measure.a` is 3, no measurement"),
        ('[measure]\na = "gone.py:f"', "names 'gone.py', which is no file"),
        ('[measure]\na = "mine.py:spraed"', "no function 'spraed'.*mean 'spread'"),
        ('[measure]\na = "broken.py:f"', r"broken.py cannot be executed \(ZeroDivisionError"),
    ],
)
def test_unknown_measurements_are_refused_before_any_work(tmp_path, text, message):
    (tmp_path / "mine.py").write_text("def spread(run):\n    return 1.0\n")
    (tmp_path / "broken.py").write_text("1 / 0\n")
    with pytest.raises(InputError, match=message):
        Plan.parse(SWEEP + text, folder=tmp_path)


def test_a_list_names_its_columns():
    assert list(Plan.parse('measure = ["alive", "margin"]\n' + SWEEP).measures) == [
        "alive",
        "margin",
    ]
    with pytest.raises(InputError, match="list of at most 40 names"):
        measures.read(3)
    with pytest.raises(InputError, match=r"measure\[0\]` is 3"):
        measures.read([3])


def test_a_picture_has_medians_and_bands(swept):
    plan, store = swept
    table = columns(store, plan=plan)
    figure = pictures.picture("toy", table, {"x": "log_scale", "y": "norm", "hue": "d"})
    lines = figure.panels[0].layers
    assert [line.label for line in lines] == ["d = 2", "d = 3"]
    for line, d in zip(lines, (2, 3), strict=True):
        assert isinstance(line, Line)
        np.testing.assert_array_equal(line.x, [-3, -1])
        for k, scale in enumerate(line.x):
            mine = [
                value
                for value, s, e in zip(
                    table["norm"], table["network.log_scale"], table["data.d"], strict=True
                )
                if s == scale and e == d
            ]
            assert line.y[k] == np.median(mine)
            assert (line.low[k], line.high[k]) == (min(mine), max(mine))


@pytest.mark.parametrize(
    ("axes", "plot", "message"),
    [
        (["x=a"], True, "--plot needs x=COLUMN and y=COLUMN"),
        (["x=a", "y=b"], False, "axes are given without --plot"),
        (["x"], True, "'x' is no axis"),
        (["hu=a"], True, "is no axis.*Did you mean 'hue'"),
    ],
)
def test_axes_that_cannot_be_drawn_are_refused(axes, plot, message):
    with pytest.raises(InputError, match=message):
        pictures.parsed(axes, plot)


def test_columns_that_cannot_be_drawn_are_refused(swept):
    table = columns(swept[1], plan=swept[0])
    for wanted, message in (
        ({"x": "log_scal", "y": "norm"}, "no column.*Did you mean 'log_scale'"),
        ({"x": "log_scale", "y": "status"}, "status holds texts"),
        ({"x": "log_scale", "y": "norm", "hue": "status"}, None),
    ):
        if message is None:
            pictures.picture("toy", table, wanted)
        else:
            with pytest.raises(InputError, match=message):
                pictures.picture("toy", table, wanted)
