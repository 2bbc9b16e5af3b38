"""The study of high-dimensional regression: its preset, page, measures and figures."""

from dataclasses import replace

import numpy as np
import pytest

import reluflow as rf
from reluflow.figures import Line, Points, Raster, Rule
from reluflow.papers import named
from reluflow.papers.highdim.draws import assigned_start, positive_start
from reluflow.papers.highdim.figures import freeze as fig_freeze
from reluflow.papers.highdim.figures import measures, panels
from reluflow.papers.highdim.figures import primal as fig_primal
from reluflow.papers.highdim.figures import revival as fig_revival
from reluflow.papers.highdim.figures import scaling as fig_scaling
from reluflow.papers.highdim.figures import step as fig_step
from reluflow.papers.highdim.gram import gram_loop
from reluflow.papers.highdim.page import findings
from reluflow.studies.document import build
from reluflow.sweeps.outcome import as_result
from reluflow.sweeps.point import Point
from reluflow.theory.contract import LabelledRun

HALF = rf.losses.Square("1/2")
FIGURES = {recipe.id: recipe for recipe in named("highdim").figures.values()}


def compute(point):
    return as_result(
        point, getattr(measures, point.task.partition(":")[2])(point.parameters, point.seed)
    )


def page_of(problem, **options):
    options = {"steps": np.inf, "loss": HALF, "train": "hidden", "record": 60} | options
    run = rf.descend(problem.data, problem.net, lr=problem.lr, **options)
    return findings([LabelledRun("the run", run)]), run


def layers(figure, kind):
    return [layer for panel in figure.panels for layer in panel.layers if isinstance(layer, kind)]


# --------------------------------------------------------------------------------- page


def test_the_preset_freezes_after_one_step_close_to_its_law():
    study = named("highdim")
    plan = build(study.preset, name="highdim")
    ((label, task),) = plan.tasks
    run = task.start()
    assert run.stats["last_change"] == 1
    assert run.loss_function == HALF
    found = study.findings([LabelledRun(label, run)])
    assert [section.title for section in found.sections] == [
        "Primal variables",
        "Primal and dual",
        "Pattern through training",
        "Distance to the minimum-norm solution",
    ]
    assert max(c.discrepancy for c in found.comparisons) < 0.02
    assert len(found.comparisons) == 6


def test_the_page_of_one_neuron_near_the_number_of_points():
    found, run = page_of(positive_start(20, 24, constant=4.0, seed=0))
    primal, dual, pattern, distance = (section.figures[0] for section in found.sections)
    curves = layers(primal, Line)
    assert len(curves) == 20
    freeze = [rule for rule in layers(primal, Rule) if rule.axis == "x"]
    assert freeze[0].value == run.stats["last_change"] > 1
    assert {line.colour for line in curves} == {0, 1}
    assert {line.dash for line in curves} == {"solid", "dash"}
    assert len(layers(dual, Points)) == 4  # two classes at two moments
    (raster,) = layers(pattern, Raster)
    assert raster.z.shape == (20, panels.COLUMNS)
    assert raster.z[:, 0].all()  # the start is active everywhere
    final = (run.final.flat().W @ run.data.X.T)[0] > 0
    assert raster.z[:, -1].sum() == final.sum()
    assert len(layers(distance, Line)) == 1
    names = {c.name: c for c in found.comparisons}
    assert names["freeze iteration"].simulated == run.stats["last_change"]
    dead = (run.data.y > 0) & ~final
    risk = names["risk in the limit"]
    assert risk.simulated - risk.predicted == pytest.approx(
        0.5 * (run.data.y[dead] ** 2).sum(), abs=1e-9
    )


def test_the_page_of_several_neurons_has_no_shortest_fit_to_compare_with():
    found, _ = page_of(assigned_start(10, 10**5, (1, 1, -1, -1), seed=0))
    assert [s.title for s in found.sections][-1] == "Pattern through training"
    assert [c.name for c in found.comparisons] == ["freeze iteration", "risk in the limit"]
    assert len(found.sections[0].figures[0].panels) == 4


def test_the_page_of_a_plain_run_reads_patterns_from_its_records():
    problem = positive_start(8, 4000, seed=0)
    found, run = page_of(problem, steps=30, record=31)
    assert not len(run.events)
    (raster,) = layers(found.sections[2].figures[0], Raster)
    assert raster.z[:, -1].sum() == (problem.data.y > 0).sum()
    assert "No freeze" in found.sections[0].text
    assert found.comparisons == ()


