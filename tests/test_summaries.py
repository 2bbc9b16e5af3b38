"""What a notebook shows: short texts, tables that are well-formed and escape foreign words."""

from xml.etree import ElementTree

import numpy as np
import pytest

import reluflow as rf
from reluflow import summaries
from reluflow.theory import Check, Report, Verdict

DATA = rf.Dataset([0.5, -1.0, 2.0], [1.0, -1.0, 0.3], bias=True, name="<b>mine</b>")
NET = rf.networks.balanced(2, width=4, log_scale=-1e6, seed=0)
RUN = rf.descend(DATA, rf.networks.balanced(2, width=4, seed=0), lr=0.1, steps=30)
LIMIT = rf.limits.predict(DATA, NET)
CHECK = Check("T1", "norms <= 1 & more", Verdict.FAIL, 1.25, 1.0, "a note")
CHECKS = [CHECK] + [Check(f"T{k}", "a claim", Verdict.PASS) for k in range(2, 60)]
REPORT = Report("toy", "A toy", "nobody", "3 points", [], CHECKS, ["mind <this>"])
VALUES = [DATA, NET, RUN, LIMIT, CHECK, REPORT]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_tables_are_well_formed_and_texts_short(value):
    body = value._repr_html_().replace("<br>", "<br/>")
    assert len(body) < 20_000
    tree = ElementTree.fromstring(f"<div>{body}</div>")  # escaped, or this would not parse
    assert tree.findall(".//table")
    assert len(repr(value)) < 200
    assert "\n" not in repr(value)


def test_the_words_of_users_stay_words():
    assert "<b>mine" not in DATA._repr_html_()
    assert "&lt;b&gt;mine" in DATA._repr_html_()
    assert "mind &lt;this&gt;" in REPORT._repr_html_()


def test_a_report_shows_first_what_does_not_pass():
    body = REPORT._repr_html_()
    assert body.index("T1") < body.index("T2")
    assert "19 further rows" in body
    assert repr(REPORT) == "Report(toy: PASS 58, FAIL 1)"
    assert repr(CHECK) == "Check(T1: FAIL, measured=1.25, bound=1)"


def test_a_curve_falls_where_the_numbers_fall():
    svg = ElementTree.fromstring(summaries.sparkline([3.0, 2.0, -np.inf, 0.0]))
    points = [tuple(map(float, p.split(","))) for p in svg[0].get("points").split()]
    x, y = zip(*points, strict=True)
    assert list(x) == sorted(x)
    assert list(y) == sorted(y)  # downwards on the screen
    assert (y[0], y[-1]) == (1.0, summaries.HEIGHT - 1.0)
    assert summaries.sparkline([1.0]) == summaries.sparkline([np.nan, 1.0]) == ""
    assert "polyline" in summaries.sparkline(np.zeros(5))


def test_names_of_the_package_are_the_public_ones():
    assert "Any" not in dir(rf)
    assert "import_module" not in dir(rf)
    assert {"plot", "figures", "sweeps", "flow"} <= set(dir(rf))
    for name in dir(rf):
        assert getattr(rf, name) is not None
