"""Run files: equal after a round trip, damage always noticed, nothing ever executed."""

import contextlib
import errno
import hashlib
import io
import json
import os
import pickle
import subprocess
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from reluflow import files, writing
from reluflow.errors import FileError, InputError
from reluflow.trajectory import EVENT_DTYPE

SMALL = {"a": np.arange(3.0), "W": np.eye(2)}


def small_file() -> bytes:
    return files.encode("network", {"name": "small"}, SMALL)


def sealed(members, comment=None, compression=zipfile.ZIP_STORED) -> bytes:
    """A ZIP of the given (name, bytes) pairs whose whole-file checksum is right."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, body in members:
            archive.writestr(zipfile.ZipInfo(name), body, compress_type=compression)
        archive.comment = b"0" * 64
    return resealed(buffer.getvalue()) if comment is None else buffer.getvalue()[:-64] + comment


def resealed(raw: bytes) -> bytes:
    return raw[:-64] + hashlib.sha256(raw[:-64]).hexdigest().encode()


def manifest_for(members, **changes) -> bytes:
    sums = {name: hashlib.sha256(body).hexdigest() for name, body in members}
    manifest = {"format": "reluflow", "format_version": 1, "kind": "network", "fields": {}}
    return json.dumps({**manifest, "sha256": sums, **changes}).encode()


def npy(array, **options) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), **options)
    return buffer.getvalue()


def npy_with_header(header: str, body: bytes = b"") -> bytes:
    text = (header + "\n").encode("latin1")
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + body


# ------------------------------------------------------------------------------ round trips

dtypes = st.one_of(
    hnp.scalar_dtypes().filter(lambda dtype: dtype.itemsize > 0),
    st.just(EVENT_DTYPE),
    st.sampled_from([np.dtype("U7"), np.dtype("S3"), np.dtype(">f8"), np.dtype("c16")]),
)
texts = st.text(st.characters(codec="utf-8"), max_size=20)
fields = st.dictionaries(
    texts,
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=5,
    ),
    max_size=3,
)


@given(
    fields,
    st.dictionaries(
        st.from_regex(r"[A-Za-z0-9_.]{1,12}", fullmatch=True),
        hnp.arrays(dtypes, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)),
        max_size=4,
    ),
)
def test_reading_returns_what_was_written(texts, arrays):
    raw = files.encode("trajectory", texts, arrays)
    manifest, read = files.decode(raw, "trajectory", "x.rf")
    assert manifest["fields"] == texts
    assert set(read) == set(arrays)
    for name, array in arrays.items():
        assert read[name].shape == array.shape
        assert read[name].dtype == array.dtype
        assert read[name].tobytes() == array.tobytes()


@pytest.mark.parametrize(
    "array", [np.arange(12.0).reshape(3, 4).T, np.asfortranarray(np.eye(3)), np.arange(9)[::-2]]
)
def test_any_memory_order_reads_back_equal(array):
    _, read = files.decode(files.encode("network", {}, {"x": array}), None, "x")
    assert np.array_equal(read["x"], array)


def test_equal_contents_give_equal_bytes():
    assert small_file() == small_file()


def test_arrays_read_can_be_changed():
    _, arrays = files.decode(small_file(), None, "x")
    arrays["a"][0] = 5.0


def test_numpy_scalars_and_arrays_in_fields_become_plain():
    raw = files.encode("network", {"k": np.int64(3), "f": np.float64(0.5), "v": np.arange(2)}, {})
    manifest, _ = files.decode(raw, None, "x")
    assert manifest["fields"] == {"k": 3, "f": 0.5, "v": [0, 1]}


@pytest.mark.parametrize("value", [object(), 1j, {1, 2}, np.array([None])])
def test_fields_that_json_cannot_hold_are_refused(value):
    with pytest.raises(InputError, match=r"a field holds .* JSON cannot store"):
        files.encode("network", {"x": value}, {})


@pytest.mark.parametrize(
    "array", [np.array([object()]), np.zeros(2, [("o", "O")]), np.empty(2, "V0")]
)
def test_arrays_that_need_pickle_are_refused_on_writing(array):
    with pytest.raises(InputError, match=r"`x` has dtype .* without pickle"):
        files.encode("network", {}, {"x": array})


@pytest.mark.parametrize("name", ["", "a/b", "../a", "ä", "x" * 81])
def test_names_that_could_not_be_read_are_not_written(name):
    with pytest.raises(InputError, match=r"the array name .* cannot be stored"):
        files.encode("network", {}, {name: np.zeros(1)})


def test_field_names_outside_latin_1_are_refused():
    with pytest.raises(InputError, match="`x` cannot be stored"):
        files.encode("network", {}, {"x": np.zeros(1, [("\u03b8", "f8")])})


# ------------------------------------------------------------------------------ damage


def test_every_flipped_bit_is_noticed():
    raw = bytearray(small_file())
    assert 1000 < len(raw) < 4000
    for position in range(len(raw)):
        for bit in range(8):
            raw[position] ^= 1 << bit
            with pytest.raises(FileError, match=r"damaged|not a reluflow file"):
                files.decode(bytes(raw), None, "x.rf")
            raw[position] ^= 1 << bit
    files.decode(bytes(raw), None, "x.rf")


def test_a_cut_at_every_length_is_noticed():
    raw = small_file()
    for length in range(len(raw)):
        with pytest.raises(FileError, match=r"damaged, cut short|not a reluflow file"):
            files.decode(raw[:length], None, "x.rf")


def test_appended_bytes_are_noticed():
    for extra in (b"\0", b"x" * 64, small_file()):
        with pytest.raises(FileError, match="damaged"):
            files.decode(small_file() + extra, None, "x.rf")


def test_swapped_members_are_noticed_even_with_a_right_outer_checksum():
    one, two = npy([1.0]), npy([2.0])
    manifest = manifest_for([("one.npy", one), ("two.npy", two)])
    good = [("manifest.json", manifest), ("one.npy", one), ("two.npy", two)]
    assert files.decode(sealed(good), None, "x")[1]["one"] == 1.0
    swapped = [("manifest.json", manifest), ("one.npy", two), ("two.npy", one)]
    with pytest.raises(FileError, match=r"member 'one.npy' does not match its checksum"):
        files.decode(sealed(swapped), None, "x")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_repeated_names_are_refused():
    body = npy([1.0])
    members = [("manifest.json", manifest_for([("a.npy", body)])), ("a.npy", body), ("a.npy", body)]
    with pytest.raises(FileError, match="missing or repeated"):
        files.decode(sealed(members), None, "x")


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"sha256": {}},
        {"sha256": {"b.npy": "0" * 64}},
        {"sha256": ["a.npy"]},
        {"sha256": 3},
        {"fields": []},
        {"fields": None},
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(change):
    body = npy([1.0])
    members = [("manifest.json", manifest_for([("a.npy", body)], **change)), ("a.npy", body)]
    with pytest.raises(FileError, match=r"not a valid reluflow file .*manifest"):
        files.decode(sealed(members), None, "x")


@pytest.mark.parametrize(
    "text", [b"[]", b"{", b"\xff\xfe", b"[" * 100_000, b"9" * 5000, b"null", b'{"format": "x"}']
)
def test_a_manifest_that_is_not_json_or_not_ours_is_refused(text):
    with pytest.raises(FileError, match="not a valid reluflow file"):
        files.decode(sealed([("manifest.json", text)]), None, "x")


def test_a_newer_format_asks_for_an_update():
    raw = sealed([("manifest.json", manifest_for([], format_version=2))])
    with pytest.raises(
        FileError, match=r"format version 2; this reluflow reads 1. Update reluflow"
    ):
        files.decode(raw, None, "x")


@pytest.mark.parametrize("version", [True, 1.0, "1", None, [1]])
def test_a_format_version_is_an_integer(version):
    raw = sealed([("manifest.json", manifest_for([], format_version=version))])
    with pytest.raises(FileError, match=r"its format version is .*, not an integer"):
        files.decode(raw, None, "x")


def test_a_large_manifest_is_refused_before_it_is_parsed(monkeypatch):
    monkeypatch.setattr(json, "loads", lambda text: pytest.fail("the manifest was parsed"))
    raw = sealed([("manifest.json", b" " * (files.MANIFEST_LIMIT_BYTES + 1))])
    with pytest.raises(FileError, match=r"its manifest has \d+ bytes, above \d+"):
        files.decode(raw, None, "x")


def test_a_manifest_that_could_not_be_read_is_not_written():
    with pytest.raises(InputError, match=r"the fields take \d+ bytes, above"):
        files.encode("network", {"x": "y" * files.MANIFEST_LIMIT_BYTES}, {})


def test_reading_takes_little_more_memory_than_the_arrays(tmp_path):
    big = np.zeros(4_000_000)
    files.write(tmp_path / "x.rf", "network", {}, {"a": big})
    tracemalloc.start()
    files.read(tmp_path / "x.rf")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.2 * big.nbytes


def test_an_array_at_an_odd_address_is_copied():
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,)}"
    body = npy_with_header(header + " " * (-len(header) % 8), np.arange(2.0).tobytes())
    members = [("manifest.json", manifest_for([("a.npy", body)])), ("a.npy", body)]
    _, arrays = files.decode(sealed(members), None, "x")
    assert arrays["a"].flags.aligned
    assert arrays["a"].tolist() == [0.0, 1.0]


def test_another_kind_is_named():
    with pytest.raises(FileError, match=r"x.rf holds a network, not a trajectory"):
        files.decode(small_file(), "trajectory", "x.rf")


# ------------------------------------------------------------------------------ hostile files


class Canary:
    """Unpickling this makes a folder; the tests check that it never appears."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_the_canary_would_run(tmp_path):
    pickle.loads(pickle.dumps(Canary(tmp_path / "ran")))
    assert (tmp_path / "ran").exists()


