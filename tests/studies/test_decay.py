"""The study of weight decay: what its page says follows the numbers."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import reluflow as rf
from reluflow.cli.listing import sections as listed
from reluflow.figures import Line, Points, Rule
from reluflow.interpolators import excess
from reluflow.studies import decay, document, own
from reluflow.studies.make import make
from reluflow.theory.contract import LabelledRun

DOCUMENT = {
    "study": {"decays": [0.0, 0.05, 0.005]},
    "data": {"X": [[1.0, 0.0], [0.0, 1.0]], "y": [1.0, 0.5]},
    "network": {"a": [0.3, 0.2, 0.1], "W": [[0.3, -0.1], [-0.1, 0.2], [0.1, -0.2]]},
    "engine": {"name": "flow"},
}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return make(document.build(DOCUMENT, name="mine"), tmp_path_factory.mktemp("study"))


def test_two_neurons_stay_above_one_with_any_decay(page):
    assert [item.label for item in page.runs] == ["no decay", "decay 0.05", "decay 0.005"]
    weakest = excess(page.runs[-1].run)
    assert weakest.at_most == pytest.approx(0.34, abs=0.01)
    assert "Weight decay does not lead to the optimum: with 0.005" in page.answer
    assert f"{100 * weakest.at_most:.2g} % above the optimum" in page.answer
    plain = 100 * excess(page.runs[0].run).at_most
    assert f"without decay the squared norm of the fit is {plain:.3g} % above" in page.answer
    titles = [section.title for section in page.sections]
    assert titles[:3] == [
        "The learned function", "Fit first, then drift", "How far from the optimum"
    ]  # fmt: skip
    row = page.comparisons[0]
    assert row.name == "loss + decay/2 |theta|^2, decay 0.05"
    strongest = excess(page.runs[1].run)
    assert (row.predicted, row.simulated) == (strongest.optimum.objective, strongest.objective)


def test_the_figures_show_the_records_and_the_ends(page):
    (way,) = page.sections[1].figures
    loss = way.panels[0].layers[0]
    run = page.runs[1].run  # the strongest decay comes first
    assert isinstance(loss, Line)
    drawn = np.flatnonzero((run.t > 0.0) & (run.t <= decay.DRAWN / 0.05))
    there = np.interp(np.log10(0.05 * run.t[drawn]), loss.x, loss.y)
    np.testing.assert_allclose(there, run.log_loss[drawn] / np.log(10), rtol=1e-6)
    norm, rule = way.panels[1].layers[0], way.panels[1].layers[-1]
    expected = run.at(0.999 * decay.DRAWN / 0.05).squared_norm
    assert norm.y[-1] == pytest.approx(expected, rel=1e-3)
    assert rule.value == pytest.approx(2 * np.sqrt(1.25))
    (ends,) = page.sections[2].figures
    line, points, rule = ends.panels[0].layers
    assert isinstance(line, Line)
    assert isinstance(points, Points)
    assert isinstance(rule, Rule)
    found = [excess(page.runs[k].run) for k in (1, 2)]
    np.testing.assert_allclose(
        points.y, [2 * f.objective / mu for f, mu in zip(found, (0.05, 0.005), strict=True)]
    )
    assert (points.y > line.y).all()
    assert rule.value == pytest.approx(2 * np.sqrt(1.25))


def test_a_start_that_decay_helps_is_said_to_be_helped():
    """One neuron for both points: every end is the optimum."""
    data = rf.Dataset([[1.0, 0.0], [0.0, 1.0]], [1.0, 0.5])
    net = rf.Network([0.3], [[0.1, 0.3]])
    runs = [LabelledRun(f"{mu}", rf.flow(data, net, decay=mu)) for mu in (0.05, 0.005)]
    ends = decay.ends_of(runs)
    assert all(end.has_reached for end in ends)
    assert decay.answer(ends).startswith("With every weight decay tried the flow ends at the")
    mixed = [ends[0], replace(ends[1], excess=replace(ends[1].excess, objective=1.0))]
    assert "With weight decay 0.05 the flow ends at the certified optimum" in decay.answer(mixed)
    assert "with 0.005" in decay.answer(mixed)


def test_losses_without_an_optimum_are_not_compared():
    data = rf.Dataset([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0])
    net = rf.Network([0.3, -0.2], [[0.3, 0.1], [0.1, 0.2]])
    run = rf.flow(data, net, loss="logistic", decay=0.1)
    ends = decay.ends_of([LabelledRun("decay 0.1", run)])
    assert ends[0].excess is None
    assert "is not known here" in decay.answer(ends)
    assert [section.title for section in decay.sections(ends)] == ["Fit first, then drift"]


def test_the_page_of_one_run_with_decay_tells_the_excess(page):
    facts = own.facts_of(page.runs[1].run)
    said = own.answer(facts)
    assert said.startswith("Gradient flow (weight decay 0.05) ends with loss ")
    assert f"are {100 * facts.excess.at_most:.2g} % above the least of any network" in said
    assert "not tested, because the run is trained with weight decay 0.05" in own.found(facts).text


def test_directions_count_neurons_of_one_sign_and_way_once():
    net = rf.Network([1.0, 1.0, -1.0, 1e-6], [[1.0, 0.0], [2.0, 1e-6], [1.0, 0.0], [0.0, 1e-6]])
    assert decay.directions(net) == 2


def test_the_example_is_a_study():
    path = Path(__file__).parents[2] / "examples" / "decay.toml"
    assert [task.engine.decay for _, task in document.load(path).tasks] == [0.0, 0.1, 0.01]


@pytest.mark.parametrize("name", decay.PRESETS)
def test_presets_are_documents_that_the_list_tells(name):
    plan = document.build(decay.PRESETS[name], name=name)
    assert plan.tasks[0][0] == "no decay"
    assert (name, plan.title) in dict(listed())["Studies: reluflow study"]
