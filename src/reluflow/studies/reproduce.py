"""From a recipe to its files: compute what is missing, draw, compare with the expected shape."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reluflow import files
from reluflow.errors import InputError
from reluflow.studies.ended import remark
from reluflow.studies.make import table
from reluflow.sweeps import Plan, Store, Summary, execute
from reluflow.theory.contract import Expectation, Recipe, Reproduction, Size


@dataclass(frozen=True)
class Outcome:
    """What was drawn, where it is, and what was computed for it."""

    reproduction: Reproduction
    written: tuple[Path, ...]
    summary: Summary


def reproduce(
    recipe: Recipe,
    size: Size,
    folder: Path,
    *,
    seed: int = 0,
    workers: int | None = None,
    cluster: str | None = None,
    retry_failed: bool = False,
    fresh: bool = False,
    progress: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Outcome:
    """Compute, store and draw a figure; what the store already holds is not computed again."""
    points = list(recipe.points(size, seed, **(options or {})))
    store = Store(folder / "store")
    summary = execute(
        Plan.of(recipe.id, points),
        store,
        workers=workers,
        cluster=cluster,
        retry_failed=retry_failed,
        fresh=fresh,
        progress=progress,
    )
    results = list(store.results(points))
    if not results:
        raise InputError(
            f"all {len(points)} computations of {recipe.id} failed. There is nothing to draw. Look "
            f"at {folder / 'store' / 'failures'}, then run again with --retry-failed."
        )
    reproduction = recipe.draw(results)
    told = " ".join(text for text in (reproduction.note, remark(results)) if text)
    reproduction = replace(reproduction, note=told)
    return Outcome(reproduction, _write(recipe, size, reproduction, folder), summary)


def _write(recipe: Recipe, size: Size, made: Reproduction, folder: Path) -> tuple[Path, ...]:
    from reluflow.figures import paper

    written: list[Path] = []
    for figure in made.figures:
        written += paper.write(figure, folder)
    for name, columns in made.tables.items():
        path = folder / f"{name}.csv"
        files.write_bytes(path, table(list(columns), list(zip(*columns.values(), strict=True))))
        written.append(path)
    shape = {
        "figure": recipe.id,
        "size": size,
        "versions": files.versions(),
        "expectations": [_plain(expectation) for expectation in made.expectations],
        "note": made.note,
    }
    path = folder / "shape.json"
    files.write_bytes(path, json.dumps(shape, indent=1).encode())
    return (*written, path)


def _plain(expectation: Expectation) -> dict[str, Any]:
    return {
        "text": expectation.text,
        "measured": expectation.measured,
        "low": expectation.low,
        "high": expectation.high,
        "source": expectation.source,
        "verdict": expectation.verdict.value,
    }
