"""The store: files are the truth, the index follows, damage is noticed and set aside."""

import json
import os
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import reluflow as rf
from reluflow import files
from reluflow.errors import FileError, InputError
from reluflow.sweeps import Plan, Point, Store
from reluflow.sweeps.index import opened, row_of
from reluflow.sweeps.outcome import encode
from reluflow.sweeps.summary import summarise
from reluflow.sweeps.tasks import train
from sweeps.helpers import SWEEP, contents

LIMITED = """
import resource, signal, sys
from reluflow.sweeps.lock import exclusive
from reluflow.errors import FileError
from pathlib import Path
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
with exclusive(Path(sys.argv[1])):
    try:
        with exclusive(Path(sys.argv[1])):
            pass
    except FileError as error:
        print(error)
"""
VALUES = {"text": "a", "flag": True, "count": 3, "x": float("nan"), "y": np.float64(1 / 3)}


def point(x=0):
    return Point("train", {"x": x}, seed=x)


def filled(path, count=5, pack_up_to=0):
    """A store with results, in files of their own unless asked otherwise, and one failure."""
    store = Store(path, pack_up_to=pack_up_to)
    with store.writer():
        for x in range(count):
            store.put(point(x), {"x": x})
        store.fail(point(count), "it broke")
    return store


def rows(store):
    return json.dumps(list(store.rows()), sort_keys=True)


def index_of(store):
    """Everything in the index, with sizes and times of files."""
    with sqlite3.connect(store.path / "index.sqlite") as connection:
        found = connection.execute("SELECT * FROM points ORDER BY id").fetchall()
    connection.close()
    return found


def flip(path, place=-100):
    raw = bytearray(path.read_bytes())
    raw[place] ^= 1
    path.write_bytes(raw)


def test_a_mapping_comes_back_as_it_was(tmp_path):
    store = Store(tmp_path)
    W = np.arange(6.0).reshape(2, 3)
    store.put(point(), {**VALUES, "W": W})
    result = store.load(point())
    assert result.point == point()
    assert (result.run, result.status) == (None, "done")
    assert repr(sorted(result.values.items())) == repr(sorted({**VALUES, "y": 1 / 3}.items()))
    assert np.array_equal(result.arrays["W"], W)
    assert type(result.values["y"]) is float


def test_a_run_is_an_ordinary_run_file(tmp_path):
    first = next(Plan.parse(SWEEP).points)
    run = train(first.parameters, first.seed)
    store = Store(tmp_path, pack_up_to=0)
    store.put(first, run)
    again = rf.load(store.run_path(first))
    assert again.final == run.final
    assert again.provenance["point"] == first.to_dict()
    assert again.provenance["spec"] == {**first.parameters, "seed": first.seed}
    result = store.load(first.id)
    assert result.values["log_loss"] == run.stats["final_log_loss"]
    assert (result.status, result.values["t"], result.arrays) == ("steps", 30, {})
    row = next(store.rows())
    assert row["scalars"] == dict(result.values)
    assert (row["parameters"], row["seed"]) == (first.parameters, first.seed)


@pytest.mark.parametrize(
    ("outcome", "message"),
    [([1], "returned list"), ({"x": [1]}, "as 'x', which no file can hold"), (None, "NoneType")],
)
def test_what_no_file_can_hold_is_refused(tmp_path, outcome, message):
    store = Store(tmp_path / "s")
    with pytest.raises(InputError, match=message):
        store.put(point(), outcome)
    assert not store.path.exists()


def test_results_come_in_the_order_asked_for_without_the_missing(tmp_path):
    store = filled(tmp_path)
    asked = [point(x) for x in (4, 9, 0, 5, 2)]
    assert [result.values["x"] for result in store.results(asked)] == [4, 0, 2]
    found = list(store.rows_of(asked))
    assert [row and row["status"] for row in found] == ["done", None, "done", "failed", "done"]
    assert found[3]["error"] == "it broke"


def test_a_store_that_is_not_there_is_empty_and_stays_so(tmp_path):
    store = Store(tmp_path / "none")
    assert list(store.rows()) == []
    assert (store.summary(), store.has(point()), list(store.rows_of([point()]))) == (
        {},
        False,
        [None],
    )
    assert not store.path.exists()
    with pytest.raises(FileError, match="has no result for"):
        store.load(point())


@pytest.mark.parametrize("name", ["../../etc/passwd", "ab", "Z" * 32, "A" * 32, 3])
def test_ids_that_are_none_are_refused(tmp_path, name):
    with pytest.raises(InputError, match="is no id of a point"):
        Store(tmp_path).has(name)


