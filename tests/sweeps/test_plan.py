"""Plans: lazily listed, seeded by what a point is, checked before any work starts."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reluflow as rf
from reluflow.errors import FileError, InputError
from reluflow.sweeps import Plan, Point
from reluflow.sweeps.design import draw
from sweeps.helpers import SWEEP

BASE = SWEEP.partition("[sweep]")[0]


def with_sweep(text):
    return Plan.parse(f"{BASE}\n{text}")


def by_value(plan, *path):
    found = {}
    for point in plan.points:
        value = point.parameters
        for name in path:
            value = value[name]
        found.setdefault(value, []).append(point)
    return found


def test_a_grid_is_all_combinations_with_trials():
    plan = Plan.parse(SWEEP)
    points = list(plan.points)
    assert (len(plan), plan.name, plan.seed, plan.repeats) == (8, "toy", 7, 2)
    assert plan.paths == ("network.log_scale", "data.d")
    pairs = [(p.parameters["network"]["log_scale"], p.parameters["data"]["d"]) for p in points]
    assert pairs == [pair for pair in itertools.product([-1, -3], [2, 3]) for _ in range(2)]
    assert len({point.seed for point in points}) == len({point.id for point in points}) == 8
    assert [point.id for point in plan.points] == [point.id for point in points]  # once more


def test_seeds_do_not_depend_on_order_or_on_other_values():
    small = {p.id for p in Plan.parse(SWEEP).points}
    text = SWEEP.replace('"data.d" = [2, 3]', '"data.d" = [5, 3, 2]').replace(
        "repeats = 2", "repeats = 3"
    )
    turned = text.replace('"network.log_scale" = [-1, -3]\n', "") + '"network.log_scale" = [-3, -1]'
    assert small < {p.id for p in Plan.parse(text).points}
    assert {p.id for p in Plan.parse(turned).points} == {p.id for p in Plan.parse(text).points}


def test_name_and_comments_change_nothing_but_the_seed_does():
    ids = [point.id for point in Plan.parse(SWEEP).points]
    renamed = SWEEP.replace('name = "toy"', '# a comment\nname = "other"')
    assert [point.id for point in Plan.parse(renamed).points] == ids
    reseeded = Plan.parse(SWEEP, seed=8)
    assert reseeded.seed == 8
    assert not {point.id for point in reseeded.points} & set(ids)


def test_the_seed_of_the_document_is_the_default():
    plan = Plan.parse("seed = 11\n" + SWEEP.replace("seed = 7\n", ""))
    assert plan.seed == 11


def test_a_sweep_without_changes_is_repeated_trials():
    plan = with_sweep("[sweep]\nrepeats = 4")
    assert len(plan) == len({point.seed for point in plan.points}) == 4


def test_a_list_sets_different_paths():
    plan = with_sweep(
        '[[sweep.list]]\n"data.d" = 2\n[[sweep.list]]\n"data.d" = 5\n"engine.lr" = 0.1'
    )
    assert [p.parameters["data"]["d"] for p in plan.points] == [2, 5]
    assert [p.parameters["engine"]["lr"] for p in plan.points] == [0.05, 0.1]
    assert plan.paths == ("data.d", "engine.lr")


def random_plan(count):
    return with_sweep(
        f"[sweep.random]\ncount = {count}\n"
        '"data.d" = { integer = [2, 4] }\n'
        '"engine.lr" = { log_uniform = [1e-3, 1e-1] }\n'
        '"network.log_scale" = { uniform = [-5, -1] }\n'
        '"network.directions" = { choice = ["gaussian", "sphere"] }\n'
    )


def test_random_draws_lie_in_their_ranges_and_a_longer_sweep_keeps_them():
    points = list(random_plan(400).points)
    assert [p.id for p in random_plan(30).points] == [p.id for p in points[:30]]
    d = [p.parameters["data"]["d"] for p in points]
    rates = np.array([p.parameters["engine"]["lr"] for p in points])
    scales = np.array([p.parameters["network"]["log_scale"] for p in points])
    assert set(d) == {2, 3, 4}
    assert {p.parameters["network"]["directions"] for p in points} == {"gaussian", "sphere"}
    assert rates.min() >= 1e-3
    assert rates.max() <= 1e-1
    # five standard errors of the mean of a uniform variable
    assert abs(np.log10(rates).mean() + 2) < 5 * 2 / math.sqrt(12 * 400)
    assert abs(scales.mean() + 3) < 5 * 4 / math.sqrt(12 * 400)
    assert abs(np.mean(d) - 3) < 5 * math.sqrt(2 / 3 / 400)


@given(st.integers(0, 2**63 - 1))
def test_draws_never_leave_their_range(bits):
    assert 2 <= draw("integer", [2, 4], bits) <= 4
    assert -1.0 <= draw("uniform", [-1.0, 3.0], bits) <= 3.0
    assert 1e-3 * (1 - 1e-15) <= draw("log_uniform", [1e-3, 10.0], bits) <= 10.0 * (1 + 1e-15)
    assert draw("choice", ["a", "b"], bits) in "ab"


def test_infinite_steps_pass_and_nan_does_not():
    text = BASE.replace("log_scale = -2", "log_scale = -2\nsigns = 'positive'").replace(
        "steps = 30", 'train = "hidden"'
    )
    plan = Plan.parse(text + '[sweep.grid]\n"engine.steps" = [10, inf]')
    assert [p.parameters["engine"]["steps"] for p in plan.points] == [10, math.inf]
    with pytest.raises(
        InputError, match=r'`\$\.sweep\.grid\."network\.log_scale"\[1\]`.* is nan\.'
    ):
        with_sweep('[sweep.grid]\n"network.log_scale" = [-1, nan]')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[sweep.grid]\n"network.log_scal" = [-1]',
            r'`\$\.sweep\.grid\."network\.log_scal"` is no path.*Did you mean .network\.log_scale',
        ),
        (
            '[sweep.grid]\n"netwrok.width" = [1]',
            r'`\$\.sweep\.grid\."netwrok\.width"` is no path.*Did you mean .network\.width',
        ),
        ('[sweep.grid]\n"width" = [1]', r'`\$\.sweep\.grid\."width"` is no path'),
        ('[sweep.grid]\n"engine.step" = [1]', r"Did you mean 'engine\.steps'"),
        ('[sweep.grid]\n"loss.nam" = ["square"]', r"Did you mean 'loss\.name'"),
        (
            '[[sweep.list]]\n"data.d" = 2\n[[sweep.list]]\n"data.dd" = 2',
            r'`\$\.sweep\.list\[1\]\."data\.dd"` is no path',
        ),
        (
            '[sweep.random]\ncount = 3\n"data.n_" = { integer = [2, 3] }',
            r'`\$\.sweep\.random\."data\.n_"` is no path',
        ),
        ('[sweep.grid]\n"seed" = [1, 2]', "sweeps the seed.*Use `repeats`"),
        ('[sweep.grid]\n"data.d" = 3', r"is 3. Give a list of values"),
        ('[sweep.grid]\n"data.d" = []', r"is \[\]. Give a list of values"),
        ('[sweep.grid]\n"data.d" = [2, 3, 2]', "lists 2 twice"),
        ('[sweep.grid]\n"data.d" = [2, 0]', r'`\$\.sweep\.grid\."data\.d"\[1\]`.*`d` is 0'),
        ('[sweep.grid]\n"data.d" = ["x"]', r"the first point \(data.d = 'x'\).*`d` is 'x'"),
        ('[sweep.grid]\n"engine.lr.alpha" = [0.1]', "leads through `lr`, which is 0.05"),
        ("[sweep]\nrepeat = 2", r"unknown field `repeat` - at `\$\.sweep`.*Did you mean 'repeats'"),
        ("[sweep]\nrepeats = 0", "repeats` is 0; it must be at least 1"),
        ("[sweep]\nseed = -1", "seed` is -1; it must be at least 0"),
        ("[sweep]\ngrid = 3", r"`\$\.sweep\.grid` is 3, not a table"),
        ("[sweep]\nlist = []", r"`\$\.sweep\.list` is \[\]. Write"),
        ("[sweep]\nlist = [1]", r"`\$\.sweep\.list\[0\]` is 1, not a table"),
        ("[sweep.grid]\n[sweep.random]\ncount = 1", "has grid and random. Give one"),
        ("[sweep.random]", r"`\$\.sweep\.random\.count` is missing"),
        (
            '[sweep.random]\ncount = 1\n"data.d" = { unifrom = [1, 2] }',
            "has 'unifrom'.*Did you mean 'uniform'",
        ),
        ('[sweep.random]\ncount = 1\n"data.d" = [1, 2]', "Write it like"),
        ('[sweep.random]\ncount = 1\n"data.d" = { uniform = [1] }', "Give a pair"),
        ('[sweep.random]\ncount = 1\n"data.d" = { integer = [4, 2] }', "Swap them"),
        (
            '[sweep.random]\ncount = 1\n"engine.lr" = { log_uniform = [0, 1] }',
            "it must be above 0",
        ),
        ("[other]\nseed = 2", r"`\$\.sweep` is missing[^?]*$"),
        ("[swep]\nrepeats = 2", r"`\$\.sweep` is missing.*Did you mean 'swep'"),
        ("sweep = ", "this is not TOML"),
    ],
)
def test_a_wrong_document_is_refused_with_its_place(text, message):
    with pytest.raises(InputError, match=message):
        with_sweep(text)


def test_an_error_of_the_base_document_names_its_path():
    with pytest.raises(InputError, match=r"unknown field `netwrok` - at `\$`"):
        Plan.parse("netwrok = 1\n" + SWEEP)
    with pytest.raises(InputError, match=r"unknown field `widht` - at `\$\.network`"):
        Plan.parse(SWEEP.replace("width = 5", "widht = 5"))
    with pytest.raises(InputError, match=r"`\$\.name` is 3"):
        Plan.parse(SWEEP.replace('"toy"', "3"))


def test_fields_of_every_swept_generator_are_known():
    plan = Plan.parse(
        BASE.replace('generator = "centred"\nd = 3\n', "")
        + '[[sweep.list]]\n"data.generator" = "centred"\n"data.d" = 3\n'
        + '[[sweep.list]]\n"data.generator" = "orthonormal"\n"data.n" = 3'
    )
    assert [p.parameters["data"]["generator"] for p in plan.points] == ["centred", "orthonormal"]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("[sweep]\nrepeats = 1_000_000_000", 10**9),
        ("[sweep.random]\ncount = 1_000_000_000", 10**9),
        ("[sweep]\nrepeats = 10_000_001", 10**7 + 1),
        (
            "[sweep.grid]\n"
            + "\n".join(
                f'"{path}" = {list(range(1, 1001))}'
                for path in ("data.d", "network.width", "engine.steps")
            ),
            10**9,
        ),
    ],
)
def test_a_plan_that_is_too_long_is_refused_with_its_count(text, count):
    with pytest.raises(InputError, match=f"the plan has {count} points, above the limit"):
        with_sweep(text)


def test_a_plan_beyond_the_range_of_len_is_refused_too():
    values = ", ".join(str(k) for k in range(1, 10_001))
    paths = ("data.d", "data.rho", "network.width", "engine.steps", "engine.lr")
    with pytest.raises(InputError, match="the plan has 1" + "0" * 20 + " points"):
        with_sweep("[sweep.grid]\n" + "\n".join(f'"{path}" = [{values}]' for path in paths))


def test_ten_million_points_are_planned_without_listing():
    plan = with_sweep("[sweep]\nrepeats = 10_000_000")
    assert len(plan) == 10**7
    assert len(list(itertools.islice(plan.points, 5))) == 5


def test_plans_of_given_points():
    points = [Point("train", {"d": d}, 0) for d in range(3)]
    plan = Plan.of("three", iter(points))
    assert list(plan.points) == list(plan.points) == points
    assert repr(plan) == "Plan('three', 3 points)"
    with pytest.raises(InputError, match="a plan got 3, not a Point"):
        Plan.of("wrong", [3])


def test_files_travel_inside_the_points(tmp_path):
    (tmp_path / "points.csv").write_text("u,v,y\n1.0,0.0,1.0\n0.0,2.0,-1.0\n")
    rf.Network([1.0, -1.0], [[1.0, 0.5], [0.5, 1.0]], -2.0).save(tmp_path / "net.rf")
    text = """
