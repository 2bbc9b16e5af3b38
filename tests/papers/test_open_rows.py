"""An open row says what would decide it, whatever the reason."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import reluflow as rf
from reluflow.theory.case import Case
from reluflow.theory.subject import subject_of
from reluflow.theory.verdicts import at_most, falls, undecided

ROOT = Path(rf.__file__).parent
REMEDY = re.compile(r"\b(decides?|would|continue|helps?|draw more|record more|allow more)\b")
SOURCES = sorted(path for folder in ("papers", "theory") for path in (ROOT / folder).rglob("*.py"))


def words(node):
    """All literal text below a node."""
    found = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
    return " ".join(text for text in found if isinstance(text, str))


def reasons(path):
    """(line, text) of every ``Unresolved(...)`` and ``undecided(...)``, with its local notes."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        calls = [
            node
            for node in ast.walk(function)
            if isinstance(node, ast.Call)
            and getattr(node.func, "id", "") in ("Unresolved", "undecided")
        ]
        for call in calls:
            used = {part.id for part in ast.walk(call) if isinstance(part, ast.Name)}
            notes = [
                words(node.value)
                for node in ast.walk(function)
                if isinstance(node, ast.Assign)
                and node.lineno < call.lineno
                and {target.id for target in node.targets if isinstance(target, ast.Name)} & used
            ]
            yield call.lineno, " ".join([words(call), *notes])


def test_every_reason_to_leave_a_row_open_says_what_would_decide_it():
    found = [(path, *reason) for path in SOURCES for reason in reasons(path)]
    assert len(found) > 50
    silent = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path, line, text in found
        if not REMEDY.search(text)
    ]
    assert silent == []


@pytest.fixture
def case():
    paper = rf.Paper("open", title="Open rows", case=Case)

    @paper.assumption("A", "nobody knows")
    def unknown(case):
        return undecided(note="a later run decides")

    @paper.condition("R", "far enough")
    def far(case):
        return at_most(2.0, 1.0, note="natural logarithm")

    paper.claim("early", "at most 1", regime=["R"])(lambda case: at_most(2.0, 1.0, 0.1))
    for id, measured in (("inside", 0.5), ("outside", 1.5), ("near", 1.01)):
        paper.claim(id, "at most 1")(lambda case, value=measured: at_most(value, 1.0, 0.1))
        paper.claim(f"{id}, A", "at most 1", needs=["A"])(
            lambda case, value=measured: at_most(value, 1.0, 0.1)
        )
    data = rf.Dataset([[1.0, 0.2]], [1.0])
    return paper.prepare(subject_of((data, rf.networks.balanced(2, 2, seed=0)), None))


def test_a_number_within_its_error_says_how_small_an_error_decides(case):
    found = case.paper["near"].check(case)
    assert found.verdict == "UNRESOLVED"
    assert found.note == "0.01 from its bound, known to 0.1: a smaller error decides"


def test_a_violation_outside_its_regime_says_that_a_subject_within_it_decides(case):
    found = case.paper["early"].check(case)
    assert found.verdict == "UNRESOLVED"
    reason = "outside the regime R: far enough (natural logarithm)"
    assert f"{reason}; a subject within decides" in found.note


def test_a_measure_that_does_not_fall_is_not_said_to_fall():
    """Seed 1057 of `separable`: "falls like F^--2.35e-16"."""

    class Late:
        fit = staticmethod(Case.fit)

        @staticmethod
        def late_measures(measure):
            levels = np.geomspace(1e2, 1e4, 9)
            return levels, np.array([measure(F) for F in levels])

    assert "; goes like F^0.1 (+- " in falls(Late, lambda F: 2.0 * F**0.1).note
    assert "; falls like F^-0.5 (+- " in falls(Late, lambda F: 2.0 * F**-0.5).note


def test_a_number_within_its_error_is_not_said_to_violate_where_a_hypothesis_is_open(case):
    said = {id: case.paper[f"{id}, A"].check(case).note for id in ("inside", "outside", "near")}
    assert "it would hold" in said["inside"]
    assert "it would not hold" in said["outside"]
    assert "would" not in said["near"]
    assert all("assumption A is undecided: a later run decides" in note for note in said.values())
