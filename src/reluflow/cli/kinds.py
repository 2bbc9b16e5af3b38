"""Which command a file is for: hints where it was given to another."""

from __future__ import annotations

from pathlib import Path

from reluflow import toml
from reluflow.errors import InputError, ReluflowError
from reluflow.wording import printable

_MAGIC = b"PK\x03\x04"
WORDS = {"study": "a study", "sweep": "a sweep"}


def a_document(path: str | Path, command: str) -> Path:
    """The path of a TOML file, unless it is plainly one of another command."""
    file = Path(path)
    if _is_run(file):
        raise InputError(
            f"{printable(file)} is a saved run, not a TOML file. Look at it with "
            f"`reluflow show`, check it with `reluflow check`."
        )
    found = _kind(file)
    if found not in (None, "run", command):
        raise InputError(
            f"{printable(file)} describes {WORDS[str(found)]}: it has a table [{found}]. "
            f"Use `reluflow {found}`, or remove the table."
        )
    return file


def a_run(path: str | Path) -> Path:
    """The path of a saved run, unless it is a TOML file."""
    file = Path(path)
    if file.suffix == ".toml" and file.is_file():
        raise InputError(
            f"{printable(file)} is a TOML file, not a saved run. Make the run with "
            f"`reluflow {_kind(file) or 'run'} {printable(file)}` and pass the file it names."
        )
    return file


def _kind(file: Path) -> str | None:
    """The command of a document by its tables; None if it cannot be read."""
    try:
        document = toml.read(file)
    except (ReluflowError, OSError):
        return None  # the command itself says what is wrong with it
    return next((name for name in ("sweep", "study") if name in document), "run")


def _is_run(file: Path) -> bool:
    try:
        if not file.is_file():  # opening a pipe would wait for whoever writes into it
            return False
        with file.open("rb") as stream:
            return stream.read(len(_MAGIC)) == _MAGIC
    except (OSError, ValueError):
        return False