def test_pickled_object_arrays_never_run(tmp_path):
    trap = tmp_path / "ran"
    body = npy(np.array([Canary(trap)], dtype=object), allow_pickle=True)
    nested = npy_with_header(
        "{'descr': [('o', '|O')], 'fortran_order': False, 'shape': (1,)}",
        pickle.dumps(Canary(trap)),
    )
    for payload in (body, nested):
        members = [("manifest.json", manifest_for([("a.npy", payload)])), ("a.npy", payload)]
        with pytest.raises(FileError, match="dtype that reluflow never writes"):
            files.decode(sealed(members), None, "x")
    (tmp_path / "raw.rf").write_bytes(pickle.dumps(Canary(trap)))
    with pytest.raises(FileError, match="not a reluflow file"):
        files.read(tmp_path / "raw.rf")
    assert not trap.exists()


def test_code_in_a_header_is_not_evaluated(tmp_path):
    trap = tmp_path / "ran"
    body = npy_with_header(f"{{'descr': __import__('os').mkdir({str(trap)!r}), 'shape': ()}}")
    members = [("manifest.json", manifest_for([("a.npy", body)])), ("a.npy", body)]
    with pytest.raises(FileError, match="not a valid reluflow file"):
        files.decode(sealed(members), None, "x")
    assert not trap.exists()


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=6),
    st.integers(0, 10**6),
)
@settings(max_examples=12 * settings.default.max_examples)
def test_crafted_bytes_with_a_right_checksum_raise_nothing_but_our_error(changes, cut):
    """Someone who can seal a file may put anything inside: no other exception may escape."""
    raw = bytearray(small_file())
    for position, value in changes:
        raw[4 + position % (len(raw) - 68)] = value
    with contextlib.suppress(FileError):
        files.decode(resealed(bytes(raw)), None, "x")
    with contextlib.suppress(FileError):
        files.decode(resealed(bytes(raw[:4]) + bytes(raw[4 + cut % 500 :])), None, "x")


