"""``verify``: sound files are called sound, every kind of damage is found, nothing is changed."""

import json
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import reluflow as rf
from reluflow.cli.app import app
from reluflow.errors import FileError
from reluflow.sweeps import Point, Store, outcome, pack
from reluflow.verify import verify

GOLDEN = Path(__file__).parent / "data" / "golden" / "0.1.0"


def invoke(*arguments):
    return CliRunner().invoke(app, ["verify", *map(str, arguments)])


@pytest.fixture
def store(tmp_path):
    shutil.copytree(GOLDEN / "store", tmp_path / "store")
    Store(tmp_path / "store").rebuild()  # its index is of version 0.1.0
    return tmp_path / "store"


@pytest.fixture
def packed(tmp_path):
    """A store of three results in one pack, one of them a run, and a withdrawn one."""
    store, points = Store(tmp_path / "packed"), [Point("train", {"d": d}, seed=0) for d in range(4)]
    for point in points[1:]:
        store.put(point, {"angle": 0.5})
    store.put(points[0], rf.load(GOLDEN / "descent-square.rf"))
    store.withdraw(points[3:])
    return store.path


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.rf")), ids=lambda path: path.stem)
def test_sound_files_are_sound(path):
    found = verify(path)
    assert (found.is_sound, found.problems) == (True, [])
    assert found.kind == ("network" if path.stem == "network" else "trajectory")


def test_a_sound_store_is_sound_and_stays_as_it_is(store):
    before = contents(store)
    found = verify(store)
    assert (found.problems, found.notes) == ([], [])
    assert found.checked == {"run files": 2, "failures": 1, "rows of the index": 3}
    assert contents(store) == before


def test_the_index_of_another_version_is_a_note():
    assert "has another version" in " | ".join(verify(GOLDEN / "store").notes)


def test_packs_are_read_to_the_end(packed):
    before = contents(packed)
    found = verify(packed)
    assert (found.problems, found.notes) == ([], [])
    assert found.checked == {"records of packs": 4, "rows of the index": 3}
    assert contents(packed) == before


def test_damage_in_a_pack_is_a_problem_and_an_unfinished_record_a_note(packed):
    path = packed / "packs" / "000000.pack"
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:100])
    assert verify(packed).notes == ["000000.pack ends unfinished; the next sweep cuts that off"]
    flip(path)
    assert "000000.pack is damaged at byte" in " | ".join(verify(packed).problems)
    path.unlink()
    assert len(verify(packed).problems) == 3


def test_a_row_of_a_pack_must_be_that_of_its_file(packed):
    point = Point("train", {"d": 9}, seed=0)
    item = replace(outcome.encode(point, {"angle": 0.5}), status="converged")
    path = packed / "packs" / "000000.pack"
    path.write_bytes(path.read_bytes() + pack.record(item))
    assert "its row is that of another point or outcome" in " | ".join(verify(packed).problems)


def test_a_recorded_loss_that_the_network_does_not_have_is_a_problem(tmp_path):
    run = rf.load(GOLDEN / "descent-square.rf")
    wrong = run.log_loss + np.where(np.arange(len(run.t)) == 2, 1e-2, 0.0)
    replace(run, log_loss=wrong).save(tmp_path / "x.rf")
    found = verify(tmp_path / "x.rf")
    assert not found.is_sound
    assert "record 2 has the log-loss" in found.problems[0]


def run_file(store):
    return next(path for path in (store / "runs").rglob("*.rf") if path.stat().st_size > 5000)


def flip(path):
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


def forget(store, where):
    with sqlite3.connect(store / "index.sqlite") as connection:
        connection.execute(f"DELETE FROM points WHERE {where}")
    connection.close()


def rename_run(store):
    path = run_file(store)
    path.rename(path.with_name("70" + "0" * 30 + ".rf"))


def change_status(store):
    with sqlite3.connect(store / "index.sqlite") as connection:
        connection.execute("UPDATE points SET status = 'converged' WHERE status = 'steps'")
    connection.close()


PROBLEMS = {
    "a flipped bit": (lambda store: flip(run_file(store)), "checksum does not match"),
    "a lost file": (lambda store: run_file(store).unlink(), "of which there is no file"),
    "another name": (rename_run, "it belongs to the point"),
    "another status": (change_status, "the index says 'converged' of"),
    "a cut failure": (
        lambda store: next((store / "failures").iterdir()).write_text("{"),
        "contents cannot be used",
    ),
    "a failure of another point": (
        lambda store: next((store / "failures").iterdir()).write_text(
            json.dumps({"task": "train", "parameters": {}, "seed": 1, "status": "failed"})
        ),
        "it belongs to the point",
    ),
}
NOTES = {
    "no index": (lambda store: (store / "index.sqlite").unlink(), "index.sqlite is missing"),
    "a foreign index": (
        lambda store: (store / "index.sqlite").write_bytes(b"x" * 5000),
        "makes it anew from the files",
    ),
    "a row too few": (lambda store: forget(store, "status = 'done'"), "not in the index yet"),
    "an unfinished file": (
        lambda store: (run_file(store).parent / ".reluflow-0.part").write_text("x"),
        "1 unfinished files",
    ),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_every_kind_of_damage_is_a_problem(case, store):
    damage, message = PROBLEMS[case]
    damage(store)
    before = contents(store)
    found = verify(store)
    assert message in " | ".join(found.problems)
    assert contents(store) == before
    assert invoke(store).exit_code == 1


@pytest.mark.parametrize("case", NOTES)
def test_what_mends_itself_is_a_note(case, store):
    damage, message = NOTES[case]
    damage(store)
    found = verify(store)
    assert found.problems == []
    assert message in " | ".join(found.notes)
    assert invoke(store).exit_code == 0
    assert Store(store).refresh() == []


def test_a_result_beside_an_old_failure_is_a_note(tmp_path):
    store, point = Store(tmp_path), Point("train", {"d": 4}, seed=0)
    store.fail(point, "x")
    kept = (tmp_path / "failures" / f"{point.id}.json").read_bytes()
    store.put(point, {"angle": 0.5})
    (tmp_path / "failures" / f"{point.id}.json").write_bytes(kept)
    found = verify(tmp_path)
    assert (found.problems, found.notes) == ([], [f"{point.id} has a result and an old failure"])


def test_the_command_says_what_it_found(store, tmp_path):
    result = invoke(store)
    assert result.exit_code == 0
    assert "store: store, sound (1 failures, 3 rows of the index, 2 run files checked)" in (
        result.output.replace("\n", "")
    )
    flip(run_file(store))
    result = invoke(store, "--json")
    found = json.loads(result.output)
    assert result.exit_code == 1
    assert (found["sound"], found["kind"], len(found["problems"])) == (False, "store", 1)


def test_nothing_to_check_is_bad_input(tmp_path):
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "none", tmp_path / "empty"):
        with pytest.raises(FileError, match="Pass a file or the folder of a store"):
            verify(path)
        assert invoke(path).exit_code == 2
