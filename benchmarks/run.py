"""Find and run the benchmarks of this folder; see the package for what a benchmark is."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def names(folder: Path | None = None) -> list[str]:
    """The benchmarks, in alphabetical order: modules that define ``rows``."""
    found = sorted((folder or Path(__file__).parent).glob("*.py"))
    return [path.stem for path in found if "\ndef rows(" in path.read_text(encoding="utf-8")]


def measure(name: str) -> tuple[str, list[Mapping[str, Any]]]:
    """Run one benchmark; returns its title and its rows."""
    module = importlib.import_module(f"benchmarks.{name}")
    title = (module.__doc__ or name).strip().splitlines()[0]
    return title, list(module.rows())


def main(wanted: list[str]) -> None:
    """Print the rows of the named benchmarks (all of them if none is named)."""
    for name in wanted or names():
        title, rows = measure(name)
        print(title)
        for row in rows:
            print("  " + ", ".join(f"{key}: {value}" for key, value in row.items()))


if __name__ == "__main__":
    main(sys.argv[1:])