[data]
file = "points.csv"
label = "y"
[network]
file = "net.rf"
[engine]
name = "descent"
lr = 0.1
steps = 5
[sweep.grid]
"engine.steps" = [5, 6]
"""
    (tmp_path / "own.toml").write_text(text)
    plan = Plan.load(tmp_path / "own.toml")
    first = next(plan.points)
    assert plan.name == "own"
    assert first.parameters["data"]["X"] == [[1.0, 0.0], [0.0, 2.0]]
    assert first.parameters["network"]["log_scale"] == [-2.0, -2.0]
    elsewhere = tmp_path / "moved"
    elsewhere.mkdir()
    for name in ("points.csv", "net.rf", "own.toml"):
        (tmp_path / name).rename(elsewhere / name)
    assert next(Plan.load(elsewhere / "own.toml").points) == first
    (elsewhere / "points.csv").write_text("u,v,y\n1.0,0.0,1.0\n0.0,2.5,-1.0\n")
    assert next(Plan.load(elsewhere / "own.toml").points) != first
    (elsewhere / "points.csv").unlink()
    with pytest.raises(FileError, match=r"points\.csv"):
        Plan.load(elsewhere / "own.toml")


def test_a_file_too_large_to_travel_is_refused(tmp_path):
    rows = "".join(f"{k}.5,1,1\n" for k in range(40_000))
    (tmp_path / "points.csv").write_text("u,v,y\n" + rows)
    text = SWEEP.replace('generator = "centred"\nd = 3', 'file = "points.csv"\nlabel = "y"')
    with pytest.raises(InputError, match=r"`\$\.data\.file` holds 120000 numbers"):
        Plan.parse(text.replace('"data.d" = [2, 3]\n', ""), folder=tmp_path)


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        (None, FileError, "cannot read .*absent.toml"),
        (b"\xff\xfe", InputError, "absent.toml: this is not text"),
        (b"#" * (2**22 + 1), FileError, "more than 4194304 bytes"),
        (b"[sweep]\nrepeats = 0", InputError, "absent.toml: .*repeats"),
    ],
)
def test_files_that_are_no_plan(tmp_path, body, error, message):
    path = tmp_path / "absent.toml"
    if body is not None:
        path.write_bytes(body)
    with pytest.raises(error, match=message):
        Plan.load(path)