def test_the_page_of_a_flow_run():
    problem = positive_start(6, 300, seed=0)
    run = rf.flow(problem.data, problem.net, loss=HALF, train="hidden", record=30)
    found = findings([LabelledRun("flow", run)])
    assert len(found.sections) == 4
    assert found.comparisons == ()


# ----------------------------------------------------------------------------- measures


def test_primal_variables_are_those_of_the_loop():
    given = {"n": 10, "d": 12, "constant": 6.0, "neurons": "two", "regime": "moderate"}
    found = measures.primal(given, 3)
    problem = measures.primal_problem(given, 3)
    P0 = problem.net.flat().W @ problem.data.X.T
    B0 = np.linalg.solve(problem.data.gram, P0.T).T
    last = int(found["t"][found["t"] <= 200][-1])
    loop = gram_loop(problem.data.gram, problem.data.y, problem.net.a, P0, B0, problem.lr, last)
    k = int(np.flatnonzero(found["t"] == last)[0])
    np.testing.assert_allclose(found["P"][k], loop.P[-1], atol=1e-9)
    np.testing.assert_allclose(found["B"][k], 12 * loop.B[-1], atol=1e-8)
    events = panels.as_events(found["event_t"], found["event_neuron"], found["event_point"], P0 > 0)
    early = events[events["t"] <= last]
    assert [tuple(row) for row in early[["t", "neuron", "point"]].tolist()] == loop.changes()


def test_the_raster_shows_the_loop_at_the_right_edges():
    problem = positive_start(8, 10, constant=4.0, seed=1)
    P0 = problem.net.W @ problem.data.X.T
    B0 = np.linalg.solve(problem.data.gram, P0.T).T
    loop = gram_loop(problem.data.gram, problem.data.y, np.ones(1), P0, B0, problem.lr, 50)
    changes = np.array(loop.changes())
    events = panels.as_events(changes[:, 0] * 1.0, changes[:, 1], changes[:, 2], P0 > 0)
    panel = panels.raster("", (P0 > 0)[0], events, 0, problem.data.y, 1.0, 50.0)
    raster = panel.layers[0]
    order = np.argsort(-problem.data.y, kind="stable")
    for column in range(panels.COLUMNS):
        t = int(np.floor(np.nextafter(raster.x[column + 1], 0)))
        if t <= 50:
            np.testing.assert_array_equal(raster.z[:, column], loop.active[t, 0][order])
    records = panels.changes_of_records(np.arange(51.0), loop.active)
    np.testing.assert_array_equal(records, events)


def test_the_distance_is_the_law_for_any_spectrum():
    for spectrum in ("isotropic", ["spiked", 3, 10.0], ["power", 0.1]):
        given = {"n": 6, "d": 4000, "constant": 3.0, "spectrum": spectrum}
        found = measures.gap(given, 0)
        assert found["l1"] == pytest.approx(1.0)
        assert found["distance"] == pytest.approx(found["law"], rel=0.15)
        assert found["certified"]
    stored = {"n": 6, "d": 3000, "constant": 2.0, "spectrum": "isotropic"}
    for coordinates in ("rademacher", "uniform"):
        found = measures.gap({**stored, "coordinates": coordinates}, 0)
        assert found["freeze"] == 1


def test_freezing_once_in_the_end_and_not_at_all():
    high = measures.freeze({"n": 8, "d": 10**6, "constant": 2.0, "draws": 3}, 0)
    assert high == {"draws": 3, "at_once": 3, "in_the_end": 3}
    low = measures.freeze({"n": 20, "d": 24, "constant": 4.0, "draws": 6}, 0)
    assert low["at_once"] == 0
    assert low["in_the_end"] < 6


def test_coverage_and_revival():
    found = measures.coverage({"n": 4, "d": 10**5, "k": 6, "draws": 4}, 0)
    assert found["covered"] / found["starts"] == pytest.approx((1 - 2.0**-6) ** 4, abs=0.15)
    given = {"n": 10, "d": 4000, "n_positive": 6, "draws": 10}
    small = measures.revival({**given, "scale": 0.05}, 0)
    large = measures.revival({**given, "scale": 100.0}, 0)
    assert small["awake"] > 0.3 * small["asleep"] > large["awake"]
    assert max(small["identity"], large["identity"]) < 1e-12


# ------------------------------------------------------------------------------ figures


