"""Packs: many results in one file, each noticed when damaged, none lost when a writer is killed."""

import os
import shutil
import sqlite3
import time
import tracemalloc

import pytest

from reluflow.errors import FileError
from reluflow.sweeps import Plan, Point, Store, execute, pack
from reluflow.sweeps.outcome import encode
from reluflow.sweeps.pack import record, scan
from reluflow.sweeps.tasks import train
from sweeps.helpers import LOG, SWEEP, computed, contents, plan

ECHO = "reluflow.sweeps.tasks:echo"


def point(x):
    return Point(ECHO, {"x": x}, seed=x)


def item(x, **more):
    return encode(point(x), {"x": x, **more})


def filled(path, count=5):
    store = Store(path)
    with store.writer():
        for x in range(count):
            store.put(point(x), {"x": x})
    return store


def only_pack(store):
    (path,) = (store.path / "packs").iterdir()
    return path


def change(path, place):
    raw = bytearray(path.read_bytes())
    raw[place] ^= 1
    path.write_bytes(raw)


def whole(content):
    """The records that are read from bytes."""
    return [
        content[span.offset : span.offset + span.length]
        for span in scan(content)
        if span.row is not None
    ]


def test_records_come_back_as_they_were(tmp_path):
    items = [item(0), item(1, text="\x93reluflow point\n" * 3), item(2)]
    content = b"".join(record(each) for each in items)
    spans = list(scan(content))
    assert [span.row["id"] for span in spans] == [each.point.id for each in items]
    assert [span.row["values"] for span in spans] == [dict(each.values) for each in items]
    (tmp_path / "p").write_bytes(content)
    for span, each in zip(spans, items, strict=True):
        assert pack.body(tmp_path / "p", span.offset, span.length) == each.body
    with pytest.raises(FileError, match="damaged at byte 1: its checksum"):
        pack.body(tmp_path / "p", 1, spans[0].length)


@pytest.mark.parametrize("window", [1, 100, 1000, 2000, 2**22])
def test_a_file_is_scanned_like_its_bytes(tmp_path, monkeypatch, window):
    """Whatever is held at a time, of sound, cut and damaged packs."""
    monkeypatch.setattr(pack, "WINDOW_BYTES", window)
    records = [record(item(x)) for x in range(6)]
    content, path = b"".join(records), tmp_path / "p"
    flipped = bytearray(content)
    flipped[len(records[0]) + 50] ^= 1
    flipped[-50] ^= 1
    for raw in (b"", content, content[:-1], content[7:], bytes(flipped), b"noise" * 300):
        path.write_bytes(raw)
        assert list(pack.scan_file(path)) == list(scan(raw))


def test_every_flipped_bit_costs_its_own_record_and_no_other():
    records = [record(item(x)) for x in range(3)]
    content, begin = bytearray(b"".join(records)), len(records[0])
    for place in range(begin, begin + len(records[1])):
        for bit in range(8):
            content[place] ^= 1 << bit
            assert whole(bytes(content)) == [records[0], records[2]], (place, bit)
            content[place] ^= 1 << bit


def test_a_pack_cut_at_any_length_keeps_the_records_before_the_cut():
    records = [record(item(x)) for x in range(3)]
    content = b"".join(records)
    for length in range(len(content)):
        count = sum(length >= sum(map(len, records[: k + 1])) for k in range(3))
        assert whole(content[:length]) == records[:count]


def test_small_results_share_a_file_and_large_ones_do_not(tmp_path):
    store = Store(tmp_path)
    with store.writer():
        for x in range(2000):
            store.put(point(x), {"x": x})
        store.put(point(2000), {"text": "x" * 70_000})
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(kept) == 4  # one pack, one run file, index, lock
    assert store.summary() == {"done": 2001}
    assert store.load(point(2000)).values["text"] == "x" * 70_000
    assert [r.values["x"] for r in store.results(point(x) for x in (7, 1999, 9999))] == [7, 1999]
    assert store.has(point(3))
    assert not store.has(point(9999))


