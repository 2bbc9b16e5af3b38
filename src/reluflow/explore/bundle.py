"""The page's modules joined into one script, for a notebook and for a page that stands alone.

The modules keep to a few forms so that joining is a matter of order: ``import { a, b } from
"./file.js";`` on one line, ``export`` before a declaration, and no name declared twice at the top
level of any two of them (a test counts).
"""

from __future__ import annotations

import re
from importlib import resources
from pathlib import PurePosixPath

_IMPORT = re.compile(r'^import \{[^}]*\} from "([^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:const|class|function|async function) )", re.MULTILINE)


def read(name: str) -> str:
    """A file of the page."""
    root = resources.files("reluflow.explore") / "static"
    return root.joinpath(*PurePosixPath(name).parts).read_text(encoding="utf-8")


def bundle(entry: str) -> str:
    """The module ``entry`` and all it imports, dependencies first, as one script."""
    parts: list[str] = []
    _add(PurePosixPath(entry), set(), parts)
    return "\n".join(parts)


def _add(path: PurePosixPath, seen: set[PurePosixPath], parts: list[str]) -> None:
    if path in seen:
        return
    seen.add(path)
    text = read(str(path))
    for target in _IMPORT.findall(text):
        _add(_resolved(path.parent, target), seen, parts)
    parts.append(f"// {path}\n" + _EXPORT.sub("", _IMPORT.sub("", text)))


def _resolved(folder: PurePosixPath, target: str) -> PurePosixPath:
    kept: list[str] = []
    for part in (folder / target).parts:
        if part == "..":
            kept.pop()
        elif part != ".":
            kept.append(part)
    return PurePosixPath(*kept)
