"""The pictures of the gallery: one for each study and each figure of a paper, with its time.

    python tools/gallery.py --out results                    all that are missing
    python tools/gallery.py --out results --only univariate  those of one paper

Each is made as its command would make it, at the quick size and in this process; the CPU seconds
are those of the whole command but for compilation (call ``reluflow warm-up`` before). Pictures go
to ``docs/gallery/``, what is known about them to ``docs/gallery/gallery.json``, from which the
gallery's page is built. Nothing that is there is made again; remove its picture for that.
"""

from __future__ import annotations

import argparse
import io
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "gallery"
LIST = FOLDER / "gallery.json"
LARGEST_BYTES = 60_000
WIDTH = 1200


def wanted() -> list[str]:
    """Studies, by the name of their paper, and figures, by ``paper/figure``."""
    from reluflow import theory

    found = []
    for paper in theory.papers():
        if paper.preset is not None:
            found.append(paper.name)
        found += [recipe.id for recipe in paper.figures.values()]
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the pictures that are missing."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("results"), help="where runs are kept")
    parser.add_argument("--only", default="", help="items whose name starts so")
    options = parser.parse_args(arguments)
    FOLDER.mkdir(exist_ok=True)
    known = {item["id"]: item for item in json.loads(LIST.read_text())} if LIST.exists() else {}
    for name in (name for name in wanted() if name.startswith(options.only)):
        if name in known and (FOLDER / known[name]["picture"]).exists():
            continue
        started = time.process_time()
        item = _figure(name, options.out) if "/" in name else _study(name, options.out)
        item["seconds"] = round(time.process_time() - started, 1)
        print(name, item["seconds"], "s", flush=True)
        known[name] = item
        ordered = [known[each] for each in wanted() if each in known]
        LIST.write_text(json.dumps(ordered, indent=1) + "\n")
    return 0


def _figure(name: str, out: Path) -> dict[str, Any]:
    from reluflow.studies import recipe_named
    from reluflow.studies.reproduce import reproduce

    recipe = recipe_named(name)
    outcome = reproduce(recipe, "quick", out / name.replace("/", "-"), workers=0)
    drawn = next(path for path in outcome.written if path.suffix == ".png")
    return {
        "id": name,
        "title": recipe.title,
        "command": f"reluflow reproduce {name}",
        "verdicts": [each.verdict.value for each in outcome.reproduction.expectations],
        "picture": _keep(drawn, name.replace("/", "-")),
    }


def _study(name: str, out: Path) -> dict[str, Any]:
    from reluflow import report
    from reluflow.figures import paper as drawer
    from reluflow.studies import document
    from reluflow.studies.make import make
    from reluflow.theory import paper_named

    paper = paper_named(name)
    table = {**paper.preset.get("study", {}), "paper": name}
    plan = document.build({**paper.preset, "study": table}, name=name, seed=None)
    page = make(plan, out / name)
    report.write(page, out / name / "report.html")
    figures = [figure for section in page.sections for figure in section.figures]
    _, drawn = drawer.write(figures[0], out / name)
    return {
        "id": name,
        "title": page.title,
        "command": f"reluflow study {name}",
        "verdicts": [check.verdict.value for check in page.claims.checks],
        "picture": _keep(drawn, name),
    }


def _keep(drawn: Path, name: str) -> str:
    """A picture as WebP of at most `LARGEST_BYTES`: lossless if that is small enough."""
    from PIL import Image

    picture = Image.open(drawn).convert("RGB")
    if picture.width > WIDTH:
        height = round(picture.height * WIDTH / picture.width)
        picture = picture.resize((WIDTH, height), Image.Resampling.LANCZOS)
    for options in ({"lossless": True}, *({"quality": q} for q in (85, 75, 60, 45, 30))):
        kept = io.BytesIO()
        picture.save(kept, "WEBP", method=6, **options)
        if kept.tell() <= LARGEST_BYTES:
            break
    (FOLDER / f"{name}.webp").write_bytes(kept.getvalue())
    return f"{name}.webp"


if __name__ == "__main__":
    raise SystemExit(main())
