"""Figures of the correlated-inputs paper: what is computed, and what is drawn from results."""

import json
import math

import numpy as np
import pytest

import reluflow as rf
from reluflow.figures import Heat, Line, Points
from reluflow.papers import named
from reluflow.papers.correlated.figures import coordinates, fig1, measures
from reluflow.papers.correlated.figures.tables import point
from reluflow.studies import recipe_named
from reluflow.sweeps import Point, Result
from reluflow.sweeps.outcome import as_result
from reluflow.sweeps.tasks import resolve

NAMES = [
    "fig1",
    "fig-average-angle",
    "fig-nuclear-norm",
    "fig-widths",
    "fig2",
    "fig-coordinates",
    "fig-two-teachers",
    "fig-rank-norm",
    "fig-wider-cone",
]


def computed(points):
    """Results of points, computed here."""
    return [as_result(p, resolve(p.task)(p.parameters, p.seed)) for p in points]


def small(d=4, powers=(2, -1, -4, -7, -9, -11, -13), width=30, schemes=("centred", "uncentred")):
    for scheme in schemes:
        for trial in range(2):
            for power in powers:
                parameters = {
                    "scheme": scheme,
                    "d": d,
                    "width": width,
                    "power": power,
                    "engine": "flow",
                }
                yield point("final_angles", 3, f"{scheme} {trial}", parameters)


@pytest.fixture(scope="module")
def angles():
    return computed(small())


def test_every_figure_is_there():
    assert [recipe.id for recipe in named("correlated").figures.values()] == [
        f"correlated/{n}" for n in NAMES
    ]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", ["quick", "full"])
def test_points_are_plain_different_and_repeatable(name, size):
    recipe = recipe_named(f"correlated/{name}")
    points = list(recipe.points(size, 0))
    ids = [each.id for each in points]
    assert len(set(ids)) == len(ids) > 5
    assert ids == [each.id for each in recipe.points(size, 0)]
    assert set(ids).isdisjoint(each.id for each in recipe.points(size, 1))
    json.dumps([each.to_dict() for each in points[:5]])
    assert resolve(points[0].task).__module__ == measures.__name__


def test_sizes_are_those_of_the_paper():
    full = list(fig1.points("full", 0))
    assert {p.parameters["d"] for p in full} == {4, 16, 64, 256, 1024}
    assert {p.parameters["power"] for p in full} == set(range(-13, 3))
    assert len(full) == 5 * 5 * 16 * 2
    quick = list(fig1.points("quick", 0))
    assert max(p.parameters["d"] for p in quick) == 64
    assert len(quick) == 3 * 3 * 16 * 2
    sizes = [p.parameters["d"] for p in full]
    assert sizes == sorted(sizes)  # the overnight part comes last


def test_a_trial_has_the_same_data_and_neurons_at_every_scale():
    first, second = list(small(powers=(0, -5)))[:2]
    (data, net), (same, other) = (measures.trial(p.parameters, p.seed) for p in (first, second))
    assert np.array_equal(data.X, same.X)
    assert np.array_equal(net.mantissa.W, other.mantissa.W)
    assert net.log_scale[0] == 0.0
    assert other.log_scale[0] == pytest.approx(-5 * math.log(4))


def test_descent_uses_the_conventions_of_the_authors():
    points = list(fig1.points("quick", 0, descent=True))
    assert {p.parameters["engine"] for p in points} == {"descent"}
    data, net = measures.trial({**points[0].parameters, "d": 4, "width": 10, "power": -1}, 1)
    run = measures.train(data, net, points[0].parameters)
    assert run.engine == "descent"
    assert run.loss_function == rf.losses.Square("1/n")
    assert run.log_loss[-1] <= math.log(1e-9) < run.log_loss[-2]
    assert run.options["lr"] == 0.01


