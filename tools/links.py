"""Links of a built site: ``python tools/links.py docs/_build/html``.

Every link inside the site leads to a file that is there and, after ``#``, to a place that is in it.
Nothing but a link for the reader may lead outside: a page loads what is in its own folder.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote


class Page(HTMLParser):
    """Places of a page, and what it refers to: (element, address)."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note identifiers and addresses."""
        found = dict(attrs)
        self.places.update(value for name in ("id", "name") if (value := found.get(name)))
        for name in ("href", "src"):
            if value := found.get(name):
                self.links.append((tag, value))


def dead(root: Path) -> list[str]:
    """Links that lead nowhere, one sentence each."""
    root = root.resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(root.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(root)
        for tag, link in page.links:
            if "://" in link or link.startswith(("mailto:", "data:")):
                if tag != "a" and not link.startswith("data:"):
                    found.append(f"{name} loads {link} from elsewhere")
                continue
            file, _, place = link.partition("#")
            target = (path.parent / unquote(file.partition("?")[0])).resolve() if file else path
            if not target.exists():
                found.append(f"{name} links to {link}, which is not there")
            elif place and target in pages and unquote(place) not in pages[target].places:
                found.append(f"{name} links to {link}, but that page has no such place")
    return found


def main(folder: str) -> int:
    """Print the dead links; 1 if there are any."""
    found = dead(Path(folder))
    print("\n".join(found) if found else f"no dead link in {folder}")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
