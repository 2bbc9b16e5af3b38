"""The documentation is true: its code runs, its links lead somewhere, its map is the tree."""

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from reluflow._version import NUMERICS_VERSION

ROOT = Path(__file__).parents[1]
WRITTEN_BY_THE_BUILD = ("_build", "api", "jupyter_execute")
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(
        page
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if page.relative_to(ROOT / "docs").parts[0] not in (*WRITTEN_BY_THE_BUILD, "gallery.md")
    ),
]
FENCE = re.compile(r"^(`{3,})(.*)$")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
COMMAND = re.compile(r"^(?:    |\$ )?(?:\.venv/bin/)?reluflow ((?:[a-z-]+).*)$")
EVERY_PAGE = pytest.mark.parametrize(
    "page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix()
)


def fenced(page: Path) -> list[tuple[str, str]]:
    """Language and text of the fenced blocks; a cell of a notebook is a block of its language."""
    found: list[tuple[str, str]] = []
    fence, language, body = "", "", [""]
    for line in page.read_text(encoding="utf-8").splitlines():
        match = FENCE.match(line)
        if not fence and match:
            fence, language, body = match[1], match[2].removeprefix("{code-cell}").strip(), []
        elif fence and line == fence:
            found.append((language, "".join(f"{each}\n" for each in body)))
            fence = ""
        elif fence:
            body.append(line)
    assert not fence, f"{page.name} ends inside a block"
    return found


def blocks(page: Path, language: str) -> list[str]:
    return [body for kind, body in fenced(page) if kind == language]


def commands(page: Path) -> list[str]:
    """Command lines of the page, in blocks and in indented text, without prompt and remark."""
    lines = page.read_text(encoding="utf-8").splitlines()
    shell = "".join(body for kind, body in fenced(page) if kind == "sh").splitlines()
    shown = [line for line in lines if line.startswith("    reluflow ")] + shell
    return [
        match[1].partition(" # ")[0].strip() for line in shown if (match := COMMAND.match(line))
    ]


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
    monkeypatch.setenv("MPLBACKEND", "agg")
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
def test_every_block_says_what_it_is(page):
    """So that none escapes these tests."""
    known = {"python", "py", "output", "toml", "sh", "text", "bibtex"}
    assert {kind for kind, _ in fenced(page)} <= known


@EVERY_PAGE
def test_blocks_for_pytorch_are_python(page):
    """They are not run: the tests do without PyTorch."""
    for body in blocks(page, "py"):
        compile(body, str(page), "exec")


@EVERY_PAGE
def test_tables_of_the_page_are_toml(page):
    for body in blocks(page, "toml"):
        tomllib.loads(body)


@EVERY_PAGE
def test_commands_of_the_page_are_understood(page):
    """Parsed by the program itself, with its own commands and options; nothing is run."""
    from typer.main import get_command

    from reluflow.cli.app import app

    program = get_command(app)
    for line in commands(page):
        name, *arguments = shlex.split(line)
        assert name in program.commands, f"{page.name}: reluflow {line}"
        program.commands[name].make_context(name, arguments)


@EVERY_PAGE
def test_links_of_the_page_lead_somewhere(page):
    """Files are there; addresses are well formed (there may be no network to try them)."""
    text = page.read_text(encoding="utf-8")
    for target in LINK.findall(text):
        if "://" in target or target.startswith("mailto:"):
            assert re.fullmatch(r"(https://[\w.-]+\.[a-z]{2,}(/\S*)?|mailto:\S+@\S+)", target)
        elif target not in ("gallery.md", "../gallery.md"):  # written by the build
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_gallery_has_every_study_and_every_figure():
    from reluflow import theory

    folder = ROOT / "docs" / "gallery"
    items = json.loads((folder / "gallery.json").read_text(encoding="utf-8"))
    # those of the package: pages that were run before may have added papers of their own
    shipped = {path.stem for path in (ROOT / "src" / "reluflow" / "papers").iterdir()}
    papers = [paper for paper in theory.papers() if paper.name in shipped]
    wanted = [paper.name for paper in papers if paper.preset is not None]
    wanted += [recipe.id for paper in papers for recipe in paper.figures.values()]
    assert len(wanted) > 30
    assert sorted(item["id"] for item in items) == sorted(wanted), "run tools/gallery.py"
    for item in items:
        assert (folder / item["picture"]).stat().st_size <= 60_000
        assert item["command"].split()[2] == item["id"]


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
    """In one of the lists from which the site takes its menu, or in that of the papers."""
    docs = ROOT / "docs"
    listed = "".join(
        (docs / name).read_text(encoding="utf-8").partition(":::{toctree}")[2]
        for name in ("index.md", "papers/index.md")
    ).split()
    for page in PAGES:
        name = page.relative_to(ROOT).with_suffix("").as_posix().removeprefix("docs/")
        if page.is_relative_to(docs) and name != "index":
            assert name in listed or name.rpartition("/")[2] in listed, name


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
