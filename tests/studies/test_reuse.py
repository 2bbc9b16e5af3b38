"""Nothing stale: a run of a study is reused only if all that it depends on is the same."""

import numpy as np
import pytest

import reluflow as rf
from reluflow import files
from reluflow.studies import document
from reluflow.studies.make import make, run_path

STUDY = """
[data]
file = "points.csv"
label = "y"
[network]
file = "start.rf"
[engine]
name = "descent"
lr = 0.05
steps = 20
"""
POINTS = "x0,x1,y\n1.0,0.0,1.0\n0.5,1.0,2.0\n"


@pytest.fixture
def file(tmp_path):
    (tmp_path / "points.csv").write_text(POINTS)
    rf.Network([0.3, -0.2], [[0.3, 0.1], [0.1, 0.4]]).save(tmp_path / "start.rf")
    (tmp_path / "mine.toml").write_text(STUDY)
    return tmp_path / "mine.toml"


def study(file, **options):
    """The run of the study, and what was said while it was made."""
    said = []
    page = make(document.load(file), file.parent / "out", say=said.append, **options)
    return page.runs[0].run, said


def test_an_unchanged_study_is_taken_with_its_versions_named(file):
    first, _ = study(file)
    second, said = study(file)
    taken = next(text for text in said if "taken from" in text)
    assert files.made_by(files.versions()) in taken
    assert f"numerics {files.NUMERICS_VERSION}" in taken
    assert second.final.squared_norm == first.final.squared_norm


def test_new_labels_in_the_csv_give_a_new_result(file):
    first, _ = study(file)
    (file.parent / "points.csv").write_text(POINTS.replace("2.0\n", "-3.0\n"))
    second, said = study(file)
    assert any("computed with other data" in text for text in said)
    assert any("training" in text for text in said)
    assert second.data.y.tolist() == [1.0, -3.0]
    direct = rf.descend(second.data, second.net, lr=0.05, steps=20)
    assert second.final.squared_norm == direct.final.squared_norm != first.final.squared_norm
    assert rf.load(run_path(file.parent / "out", "the run")).data.y.tolist() == [1.0, -3.0]


def test_a_new_network_file_gives_a_new_result(file):
    study(file)
    rf.Network([0.5], [[0.4, 0.4]]).save(file.parent / "start.rf")
    second, said = study(file)
    assert any("computed with other network" in text for text in said)
    assert second.net.width == 1
    np.testing.assert_array_equal(second.net.W, [[0.4, 0.4]])


def test_the_same_contents_written_again_are_the_same(file):
    study(file)
    (file.parent / "points.csv").write_text(POINTS)
    assert any("taken from" in text for text in study(file)[1])


def test_another_numerics_version_is_trained_again(file, monkeypatch):
    study(file)
    monkeypatch.setattr(files, "NUMERICS_VERSION", files.NUMERICS_VERSION + 1)
    run, said = study(file)
    assert any("computed with other version of numerics" in text for text in said)
    assert any("training" in text for text in said)
    assert run.provenance["versions"]["numerics"] == files.NUMERICS_VERSION
    assert any("taken from" in text for text in study(file)[1])


def test_fresh_trains_again(file):
    study(file)
    said = study(file, fresh=True)[1]
    assert any("training" in text for text in said)
    assert not any("taken from" in text for text in said)


def test_a_teacher_belongs_to_the_contents_of_data():
    task = document.build(
        {
            "data": {"generator": "centred", "d": 3},
            "network": {"init": "balanced", "width": 2},
            "engine": {"name": "flow"},
        },
        name="demo",
    ).tasks[0][1]
    data = task.data
    other = rf.Dataset(data.X, data.y, teacher=2.0 * np.asarray(data.teacher), name=data.name)
    same = rf.Dataset(data.X, data.y, teacher=data.teacher, name=data.name)

    def digest(given):
        from dataclasses import replace

        return replace(task, data=given).inputs()["data"]

    assert digest(same) == task.inputs()["data"] != digest(other)
