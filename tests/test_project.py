"""What the project says about itself agrees: version, citation, tools, workflows, release."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from reluflow import theory
from reluflow._version import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_version_is_in_one_place_and_the_citation_repeats_it():
    assert "version" in PROJECT["project"]["dynamic"]
    assert (ROOT / PROJECT["tool"]["hatch"]["version"]["path"]).name == "_version.py"
    release = tool("release")
    assert release.version() == release.cited_version() == __version__


def test_a_release_runs_the_quickstart_of_the_readme():
    assert tool("release").quickstart().startswith("import numpy as np\nimport reluflow as rf\n")


def test_the_citation_names_every_paper_of_the_package():
    """By the number of its preprint, as `reluflow cite` prints it."""
    printed = "".join(theory.cite(name) for name in theory.names())
    numbers = set(re.findall(r"\b(\d{4}\.\d{5})\b", printed))
    assert len(numbers) >= 5
    assert numbers == set(re.findall(r"arXiv:(\d{4}\.\d{5})", CITATION))


def test_the_citation_and_the_command_name_the_same_authors():
    source = (ROOT / "src" / "reluflow" / "cli" / "cite.py").read_text(encoding="utf-8")
    author = re.findall(r'^authors:\n  - name: "(.+)"$', CITATION, re.MULTILINE)[0]
    assert author in source
    assert author == PROJECT["project"]["authors"][0]["name"]


def test_kinds_of_changes_are_those_of_the_changelog():
    kinds = {kind["directory"] for kind in PROJECT["tool"]["towncrier"]["type"]}
    listed = set(re.findall(r"^\| `(\w+)` \|", (ROOT / "changes" / "README.md").read_text(), re.M))
    assert kinds == listed
    assert (ROOT / PROJECT["tool"]["towncrier"]["template"]).is_file()


def test_targets_that_texts_name_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    texts = [*ROOT.glob("*.md"), *(ROOT / ".github").rglob("*"), *(ROOT / "docs").glob("*.md")]
    named = {
        target
        for path in texts
        if path.is_file()
        for target in re.findall(r"(?:`|^|run: )make ([a-z-]+)", path.read_text("utf-8"), re.M)
    }
    assert {"test", "docs", "release", "test-fast"} <= named
    assert named <= targets


def test_workflows_cover_the_pythons_that_are_promised():
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    matrix = tool_matrix_minors()
    for system in ("ubuntu", "macos", "windows"):
        assert f"{system}-latest" in text
    assert set(re.findall(r'"3\.(\d+)"', text)) == {str(minor) for minor in matrix}


def test_what_takes_hours_runs_every_night():
    text = (ROOT / ".github" / "workflows" / "nightly.yml").read_text(encoding="utf-8")
    assert re.findall(r"run: make ([a-z-]+)", text) == ["test-long", "test-bounds", "campaigns"]
    assert "HYPOTHESIS_PROFILE: nightly" in text


def tool_matrix_minors():
    text = (ROOT / "tools" / "matrix.py").read_text(encoding="utf-8")
    return [int(number) for number in re.findall(r"^MINORS = \((.+)\)$", text, re.M)[0].split(", ")]


def test_dead_links_of_a_site_are_seen(tmp_path):
    good = '<a href="b.html#here"></a><a href="https://example.org"></a><img src="data:,">'
    (tmp_path / "a.html").write_text(good, encoding="utf-8")
    (tmp_path / "b.html").write_text('<p id="here"></p><a href="#here"></a>', encoding="utf-8")
    links = tool("links")
    assert links.dead(tmp_path) == []
    bad = '<a href="c.html"></a><a href="b.html#there"></a><script src="https://x.org/y.js">'
    (tmp_path / "a.html").write_text(bad, encoding="utf-8")
    assert links.dead(tmp_path) == [
        "a.html links to c.html, which is not there",
        "a.html links to b.html#there, but that page has no such place",
        "a.html loads https://x.org/y.js from elsewhere",
    ]


def test_faults_of_files_are_seen(tmp_path):
    faults = tool("files").faults
    for name, text, expected in (
        ("a.md", "fine\n", []),
        ("b.md", "no end", ["does not end with one newline"]),
        ("c.md", "two ends\n\n", ["does not end with one newline"]),
        ("d.py", "x = 1 \n", ["line 1 ends with a space"]),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert faults(tmp_path / name) == expected
    (tmp_path / "e.toml").write_text("a = \n", encoding="utf-8")
    assert any("is no TOML" in fault for fault in faults(tmp_path / "e.toml"))


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no clone of the repository")
def test_files_of_the_repository_have_no_small_faults():
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    done = subprocess.run(
        [sys.executable, "tools/files.py", *(name for name in listed if (ROOT / name).exists())],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.stdout == ""


def test_the_paper_cites_what_its_list_has():
    text = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
    listed = re.findall(r"^@\w+\{(\w+),$", (ROOT / "paper" / "paper.bib").read_text(), re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(re.findall(r"(?<![\w.])@(\w+)", text)) == set(listed)