def test_a_full_pack_is_followed_by_another(tmp_path, monkeypatch):
    monkeypatch.setattr(pack, "PACK_BYTES", 3000)
    store = filled(tmp_path, 12)
    names = sorted(path.name for path in (tmp_path / "packs").iterdir())
    assert names == [f"{k:06d}.pack" for k in range(len(names))]
    assert len(names) > 2
    assert [result.values["x"] for result in store.results(map(point, range(12)))] == [*range(12)]
    before = list(store.rows())
    (tmp_path / "index.sqlite").unlink()
    assert list(Store(tmp_path).rows()) == before


def test_a_run_in_a_pack_is_an_ordinary_run(tmp_path):
    import reluflow as rf

    first = next(Plan.parse(SWEEP).points)
    run = train(first.parameters, first.seed)
    store = Store(tmp_path / "s")
    store.put(first, run)
    assert store.load(first).run.final == run.final
    store.extract(first, tmp_path / "run.rf")
    assert rf.load(tmp_path / "run.rf").provenance["point"] == first.to_dict()
    assert (tmp_path / "run.rf").read_bytes() == store.body(first) == encode(first, run).body
    with pytest.raises(FileError, match="has no result for"):
        store.body(point(1))


@pytest.mark.parametrize("lose_index", [False, True])
def test_damage_is_set_aside_and_computed_again(tmp_path, monkeypatch, lose_index):
    monkeypatch.setenv(LOG, str(tmp_path / "log"))
    work, store = plan("square", 5), Store(tmp_path / "s")
    execute(work, store, workers=0)
    before, path = contents(store.path), only_pack(store)
    second = list(scan(path.read_bytes()))[1]
    change(path, second.offset + 40)
    if lose_index:
        (store.path / "index.sqlite").unlink()
    summary = execute(work, Store(store.path), workers=0)
    assert (summary.damaged, summary.computed, summary.done_before) == (1, 1, 4)
    assert computed(tmp_path / "log") == [0, 1, 2, 3, 4, 1]
    assert contents(store.path) == before
    (aside,) = (store.path / "damaged").iterdir()
    assert aside.name == f"{path.name}.{second.offset}"
    assert len(aside.read_bytes()) == second.length
    assert store.refresh() == []


def test_damage_is_noticed_on_load_too(tmp_path):
    store = filled(tmp_path)
    path = only_pack(store)
    stamp = os.stat(path)
    span = list(scan(path.read_bytes()))[2]
    change(path, span.offset + span.length - 100)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # the index still trusts it
    with store.writer():
        store.put(point(50), {"x": 50})
        with pytest.raises(FileError, match=r"checksum.*moved to .*damaged.*run the sweep again"):
            store.load(point(2))
        store.put(point(51), {"x": 51})
    assert [x for x in (0, 1, 2, 3, 4, 50, 51) if not store.has(point(x))] == [2]
    assert store.load(point(51)).values["x"] == 51


def test_an_unfinished_record_is_removed_without_a_word(tmp_path):
    store = filled(tmp_path)
    path, extra = only_pack(store), record(item(9))
    for length in (1, 20, len(extra) - 1):
        size = path.stat().st_size
        with path.open("ab") as stream:
            stream.write(extra[:length])
        assert Store(tmp_path).refresh() == []
        assert path.stat().st_size == size
    with path.open("ab") as stream:
        stream.write(extra)  # whole, and killed before its row was written
        stream.write(extra[:50])
    Store(tmp_path).put(point(10), {"x": 10})
    assert sorted(row["seed"] for row in store.rows()) == [0, 1, 2, 3, 4, 9, 10]
    assert store.refresh() == []
    assert not (tmp_path / "damaged").exists()


