"""Where papers come from: the package, a program, a file."""

import importlib
import os

import pytest

import reluflow as rf
from reluflow.errors import InputError
from reluflow.theory import registry

CONJECTURE = """
import reluflow as rf
from reluflow.theory import at_most

guess = rf.Paper("guess", title="A conjecture")


@guess.data
def line(n: int, *, seed) -> rf.Dataset:
    return rf.datasets.centred(n, seed=seed)


@guess.claim("G1", "the loss at the end is below the loss at the start (logs)")
def falls(case):
    return at_most(case.run.log_loss[-1], case.run.log_loss[0])
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv(registry.FILES, "")
    path = tmp_path / "guess.py"
    path.write_text(CONJECTURE)
    return path


def test_the_five_papers_are_known():
    own = ("correlated", "highdim", "orthogonal", "separable", "univariate")
    assert set(own) <= set(rf.papers.names())
    assert {paper.name for paper in rf.theory.papers()} >= set(own)


def test_an_unknown_paper_is_refused_with_the_nearest():
    with pytest.raises(InputError, match="Did you mean 'correlated'"):
        rf.papers.named("correlatd")
    with pytest.raises(InputError, match="Pass a Paper, a name"):
        rf.papers.named(3)


def test_a_registered_paper_is_found_by_its_name_until_it_is_forgotten():
    paper = rf.papers.register(rf.Paper("mine", title="x"))
    try:
        assert rf.papers.named("mine") is paper
        assert "mine" in rf.papers.names()
    finally:
        rf.papers.forget("mine")
    with pytest.raises(InputError, match="no paper 'mine'"):
        rf.papers.named("mine")
    with pytest.raises(InputError, match="is not a Paper"):
        rf.papers.register("mine")


def test_a_paper_of_a_file(file):
    paper = rf.papers.named(f"{file}:guess")
    assert paper.name == "guess"
    assert rf.papers.named(f"{file}:guess") is paper  # executed once
    assert rf.papers.named("guess") is paper  # and known by name from then on
    assert f"{file}:guess" in os.environ[registry.FILES]
    file.write_text(CONJECTURE.replace("A conjecture", "Another"))
    assert rf.papers.named(f"{file}:guess").title == "Another"


def test_generators_of_a_file_serve_documents(file):
    from reluflow import spec

    rf.papers.named(f"{file}:guess")
    task = spec.build(
        {
            "data": {"generator": "guess/line", "n": 3},
            "network": {"init": "balanced", "width": 4},
            "engine": {"name": "flow", "t_end": 1.0},
        }
    )
    assert task.data.n == 3


def test_a_file_without_the_paper_is_refused(file, tmp_path):
    with pytest.raises(InputError, match="has no Paper called 'other'"):
        rf.papers.named(f"{file}:other")
    with pytest.raises(InputError, match="there is no file"):
        rf.papers.named(f"{tmp_path / 'none.py'}:guess")


def test_a_broken_package_of_somebody_else_is_left_out_with_a_warning(monkeypatch):
    from importlib.metadata import EntryPoint

    bad = EntryPoint("broken", "no_such_module:paper", registry.GROUP)
    monkeypatch.setattr(registry, "_announced", lambda: {"broken": bad})
    with pytest.warns(UserWarning, match="'broken' cannot be loaded"):
        assert "broken" not in [paper.name for paper in registry.papers()]


def test_the_papers_do_not_import_each_other():
    import ast
    from pathlib import Path

    root = Path(rf.__file__).parent / "papers"
    names = [path.name for path in root.iterdir() if path.is_dir()] + ["separable"]
    for path in root.rglob("*.py"):
        own = path.relative_to(root).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                part = node.module.split(".")
                if part[:2] == ["reluflow", "papers"] and len(part) > 2:
                    assert part[2] == own or part[2] not in names, path


def test_papers_installed_meanwhile_are_found(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(registry.names())
    info = tmp_path / "meanwhile-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: meanwhile\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[reluflow.papers]\nmeanwhile = meanwhile:paper\n")
    os.utime(tmp_path, ns=(1, 1))  # whatever the clock of the file system resolves
    importlib.invalidate_caches()
    assert set(registry.names()) == before | {"meanwhile"}


def test_a_second_look_does_not_search_again(monkeypatch):
    registry.names()
    searched = []
    real = registry.metadata.entry_points
    monkeypatch.setattr(
        registry.metadata, "entry_points", lambda **k: searched.append(k) or real(**k)
    )
    registry.names()
    assert searched == []
