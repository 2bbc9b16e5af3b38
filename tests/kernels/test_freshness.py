"""Compiled kernels on disk, with kernels of two lines in processes of their own."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reluflow.kernels.freshness import Entries

CALLEE = """
from numba import njit

@njit(cache=True)
def rate(x):
    return 2.0 * x
"""
CALLER = """
from numba import njit
from small.callee import rate

@njit(cache=True)
def run(x):
    return rate(x) + 1.0
"""
# prints the value, the cache hits and misses of `run`, and where its entries are
SCRIPT = """
import sys, warnings
from pathlib import Path
warnings.simplefilter("always")
from reluflow.kernels import freshness
freshness.guard(Path(sys.argv[1]) / "small")
sys.path.insert(0, sys.argv[1])
from small.caller import run
value = run(float(sys.argv[2]))
hits, misses = sum(run.stats.cache_hits.values()), sum(run.stats.cache_misses.values())
print(value, hits, misses, run._cache.cache_path, sep="|")
"""


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "lib" / "small"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "callee.py").write_text(CALLEE)
    (folder / "caller.py").write_text(CALLER)
    return folder


def start(package, *, before=(), **environment):
    """Run the kernel in a new process: value, hits, misses, folder of the cache, messages."""
    home = package.parents[1] / "home"
    home.mkdir(exist_ok=True)
    free = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    command = [*before, sys.executable, "-c", SCRIPT, str(package.parent), "3"]
    answer = subprocess.run(
        command,
        env={**free, "HOME": str(home), **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert answer.returncode == 0, answer.stderr
    assert "Traceback" not in answer.stderr
    value, hits, misses, folder = answer.stdout.strip().split("|")
    return float(value), int(hits), int(misses), folder, answer.stderr


def entries(package):
    return sorted((package / "__pycache__").glob("caller.run-*.nbc"))


def refuse(folder):
    """A file stands where a folder would be made: nobody, not even root, can write into it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("not a folder")


def test_a_second_process_loads_what_the_first_compiled(package):
    assert start(package)[:4] == (7.0, 0, 1, str(package / "__pycache__"))
    assert start(package)[:3] == (7.0, 1, 0)
    assert len(entries(package)) == 1
    assert not list((package / "__pycache__").glob(".*"))


def test_a_change_of_a_called_kernel_alone_is_seen(package):
    start(package)
    (package / "callee.py").write_text(CALLEE.replace("2.0", "5.0"))
    assert start(package)[:3] == (16.0, 0, 1)
    assert start(package)[:3] == (16.0, 1, 0)


def test_kernels_of_packages_below_are_kept_and_their_changes_seen(package):
    inner = package / "inner"
    inner.mkdir()
    (inner / "__init__.py").touch()
    (package / "callee.py").rename(inner / "callee.py")
    (package / "caller.py").rename(inner / "caller.py")
    (inner / "caller.py").write_text(CALLER.replace("small.callee", "small.inner.callee"))
    (package / "caller.py").write_text("from small.inner.caller import run")
    assert start(package)[:4] == (7.0, 0, 1, str(inner / "__pycache__"))
    assert start(package)[:3] == (7.0, 1, 0)
    (inner / "callee.py").write_text(CALLEE.replace("2.0", "5.0"))
    assert start(package)[:3] == (16.0, 0, 1)


