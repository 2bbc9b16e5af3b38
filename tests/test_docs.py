"""The documentation is true: its code runs, its links lead somewhere, its map is the tree."""

import re
from pathlib import Path

import pytest

from reluflow._version import NUMERICS_VERSION

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)#]+)(?:#[^)]*)?\)")
EVERY_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def blocks(page: Path, language: str) -> list[str]:
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [body for kind, body in found if kind == language]


def map_of_readme() -> list[str]:
    """Paths of the map, with the folder an indented line belongs to."""
    paths, folder = [], ""
    for line in blocks(ROOT / "README.md", "text")[0].splitlines():
        name = line.split()[0]
        if not line.startswith(" "):
            folder = name
        paths.append(folder + name if line.startswith(" ") else name)
    return paths


def test_there_is_something_to_check():
    assert len(PAGES) >= 8
    assert sum(len(blocks(page, "python")) for page in PAGES) >= 10
    assert "src/reluflow/dataset.py" in map_of_readme()


@EVERY_PAGE
def test_code_of_the_page_runs(page, tmp_path, monkeypatch):
    """Blocks of one page share their names, as a reader who types them in would."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for body in blocks(page, "python"):
        exec(compile(body, page.name, "exec"), names)


def test_the_readme_prints_what_it_says(tmp_path, monkeypatch, capsys):
    """Followed literally: what is printed is what stands below the code."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for body in blocks(ROOT / "README.md", "python"):
        exec(compile(body, "README.md", "exec"), names)
    assert capsys.readouterr().out == blocks(ROOT / "README.md", "output")[0]
    assert (tmp_path / "ten_points.png").is_file()


@EVERY_PAGE
def test_links_of_the_page_lead_somewhere(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("path", map_of_readme())
def test_paths_of_the_map_exist(path):
    found = ROOT / path
    assert found.is_dir() if path.endswith("/") else found.is_file()


def test_the_map_shows_the_whole_package():
    shown = set(map_of_readme())
    for found in (ROOT / "src" / "reluflow").iterdir():
        if found.name.startswith("_") or found.suffix not in ("", ".py"):
            continue
        name = f"src/reluflow/{found.name}" + ("/" if found.is_dir() else "")
        assert name in shown, f"{name} is missing from the map of the README"


def test_every_page_is_in_the_index():
    linked = set(LINK.findall((ROOT / "docs" / "index.md").read_text(encoding="utf-8")))
    for page in PAGES:
        if page.parent.name == "docs" and page.name != "index.md":
            assert page.name in linked


def test_each_numerics_fragment_raised_the_version():
    notes = (ROOT / "changes" / "README.md").read_text(encoding="utf-8")
    released = int(re.findall(r"^Numerics version of the last release: (\d+)$", notes, re.M)[0])
    wanted = released + len(list((ROOT / "changes").glob("*.numerics.md")))
    assert wanted == NUMERICS_VERSION, (
        f"changes/ has {wanted - released} numerics fragments since version {released}: set "
        f"NUMERICS_VERSION in src/reluflow/_version.py to {wanted}"
    )


def test_fragments_have_a_known_kind():
    kinds = {"feature", "bugfix", "numerics", "doc", "removal"}
    fragments = [path for path in (ROOT / "changes").glob("*.md") if path.name != "README.md"]
    assert fragments
    for path in fragments:
        assert path.name.split(".")[1] in kinds, path.name
        assert path.read_text(encoding="utf-8").strip()
