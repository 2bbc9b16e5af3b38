"""Studies as documents: labels, scales, refusals that name the path."""

import math

import pytest

from reluflow.errors import FileError, InputError
from reluflow.studies import document

BASE = {
    "seed": 3,
    "data": {"generator": "centred", "d": 3},
    "network": {"init": "balanced", "width": 5},
    "engine": {"name": "flow", "stop_loss": 1e-3},
}


def test_each_scale_is_a_run_of_the_same_draw():
    scales = [-2 * math.log(4), -3 * math.log(10)]
    plan = document.build({**BASE, "study": {"log_scales": scales}}, name="x")
    assert [label for label, _ in plan.tasks] == ["scale 4^-2", "scale 10^-3"]
    first, second = (task for _, task in plan.tasks)
    assert (first.net.mantissa.W == second.net.mantissa.W).all()
    assert first.data is second.data
    assert second.net.log_scale[0] == scales[1]
    assert plan.paper is None
    assert plan.seed == 3


def test_without_scales_there_is_one_run():
    plan = document.build({**BASE, "study": {"title": "T", "paper": "correlated"}}, name="x")
    assert [label for label, _ in plan.tasks] == ["the run"]
    assert (plan.title, plan.paper) == ("T", "correlated")


def test_each_decay_is_a_run():
    plan = document.build({**BASE, "study": {"decays": [0, 0.1]}}, name="x")
    assert [label for label, _ in plan.tasks] == ["no decay", "decay 0.1"]
    assert [task.engine.decay for _, task in plan.tasks] == [0.0, 0.1]
    assert plan.tasks[0][1].net is plan.tasks[1][1].net
    hidden = {**BASE, "engine": {"name": "flow", "train": "hidden"}, "study": {"decays": [0.1]}}
    with pytest.raises(InputError, match=r"study.decays.* is for the flow of both layers"):
        document.build(hidden, name="x")


def test_the_seed_can_be_replaced():
    assert document.build(BASE, name="x", seed=8).seed == 8


@pytest.mark.parametrize(
    ("study", "message"),
    [
        ({"papr": "correlated"}, r"unknown field `papr` - at `\$.study`.*paper"),
        ({"paper": "corelated"}, r"study.paper.*correlated"),
        ({"log_scales": [1, 1]}, "different finite numbers"),
        ({"log_scales": [math.inf]}, "different finite numbers"),
        ({"log_scales": list(range(51))}, "at most 50"),
        ({"log_scales": "all"}, "must be a list"),
        ({"title": 3}, "must be text"),
        ({"decays": [-0.1]}, "different finite numbers from 0 on"),
        ({"decays": [0.1], "log_scales": [-1.0]}, "beside `log_scales` or `paper`"),
        ({"decays": [0.1], "paper": "correlated"}, "beside `log_scales` or `paper`"),
        ("correlated", "must be a table"),
    ],
)
def test_a_wrong_table_is_refused(study, message):
    with pytest.raises(InputError, match=message):
        document.build({**BASE, "study": study}, name="x")


def test_a_typo_elsewhere_keeps_its_path():
    wrong = {**BASE, "engine": {"name": "flow", "stop_los": 1e-3}}
    with pytest.raises(InputError, match=r"unknown field `stop_los` - at `\$.engine`"):
        document.build(wrong, name="x")


def test_files(tmp_path):
    file = tmp_path / "s.toml"
    file.write_text("[study\n")
    with pytest.raises(InputError, match=r"s\.toml: this is not TOML"):
        document.load(file)
    with pytest.raises(FileError, match="cannot read"):
        document.load(tmp_path / "missing.toml")
