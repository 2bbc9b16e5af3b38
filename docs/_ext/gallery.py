"""The page of pictures, from ``docs/gallery/gallery.json`` (`tools/gallery.py` makes both)."""

import html
import json
from pathlib import Path

from reluflow import theory

HEAD = """# Gallery

One picture for each study and each figure of a paper. The command below a picture makes it again:
a study ends with a page to send, a figure with PDF, PNG, its numbers and the shape that theory
expects. Times are CPU seconds of one core at the quick size, after `reluflow warm-up`; two cores
halve most of them. `--full` draws the figures at the size of the papers.
"""


def page(folder: Path) -> str:
    """The gallery as MyST Markdown, a section for each paper."""
    items = {item["id"]: item for item in json.loads((folder / "gallery.json").read_text())}
    lines = [HEAD]
    for paper in theory.papers():
        wanted = [paper.name] if paper.preset is not None else []
        wanted += [recipe.id for recipe in paper.figures.values()]
        lines += [f"## {paper.title}", "", ":::::{grid} 1 1 2 2", ":gutter: 3", ""]
        for name in wanted:
            lines += _card(name, items.get(name), paper)
        lines += [":::::", ""]
    return "\n".join(lines)


def _card(name: str, item: dict | None, paper: theory.Paper) -> list[str]:
    if item is None:
        figure = name.partition("/")[2]
        title = paper.figures[figure].title if figure else f"The study of {paper.name}"
        command = f"reluflow reproduce {name}" if figure else f"reluflow study {name}"
        words = f"`{command}` (no picture here: it takes longer than the others)"
        return [f":::{{grid-item-card}} {_capital(title)}", "", words, ":::", ""]
    title = _capital(item["title"]) if "/" in name else f"The study: {item['title']}"
    return [
        f"::::{{grid-item-card}} {title}",
        ":class-card: picture",
        "",
        _image(item["picture"], title),
        "",
        ":::{card-footer}",
        f"`{item['command']}`\\\n{_seconds(item['seconds'])} · {_verdicts(item)}",
        ":::",
        "::::",
        "",
    ]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _image(name: str, title: str) -> str:
    """The picture as a link to itself, so that it can be seen large."""
    picture = f'<img class="drawn" loading="lazy" src="_static/{name}" alt="{html.escape(title)}">'
    return f'<a href="_static/{name}">{picture}</a>'


def _verdicts(item: dict) -> str:
    """How the claims of a study, or the numbers of a figure's shape, were found to be."""
    found = item["verdicts"]
    if "/" in item["id"]:
        return f"{found.count('PASS')} of {len(found)} numbers as expected"
    counts = [f"{found.count(kind)} {kind}" for kind in ("PASS", "FAIL", "UNRESOLVED")]
    return "claims: " + ", ".join(text for text in counts if not text.startswith("0 "))


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value >= 10 else f"{value:.1f} s"


def write(app) -> None:
    """Write the page if it changed."""
    path = Path(app.srcdir) / "gallery.md"
    text = page(Path(app.srcdir) / "gallery")
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def setup(app):
    """Write the page before Sphinx looks for it."""
    app.connect("builder-inited", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