@pytest.mark.parametrize(
    "name", ["../a.npy", "/etc/a.npy", "a/b.npy", "..\\a.npy", "a.exe", "a.npy "]
)
def test_names_that_leave_the_folder_are_refused(name):
    body = npy([1.0])
    members = [("manifest.json", manifest_for([(name, body)])), (name, body)]
    with pytest.raises(FileError, match="is not allowed"):
        files.decode(sealed(members), None, "x")


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_bomb_is_refused_before_unpacking(method):
    bomb = b"\0" * 10_000_000
    raw = sealed([("manifest.json", b"{}"), ("a.npy", bomb)], compression=method)
    assert len(raw) < 20_000
    with pytest.raises(FileError, match="is compressed"):
        files.decode(raw, None, "x")


def test_members_that_share_bytes_are_refused():
    """Many directory entries for one stored member would multiply its size on reading."""
    raw = sealed([("manifest.json", b"{}"), ("a.npy", b"\0" * 50_000)])
    directory = raw.index(b"PK\x01\x02", 50_000)
    entry = raw.index(b"PK\x01\x02", directory + 4)
    end = raw.index(b"PK\x05\x06")
    copies = b"".join(
        raw[entry:end].replace(b"a.npy", b"%c.npy" % letter) for letter in b"abcdefgh"
    )
    tail = bytearray(raw[end:])
    tail[8:10] = tail[10:12] = (9).to_bytes(2, "little")
    tail[12:16] = (entry - directory + len(copies)).to_bytes(4, "little")
    crafted = resealed(raw[:entry] + copies + bytes(tail))
    with pytest.raises(FileError, match=r"members overlap|Overlapped"):
        files.decode(crafted, None, "x")