def test_a_success_replaces_a_failure(tmp_path):
    store = Store(tmp_path)
    store.fail(point(), "first")
    assert store.summary() == {"failed": 1}
    store.fail(point(), "second", set_aside=True)
    assert [row["error"] for row in store.rows()] == ["second"]
    assert store.summary() == {"set_aside": 1}
    store.put(point(), {"x": 1})
    assert store.summary() == {"done": 1}
    assert not list((tmp_path / "failures").iterdir())


def garbage(path):
    path.write_bytes(b"not a database" * 500)


def emptied(path):
    path.write_bytes(b"")


def other_database(path):
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 1")
        connection.execute("CREATE TABLE other (x)")
    connection.close()


def torn(path):
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2])


@pytest.mark.parametrize("harm", [os.unlink, garbage, emptied, other_database, torn])
@pytest.mark.parametrize("use", [rows, Store.refresh, Store.rebuild])
def test_an_index_that_is_lost_or_damaged_is_rebuilt_equal(tmp_path, harm, use):
    store = filled(tmp_path, 12)
    before, listing = index_of(store), rows(store)
    harm(tmp_path / "index.sqlite")
    use(Store(tmp_path))
    assert index_of(store) == before
    assert rows(store) == listing


def test_a_rebuilt_index_of_runs_equals_the_written_one(tmp_path):
    store = Store(tmp_path)
    for each in Plan.parse(SWEEP).points:
        store.put(each, train(each.parameters, each.seed))
    before = index_of(store)
    store.rebuild()
    assert index_of(store) == before


def test_a_journal_left_by_a_killed_writer_does_not_touch_a_new_index(tmp_path):
    store = filled(tmp_path)
    before = index_of(store)
    shutil.copy(tmp_path / "index.sqlite", tmp_path / "index.sqlite-journal")
    (tmp_path / "index.sqlite").unlink()
    store.refresh()
    assert not (tmp_path / "index.sqlite-journal").exists()
    assert index_of(store) == before


def test_files_that_came_or_went_are_noticed(tmp_path):
    store, other = filled(tmp_path / "a"), filled(tmp_path / "b", 8)
    new = other.run_path(point(7))
    target = store.run_path(point(7))
    target.parent.mkdir(exist_ok=True)
    shutil.copy(new, target)
    store.run_path(point(1)).unlink()
    (store.path / "failures" / f"{point(5).id}.json").unlink()
    assert store.refresh() == []
    assert sorted(row["seed"] for row in store.rows()) == [0, 2, 3, 4, 7]


@pytest.mark.parametrize(
    "harm",
    [flip, emptied, torn, lambda path: files.write(path, "network", {}, {})],
    ids=["flipped bit", "empty", "cut", "foreign"],
)
def test_a_damaged_run_is_set_aside_on_refresh(tmp_path, harm):
    store = filled(tmp_path)
    path = store.run_path(point(2))
    harm(path)
    body = path.read_bytes()
    aside = tmp_path / "damaged" / path.name
    assert store.refresh() == [aside]
    assert aside.read_bytes() == body
    assert not store.has(point(2))
    assert store.summary() == {"done": 4, "failed": 1}


def test_a_run_under_the_name_of_another_is_damaged(tmp_path):
    store = filled(tmp_path)
    shutil.copy(store.run_path(point(1)), store.run_path(point(2)))
    assert [path.stem for path in store.refresh()] == [point(2).id]
    assert store.has(point(1))


def test_a_damaged_run_is_set_aside_on_load_and_never_over_another(tmp_path):
    store = filled(tmp_path)
    for name in ("", ".1", ".2"):
        flip(store.run_path(point(2)))
        with pytest.raises(FileError, match=r"checksum does not match.*moved to .*run the sweep"):
            store.load(point(2))
        assert (tmp_path / "damaged" / f"{point(2).id}.rf{name}").is_file()
        assert store.summary() == {"done": 4, "failed": 1}
        store.put(point(2), {"x": 2})


def test_a_damaged_run_of_a_store_in_use_is_left_where_it_is(tmp_path):
    store, path = filled(tmp_path), Store(tmp_path).run_path(point(2))
    flip(path)
    with store.writer(), pytest.raises(FileError, match=r"checksum.*left where it is: .*in use by"):
        Store(tmp_path).load(point(2))
    assert path.is_file()


def test_a_file_that_may_not_be_read_is_not_called_damaged(tmp_path, monkeypatch):
    store, path = filled(tmp_path), Store(tmp_path).run_path(point(2))
    flip(path)  # root may read everything: a bad file and a refusal stand for one without rights
    monkeypatch.setattr(os, "access", lambda *args: False)
    for attempt in (store.refresh, lambda: store.load(point(2))):
        with pytest.raises(FileError, match="Permission denied"):
            attempt()
    assert path.is_file()