def test_flow_and_descent_end_at_the_same_angle():
    parameters = {"scheme": "uncentred", "d": 4, "width": 10, "power": -4}
    flow = measures.final_angles(parameters, 5)
    descent = measures.final_angles({**parameters, "engine": "descent"}, 5)
    assert descent["log_angle"] == pytest.approx(flow["log_angle"], abs=0.02)
    assert descent["t"] == pytest.approx(flow["t"], rel=0.02)
    assert descent["nuclear_norm"] == pytest.approx(flow["nuclear_norm"], rel=1e-3)


def test_figure_1_has_the_shape_of_theorem_7(angles):
    made = fig1.draw(angles)
    assert [e.verdict.value for e in made.expectations] == ["PASS"] * 4
    assert "slope" in made.expectations[0].text
    (figure,) = made.figures
    assert [panel.title for panel in figure.panels] == ["centred", "uncentred"]
    for panel in figure.panels:
        medians = next(x for x in panel.layers if isinstance(x, Line) and x.low is not None)
        assert medians.label == "d = 4"
        assert (medians.low <= medians.y).all()
        assert (medians.y <= medians.high).all()
    tail = [x for x in figure.panels[1].layers if getattr(x, "label", "").startswith("closed")]
    assert len(tail) == 1
    assert np.allclose(np.diff(np.log(tail[0].y)), np.diff(np.log(tail[0].x)))
    assert not [x for panel in figure.panels for x in panel.layers if isinstance(x, Points)]
    assert len(made.tables["fig1"]["log_angle"]) == len(angles)


def test_a_tail_of_another_power_misses_the_expected_shape(angles):
    def bent(result):
        power = result.point.parameters["power"]
        values = {**result.values, "log_angle": result.values["log_angle"] + 0.05 * power}
        return Result(result.point, values)

    verdicts = [e.verdict.value for e in fig1.draw([bent(r) for r in angles]).expectations]
    assert verdicts[:2] == ["FAIL", "FAIL"]


def test_v11_a_draw_whose_neurons_stay_apart_counts_in_figure_1(angles):
    """A draw with positive products that stays at 120 degrees has no tail, and is not left out."""
    proper = next(r.point.seed for r in angles if not math.isnan(r.values["log_slope"]))

    def flat(result):
        if result.point.seed != proper:
            return result
        return Result(result.point, {**result.values, "log_angle": math.log(math.radians(120.0))})

    spoiled = [flat(r) for r in angles]
    made = fig1.draw(spoiled)
    assert made.expectations[1].verdict == "FAIL"
    assert made.expectations[3].measured == fig1.draw(angles).expectations[3].measured - 0.25
    assert "1 keep an angle above one degree" in made.note
    assert fig1.draw_nuclear(angles).expectations[0].verdict == "PASS"
    apart = [Result(r.point, {**r.values, "nuclear_norm": 1.4}) for r in spoiled]
    assert fig1.draw_nuclear(apart).expectations[0].verdict == "FAIL"


def test_mean_angle_and_nuclear_norm(angles):
    mean, nuclear = fig1.draw_mean(angles), fig1.draw_nuclear(angles)
    assert mean.expectations[0].verdict == "PASS"
    assert nuclear.expectations[0].verdict == "PASS"
    assert all(r.values["mean_angle"] <= math.exp(r.values["log_angle"]) + 1e-12 for r in angles)


def test_widths():
    points = [
        Point(p.task, {**p.parameters, "width": width}, p.seed)
        for width in (12, 30)
        for p in small(powers=(0, -8, -10, -12), schemes=("centred",))
    ]
    made = fig1.draw_widths(computed(points))
    assert [x.label for x in made.figures[0].panels[0].layers] == ["12 neurons", "30 neurons"]
    assert made.expectations[0].verdict == "PASS"


