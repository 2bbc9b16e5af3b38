"""Compiled kernels on disk: never stale, checked before use, kept where one may write.

numba's own cache dates an entry by the file of the kernel, not of the kernels compiled into it: an
edit of those alone would leave old code in use. It ends with an exception where it may not write,
where a file is damaged and where the disk is full, and two processes may mix up each other's
entries. Here an entry is one file: the SHA-256 of all kernel sources, then of what follows, then
the signature and the code. One that does not match is compiled again and replaced.

Entries are kept in the first of these folders that can be written: that of ``NUMBA_CACHE_DIR``,
``__pycache__`` beside the sources, the user's cache, a temporary one. Without any, kernels are
compiled in every process.
"""

from __future__ import annotations

import atexit
import hashlib
import inspect
import os
import pickle
import shutil
import stat
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from numba import __version__ as numba_version
from numba.core import caching, config, dispatcher

from reluflow import reading
from reluflow.errors import ReluflowWarning

LIMIT_BYTES = 2**28  # a hundred times the largest
_HEX = 16  # digits of a digest in the name of a file; the signature itself is in the file
_NO_MEMORY = ("failed to map segment", "annot allocate memory")  # as the loader says it
_guarded: dict[Path, str] = {}


def guard(folder: Path) -> None:
    """Keep the kernels of the modules in ``folder``, and below, in this cache."""
    digest = hashlib.sha256()
    for source in sorted(folder.rglob("*.py")):
        name = source.relative_to(folder).as_posix()
        digest.update(name.encode() + b"\0" + source.read_bytes() + b"\0")
    _guarded[folder.resolve()] = digest.hexdigest()


class Entries:
    """The compiled signatures of one kernel, a file for each.

    A file is a header (format, version of numba, digest of the sources), the SHA-256 of the body,
    and the body, a pickle of ``(key, data)``. A file with another header is an older one.
    """

    def __init__(self, folder: Path, name: str, stamp: str) -> None:
        self._folder, self._name = folder, name
        self._header = f"reluflow kernel 1, numba {numba_version}, {stamp}\n".encode()

    def path(self, key: Any) -> Path:
        """The file of a signature."""
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:_HEX]
        return self._folder / f"{self._name}.{digest}.nbc"

    def load(self, key: Any) -> Any:
        """What was saved for a signature; None if there is nothing, or nothing that is whole."""
        path = self.path(key)
        try:
            raw = reading.read(path, LIMIT_BYTES, "Remove it.")
        except OSError:
            return None
        start = len(self._header) + hashlib.sha256().digest_size
        if raw[: len(self._header)] != self._header:
            return None
        body = memoryview(raw)[start:]
        if hashlib.sha256(body).digest() != raw[len(self._header) : start]:
            _remove(path)
            return None
        found, data = pickle.loads(body)
        return data if found == key else None

    def save(self, key: Any, data: Any) -> None:
        """Save aside, then rename: other processes see the old file or the new one, whole."""
        body = caching.dumps((key, data))
        path = self.path(key)
        handle, aside = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=self._folder)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(self._header + hashlib.sha256(body).digest())
                stream.write(body)
            os.replace(aside, path)
        except BaseException:
            _remove(Path(aside))
            raise

    def forget(self, key: Any) -> None:
        """Remove what was saved for a signature."""
        _remove(self.path(key))

    def flush(self) -> None:
        """Remove all signatures of the kernel."""
        for path in self._folder.glob(f"{self._name}.*.nbc"):
            _remove(path)


class _Locator(caching._CacheLocator):  # type: ignore[misc]
    """Where the entries of a kernel are, for numba."""

    def __init__(self, folder: Path, stamp: str, line: int) -> None:
        self._folder, self._stamp, self._line = folder, stamp, line

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Locator | None:
        source = Path(py_file).resolve()
        for root, stamp in _guarded.items():
            if source.is_relative_to(root):
                folder = _folder(root, source.parent.relative_to(root))
                if folder is not None:
                    return cls(folder, stamp, py_func.__code__.co_firstlineno)
        return None

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._stamp

    def get_disambiguator(self) -> str:
        return str(self._line)