def test_a_damaged_run_found_while_rebuilding_is_told_by_the_next_refresh(tmp_path):
    store = filled(tmp_path)
    flip(store.run_path(point(2)))
    (tmp_path / "index.sqlite").unlink()
    assert [path.stem for path in store.refresh()] == [point(2).id]
    assert store.refresh() == []


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"status": "fine", "error": ""}', "\x00"])
def test_a_damaged_failure_is_set_aside(tmp_path, text):
    store = filled(tmp_path)
    (tmp_path / "failures" / f"{point(5).id}.json").write_text(text)
    assert [path.suffix for path in store.refresh()] == [".json"]
    assert store.summary() == {"done": 5}


def test_unfinished_files_of_a_killed_writer_are_removed(tmp_path):
    store = filled(tmp_path)
    left = store.run_path(point(1)).with_name(f".{point(1).id}.rf.abc")
    left.write_bytes(b"half")
    store.refresh()
    assert not left.exists()
    assert store.summary() == {"done": 5, "failed": 1}


def test_two_writers_are_refused(tmp_path):
    store, second = filled(tmp_path), Store(tmp_path)
    with store.writer():
        for attempt in (
            lambda: second.put(point(9), {"x": 9}),
            lambda: second.fail(point(9), "no"),
            second.refresh,
            second.rebuild,
        ):
            with pytest.raises(FileError, match=rf"in use by process {os.getpid()} on "):
                attempt()
        assert len(list(second.rows())) == 6  # reading is free
        with pytest.raises(InputError, match="Rebuild its index before or after"):
            store.rebuild()
    second.put(point(9), {"x": 9})
    assert store.has(point(9))


def test_a_folder_that_cannot_be_used(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=r"cannot use the folder .*Nothing was changed"):
        Store(tmp_path / "file" / "store").put(point(), {"x": 1})


FULL = """
import resource, signal, sys
from reluflow.errors import FileError
from reluflow.sweeps import Point, Store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store, limit, text = Store(sys.argv[1]), int(sys.argv[2]), "x" * int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
try:
    with store.writer():
        for x in range(1000, 2000):
            store.put(Point("train", {"x": x}, seed=x), {"x": x, "text": text})
except FileError as error:
    print(x, error)
"""


@pytest.mark.parametrize(
    ("limit", "length", "message"),
    [
        (5_000, 5_000, "cannot write .*Nothing was changed; free space"),
        (40_000, 1_000, "cannot use .*index.sqlite.*The run files are intact; free space"),
    ],
    ids=["run file", "index"],
)
def test_a_full_disk_leaves_the_old_state(tmp_path, limit, length, message):
    """A limit on file sizes makes writes fail as a full disk does."""
    store = filled(tmp_path)
    before = contents(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", FULL, tmp_path, str(limit), str(length)],
        capture_output=True,
        text=True,
        check=True,
    )
    last = int(done.stdout.split()[0])
    assert re.search(message, done.stdout, re.DOTALL), done.stdout
    assert before.items() <= contents(tmp_path).items()
    assert store.refresh() == []
    finished = {row["seed"] for row in store.rows() if row["seed"] >= 1000}
    assert finished in ({*range(1000, last)}, {*range(1000, last + 1)})
    assert all(store.load(point(x)).values["x"] == x for x in range(5))


CRASH = """
import os, sys, tempfile
from pathlib import Path
from reluflow.sweeps import Point, Store

root, what, pack_up_to = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
point, old = Point("train", {"x": 1}, 1), Point("train", {"x": 0}, 0)
outcomes = []
for k in range(100):
    folder = root / f"{what}{k}"
    Store(folder, pack_up_to=pack_up_to).put(old, {"x": 0})
    if what == "over":
        Store(folder).fail(point, "before")
    pid = os.fork()
    if pid == 0:
        calls = 0
        def crash_at(function):
            def wrapped(*args, **more):
                global calls
                calls += 1
                if calls - 1 == k:
                    os._exit(9)
                return function(*args, **more)
            return wrapped
        for name in "fsync replace chmod open unlink close fdopen pwrite write".split():
            setattr(os, name, crash_at(getattr(os, name)))
        tempfile.mkstemp = crash_at(tempfile.mkstemp)
        store = Store(folder, pack_up_to=pack_up_to)
        if what == "rebuild":
            store.rebuild()
        elif what == "fail":
            store.fail(point, "error")
        else:
            store.put(point, {"x": 1})
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    store = Store(folder)
    assert store.refresh() == [], k
    rows = {row["seed"]: row["status"] for row in store.rows()}
    assert store.load(old).values == {"x": 0}
    assert rows.pop(0) == "done"
    if rows.get(1) == "done":
        assert store.load(point).values == {"x": 1}
    left = [path for path in folder.rglob(".*")]
    assert not left, left
    outcomes.append(str(rows.get(1)))
    if code == 0:
        break
    assert code == 9
print(len(outcomes), *sorted(set(outcomes)), outcomes[-1])
"""


