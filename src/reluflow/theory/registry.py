"""Registry: the papers there are, looked up whenever somebody asks.

Those of the package ``reluflow.papers``, those that installed distributions announce in the
entry-point group ``reluflow.papers``, those that a program registers, and those of a file
``path/to/file.py:NAME``. A file is also named in the environment variable ``RELUFLOW_PAPERS``, so
that worker processes know its data generators.
"""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from collections.abc import Iterable
from functools import lru_cache
from importlib import import_module, metadata, util
from pathlib import Path
from pkgutil import iter_modules

from reluflow.checks import nearest
from reluflow.errors import InputError
from reluflow.theory.paper import Paper
from reluflow.wording import shown

GROUP = "reluflow.papers"
FILES = "RELUFLOW_PAPERS"
_registered: dict[str, Paper] = {}


def register(paper: Paper) -> Paper:
    """Make a paper known by its name to this process; the last one of a name counts."""
    if not isinstance(paper, Paper):
        raise InputError(f"{shown(paper)} is not a Paper. Build one with reluflow.Paper.")
    _registered[paper.name] = paper
    return paper


def forget(name: str) -> None:
    """Take a registered paper out again."""
    _registered.pop(name, None)


def names() -> tuple[str, ...]:
    """Names of all papers, those of the package first."""
    return tuple(dict.fromkeys([*_own(), *_announced(), *_registered, *_of_files()]))


def papers() -> list[Paper]:
    """All papers; one that cannot be loaded is left out with a warning."""
    found = []
    for name in names():
        try:
            found.append(paper_named(name))
        except Exception as error:  # somebody else's package must not break ours
            warnings.warn(f"the paper {name!r} cannot be loaded: {error}", stacklevel=2)
    return found


def paper_named(paper: Paper | str) -> Paper:
    """The paper itself, one of a known name, or one of a file ``path/to/file.py:NAME``."""
    if isinstance(paper, Paper):
        return paper
    if not isinstance(paper, str):
        raise InputError(f"`paper` is {shown(paper)}. Pass a Paper, a name or 'file.py:NAME'.")
    if ".py:" in paper:
        return from_file(paper)
    if paper in _registered:
        return _registered[paper]
    if paper in _own():
        return _loaded(f"reluflow.papers.{paper}", "paper", paper)
    if paper in _announced():
        entry = _announced()[paper]
        module, _, attribute = entry.value.partition(":")
        return _loaded(module.strip(), attribute.strip() or "paper", paper)
    if paper in _of_files():
        return from_file(_of_files()[paper])
    raise InputError(
        f"there is no paper {shown(paper)}. Known are {', '.join(names())}; a file is "
        f"'path/to/file.py:NAME'.{nearest(paper, names())}"
    )


def from_file(place: str) -> Paper:
    """The paper NAME of a Python file; the file is executed once for each of its contents."""
    path, _, name = place.rpartition(":")
    file = Path(path).resolve()
    if not file.is_file():
        raise InputError(f"there is no file {shown(path)}. Write 'path/to/file.py:NAME'.")
    digest = hashlib.sha256(str(file).encode() + file.read_bytes()).hexdigest()[:12]
    module_name = f"reluflow_paper_{file.stem}_{digest}"
    if module_name not in sys.modules:
        spec = util.spec_from_file_location(module_name, file)
        assert spec is not None
        assert spec.loader is not None
        module = util.module_from_spec(spec)
        sys.modules[module_name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[module_name]
            raise
    found = _loaded(module_name, name, place)
    listed = os.environ.get(FILES, "").splitlines()
    if f"{file}:{name}" not in listed:
        os.environ[FILES] = "\n".join([*listed, f"{file}:{name}"])
    return found


def _own() -> list[str]:
    """Papers of the package: its modules and packages."""
    import reluflow.papers

    return _modules(_dated(reluflow.papers.__path__))


def _announced() -> dict[str, metadata.EntryPoint]:
    """Entry points of installed distributions."""
    return _entries(_dated(sys.path))


Dated = tuple[tuple[str, int], ...]


def _dated(folders: Iterable[str]) -> Dated:
    """Folders with the times of their last change: what is found in them is kept until then.

    Every prediction asks for the papers, many times a second while a point is dragged; to look
    through all that is installed takes ten times as long as the prediction.
    """
    found = []
    for folder in folders:
        try:
            found.append((folder, os.stat(folder or ".").st_mtime_ns))
        except OSError:
            found.append((folder, 0))
    return tuple(found)


@lru_cache(maxsize=4)
def _modules(folders: Dated) -> list[str]:
    return [module.name for module in iter_modules([folder for folder, _ in folders])]


@lru_cache(maxsize=4)
def _entries(folders: Dated) -> dict[str, metadata.EntryPoint]:
    return {entry.name: entry for entry in metadata.entry_points(group=GROUP)}


def _of_files() -> dict[str, str]:
    """Papers of the files of this process and of those that started it."""
    found = {}
    for place in os.environ.get(FILES, "").splitlines():
        if ".py:" in place and Path(place.rpartition(":")[0]).is_file():
            found[from_file(place).name] = place
    return found


def _loaded(module: str, attribute: str, asked: str) -> Paper:
    found = getattr(import_module(module), attribute, None)
    if not isinstance(found, Paper):
        raise InputError(
            f"{asked!r} is no paper: {module} has no Paper called {attribute!r}. Name the variable "
            "that holds it."
        )
    return found