@pytest.mark.parametrize("id", FIGURES)
@pytest.mark.parametrize("size", ["quick", "full"])
def test_points_of_a_figure_are_distinct_and_repeatable(id, size):
    points = list(FIGURES[id].points(size, 0))
    assert len({point.id for point in points}) == len(points)
    assert [p.id for p in points] == [p.id for p in FIGURES[id].points(size, 0)]
    other = {p.id for p in FIGURES[id].points(size, 1)}
    assert not other & {p.id for p in points}
    assert all(hasattr(measures, p.task.partition(":")[2]) for p in points)
    assert len(points) < 1000


def test_the_figures_are_there():
    names = ("scaling", "freeze", "primal", "step", "revival")
    assert list(FIGURES) == [f"highdim/fig-{name}" for name in names]


def verdicts(made):
    return {e.text: e.verdict.value for e in made.expectations}


def scaled(result, **factors):
    values = dict(result.values)
    for name, factor in factors.items():
        values[name] = values[name] * factor
    return replace(result, values=values)


def test_scaling_from_few_points_and_a_wrong_exponent():
    kept = []
    for point in fig_scaling.points("quick", 0):
        p = point.parameters
        if p["sweep"] == "d" or (p["sweep"] == "n" and p["n"] <= 32) or p["d"] == 4000:
            kept.append(point)
    results = [compute(point) for point in kept[:60]]
    made = fig_scaling.draw(results)
    assert set(verdicts(made).values()) == {"PASS"}, made.expectations
    (figure,) = made.figures
    assert len(figure.panels) == 4
    wrong = [scaled(r, distance=r.point.parameters["d"] ** 0.2) for r in results]
    assert verdicts(fig_scaling.draw(wrong))["slope against d"] == "FAIL"


def test_freeze_from_few_points_and_a_wrong_table():
    points = [p for p in fig_freeze.points("quick", 0) if p.parameters["n"] == 10]
    results = [compute(Point(p.task, {**p.parameters, "draws": 10}, p.seed)) for p in points]
    made = fig_freeze.draw(results)
    assert verdicts(made)["least share right in the end for d >= 3 n^2"] == "PASS"
    x, share = fig_freeze.shares(results, 2.0, 10, "at_once")
    assert x.tolist() == list(fig_freeze.RATIOS)
    assert share[0] < 0.5 < share[-1] == 1.0
    never = [scaled(r, at_once=0) for r in results]
    failed = verdicts(fig_freeze.draw(never))
    assert failed["largest difference to the reference shares"] == "FAIL"


def test_primal_figures_and_their_shapes():
    results = [compute(point) for point in fig_primal.points("quick", 0)]
    made = fig_primal.draw(results)
    assert set(verdicts(made).values()) == {"PASS"}, made.expectations
    names = [figure.name for figure in made.figures]
    assert names[:3] == ["primal-one", "primal-two", "primal-many"]
    assert [len(figure.panels) for figure in made.figures] == [3, 6, 6, 6, 6, 6]
    late = [scaled(r, freeze=2) for r in results]
    assert "FAIL" in verdicts(fig_primal.draw(late)).values()


def test_steps_against_the_flow():
    results = []
    for point in list(fig_step.points("quick", 0))[:3]:
        results.append(compute(point))
    made = fig_step.draw(results)
    assert set(verdicts(made).values()) == {"PASS"}, made.expectations
    flat = [
        replace(r, arrays={**r.arrays, "to_star": r.arrays["to_star"] * r.arrays["constants"]})
        for r in results
    ]
    assert verdicts(fig_step.draw(flat))["spread of distance x C for C <= 8"] == "FAIL"


def test_revival_from_few_draws():
    results = []
    for point in fig_revival.points("quick", 0):
        given = {**point.parameters, "draws": 3}
        results.append(compute(Point(point.task, given, point.seed)))
    made = fig_revival.draw(results)
    (figure,) = made.figures
    assert len(figure.panels) == 2
    assert verdicts(made)["largest error of the risk identity"] == "PASS"
    asleep = [scaled(r, awake=0) if "awake" in r.values else r for r in results]
    failed = verdicts(fig_revival.draw(asleep))
    assert failed["largest difference to the shares of section 6.5"] == "FAIL"


@pytest.mark.long
@pytest.mark.parametrize("id", FIGURES)
def test_a_figure_has_its_expected_shape(id):
    made = FIGURES[id].draw([compute(point) for point in FIGURES[id].points("quick", 0)])
    assert set(verdicts(made).values()) == {"PASS"}, made.expectations