def test_encrypted_members_are_refused():
    raw = bytearray(sealed([("manifest.json", b"{}")]))
    raw[6] |= 1
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(FileError, match="encrypted"):
        files.decode(resealed(bytes(raw)), None, "x")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,)}",
            "another length",
        ),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}", "another length"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1)}", "another length"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (2,)}", "another length"),
        ("{'descr': '|V0', 'fortran_order': False, 'shape': (10,)}", "never writes"),
        ("{'descr': '<f8', 'fortran_order': True, 'shape': (1, 1)}", "never writes"),
        ("{'descr': '<f8', 'shape': (1,)}", "not a valid"),
        ("{'descr': 'spam', 'fortran_order': False, 'shape': (1,)}", "not a valid"),
        ("((((((((((((((((", "not a valid"),
        ("", "not a valid"),
    ],
)
def test_a_header_may_not_promise_more_than_is_there(header, message):
    body = npy_with_header(header, b"\0" * 8)
    members = [("manifest.json", manifest_for([("a.npy", body)])), ("a.npy", body)]
    with pytest.raises(FileError, match=message):
        files.decode(sealed(members), None, "x")


@pytest.mark.parametrize(
    "body", [b"", b"PK", b"\x93NUMPY", b"{}", b"PK\x03\x04", b"PK\x05\x06" + b"\0" * 18]
)
def test_foreign_bytes_are_refused(body, tmp_path):
    path = tmp_path / "x.rf"
    path.write_bytes(body)
    with pytest.raises(FileError, match=r"x\.rf is .*not a reluflow file"):
        files.read(path)


def test_a_foreign_zip_and_an_npz_are_refused(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, a=np.zeros(3))
    with pytest.raises(FileError, match="not a reluflow file: its checksum does not match"):
        files.read(path)
    with pytest.raises(FileError, match=r"not a valid reluflow file \(members are missing"):
        files.decode(sealed([("a.npy", npy([1.0]))]), None, "x")


# ------------------------------------------------------------------------------ disk


def test_missing_folder_and_special_files_are_refused(tmp_path):
    with pytest.raises(FileError, match=r"cannot read .*No such file.* Check the path"):
        files.read(tmp_path / "none.rf")
    with pytest.raises(FileError, match="is a folder, not an ordinary file"):
        files.read(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    for special in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(FileError, match="pipe, device or socket, not an ordinary file"):
            files.read(special)
    with pytest.raises(FileError, match=r"cannot read .*null"):
        files.read("a\0b")


def test_the_size_is_capped_before_reading(tmp_path, monkeypatch):
    path = tmp_path / "x.rf"
    files.write(path, "network", {}, SMALL)
    monkeypatch.setattr(files, "SIZE_LIMIT_BYTES", 100)
    with pytest.raises(FileError, match=r"has more than 100 bytes, the largest size that is read"):
        files.read(path)


def test_writing_makes_folders_and_leaves_one_file(tmp_path):
    path = tmp_path / "a" / "b" / "x.rf"
    files.write(path, "network", {"k": 1}, SMALL)
    manifest, arrays = files.read(path, "network")
    assert manifest["fields"] == {"k": 1}
    assert np.array_equal(arrays["W"], SMALL["W"])
    assert [p.name for p in path.parent.iterdir()] == ["x.rf"]


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_gets_the_permissions_of_the_umask(mask, mode, tmp_path):
    before = os.umask(mask)
    try:
        files.write(tmp_path / "x.rf", "network", {}, SMALL)
    finally:
        os.umask(before)
    assert (tmp_path / "x.rf").stat().st_mode & 0o777 == mode


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path):
    path = tmp_path / "x.rf"
    files.write(path, "network", {}, SMALL)
    path.chmod(0o600)
    files.write(path, "network", {}, SMALL)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_name_of_the_greatest_length_can_be_written(tmp_path):
    path = tmp_path / ("x" * 255)
    files.write(path, "network", {}, SMALL)
    assert files.read(path)[0]["kind"] == "network"


