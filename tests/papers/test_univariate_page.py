"""The univariate study and figures: points, descriptions, and expected shapes that can fail."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import reluflow as rf
from reluflow.errors import InputError
from reluflow.figures import Line, Points, Rule
from reluflow.papers import named
from reluflow.papers.univariate.figures import along, measures, problems
from reluflow.papers.univariate.page import claim_options, findings
from reluflow.studies import recipe_named
from reluflow.studies.document import build
from reluflow.sweeps.outcome import as_result
from reluflow.theory import Verdict
from reluflow.theory import results as shared
from reluflow.theory.contract import LabelledRun

NAMES = [
    *("regions-time", "regions-width", "function", "generalisation", "lazy-rich"),
    *("margin", "kkt", "width-needed", "losses", "descent"),
]
SMALL = {"r": 1, "n": 8, "width": 12, "hidden": 2.0, "output": 0.2, "level": 300.0}
CELLS = {"cells": 4, "per_cell": 2, "sigma": 10.0, "output": 1e-4, "t_end": 1.0}


@cache
def computed(name, seed=0, **changes):
    """A real result of a small problem, computed once."""
    base = {"cells": CELLS, "basin": {"level": 300.0}}.get(name, SMALL)
    extra = {
        "portrait": {"levels": (2.0, 50.0)},
        "steps": {"level": 5.0, "clock": 40.0},
    }.get(name, {})
    parameters = {**base, **extra, **changes}
    point = problems.point(name, parameters, 0, f"{name} {seed}")
    return as_result(point, getattr(measures, name)(point.parameters, point.seed))


def with_values(result, **changes):
    return replace(result, values={**result.values, **changes})


def verdicts(made):
    return {expectation.text: expectation.verdict for expectation in made.expectations}


def layers(figure, kind):
    return [item for panel in figure.panels for item in panel.layers if isinstance(item, kind)]


# ---------------------------------------------------------------------- points


def test_ten_figures_in_the_order_of_the_experiments():
    assert [recipe.id for recipe in named("univariate").figures.values()] == [
        f"univariate/fig-{n}" for n in NAMES
    ]


@pytest.mark.parametrize("name", NAMES)
def test_points_are_distinct_and_depend_on_the_seed(name):
    recipe = recipe_named(f"univariate/fig-{name}")
    quick, full = (list(recipe.points(size, 0)) for size in ("quick", "full"))
    assert len({point.id for point in quick}) == len(quick) > 0
    assert len({point.id for point in full}) == len(full) >= len(quick)
    other = list(recipe.points("quick", 1))
    assert not {point.id for point in quick} & {point.id for point in other}
    assert [point.id for point in recipe.points("quick", 0)] == [point.id for point in quick]


def test_widths_of_one_trial_share_their_sample():
    points = [
        p
        for p in recipe_named("univariate/fig-regions-width").points("full", 0)
        if p.parameters["r"] == 8
    ]
    first = [p for p in points if p.seed == points[0].seed]
    assert sorted(p.parameters["width"] for p in first) == [8, 16, 32, 64, 128, 256, 512]
    samples = [problems.sample(p.parameters, p.seed) for p in first]
    assert all(data == samples[0] for data in samples)


def test_a_start_has_the_same_norm_at_every_width():
    norms = [problems.start({**SMALL, "width": k}, 3).squared_norm for k in (256, 4096)]
    assert norms == pytest.approx([2 * 2.0**2 + 0.2**2] * 2, rel=0.15)


# ---------------------------------------------------------------------- measures


def test_history_measures_what_geometry_measures():
    run = problems.train(SMALL, 0)
    history = along.history(run)
    k = along.measured_records(run)[-1]
    net = run.network(int(k))
    assert history["F"][-1] == pytest.approx(300.0)
    assert history["margin"][-1] == rf.geometry.margin(run.data, net)
    assert history["kkt_eps"][-1] == rf.geometry.kkt(run.data, net).eps_rel
    assert (history["regions_low"] >= history["regions_high"]).all()
    assert (np.diff(history["F"]) > 0).all()


def test_history_of_a_run_that_never_separates():
    data = rf.datasets.from_points([1.0, -1.0], [1.0, 1.0])
    run = rf.flow(data, rf.Network([3.0], [[1.0, -0.5]]), loss=rf.losses.Logistic())
    history = along.history(run)
    assert len(history["kkt_F"]) == 0
    assert (history["margin"] <= 0).all()


def test_history_refuses_the_square_loss():
    run = rf.flow(problems.sample(SMALL, 0), problems.start(SMALL, 0), t_end=0.1)
    with pytest.raises(InputError, match="square loss has no margin"):
        along.history(run)


def test_slides_start_on_their_points():
    run = problems.train({**SMALL, "n": 12, "width": 24}, 0)
    F, x = along.slides(run)
    assert len(F) == np.count_nonzero(run.events["kind"] == "slide") > 0
    assert np.isin(x, run.data.X[:, 0]).all()
    assert (-run.log_loss[0] - 1e-9 <= F).all()
    assert (-run.log_loss[-1] + 1e-9 >= F).all()


def test_a_large_hidden_layer_hardly_moves():
    little = measures.lazy({**SMALL, "sigma": 20.0, "level": 2.0}, 0)
    much = measures.lazy({**SMALL, "sigma": 2.0, "level": 20.0}, 0)
    assert little["reached"]
    assert much["reached"]
    assert little["movement"] == pytest.approx(1e-4 * much["movement"], rel=0.5)  # sigma^-4


def test_both_losses_start_from_one_network():
    found = computed("both_losses")
    assert found.values["exponential_switches"] == found.values["logistic_switches"] == 1
    assert len(found.arrays["levels"]) == len(found.arrays["apart"])
    assert found.values["logistic_margin"] == pytest.approx(
        found.values["exponential_margin"], rel=0.2
    )


def test_example_1_without_its_second_neuron_keeps_margin_one_half():
    assert computed("basin", size=1e-9).values["margin"] == pytest.approx(0.5, abs=1e-6)


def test_tools_on_empty_and_bad_input():
    assert np.isnan(shared.slope([1.0], [2.0]))
    assert np.isnan(shared.slope([1.0, 2.0], [0.0, 1.0]))
    assert shared.slope([1.0, 10.0], [3.0, 0.3]) == pytest.approx(-1.0)
    assert np.isnan(shared.median([]))
    assert np.isnan(shared.extreme([], "least"))


# ---------------------------------------------------------------------- figures


def results_of(name):
    """Small real results in the place of a figure's own."""
    if name in ("regions-time", "kkt"):
        return [computed("history", seed) for seed in range(2)]
    if name == "regions-width":
        return [computed("ending", seed, width=k) for k in (8, 16) for seed in range(2)]
    if name == "generalisation":
        sizes = [computed("ending", s, n=n, width=32) for n in (8, 16) for s in range(2)]
        return sizes + [computed("ending", 0, r=2, n=20, width=k) for k in (32, 64)]
    if name == "margin":
        basins = [computed("basin", seed, size=size) for size in (1e-3, 1.0) for seed in range(2)]
        return [computed("history", seed) for seed in range(2)] + basins
    if name == "lazy-rich":
        return [computed("lazy", 0, sigma=s, level=5.0) for s in (1.0, 4.0, 12.0)]
    if name == "width-needed":
        few = [computed("cells", s, cells=6, width=k) for k in (6, 48) for s in range(2)]
        return [*few, computed("cells", 0, cells=40, per_cell=1, width=20)]
    if name == "descent":
        return [computed("steps", 0, alpha=a) for a in (1e-2, 1e-3, 3e-4)]
    return [computed({"function": "portrait", "losses": "both_losses"}[name])]