class _Impl(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class KernelCache(caching.FunctionCache):  # type: ignore[misc]
    """numba's cache of one function, on `Entries`; what is wrong with the disk is no error."""

    _impl_class = _Impl

    def __init__(self, py_func: Any) -> None:
        super().__init__(py_func)
        locator = self._impl.locator
        folder = Path(locator.get_cache_path())
        self._cache_file = Entries(folder, self._impl.filename_base, locator.get_source_stamp())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function; None, and its file removed, if that is of no use."""
        _find_linear_algebra()
        try:
            return super().load_overload(sig, target_context)
        except MemoryError:  # says nothing about the file
            raise
        # what a foreign or half understood pickle raises can be anything; it means the same
        except Exception:
            self._cache_file.forget(self._index_key(sig, target_context.codegen()))
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function, if the disk allows."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            self.disable()
            _warn(f"{self._cache_path} cannot be written ({error.strerror or error})")


@lru_cache(maxsize=1)
def _find_linear_algebra() -> None:
    """Import what compiled code looks up in SciPy at its first product of matrices.

    Where that fails, for want of memory, numba ends the process, or lets it wait for ever.
    """
    try:
        import scipy.linalg.cython_blas
        import scipy.linalg.cython_lapack  # noqa: F401
    except ImportError as error:
        if any(sign in str(error) for sign in _NO_MEMORY):
            raise MemoryError(str(error)) from None
        raise


def _cache_of(py_func: Any) -> Any:
    """The cache of a function: this one for kernels of guarded folders, else numba's own."""
    source = Path(inspect.getfile(py_func)).resolve()
    if not any(source.is_relative_to(root) for root in _guarded):
        return caching.FunctionCache(py_func)
    try:
        return KernelCache(py_func)
    except RuntimeError:  # no folder
        return caching.NullCache()


@lru_cache(maxsize=64)
def _folder(root: Path, inner: Path) -> Path | None:
    """The first folder that can be written; None, and a warning, if there is none."""
    for place in _places(root, inner):
        try:
            folder = place()
            if folder is None:
                continue
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except (OSError, RuntimeError):
            continue
        return folder
    _warn("there is no folder for them that can be written")
    return None


def _places(root: Path, inner: Path) -> Iterator[Callable[[], Path | None]]:
    named = Path("reluflow") / root.name / inner
    if config.CACHE_DIR:
        yield lambda: Path(config.CACHE_DIR) / named
    yield lambda: root / inner / "__pycache__"
    yield lambda: _own(_user_cache() / "reluflow", Path(root.name) / inner)
    yield lambda: _own(
        Path(tempfile.gettempdir()) / f"reluflow-{os.getuid()}", Path(root.name) / inner
    )
    yield lambda: _passing() / named


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _own(folder: Path, inner: Path) -> Path | None:
    """A folder below one that is this user's alone: what is loaded from it is executed."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    found = os.lstat(folder)
    is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return folder / inner if is_own and not found.st_mode & 0o022 else None


@lru_cache(maxsize=1)
def _passing() -> Path:
    """A new temporary folder that goes with this process."""
    folder = Path(tempfile.mkdtemp(prefix="reluflow-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return


@lru_cache(maxsize=1)
def _warn(reason: str) -> None:
    """Say once what this costs."""
    warnings.warn(
        f"compiled kernels are not kept, because {reason}. Every start compiles them again, which "
        "takes a minute or more. Set NUMBA_CACHE_DIR to a folder with free space.",
        ReluflowWarning,
        stacklevel=2,
    )


setattr(dispatcher, "FunctionCache", _cache_of)  # noqa: B010 - a name of numba's module
guard(Path(__file__).parent)