WRITER = """
import os, signal, sys
from reluflow import writing
os.replace = lambda *names: (print(flush=True), signal.pause())
writing.write_bytes(sys.argv[1], b"x")
"""


def test_what_a_killed_writer_leaves_is_removed_and_what_a_living_one_writes_stays(tmp_path):
    command = [sys.executable, "-c", WRITER, str(tmp_path / "x.rf")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        writer.stdout.readline()
        (left,) = tmp_path.iterdir()
        assert writing.remove_orphans(tmp_path) == []  # young
        os.utime(left, (0, 0))
        assert writing.remove_orphans(tmp_path) == []  # locked
        writer.kill()
    assert writing.remove_orphans(tmp_path) == [left]
    assert not list(tmp_path.iterdir())


def test_files_of_others_are_no_orphans(tmp_path):
    for name in (".x.rf.part", ".reluflow-", "reluflow-1.part", ".reluflow-1"):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (0, 0))
    assert writing.remove_orphans(tmp_path) == []
    assert writing.remove_orphans(tmp_path / "none") == []


class FullDisk(io.FileIO):
    """A stream that accepts some bytes and then reports a full disk."""

    room = 100

    def write(self, body):
        super().write(bytes(body)[: self.room])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def fail(code):
    def call(*args, **kwargs):
        raise OSError(code, os.strerror(code))

    return call


def full_disk(monkeypatch):
    monkeypatch.setattr(os, "fdopen", lambda handle, mode: FullDisk(handle, mode))


FAULTS = {
    "write": (full_disk, "No space left"),
    "fsync": (lambda m: m.setattr(os, "fsync", fail(errno.ENOSPC)), "No space left"),
    "io error": (lambda m: m.setattr(os, "fsync", fail(errno.EIO)), "Input/output error"),
    "rename": (lambda m: m.setattr(os, "replace", fail(errno.EACCES)), "Permission denied"),
    "chmod": (lambda m: m.setattr(os, "chmod", fail(errno.EPERM)), "not permitted"),
    "create": (lambda m: m.setattr(os, "open", fail(errno.EROFS)), "Read-only file system"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_failed_write_leaves_the_old_file_and_says_so(fault, tmp_path, monkeypatch):
    path = tmp_path / "x.rf"
    files.write(path, "network", {}, {"a": np.zeros(1)})
    before = path.read_bytes()
    inject, reason = FAULTS[fault]
    with monkeypatch.context() as patch:
        inject(patch)
        with pytest.raises(FileError, match=rf"cannot write .*{reason}.* Nothing was changed"):
            files.write(path, "network", {}, {"a": np.ones(10_000)})
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["x.rf"]


def test_an_interrupt_while_writing_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x.rf"
    files.write(path, "network", {}, SMALL)
    before = path.read_bytes()

    def interrupt(handle):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        files.write(path, "network", {}, {"a": np.ones(5)})
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["x.rf"]


def test_an_unconfirmed_folder_does_not_claim_that_nothing_changed(tmp_path, monkeypatch):
    real = os.fsync
    calls = []

    def second_fails(handle):
        calls.append(handle)
        if len(calls) == 2:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(handle)

    monkeypatch.setattr(os, "fsync", second_fails)
    with pytest.raises(FileError, match="was written, but the disk did not confirm it"):
        files.write(tmp_path / "x.rf", "network", {}, SMALL)
    assert files.read(tmp_path / "x.rf")[0]["kind"] == "network"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_read_only_folder_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(FileError, match=r"cannot write .*x\.rf \(Permission denied\)"):
        files.write(tmp_path / "x.rf", "network", {}, SMALL)


def test_a_path_below_a_file_or_onto_a_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileError, match="cannot write"):
        files.write(tmp_path / "file" / "x.rf", "network", {}, SMALL)
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileError, match="cannot write"):
        files.write(tmp_path / "folder", "network", {}, SMALL)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"]
