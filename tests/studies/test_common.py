"""Sections that every page has: what their descriptions hold."""

from dataclasses import replace

import numpy as np
import pytest

import reluflow as rf
from reluflow.figures import Line, Points, Raster
from reluflow.plot import of_runs
from reluflow.studies import common
from reluflow.theory.contract import Comparison, Expectation, LabelledRun


@pytest.fixture(scope="module")
def slid():
    """A run in which neurons slide."""
    data = rf.datasets.centred(d=4, seed=0)
    net = rf.networks.balanced(4, width=40, log_scale=-2 * np.log(4), seed=0)
    return LabelledRun("scale 4^-2", rf.flow(data, net, t_end=20.0))


@pytest.fixture(scope="module")
def descended():
    data = rf.datasets.centred(d=4, seed=0)
    net = rf.networks.balanced(4, width=10, log_scale=-2.0, seed=0)
    return LabelledRun("descent", rf.descend(data, net, lr=0.1, steps=500))


def test_losses_are_the_recorded_ones(slid, descended):
    (figure,) = common.losses([slid, descended]).figures
    first, second = figure.panels[0].layers
    np.testing.assert_allclose(10**first.y, slid.run.loss, rtol=1e-10)
    assert np.isnan(first.x[0])  # time zero has no logarithm
    np.testing.assert_allclose(10 ** second.x[1:], descended.run.t[1:], rtol=1e-10)
    assert (first.dash, first.colour) != (second.dash, second.colour)


def test_norms_show_each_neuron_and_name_each_sign_once(slid):
    (figure,) = common.norms(slid).figures
    layers = figure.panels[0].layers
    assert len(layers) == 40
    labels = [layer.label for layer in layers if layer.label]
    assert sorted(labels) == ["negative output weight", "positive output weight"]
    assert layers[3].y[-1] == pytest.approx(slid.run.network(-1).log_norms[3] / np.log(10))


def test_directions_stay_in_the_disc_and_move(slid):
    (figure,) = common.directions(slid).figures
    assert 2 < len(figure.frames) <= common.FRAMES
    assert figure.frames[0].label == "start"
    for frame in figure.frames:
        clouds = [layer for layer in frame.layers if isinstance(layer, Points)]
        lines = [layer for layer in frame.layers if isinstance(layer, Line)]
        assert len(lines) == 3  # the circle, and trails of both signs
        for cloud in (*clouds, *lines):
            cloud = replace(cloud, x=np.nan_to_num(cloud.x), y=np.nan_to_num(cloud.y))
            assert (cloud.x**2 + cloud.y**2 <= 1 + 1e-12).all()
    start, end = (
        next(layer for layer in figure.frames[k].layers if isinstance(layer, Points))
        for k in (0, -1)
    )
    assert start.text[0].startswith("neuron ")
    assert end.x.mean() > start.x.mean()  # towards the teacher


def test_the_raster_ends_in_the_final_pattern(slid):
    (figure,) = common.activations(slid).figures
    (raster,) = figure.panels[0].layers
    assert isinstance(raster, Raster)
    pairs = of_runs.busiest_pairs(slid.run)
    sliding = set()
    for event in slid.run.events:
        pair = (int(event["neuron"]), int(event["point"]))
        if event["kind"] == "slide":
            sliding.add(pair)
        elif event["kind"] == "release":
            sliding.discard(pair)
    final = slid.run.network(-1)
    pre = final.directions @ slid.run.data.X.T
    for row, (j, i) in enumerate(pairs):
        expected = 2 if (j, i) in sliding else int(pre[j, i] > 1e-12)  # one dies on its plane
        assert raster.z[row, -1] == expected
    assert (raster.z == 2).any()


def test_branches_are_marked_in_the_raster(slid):
    pairs = of_runs.busiest_pairs(slid.run)
    (first, _), (neuron, point), n = pairs[0], pairs[-1], slid.run.data.n
    hidden = next(j for j in range(slid.run.net.width) if j not in {j for j, _ in pairs})
    rows = [
        (0.0, -np.inf, first, -1, "branch"),
        (2.0, np.log(2.0), neuron, point, "branch"),
        (3.0, np.log(3.0), hidden, -1, "branch"),
    ]
    events = np.concatenate([slid.run.events, np.array(rows, slid.run.events.dtype)])
    section = common.activations(LabelledRun("x", replace(slid.run, events=events)))
    raster, marks = section.figures[0].panels[0].layers
    assert isinstance(marks, Points)
    assert marks.x.tolist() == pytest.approx([raster.x[0], np.log10(2.0)])
    assert marks.y.tolist() == [n / 2, len(pairs) - 0.5]
    assert "3 branch" in section.text
    assert "Diamonds: branches" in section.text
    # nothing else changes: a branch is no change of mode
    (plain,) = common.activations(slid).figures[0].panels[0].layers
    assert np.array_equal(plain.z, raster.z)


def test_the_raster_of_descent_uses_its_records(descended):
    (figure,) = common.activations(descended).figures
    (raster,) = figure.panels[0].layers
    pairs = of_runs.busiest_pairs(descended.run)
    active = descended.run.network(-1).directions @ descended.run.data.X.T > 0
    assert [bool(z) for z in raster.z[:, -1]] == [bool(active[j, i]) for j, i in pairs]


@pytest.mark.parametrize("d", [1, 2, 3])
def test_few_dimensions_and_no_teacher(d):
    rng = np.random.default_rng(d)
    data = rf.Dataset(rng.normal(size=(3, d)), rng.normal(size=3))
    net = rf.networks.balanced(d, width=4, log_scale=-1.0, seed=0)
    run = rf.flow(data, net, t_end=1.0)
    assert len(common.sections([LabelledRun("x", run)])) == 4


def test_expectations_and_comparisons():
    assert Expectation("slope", 1.01, 0.98, 1.02, "Figure 1").verdict == "PASS"
    assert Expectation("slope", 1.1, 0.98, 1.02, "Figure 1").verdict == "FAIL"
    assert Expectation("slope", float("nan"), 0.98, 1.02, "Figure 1").verdict == "UNRESOLVED"
    assert Comparison("x", 2.0, 2.1).discrepancy == pytest.approx(0.05)
    assert Comparison("x", 0.0, 0.1).discrepancy == pytest.approx(0.1)