@pytest.mark.parametrize(
    ("what", "states"),
    [
        ("put", ["None", "done", "done"]),
        ("over", ["done", "failed", "done"]),
        ("fail", ["None", "failed", "failed"]),
        ("rebuild", ["None", "None"]),
    ],
)
@pytest.mark.parametrize("pack_up_to", [0, 2**16], ids=["files", "packs"])
def test_a_crash_at_any_call_leaves_the_state_before_or_after(tmp_path, what, states, pack_up_to):
    """The process ends at each write, flush and rename in turn, without cleaning up."""
    done = subprocess.run(
        [sys.executable, "-c", CRASH, tmp_path, what, str(pack_up_to)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    count, *found = done.stdout.split()
    assert int(count) > 5
    assert found == states


@pytest.mark.parametrize("name", ["fsync", "replace", "open", "fdopen"])
def test_an_error_at_any_call_leaves_the_state_before_or_after(tmp_path, monkeypatch, name):
    store = filled(tmp_path)
    real, calls = getattr(os, name), []

    def broken(*args, **more):
        calls.append(args)
        if len(calls) - 1 == k:
            raise OSError(28, "No space left on device")
        return real(*args, **more)

    for k in range(20):
        calls.clear()
        with monkeypatch.context() as patch:
            patch.setattr(os, name, broken)
            try:
                store.put(point(100 + k), {"x": k})
            except FileError as error:
                assert "No space left" in str(error)  # noqa: PT017
                had = True
            else:
                had = False
        store.refresh()
        assert store.summary()["done"] in (5 + k, 6 + k)
        assert len(calls) > k or not had
        if not had:
            break
        store.put(point(100 + k), {"x": k})
    assert k >= 1


def test_memory_of_listing_and_summary_is_flat(tmp_path):
    """Four times the points, the same memory; rows without files are enough to list."""

    def peak(count):
        plan = Plan("many", count, lambda: (point(x) for x in range(count)), paths=("x",))
        store = Store(tmp_path / str(count))
        with store.writer() as index:
            for each in plan.points:
                index.put(row_of(each.to_dict(), each.id, "done", (1, 1), values={"log_loss": 1.0}))
        tracemalloc.start()
        assert sum(1 for _ in store.rows()) == count
        lines, total = summarise(plan, store)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert (len(lines), total.statuses, total.median) == (20, {"done": count}, 1.0)
        return used

    small, large = peak(2_500), peak(10_000)
    assert large < 1.1 * small + 4 * 8 * 10_000  # the numbers themselves, copied for the median


@pytest.mark.long
def test_a_hundred_thousand_points(tmp_path, monkeypatch):
    """Planned, put, listed, summarised, rebuilt: resident memory grows by less than 60 MB."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # the disk is not what is tested
    count = 100_000
    plan = Plan("many", count, lambda: (point(x) for x in range(count)), paths=("x",))
    store = Store(tmp_path)
    store.put(point(0), {"log_loss": 0.0})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with store.writer():
        for each in plan.points:
            store.put(each, {"log_loss": float(each.seed)})
    listing = sum(row["seed"] for row in store.rows())
    _, total = summarise(plan, store)
    (tmp_path / "index.sqlite").unlink()
    assert store.refresh() == []
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert listing == sum(row["seed"] for row in store.rows()) == count * (count - 1) // 2
    assert total.statuses == {"done": count}
    assert (total.least, total.median, total.greatest) == (0.0, (count - 1) / 2, count - 1)
    assert grown_kb < 60_000


def test_bytes_hold_nothing_of_the_moment():
    first = next(Plan.parse(SWEEP).points)
    one, two = (encode(first, train(first.parameters, first.seed)).body for _ in range(2))
    assert one == two
    assert os.uname().nodename.encode() not in one


def test_a_store_is_read_while_it_is_written(tmp_path):
    store = filled(tmp_path, 3)
    with store.writer():
        store.put(point(50), {"x": 50})
        assert store.summary() == {"done": 4, "failed": 1}
        assert len(list(store.rows())) == 5
    with opened(tmp_path / "index.sqlite", check=True) as index:
        assert index.status(point(50).id) == "done"


def test_the_lock_holds_on_a_full_disk(tmp_path):
    """Only the name of its holder needs space."""
    command = [sys.executable, "-c", LIMITED, tmp_path / "lock"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "is in use by another program" in done.stdout