@pytest.mark.parametrize("name", NAMES)
def test_figures_describe_themselves(name):
    made = recipe_named(f"univariate/fig-{name}").draw(results_of(name))
    for figure in made.figures:
        assert figure.caption
        assert figure.title
        for panel in figure.panels:
            assert panel.layers
            assert panel.x.label
            assert panel.y.label
        for line in layers(figure, Line):
            assert np.isfinite(line.y).any()
    for table in made.tables.values():
        assert len({len(column) for column in table.values()}) == 1
    assert made.expectations
    assert all(e.source for e in made.expectations)
    assert made.note


def test_regions_that_grow_with_the_width_are_caught():
    recipe = recipe_named("univariate/fig-regions-width")
    honest = [with_values(r, regions=3) for r in results_of("regions-width")]
    text = "power of the width in the number of regions, r = 1"
    assert verdicts(recipe.draw(honest))[text] == Verdict.PASS
    grown = [with_values(r, regions=r.point.parameters["width"]) for r in honest]
    assert verdicts(recipe.draw(grown))[text] == Verdict.FAIL
    many = [with_values(r, regions=200) for r in honest]
    assert verdicts(recipe.draw(many))["largest excess over 32 s + 67, r = 1"] == Verdict.FAIL


def test_regions_beyond_the_bound_are_caught():
    recipe = recipe_named("univariate/fig-regions-time")
    result = computed("history")
    assert verdicts(recipe.draw([result]))["largest excess over 32 s + 67"] == Verdict.PASS
    grown = replace(result, arrays={**result.arrays, "regions": result.arrays["regions"] + 100})
    assert verdicts(recipe.draw([grown]))["largest excess over 32 s + 67"] == Verdict.FAIL
    rules = {rule.label for rule in layers(recipe.draw([result]).figures[0], Rule)}
    assert {"32 r + 67 = 99", "label switches, at most 1"} <= rules


