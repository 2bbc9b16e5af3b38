"""Find and run the benchmarks of this folder; see the package for what a benchmark is."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]


def names(folder: Path | None = None) -> list[str]:
    """The benchmarks, in alphabetical order: modules that define ``rows`` or ``parts``."""
    found = sorted((folder or Path(__file__).parent).glob("*.py"))
    defines = re.compile(r"^def (rows|parts)\(", re.MULTILINE)
    return [
        path.stem.replace("_", "-")
        for path in found
        if defines.search(path.read_text(encoding="utf-8"))
    ]


def load(name: str) -> Any:
    """The module of a benchmark."""
    return importlib.import_module(f"benchmarks.{name.replace('-', '_')}")


def measure(
    name: str,
    *,
    only: Sequence[str] = (),
    limit_s: float | None = None,
    kept: Path | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> tuple[str, list[Row]]:
    """Run one benchmark, or the parts of it that are named; returns its title and its rows.

    Parameters
    ----------
    only : sequence of str
        Names of parts; a benchmark without parts has none.
    limit_s : float, optional
        Seconds after which a solver is stopped, where the benchmark has such a limit.
    kept : Path, optional
        A file of rows already measured: parts in it are not measured again, new ones are added.
    tell : callable
        Called with the name of each part before it starts.
    """
    module = load(name)
    title = (module.__doc__ or name).strip().splitlines()[0]
    if not hasattr(module, "parts"):
        return title, list(module.rows())
    parts = module.parts() if limit_s is None else module.parts(limit_s=limit_s)
    wanted = list(only) or list(parts)
    known = json.loads(kept.read_text()) if kept is not None and kept.exists() else {}
    mine = known.setdefault(name, {})
    if not all(part in mine for part in wanted):
        module.warm_up()
    for part in wanted:
        if part not in mine:
            tell(part)
            mine[part] = list(parts[part]())
            if kept is not None:
                kept.write_text(json.dumps(known, indent=1))
    rows = [row for part in wanted for row in mine[part]]
    return title, rows + (list(module.summary(rows)) if hasattr(module, "summary") else [])


def main(wanted: list[str]) -> None:
    """Print the rows of the named benchmarks (all of them if none is named)."""
    for name in wanted or names():
        title, rows = measure(name)
        print(title)
        for row in rows:
            print("  " + ", ".join(f"{key}: {value}" for key, value in row.items()))


if __name__ == "__main__":
    main(sys.argv[1:])