def test_a_pack_that_came_or_went_is_noticed(tmp_path):
    store, other = filled(tmp_path / "a", 3), filled(tmp_path / "b", 6)
    shutil.copy(only_pack(other), tmp_path / "a" / "packs" / "000007.pack")
    store.refresh()
    assert store.summary() == {"done": 6}
    (tmp_path / "a" / "packs" / "000007.pack").unlink()
    (tmp_path / "a" / "packs" / ".000008.pack.x").write_bytes(b"half")
    store.refresh()
    assert store.summary() == {"done": 3}
    assert len(list((tmp_path / "a" / "packs").iterdir())) == 1


def test_a_full_disk_leaves_the_pack_as_it_was(tmp_path, monkeypatch):
    store = filled(tmp_path)
    path, real = only_pack(store), os.write
    before = path.read_bytes()

    def full(handle, content):
        if len(content) <= 100:
            raise OSError(28, "No space left on device")
        return real(handle, content[:100])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(FileError, match=r"No space left.*Nothing was changed; free space"):
        store.put(point(9), {"text": "x" * 1000})
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert store.refresh() == []
    assert store.summary() == {"done": 5}


def test_a_store_of_the_first_release_is_read_and_continued(tmp_path, monkeypatch):
    """It has a run file for each point and an index without packs."""
    monkeypatch.setenv(LOG, str(tmp_path / "log"))
    old = Store(tmp_path / "s", pack_up_to=0)
    execute(plan("square", 4), old, workers=0)
    with sqlite3.connect(old.path / "index.sqlite") as connection:
        connection.execute("DROP TABLE packs")
        connection.execute("ALTER TABLE points DROP COLUMN offset")
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    summary = execute(plan("square", 6), tmp_path / "s", workers=0)
    assert (summary.done_before, summary.computed, summary.damaged) == (4, 2, 0)
    assert computed(tmp_path / "log") == [0, 1, 2, 3, 4, 5]
    values = [r.values["square"] for r in Store(tmp_path / "s").results(plan("square", 6).points)]
    assert values == [0, 1, 4, 9, 16, 25]


@pytest.mark.parametrize("pack_up_to", [0, pack.BODY_LIMIT], ids=["files", "packs"])
def test_an_index_is_rebuilt_at_two_thousand_points_a_second(tmp_path, monkeypatch, pack_up_to):
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # filling it is not what is timed
    store, count = Store(tmp_path, pack_up_to=pack_up_to), 4000
    store.put_encoded([item(x) for x in range(count)])
    before = list(store.rows())
    (tmp_path / "index.sqlite").unlink()
    began = time.process_time()
    store.rebuild()
    rate = count / (time.process_time() - began)
    assert list(store.rows()) == before
    print(f"{rate:.0f} points a second")
    assert rate > 2000


def test_an_index_is_rebuilt_without_holding_a_pack(tmp_path):
    """A pack may have 64 MB, which its rows as Python objects would take three times again."""
    store = Store(tmp_path)
    store.put(Point("train", {"x": 0}, seed=0), {"log_loss": 0.0})
    (path,) = (tmp_path / "packs").iterdir()
    (span,) = scan(path.read_bytes())
    rows = [{**span.row, "id": f"{k:032x}", "seed": k} for k in range(40_000)]
    path.write_bytes(b"".join(pack._sealed(row, b"") for row in rows))
    tracemalloc.start()
    assert store.refresh() == []
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert used < path.stat().st_size
    assert store.summary() == {"done": 40_000}


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_what_is_no_pack_is_refused_at_once(tmp_path, kind):
    """A pipe would be waited for, and a device never ends."""
    Store(tmp_path).put(Point("train", {"x": 0}, seed=0), {"log_loss": 0.0})
    (path,) = (tmp_path / "packs").iterdir()
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    with pytest.raises(FileError, match=r"not an ordinary file\. Move it elsewhere"):
        Store(tmp_path).refresh()
    with pytest.raises(FileError, match=r"not an ordinary file\. Move it elsewhere"):
        pack.body(path, 0, 10)