@pytest.mark.parametrize(("power", "verdict"), [(-1.0, "PASS"), (-0.4, "FAIL")])
def test_the_rate_of_the_error(power, verdict):
    recipe = recipe_named("univariate/fig-generalisation")
    honest = results_of("generalisation")
    made = [
        with_values(r, error=0.5 * r.point.parameters["n"] ** power, separated=True) for r in honest
    ]
    assert verdicts(recipe.draw(made))["power of n in the error, all r"].value == verdict


def test_an_error_that_grows_with_the_width_is_caught():
    recipe = recipe_named("univariate/fig-generalisation")
    grown = [
        with_values(r, error=1e-3 * r.point.parameters["width"], separated=True)
        for r in results_of("generalisation")
    ]
    assert verdicts(recipe.draw(grown))["power of the width in the error"] == Verdict.FAIL


def test_margins_above_the_optimum_are_caught():
    recipe = recipe_named("univariate/fig-margin")
    honest = results_of("margin")
    assert verdicts(recipe.draw(honest))["largest margin over the optimum"] == Verdict.PASS
    low = [
        with_values(r, optimum=0.5 * r.values["optimum"]) if "optimum" in r.values else r
        for r in honest
    ]
    assert verdicts(recipe.draw(low))["largest margin over the optimum"] == Verdict.FAIL


def test_a_mass_below_the_floor_is_caught():
    recipe = recipe_named("univariate/fig-width-needed")
    honest = results_of("width-needed")
    text = "smallest surplus of wrong mass over the bound"
    assert verdicts(recipe.draw(honest))[text] == Verdict.PASS
    assert verdicts(recipe.draw([with_values(r, mass=0.0) for r in honest]))[text] == Verdict.FAIL


def test_runs_that_fail_are_counted_and_said():
    first, second = (computed("history", seed) for seed in range(2))
    cut = with_values(second, unfinished=True)
    made = recipe_named("univariate/fig-kkt").draw([first, cut])
    assert "1 of 2 runs classify every point" in made.note
    assert "1 were cut short" in made.note
    assert "1 were cut short" in made.figures[0].caption
    lost = with_values(second, separated=False)
    made = recipe_named("univariate/fig-kkt").draw([first, lost])
    assert "1 end in a local minimum" in made.note


def test_no_run_separates_and_still_there_is_a_figure():
    lost = with_values(computed("history"), separated=False)
    for name in ("kkt", "regions-time"):
        made = recipe_named(f"univariate/fig-{name}").draw([lost])
        assert Verdict.UNRESOLVED in verdicts(made).values()


# ---------------------------------------------------------------------- the study


@cache
def page_run():
    plan = build({**named("univariate").preset, "seed": 3}, name="univariate")
    task = plan.tasks[0][1]
    run = rf.flow(task.data, task.net, loss=task.loss, stop_log_loss=-500.0)
    return replace(run, provenance={**run.provenance, "spec": plan.document})


def test_the_preset_is_a_document():
    plan = build(named("univariate").preset, name="univariate")
    (_label, task) = plan.tasks[0]
    assert plan.paper == "univariate"
    assert task.net.width == 64
    assert task.data.n == 20


def test_sections_of_a_page():
    found = findings([LabelledRun("the run", page_run())])
    assert [s.title for s in found.sections] == [
        *("The function", "Linear regions", "Margins", "KKT residuals")
    ]
    function = found.sections[0].figures[0]
    kinks = [p for p in layers(function, Points) if p.label == "kinks, by jump"]
    assert len(kinks) == 1
    assert len(kinks[0].x) >= 2
    margin = {c.name: c for c in found.comparisons}["normalised margin"]
    assert 0.9 < margin.simulated / margin.predicted <= 1.0 + 1e-8
    time = {c.name: c for c in found.comparisons}["log of time"]
    assert time.discrepancy < 1e-3


def test_claim_options_come_from_the_document():
    options = claim_options([LabelledRun("the run", page_run())])
    assert options["density"].support == (-1.0, 1.0)
    assert options["sigma_hidden"] == 0.3
    assert options["sigma_output"] == 0.03
    bare = replace(page_run(), provenance={})
    assert claim_options([LabelledRun("the run", bare)]) == {}


def test_a_page_of_points_without_a_teacher():
    data = rf.datasets.from_points([-2.0, -1.1, -0.4, 0.3, 0.9, 2.2], [-1, -1, 1, 1, -1, -1])
    net = rf.networks.balanced(2, 20, log_scale=-1.0, seed=1)
    run = rf.flow(data, net, loss=rf.losses.Logistic(), stop_log_loss=-300.0)
    found = findings([LabelledRun("mine", run)])
    assert len(found.sections) == 4


@pytest.mark.long
@pytest.mark.parametrize("name", ["function", "kkt", "descent", "losses"])
def test_quick_figures_have_the_expected_shape(name, tmp_path):
    from reluflow.studies.reproduce import reproduce

    made = reproduce(recipe_named(f"univariate/fig-{name}"), "quick", tmp_path, workers=0)
    assert all(e.verdict == Verdict.PASS for e in made.reproduction.expectations)
