"""The report as a file: its structure, read by the standard HTML parser, and what it refuses."""

import base64
import gzip
import hashlib
import itertools
import json
import math
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from reluflow import report
from reluflow.errors import FileError, InputError, MissingExtraError
from reluflow.figures.typeset import typeset
from reluflow.report import assemble, contents
from reluflow.theory import Verdict
from reluflow.trajectory import Status

from . import sample

VOID = {"meta", "link", "br", "img", "input"}


class Reader(HTMLParser):
    """Elements with their attributes and texts; fails where tags do not close as they opened."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open = [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        element = {"tag": tag, "text": "", **dict(attributes)}
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def all(self, tag, **wanted):
        return [
            element
            for element in self.elements
            if element["tag"] == tag
            and all(element.get(name) == value for name, value in wanted.items())
        ]

    def one(self, tag, **wanted):
        (found,) = self.all(tag, **wanted)
        return found


def written(page, folder):
    report.write(page, folder / "report.html")
    return (folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return written(sample.page(), tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def read(text):
    return Reader(text)


def words_of(element):
    return " ".join(element["text"].split())


def test_the_file_is_small_enough_to_send(text):
    assert len(text.encode()) < 10e6


def test_one_title_and_headings_in_order(read):
    assert words_of(read.one("h1")) == "Neurons align, then grow"
    levels = [int(e["tag"][1]) for e in read.elements if re.fullmatch(r"h[1-6]", e["tag"])]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_sections_come_in_the_promised_order(read):
    shown = [words_of(heading) for heading in read.all("h2")]
    assert shown == [
        "Summary",
        "What was run",
        *(section.title for section in sample.page().sections),
        "Predicted and simulated",
        "Claims",
        "Downloads",
        "How to cite",
        "Reproduce",
    ]
    linked = [link["href"][1:] for link in read.all("a") if link["href"].startswith("#")]
    assert set(linked) <= {e["id"] for e in read.elements if "id" in e}
    assert {section["id"] for section in read.all("section")} <= set(linked)


def test_ids_are_unique_and_landmarks_are_there(read):
    ids = [element["id"] for element in read.elements if "id" in element]
    assert len(ids) == len(set(ids))
    for landmark in ("header", "nav", "main", "footer"):
        read.one(landmark)
    assert read.one("html")["lang"] == "en"
    for element in read.elements:
        for name in ("aria-labelledby", "aria-describedby"):
            assert element.get(name) is None or element[name] in ids


def test_nothing_points_outside(read):
    for element in read.elements:
        for name in ("src", "href", "action", "data", "poster", "srcset"):
            assert re.match(r"(#|data:)", element.get(name, "#")), element
    citations = words_of(read.one("section", id="cite"))
    assert "https://arxiv.org/abs/2306.06479" in citations  # as text, not as a link


def test_the_policy_forbids_requests_and_lists_the_scripts_by_hash(read):
    policy = read.one("meta", **{"http-equiv": "Content-Security-Policy"})["content"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == rules["connect-src"] == "'none'"
    assert rules["img-src"] == "data: blob:"
    scripts = [script for script in read.all("script") if "type" not in script]
    library = gzip.decompress(base64.b64decode(read.one("script", id="library")["text"]))
    assert library.decode() == assemble._plotly()
    texts = [*(script["text"].encode() for script in scripts), library]
    hashes = [hashlib.sha256(text).digest() for text in texts]
    assert rules["script-src"].split() == [
        f"'sha256-{base64.b64encode(digest).decode()}'" for digest in hashes
    ]
    assert "unsafe" not in rules["script-src"]
    assert not any(name.startswith("on") for e in read.elements for name in e)


def test_tables_have_captions_and_headers_with_scope(read):
    assert len(read.all("caption")) == len(read.all("table")) == 4
    assert all(head["scope"] in ("col", "row") for head in read.all("th"))


def test_figures_have_words_and_data(read):
    figures = [f for section in sample.page().sections for f in section.figures]
    plots = read.all("div", **{"class": "plot"})
    assert len(plots) == len(figures) == 5
    for plot, figure in zip(plots, figures, strict=True):
        assert plot["role"] == "img"
        assert plot["aria-label"].startswith(typeset(figure.title))
    data = json.loads(read.one("script", id="data")["text"])
    assert len(data["figures"]) == 5
    assert data["dark"]["#0072b2"] == "#3d97db"
    assert "Not shown: 50 values that are not positive" in words_of(read.all("figcaption")[-1])


def test_a_movie_has_a_button_and_a_labelled_slider(read):
    (movie,) = [f for s in sample.page().sections for f in s.figures if f.frames]
    slider = read.one("input", type="range")
    assert int(slider["max"]) == len(movie.frames) - 1
    assert slider["aria-label"].startswith("Frame of figure 3")
    assert slider["aria-valuetext"] == "start"
    player = read.one("div", **{"class": "player screen-only"})
    assert json.loads(player["data-labels"]) == [typeset(frame.label) for frame in movie.frames]


def test_the_summary_has_a_line_for_each_run_the_counts_and_the_worst_number(read):
    said = words_of(read.one("section", id="summary"))
    assert "scale 4−7: ✓ converged" in said
    assert "scale e−2: ⚠ budget" in said
    assert "Assumptions: ✓ 1 pass ✗ 1 fail. Failing: A2 (the start is balanced)" in said
    assert "Claims: ✓ 1 pass ✗ 1 fail ? 1 unresolved – 1 not applicable. Failing: T7 (" in said
    assert "0.0493 (relative), time of the jump" in said
    assert "1 of 4 comparisons have no number" in said


def test_a_run_that_did_not_end_by_itself_carries_a_warning(read):
    (warning, _) = read.all("p", **{"class": "warning", "role": "note"})
    assert "The run “scale e^-2” ended as “budget”" in words_of(warning)


def test_a_run_with_a_branch_carries_a_warning():
    item = sample.runs()[0]
    row = np.array([(1.0, 0.0, 2, -1, "branch")], item.run.events.dtype)
    item = replace(item, run=replace(item.run, events=np.concatenate([item.run.events, row])))
    (found,) = contents.contents(replace(sample.page(), runs=(item,)))["summary"]["warnings"]
    assert "is one of several solutions: it branches once, first at t = 1 (neuron 2)" in found


@pytest.mark.parametrize("status", Status)
def test_only_trusted_statuses_have_no_warning(status):
    item = sample.runs()[0]
    item = replace(item, run=replace(item.run, status=status))
    found = contents.contents(replace(sample.page(), runs=(item,)))["summary"]["warnings"]
    assert all("last state" in text for text in found)
    trusted = {"converged", "stationary", "stop_loss", "t_end", "steps"}
    assert bool(found) == (str(status) not in trusted)


def test_what_was_run_is_said(read):
    said = read.one("section", id="what-was-run")["text"]
    assert 'generator = "centred"' in said
    assert "stop_loss = 5e-10" in said
    for name in ("seed", "reluflow", "numpy", "python", "OMP_NUM_THREADS"):
        assert name in [words_of(term) for term in read.all("dt")]
    assert "reluflow study study.toml --seed 1" in words_of(read.one("section", id="reproduce"))


def test_settings_that_differ_between_runs_are_all_listed():
    one, two = sample.runs()
    versions = {**two.run.provenance["versions"], "numpy": "9.9"}
    two = replace(two, run=replace(two.run, provenance={"versions": versions, "threads": {}}))
    found = dict(contents.contents(replace(sample.page(), runs=(one, two)))["settings"])
    assert found["numpy"].endswith(", 9.9")
    assert "," not in found["python"]


def test_predictions_stand_beside_simulations(read):
    rows = [words_of(row) for row in read.all("tr")]
    assert "squared norm of the weights22.00000042e−07 relativeshrinks with the scale" in rows
    assert "largest angle03e−093e−09 absolutezero in the limit" in rows
    assert "rank of the limitundefined1undefined no prediction" in rows


def test_verdicts_are_words_marks_and_classes(read):
    rows = [row for row in read.all("tr") if "data-verdict" in row]
    checks = [*sample.claims().assumptions, *sample.claims().checks]
    assert len(rows) == len(checks)
    for row, check in zip(rows, checks, strict=True):
        word, mark, kind = contents.VERDICTS[check.verdict]
        assert row["data-verdict"] == kind
        assert f"{mark} {word}" in words_of(row)
        assert check.note in row["text"]
    assert {box["value"] for box in read.all("input", type="checkbox")} == {
        kind for _, _, kind in contents.VERDICTS.values()
    }
    assert set(contents.VERDICTS) == set(Verdict)


def test_downloads_hold_the_bytes_they_were_given(read):
    links = {link["download"]: link["href"] for link in read.all("a") if "download" in link}
    for name, body in sample.page().downloads.items():
        assert base64.b64decode(links[name].split(";base64,")[1]) == body
    assert links["losses.csv"].startswith("data:text/csv;base64,")
    assert b"[engine]" in base64.b64decode(links["study.toml"].split(";base64,")[1])


def test_hostile_words_make_no_elements(tmp_path):
    shown = Reader(written(sample.hostile(), tmp_path))
    assert not shown.all("img")
    plain = Reader(written(replace(sample.page(), title="x"), tmp_path))
    assert len(shown.all("script")) == len(plain.all("script")) == 4
    assert shown.one("title")["text"] == sample.EVIL
    assert words_of(shown.one("h1")) == words_of({"text": sample.EVIL})
    data = shown.one("script", id="data")["text"]
    assert "<" not in data
    assert "window.hacked" in data


def test_a_page_with_next_to_nothing_is_whole(tmp_path):
    bare = replace(
        sample.page(), runs=(), sections=(), comparisons=(), claims=None, downloads={}, document={}
    )
    shown = Reader(written(bare, tmp_path))
    assert "No claims were checked" in words_of(shown.one("section", id="claims"))
    assert "There is no prediction" in words_of(shown.one("section", id="predictions"))
    assert len("".join(script["text"] for script in shown.all("script"))) < 50_000  # no library


def test_the_same_page_gives_the_same_bytes(tmp_path):
    bare = replace(sample.page(), sections=sample.page().sections[-1:])
    assert written(bare, tmp_path) == written(bare, tmp_path)


def test_a_label_that_is_no_unicode_is_written_anyway(tmp_path):
    assert "Neurons ?" in written(
        replace(sample.page(), sections=(), title="Neurons \ud800"), tmp_path
    )


def test_numbers_in_words():
    assert contents.shown(-math.inf) == "−infinity"
    assert contents.shown(1e20) == "1e20"
    assert contents.size_of(-1e6) == "10^−434294"
    assert contents.size_of(math.inf) == "infinity"


def test_something_else_than_a_page_is_refused(tmp_path):
    with pytest.raises(InputError, match="`page` is a dict, not a Page"):
        report.write({}, tmp_path / "report.html")
    page = replace(sample.page(), downloads={"a.csv": "text"})
    with pytest.raises(InputError, match=r"the download 'a\.csv' is a str, not bytes"):
        report.write(page, tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot write"):
        report.write(replace(sample.page(), sections=()), tmp_path / "file" / "report.html")


@pytest.mark.parametrize("package", ["jinja2"])
def test_a_missing_package_names_the_extra(package, monkeypatch, tmp_path):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"needs {package}.*reluflow\[report\]"):
        report.write(sample.page(), tmp_path / "report.html")


def test_the_library_that_draws_is_vendored_with_its_licence(tmp_path):
    text = assemble._plotly()
    assert "plotly.js (cartesian - minified)" in text[:200]
    assert "\r" not in text
    assert "</script" not in text
    folder = Path(assemble.__file__).parent / "vendored"
    assert "MIT License" in (folder / "LICENSE").read_text()
    assert len(text) < 1_600_000


def test_a_library_with_other_line_ends_keeps_its_hash(monkeypatch):
    class Folder:
        def joinpath(self, *names):
            return self

        def read_text(self, encoding):
            return "a\r\nb\rc = '</script>'"

    monkeypatch.setattr(assemble.resources, "files", lambda package: Folder())
    assert assemble._plotly() == "a\nb\nc = '<\\/script>'"
