"""The tables and the map of docs/performance.md that come from rows of `reluflow bench`.

reluflow bench --only shapes --keep docs/pictures/shapes.json     measures what is missing there
python tools/performance.py                                       writes the table and the map
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ROWS = ROOT / "docs" / "pictures" / "shapes.json"
PAGE = ROOT / "docs" / "performance.md"


def cells() -> list[dict[str, Any]]:
    """The rows of the map that are measured, in the order of the benchmark."""
    kept = json.loads(ROWS.read_text(encoding="utf-8"))["shapes"]
    return [row for rows in kept.values() for row in rows if "ratio" in row and "target" in row]


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The map as a table of Markdown.

    Examples
    --------
    >>> print(table([{"shape": "5x2x50", "RK45_s": 3.0, "ours_s": 2.0, "ratio": 1.5, "target": 2}]))
    | n, d, m | best of SciPy | ours | ratio | target |
    |---|---|---|---|---|
    | 5, 2, 50 | 3 s | 2 s | 1.5 (missed) | 2 |
    """
    lines = ["| n, d, m | best of SciPy | ours | ratio | target |", "|---|---|---|---|---|"]
    for row in rows:
        times = [value for name, value in row.items() if name in ("RK45_s", "DOP853_s", "LSODA_s")]
        other = f"{min(times):.3g} s" if times else ""
        missed = " (missed)" if row["ratio"] < row["target"] else ""
        shape = str(row["shape"]).replace("x", ", ")
        ratio = f"{row['ratio']:.3g}{missed}"
        lines.append(f"| {shape} | {other} | {row['ours_s']:.3g} s | {ratio} | {row['target']:g} |")
    return "\n".join(lines)


def filled(page: str, name: str, body: str) -> str:
    """The page with what stands between the marks of a name replaced."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    head, rest = page.split(begin)
    return f"{head}{begin}\n{body}\n{end}{rest.split(end)[1]}"


def main() -> None:
    """Write the table into the page, and the map beside it."""
    from reluflow.figures import paper

    sys.path.insert(0, str(ROOT))
    from benchmarks import shapes

    rows = cells()
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(filled(page, "shapes", table(rows)), encoding="utf-8")
    drawn = shapes.figure(rows)
    if drawn is not None:
        pdf, _ = paper.write(drawn, ROWS.parent)
        pdf.unlink()


if __name__ == "__main__":
    main()
