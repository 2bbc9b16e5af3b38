"""The study of orthogonal data: computations, descriptions of figures, expected shapes."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import reluflow as rf
from reluflow.figures import Line, Raster
from reluflow.papers import named
from reluflow.papers.orthogonal.figures import directions as fig_directions
from reluflow.papers.orthogonal.figures import exponents as fig_exponents
from reluflow.papers.orthogonal.figures import limits as fig_limits
from reluflow.papers.orthogonal.figures import norms as fig_norms
from reluflow.papers.orthogonal.figures import ratio as fig_ratio
from reluflow.papers.orthogonal.figures import training as fig_training
from reluflow.papers.orthogonal.figures.problems import (
    covered,
    half_epochs,
    near_orthogonal,
    width_for,
)
from reluflow.papers.orthogonal.figures.staircase import predicted_directions
from reluflow.papers.orthogonal.page.findings import findings
from reluflow.studies.document import build
from reluflow.sweeps import Point
from reluflow.sweeps.outcome import as_result
from reluflow.sweeps.tasks import resolve
from reluflow.theory.contract import LabelledRun

STUDY = named("orthogonal")

FIGURES = list(STUDY.figures.values())
IDS = ["fig1", "fig3", "fig4", "fig5", "fig6", "norm_ratio", "convergence", "near_orthogonal"]


def computed(points):
    return [as_result(p, resolve(p.task)(p.parameters, p.seed)) for p in points]


def verdicts(made):
    return {e.text: e.verdict.value for e in made.expectations}


def changed(points, **parameters):
    return [Point(p.task, {**p.parameters, **parameters}, p.seed) for p in points]


@cache
def trainings():
    """The training of figure 1, smaller: 24 points, four neurons, scale e^-150."""
    points = fig_training.points("quick", 3)
    return computed(changed(points, n=24, m=6, log_inverse_scale=150.0, lr=0.05))


@cache
def long_plateaus():
    """The flow of that training at scale e^-3000: neurons turn on several plateaus."""
    points = [p for p in fig_training.points("quick", 3) if p.parameters["engine"] == "flow"]
    return computed(changed(points, n=24, m=6, log_inverse_scale=3000.0, lr=0.05))


# ------------------------------------------------------------------ recipes


def test_the_figures_are_there():
    assert [recipe.id for recipe in FIGURES] == [f"orthogonal/{name}" for name in IDS]


@pytest.mark.parametrize("recipe", FIGURES, ids=lambda recipe: recipe.id)
def test_points_are_distinct_and_the_same_each_time(recipe):
    for size in ("quick", "full"):
        points = list(recipe.points(size, 0))
        assert len({p.id for p in points}) == len(points)
        assert [p.id for p in points] == [p.id for p in recipe.points(size, 0)]
        assert {p.id for p in points}.isdisjoint(p.id for p in recipe.points(size, 10**6))
        assert all(callable(resolve(p.task)) for p in points)
    assert len(list(recipe.points("quick", 0))) <= len(points)


def test_parameters_of_the_paper():
    point = fig_training.points("full", 0)[0]
    assert point.parameters["n"] == 64
    assert point.parameters["m"] == 6
    assert point.parameters["log_inverse_scale"] == pytest.approx(200 * np.log(10))
    assert point.parameters["lr"] == 0.01
    sizes = {p.parameters["n"] for p in fig_norms.points_by_n("full", 0)}
    assert sizes == {2**k for k in range(4, 13)}
    assert {p.parameters["m"] for p in fig_norms.points_by_m("full", 0)} == {
        2**k for k in range(5, 13)
    }
    assert max(p.parameters["n"] for p in fig_ratio.points_of_limit("quick", 0)) == 100_000


# ------------------------------------------------------------------ problems


def test_covered_problems_interpolate_and_keep_their_labels():
    data, net, process = covered(16, 5, -50.0, 2)
    assert process.interpolates
    assert (data.y > 0).all()
    again, wider, _ = covered(16, 9, -80.0, 2)
    assert np.array_equal(data.y, again.y)
    assert net.width, wider.width == (5, 9)


def test_widths_leave_a_point_uncovered_with_probability_one_percent():
    for n in (16, 1024):
        assert n * 0.75 ** width_for(n) <= 0.01 < n * 0.75 ** (width_for(n) - 1)


def test_near_orthogonal_points_are_orthonormal_at_strength_zero():
    data, net = near_orthogonal(5, 8, 3, 0.0, 1)
    assert np.array_equal(data.gram, np.eye(5))
    other, same = near_orthogonal(5, 8, 3, 0.3, 1)
    assert np.array_equal(other.y, data.y)
    assert np.array_equal(same.mantissa.W, net.mantissa.W)
    assert np.diag(other.gram) == pytest.approx(1.0)
    assert np.abs(other.gram - np.eye(5)).max() > 0.01


def test_half_epochs_tend_to_sharp_times_for_small_steps():
    _, _, process = covered(12, 4, -100.0, 0)
    sharp = process.sharp_times(-100.0)
    gaps = [np.abs(lr * half_epochs(process, -100.0, lr) - sharp).max() for lr in (1e-2, 1e-3)]
    assert gaps[1] == pytest.approx(0.1 * gaps[0], rel=0.05)


def test_predicted_directions_forget_fitted_points():
    data, net, process = covered(12, 4, -100.0, 0)
    masks = net.mantissa.W @ data.X.T > 0
    before, after = (predicted_directions(process, data, masks, k) for k in (0, 1))
    jumped = process.groups[0]
    assert np.linalg.norm(before, axis=1) == pytest.approx(1.0)
    assert before[jumped] == pytest.approx(after[jumped])
    dormant = np.setdiff1d(np.arange(4), jumped)
    assert not after[np.ix_(dormant, process.fitted[0])].any()


# ------------------------------------------------------------------ one training


def test_descent_and_flow_jump_where_predicted():
    descent, flow = (result.arrays for result in trainings())
    assert abs(descent["measured"][0] - descent["predicted"][0]) < 1.0
    assert np.abs(flow["measured"] - flow["predicted"])[0] < 0.05
    assert descent["predicted"][0] > flow["predicted"][0]  # growth of a step is log(1 + lr g)
    assert descent["count"][-1] == 24
    assert descent["shot_seen"].shape == (6, 6, 2)


def test_figure_1_has_four_panels_and_the_predicted_staircase():
    made = fig_training.draw_staircase(trainings())
    figure = made.figures[0]
    assert figure.panels[0].title == "loss"
    labels = {layer.label for panel in figure.panels for layer in panel.layers}
    assert {"descent", "flow", "limit process"} <= labels
    steps = next(x for x in figure.panels[0].layers if getattr(x, "label", "") == "limit process")
    assert len(steps.x) == 2 * len(trainings()[0].arrays["predicted"]) + 2
    found = verdicts(made)
    assert found["first half-epoch of descent against its prediction, in epochs"] == "PASS"
    assert {len(column) for column in made.tables["jumps"].values()} == {
        sum(len(r.arrays["predicted"]) for r in trainings())
    }


def test_figures_1_and_3_notice_a_wrong_prediction():
    spoiled = []
    for result in trainings():
        arrays = dict(result.arrays)
        arrays["predicted"] = arrays["predicted"] + 5.0
        arrays["leading"] = 1.1 * arrays["leading"]
        arrays["plateaus"] = 1.05 * arrays["plateaus"]
        arrays["slopes"] = 1.001 * arrays["slopes"]
        spoiled.append(replace(result, arrays=arrays))
    found = verdicts(fig_training.draw_staircase(spoiled))
    assert found["first half-epoch of descent against its prediction, in epochs"] == "FAIL"
    assert found["jump epochs against t_k L / lr, relative"] == "FAIL"
    assert found["plateau loss, relative, mid-plateau"] == "FAIL"
    slopes = fig_exponents.draw_exponents(spoiled)
    assert slopes.expectations[0].verdict == "FAIL"


def test_v5_steps_and_bends_are_those_of_the_run_not_of_the_prediction():
    """A curve without its last step, and norms that speed up, are seen though predictions stand."""
    spoiled = []
    for result in long_plateaus():
        arrays = dict(result.arrays)
        arrays["count"] = np.minimum(arrays["count"], arrays["fitted"][1])
        bent = 500.0 * (arrays["epochs"] / arrays["epochs"][-1]) ** 2
        arrays["log_norms"] = arrays["log_norms"] + bent[:, None]
        spoiled.append(replace(result, arrays=arrays))
    steps = fig_training.draw_staircase(spoiled).expectations[0]
    assert (steps.measured, steps.verdict) == (1.0, "FAIL")
    rise = fig_exponents.draw_exponents(spoiled).expectations[1]
    assert rise.measured > 1e-4
    assert rise.verdict == "FAIL"


def test_v11_figures_of_one_training_draw_and_judge_every_draw():
    other = [replace(r, point=replace(r.point, seed=99)) for r in trainings()]
    spoiled = []
    for result in other:
        cosines = 0.5 * result.arrays["shot_cosines"]
        spoiled.append(replace(result, arrays={**result.arrays, "shot_cosines": cosines}))
    makers = {
        "fig1": fig_training.draw_staircase,
        "fig3": fig_exponents.draw_exponents,
        "fig4": fig_directions.draw_directions,
    }
    for name, make in makers.items():
        assert [f.name for f in make([*trainings(), *other]).figures] == [name, f"{name}_2"]
    made = fig_directions.draw_directions([*trainings(), *spoiled])
    assert made.expectations[0].verdict == "FAIL"
    assert set(made.tables["cosines"]["draw"]) == {1, 2}


def test_figure_3_slopes_are_those_of_the_labels_left():
    made = fig_exponents.draw_exponents(long_plateaus())
    assert [e.verdict for e in made.expectations] == ["PASS", "PASS"]
    lines = [x for x in made.figures[0].panels[0].layers if isinstance(x, Line)]
    assert sum(line.colour == 7 for line in lines) == 6  # a prediction for each neuron


def test_figure_4_has_six_moments_with_predicted_directions():
    made = fig_directions.draw_directions(trainings())
    assert [panel.title[:2] for panel in made.figures[0].panels] == [f"{k}." for k in range(1, 7)]
    assert all(panel.equal for panel in made.figures[0].panels)
    assert made.expectations[0].verdict == "PASS"


# ------------------------------------------------------------------ norms


def test_figure_5_norms_lie_between_optimum_and_limit():
    points = [p for p in fig_norms.points_by_n("quick", 0) if p.parameters["n"] <= 64]
    made = fig_norms.draw_by_n(computed(points))
    found = verdicts(made)
    assert found["largest norm of descent over the limit process"] == "PASS"
    assert found["least norm of descent over the optimum"] == "PASS"
    assert [line.label for line in made.figures[0].panels[0].layers] == [
        "descent, scale 0.001",
        "limit process",
        "optimum",
        "flow, each run",
    ]
    assert found["median difference of descent and flow from the same start"] == "PASS"
    assert "0 of 15 runs did not reach" in made.note


def test_figure_5_notices_a_norm_below_the_optimum():
    points = fig_norms.points_by_n("quick", 0)[:6]
    spoiled = [
        replace(r, values={**r.values, "squared_norm": 0.5 * r.values["optimum"]})
        for r in computed(points)
    ]
    assert (
        verdicts(fig_norms.draw_by_n(spoiled))["least norm of descent over the optimum"] == "FAIL"
    )


def test_v11_runs_that_do_not_interpolate_are_not_averaged_in_figure_5():
    points = [p for p in fig_norms.points_by_n("quick", 0)[:6] if p.task.endswith("descent")]
    results = computed(points)
    late = {**results[0].values, "reached": False, "squared_norm": 0.0}
    made = fig_norms.draw_by_n([replace(results[0], values=late), *results[1:]])
    line = made.figures[0].panels[0].layers[0]
    assert (line.low > 0.0).all()
    assert verdicts(made)["least norm of descent over the optimum"] == "PASS"
    assert "1 of 6 runs did not reach" in made.note


def test_figure_6_small_and_large_starts_part():
    points = [
        p
        for p in fig_norms.points_by_m("quick", 0)
        if p.parameters["m"] in (32, 256) and p.task.endswith("descent")
    ]
    made = fig_norms.draw_by_m(computed(points))
    found = verdicts(made)
    assert found["fan-in over small start, least over widths"] == "PASS"
    assert found["norm over m/3 at the largest width, fan-in start"] == "PASS"


def test_flow_points_repeat_starts_of_descent():
    points = fig_norms.points_by_m("full", 0)
    flow = [p for p in points if p.task.endswith("norm_of_flow")]
    starts = {(p.seed, p.parameters["m"]) for p in points if p not in flow}
    assert {(p.seed, p.parameters["m"]) for p in flow} <= starts
    assert {p.parameters["m"] for p in flow} == {32, 64, 128}
    one = computed(flow[:1])[0]
    assert one.values["reached"]
    assert one.values["squared_norm"] >= one.values["optimum"]


def test_runs_of_one_width_share_their_labels():
    one, two = (p for p in fig_norms.points_by_m("quick", 0)[:2])
    assert one.parameters["label_seed"] == two.parameters["label_seed"]
    assert computed([one])[0].values["optimum"] == computed([two])[0].values["optimum"]


def test_the_ratio_grows_with_n_and_falls_with_m():
    points = [
        p
        for p in fig_ratio.points_of_limit("quick", 0)
        if p.parameters["n"] <= 4096 and p.parameters["m"] <= 512
    ]
    made = fig_ratio.draw_ratio(computed(points))
    assert set(verdicts(made).values()) == {"PASS"}
    left, right = made.figures[0].panels
    base = left.layers[0]
    assert (np.diff(base.y) > 0).all()
    assert all(line.y[-1] < line.y[0] for line in right.layers)


# ------------------------------------------------------------------ limits


def test_both_rates_are_seen():
    points = [
        p
        for p in fig_limits.points_by_scale("quick", 0)
        if 60.0 < p.parameters["log_inverse_scale"] < 800.0
    ]
    results = computed(points)
    assert set(verdicts(fig_limits.draw_convergence(results)).values()) == {"PASS"}
    slow = [replace(r, values={**r.values, "time_error": 0.1, "delta": 0.5}) for r in results]
    found = verdicts(fig_limits.draw_convergence(slow))
    assert found["log-log slope of the jump time error"] == "FAIL"
    assert found["exponent of the parameter error over its prediction"] == "FAIL"


def test_the_deformed_staircase_is_drawn_with_its_prediction():
    points = [
        p for p in fig_limits.points_by_strength("quick", 0) if p.parameters["strength"] < 0.1
    ]
    made = fig_limits.draw_deformation(computed(points))
    assert set(verdicts(made).values()) == {"PASS"}
    assert [panel.title.split(" (")[0] for panel in made.figures[0].panels] == [
        "strength 0",
        "strength 0.01",
        "strength 0.05",
    ]
    assert made.tables["strengths"]["squared_norm"][0] > made.tables["strengths"]["squared_norm"][2]


# ------------------------------------------------------------------ the page


@cache
def small_runs():
    data = rf.datasets.orthonormal(8, seed=0)
    net = rf.networks.balanced(8, 8, directions="sphere", seed=7)
    return tuple(
        LabelledRun(f"scale e^-{L}", rf.flow(data, net.with_scale(-float(L)), rtol=1e-9))
        for L in (200, 30)
    )


def test_the_preset_can_be_built_and_satisfies_the_theory():
    plan = build(STUDY.preset, name="orthogonal")
    task = plan.tasks[0][1]
    process = rf.limits.saddle_to_saddle(task.data, task.net)
    assert plan.paper == "orthogonal"
    assert process.interpolates
    assert len(process.times) == 7
    assert process.order_holds(float(task.net.log_scale.max()))


def test_the_page_shows_staircase_exponents_points_and_norm():
    found = findings(small_runs())
    names = [section.title for section in found.sections]
    assert names == ["Staircase", "Exponents", "Who fits which points, and when", "Norm"]
    raster = found.sections[2].figures[0].panels[0].layers[0]
    assert isinstance(raster, Raster)
    assert raster.z[:, 0].sum() == 0
    times = [c for c in found.comparisons if c.name.startswith("time of jump")]
    assert len(times) == len(rf.limits.saddle_to_saddle(*problem_of(small_runs()[0])).times)
    assert all(c.discrepancy < 1e-3 for c in times)
    norms = [c.discrepancy for c in found.comparisons if c.name.startswith("final squared norm")]
    assert norms[0] < norms[1]  # the smaller scale is nearer to its limit


def problem_of(item):
    return item.run.data, item.run.net


def test_points_that_are_not_orthonormal_get_the_alternating_guess():
    data, net = near_orthogonal(4, 6, 4, 0.3, 2)
    found = findings([LabelledRun("one", rf.flow(data, net.with_scale(-60.0)))])
    assert "is a guess" in found.sections[0].text
    assert "heuristic" in found.sections[0].text
    assert [c.name for c in found.comparisons] == ["final squared norm, one"]


def test_a_page_without_a_prediction_says_why():
    item = small_runs()[0]
    net = rf.Network(2.0 * item.run.net.mantissa.a, item.run.net.mantissa.W, -20.0)
    unbalanced = rf.flow(item.run.data, net, t_end=1.0)
    assert "not balanced" in findings([LabelledRun("x", unbalanced)]).sections[0].text
    large = rf.flow(item.run.data, item.run.net.with_scale(0.0), t_end=1.0)
    assert "no run has a small start" in findings([LabelledRun("x", large)]).sections[0].text


def test_a_run_of_descent_is_shown_on_the_same_clock():
    data, net = problem_of(small_runs()[1])
    run = rf.descend(data, net, lr=0.5, steps=2000, record=50)
    found = findings([LabelledRun("descent", run)])
    assert "iterations" in found.sections[0].figures[0].panels[0].x.label
