"""Small faults of text files, for pre-commit and the tests: ``python3 tools/files.py FILE...``.

A file ends with one newline, no line ends with a space, and TOML can be read. Files of data that
tests rely on byte for byte are left alone.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

LEFT_ALONE = (
    "tests/data/",
    "tests/fuzz/cases/",
    "docs/_static/",
    "docs/gallery/",
    "src/reluflow/report/vendored/",
)
TEXT = {".py", ".md", ".toml", ".yml", ".yaml", ".cff", ".css", ".js", ".html", ".txt", ".bib", ""}


def faults(path: Path) -> list[str]:
    """What is wrong with a file, one sentence each."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ["is not UTF-8"]
    found = []
    if text and (not text.endswith("\n") or text.endswith("\n\n")):
        found.append("does not end with one newline")
    for number, line in enumerate(text.split("\n"), start=1):
        if line != line.rstrip():
            found.append(f"line {number} ends with a space")
            break
    if path.suffix == ".toml":
        try:
            tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            found.append(f"is no TOML: {error}")
    return found


def is_checked(name: str) -> bool:
    """Whether a file of the repository, by its path in it, is looked at."""
    return Path(name).suffix in TEXT and not name.startswith(LEFT_ALONE)


def main(names: list[str]) -> int:
    """Print the faults; 1 if there are any."""
    bad = [f"{name} {fault}" for name in names if is_checked(name) for fault in faults(Path(name))]
    print("\n".join(bad), end="\n" if bad else "")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