DAMAGES = {
    "empty": lambda raw: b"",
    "cut early": lambda raw: raw[:20],
    "cut late": lambda raw: raw[:-1],
    "one bit": lambda raw: raw[:-40] + bytes([raw[-40] ^ 1]) + raw[-39:],
    "foreign": lambda raw: b"\x80\x05." + raw,
    "noise": lambda raw: os.urandom(len(raw)),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_entry_is_as_good_as_none(tmp_path, damage):
    kept = Entries(tmp_path, "kernel", "stamp")
    kept.save(("float64", 1), list(range(100)))
    assert kept.load(("float64", 1)) == list(range(100))
    path = kept.path(("float64", 1))
    path.write_bytes(damage(path.read_bytes()))
    assert kept.load(("float64", 1)) is None
    kept.save(("float64", 1), "again")
    assert kept.load(("float64", 1)) == "again"


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_what_is_no_file_is_as_good_as_none(tmp_path, kind):
    """A pipe would be waited for, and a device never ends."""
    kept = Entries(tmp_path, "kernel", "stamp")
    path = kept.path("int64")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    assert kept.load("int64") is None


def test_entries_of_other_sources_and_other_signatures_are_not_used(tmp_path):
    kept = Entries(tmp_path, "kernel", "stamp")
    kept.save("int64", 1)
    assert kept.load("float64") is None
    assert Entries(tmp_path, "kernel", "newer").load("int64") is None
    # names may collide; the signature inside decides
    os.replace(kept.path("int64"), kept.path("float64"))
    assert kept.load("float64") is None
    kept.flush()
    assert not list(tmp_path.iterdir())


def test_a_kernel_damaged_on_disk_is_compiled_again(package):
    start(package)
    (path,) = entries(package)
    path.write_bytes(DAMAGES["one bit"](path.read_bytes()))
    assert start(package)[:3] == (7.0, 0, 1)
    assert start(package)[:3] == (7.0, 1, 0)


def test_an_entry_whose_pickle_cannot_be_read_is_replaced(package):
    """A sound checksum around nonsense: an entry of another machine's libraries, say."""
    start(package)
    (path,) = entries(package)
    head = path.read_bytes().partition(b"\n")[0] + b"\n"
    path.write_bytes(head + hashlib.sha256(b"nonsense").digest() + b"nonsense")
    assert start(package)[:3] == (7.0, 0, 1)
    assert path.read_bytes()[-8:] != b"nonsense"


def test_want_of_memory_costs_no_entry(package):
    start(package)
    (path,) = entries(package)
    script = """
import pickle
def fail(body):
    raise MemoryError
from reluflow.kernels import freshness
freshness.pickle = type("", (), {"loads": fail})
try:
    exec(SCRIPT)
except MemoryError:
    print("no memory")
"""
    command = [sys.executable, "-c", script.replace("SCRIPT", repr(SCRIPT)), str(package.parent)]
    free = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    home = {"HOME": str(package.parents[1] / "home")}
    done = subprocess.run(
        [*command, "3"], env=free | home, capture_output=True, text=True, timeout=300
    )
    assert done.stdout == "no memory\n", done.stderr
    assert path.exists()
    assert start(package)[:3] == (7.0, 1, 0)


def test_products_of_matrices_find_their_library_before_they_run(package):
    """numba looks for it in compiled code, where a failure ends or hangs the process."""
    script = """
import sys
class Full:
    def find_spec(self, name, *_):
        if name == "scipy.linalg.cython_lapack":
            raise ImportError("cython_lapack.so: failed to map segment from shared object")
sys.meta_path.insert(0, Full())
try:
    exec(SCRIPT)
except MemoryError as error:
    print(error)
"""
    command = [sys.executable, "-c", script.replace("SCRIPT", repr(SCRIPT)), str(package.parent)]
    done = subprocess.run([*command, "3"], capture_output=True, text=True, timeout=300)
    assert done.stdout == "cython_lapack.so: failed to map segment from shared object\n"


def test_entries_of_numba_itself_are_left_and_not_used(package):
    cache = package / "__pycache__"
    cache.mkdir()
    (cache / "caller.run-5.py311.nbi").write_bytes(b"")
    assert start(package)[:3] == (7.0, 0, 1)


def test_without_the_package_folder_the_users_cache_is_used(package):
    refuse(package / "__pycache__")
    home = package.parents[1] / "home"
    first = start(package)
    assert first[:4] == (7.0, 0, 1, str(home / ".cache/reluflow/small"))
    assert start(package)[:3] == (7.0, 1, 0)
    moved = str(package.parents[1] / "xdg")
    assert start(package, XDG_CACHE_HOME=moved)[3] == f"{moved}/reluflow/small"


def test_without_a_home_a_temporary_folder_is_used(package, tmp_path):
    refuse(package / "__pycache__")
    refuse(tmp_path / "home" / ".cache")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    first = start(package, TMPDIR=str(temporary))
    own = temporary / f"reluflow-{os.getuid()}"
    assert first[:4] == (7.0, 0, 1, str(own / "small"))
    assert own.stat().st_mode & 0o777 == 0o700
    assert start(package, TMPDIR=str(temporary))[:3] == (7.0, 1, 0)


def test_a_temporary_folder_that_others_may_write_is_not_trusted(package, tmp_path):
    refuse(package / "__pycache__")
    refuse(tmp_path / "home" / ".cache")
    temporary = tmp_path / "temporary"
    own = temporary / f"reluflow-{os.getuid()}"
    own.mkdir(parents=True)
    own.chmod(0o777)
    value, _, misses, folder, _ = start(package, TMPDIR=str(temporary))
    assert (value, misses) == (7.0, 1)
    assert own not in Path(folder).parents
    assert list(temporary.iterdir()) == [own]  # the other one went with its process
    assert not list(own.iterdir())


def test_the_folder_of_the_environment_comes_first(package, tmp_path):
    chosen = str(tmp_path / "chosen")
    assert start(package, NUMBA_CACHE_DIR=chosen)[3] == f"{chosen}/reluflow/small"
    assert start(package, NUMBA_CACHE_DIR=chosen)[:3] == (7.0, 1, 0)
    refuse(Path(chosen))
    assert start(package, NUMBA_CACHE_DIR=chosen)[3] == str(package / "__pycache__")


def test_a_full_disk_costs_the_cache_only(package):
    limited = ["bash", "-c", 'ulimit -f 1; trap "" XFSZ; exec "$@"', "bash"]
    value, hits, misses, _, said = start(package, before=limited)
    assert (value, hits, misses) == (7.0, 0, 1)
    assert "compiled kernels are not kept" in said
    assert not entries(package)
    assert not list((package / "__pycache__").glob(".*"))
    assert start(package)[:3] == (7.0, 0, 1)


def test_numba_outside_the_kernels_is_left_alone(package):
    script = SCRIPT.replace('freshness.guard(Path(sys.argv[1]) / "small")', "")
    command = [sys.executable, "-c", script, str(package.parent), "3"]
    free = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    subprocess.run(command, env=free, check=True, capture_output=True, timeout=300)
    assert list((package / "__pycache__").glob("caller.run-*.nbi"))