def test_v11_figure_2_has_plateaus_that_lengthen_and_judges_what_it_draws():
    recipe = recipe_named("correlated/fig2")
    points = [p for p in recipe.points("quick", 1) if p.parameters["scheme"] == "uncentred"]
    points = [Point(p.task, {**p.parameters, "d": 6, "width": 15}, p.seed) for p in points]
    made = recipe.draw(computed(points))
    assert made.expectations[0].verdict == "PASS"
    # V11: the test loss is judged where its curves end
    ends = [line.y[-1] for line in made.figures[0].panels[1].layers]
    assert made.expectations[2].measured == ends[-1] / ends[0]
    lines = made.figures[0].panels[0].layers
    halves = [line.x[np.argmax(line.y < line.y[0] / 2)] for line in lines]
    assert halves == sorted(halves)
    assert len({len(column) for column in made.tables["fig2"].values()}) == 1


def test_coordinates_cross_in_order():
    points = list(recipe_named("correlated/fig-coordinates").points("quick", 0))[:3]
    results = computed(points)
    made = coordinates.draw(results)
    assert [e.verdict.value for e in made.expectations] == ["PASS"] * 3
    assert all(coordinates.in_order(r) for r in results if r.values["is_positive"])
    shuffled = [
        Result(r.point, r.values, {**r.arrays, "left": r.arrays["left"][:, ::-1]}) for r in results
    ]
    assert coordinates.draw(shuffled).expectations[0].verdict == "FAIL"


def test_two_teachers_make_two_bundles():
    recipe = recipe_named("correlated/fig-two-teachers")
    points = [p for p in recipe.points("quick", 0) if p.parameters["rho"] in (0.1, 16.0)]
    made = recipe.draw(computed(points))
    assert [e.verdict.value for e in made.expectations] == ["PASS"] * 4
    assert [panel.title for panel in made.figures[0].panels][2] == "two escapes"


def test_rank_and_norm_never_part_in_the_plane_within_a_quarter_of_pi():
    recipe = recipe_named("correlated/fig-rank-norm")
    points = [p for p in recipe.points("quick", 0) if p.parameters["d"] in (2, 3)][::4]
    points = [Point(p.task, {**p.parameters, "count": 30}, p.seed) for p in points]
    made = recipe.draw(computed(points))
    assert [e.verdict.value for e in made.expectations[:2]] == ["PASS"] * 2
    heat = made.figures[0].panels[1].layers[0]
    assert isinstance(heat, Heat)
    assert np.nanmax(heat.z[0, heat.x <= 45.1]) == 0
    assert np.nanmax(heat.z[0]) > 0  # beyond pi/4 inner products may be negative
    assert np.nanmax(heat.z[1]) > 0


def test_the_counts_of_rank_and_norm_are_those_of_the_public_function():
    parameters = {"d": 3, "half_angle": 0.7, "count": 25, "compared": 25}
    found = measures.rank_shares(parameters, 4)
    rng = np.random.default_rng([4, 0])
    data = [rf.datasets.cone(3, 3, half_angle=0.7, seed=rng) for _ in range(25)]
    parted = [
        rf.interpolators.rank_versus_norm(each).min_rank_is_min_norm is False for each in data
    ]
    assert found["above"] == sum(parted) > 0
    assert found["agreed"] == found["compared"] == 25


def test_wider_cones_are_an_experiment_that_contains_the_theorem():
    recipe = recipe_named("correlated/fig-wider-cone")
    points = [
        p
        for p in recipe.points("quick", 0)
        if p.parameters["d"] == 3 and round(math.degrees(p.parameters["half_angle"])) in (30, 74)
    ]
    made = recipe.draw(computed(points))
    assert made.expectations[0].verdict == "PASS"
    assert made.expectations[0].measured == 1.0
    assert "Beyond pi/4" in made.note
    assert len(made.figures[0].panels) == 3


@pytest.mark.parametrize("name", ["fig1", "fig2"])
def test_only_figures_of_two_engines_offer_descent(name):
    assert recipe_named(f"correlated/{name}").options == ("descent",)
    assert recipe_named("correlated/fig-widths").options == ()
