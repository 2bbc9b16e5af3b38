"""The numbers of every figure, kept in ``expected.json``: source, interval and tolerance of each.

    python tests/studies/expected.py            computes the figures that the file lacks
    python tests/studies/expected.py --fresh    all of them
    python tests/studies/expected.py --only correlated/fig1

``test_expected.py`` computes them again and compares. A number may move by a millionth of itself,
or by a tenth of its distance to the nearer end of its interval: measured errors near rounding move
by more than a millionth and mean nothing, and so do slopes fitted through the records of a run,
whose places depend on rounding. So does how many there are: rows of tables may differ by a tenth.
With other releases of Python, NumPy, SciPy and numba nine figures moved by a twentieth at most.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from pathlib import Path

from reluflow import files, theory
from reluflow._version import NUMERICS_VERSION
from reluflow.studies import recipe_named
from reluflow.studies.reproduce import reproduce
from reluflow.theory import registry

FILE = Path(__file__).with_name("expected.json")
RELATIVE, OF_DISTANCE, OF_ROWS = 1e-6, 0.1, 0.1


def tolerance(value, low, high):
    """By how much a number may move."""
    distances = [abs(value - end) for end in (low, high) if math.isfinite(end)]
    return max(RELATIVE * abs(value), OF_DISTANCE * min(distances, default=0.0))


def plain(value):
    """A number of JSON, which has no infinities."""
    return float(value) if math.isfinite(value) else None


def names():
    """All figures of all papers of the package."""
    papers = [paper for paper in theory.papers() if paper.name in registry._own()]
    return [f"{paper.name}/{key}" for paper in papers for key in paper.figures]


def numbers(name):
    """What a figure comes to at its quick size: one row a number, and the sizes of its tables."""
    with tempfile.TemporaryDirectory() as folder:
        made = reproduce(recipe_named(name), "quick", Path(folder), workers=0).reproduction
    rows = [
        {
            "text": found.text,
            "value": plain(found.measured),
            "tolerance": plain(tolerance(found.measured, found.low, found.high)),
            "low": plain(found.low),
            "high": plain(found.high),
            "source": found.source,
            "verdict": found.verdict.value,
        }
        for found in made.expectations
    ]
    sizes = {table: len(next(iter(columns.values()), ())) for table, columns in made.tables.items()}
    return {"numerics": NUMERICS_VERSION, "numbers": rows, "rows": sizes}


def load():
    """The kept numbers by figure."""
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def save(kept):
    """Write the file, figures in order."""
    text = json.dumps(dict(sorted(kept.items())), indent=1, ensure_ascii=False)
    files.write_bytes(FILE, (text + "\n").encode())


def main():
    """Compute what is missing, and save after each figure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--only", nargs="*")
    given = parser.parse_args()
    kept = load()
    for name in given.only or names():
        if given.fresh or name not in kept:
            kept[name] = numbers(name)
            save(kept)
            print(name, [row["verdict"] for row in kept[name]["numbers"]], flush=True)


if __name__ == "__main__":
    main()
