"""Runs of the flow with weight decay as values: objective, files, times, angles, the optimum."""

from dataclasses import replace

import numpy as np
import pytest

import reluflow as rf
from reluflow import run_relations, verify
from reluflow.errors import InputError
from reluflow.interpolators import excess

DATA = rf.Dataset([[1.0, 0.2], [-0.5, 1.0], [0.3, -1.1]], [1.0, -0.7, 0.6])
DECAY = 0.05


@pytest.fixture(scope="module")
def net():
    rng = np.random.default_rng(3)
    return rf.Network(0.5 * rng.choice([-1.0, 1.0], 8), rng.normal(size=(8, 2)))  # out of balance


@pytest.fixture(scope="module")
def run(net):
    return rf.flow(DATA, net, decay=DECAY)


def test_the_objective_falls_where_the_loss_may_rise(run):
    norms = [run.network(k).squared_norm for k in range(len(run.t))]
    np.testing.assert_allclose(run.objective, run.loss + 0.5 * DECAY * np.array(norms), rtol=1e-12)
    assert (np.diff(run.objective) <= 1e-12 * run.objective[0]).all()
    assert (np.diff(run.loss) > 0.0).any()
    assert run.decay == DECAY


def test_without_decay_the_objective_is_the_loss(net):
    plain = rf.flow(DATA, net, t_end=1.0)
    assert plain.decay == 0.0
    np.testing.assert_array_equal(plain.objective, plain.loss)


def test_the_objective_of_descent_counts_what_is_trained(net):
    run = rf.descend(DATA, net, lr=0.01, steps=20, decay=0.5, train="hidden")
    hidden = np.square(run.states["W"]).sum(axis=(1, 2))
    np.testing.assert_allclose(run.objective, run.loss + 0.25 * hidden, rtol=1e-12)


def test_a_file_keeps_the_decay(run, tmp_path):
    path = tmp_path / "run.rf"
    run.save(path)
    again = rf.load(path)
    assert again.decay == DECAY
    assert verify.verify(path).is_sound
    np.testing.assert_array_equal(again.objective, run.objective)
    np.testing.assert_array_equal(again.at(3.0).W, run.at(3.0).W)


def test_files_whose_decay_is_not_that_of_the_weights_are_refused(run):
    states, start = run.kept, run.net.to_arrays()
    for options in ({**run.options, "decay": 0.5 * DECAY}, {"train": "both"}):
        with pytest.raises(InputError, match="does not come from the start"):
            run_relations.check_start(start, states, run.t, options=options)
    run_relations.check_start(start, states, run.t, options=run.options)


def test_a_dead_neuron_decays_alone_in_a_file():
    data = rf.Dataset([[1.0, 0.0]], [1.0])
    net = rf.Network([1.0, 1.0], [[1.0, 0.5], [-1.0, 0.5]])
    run = rf.flow(data, net, decay=0.1, t_end=5.0)
    expected = np.exp(-0.5) * net.W[1]
    np.testing.assert_allclose(run.final.W[1], expected, rtol=1e-12)
    run_relations.check(
        data, run.loss_function, run.kept, run.log_loss, t=run.t, options=run.options
    )
    with pytest.raises(InputError, match=r"changes after record .* for the dead neuron 1"):
        run_relations.check(
            data, run.loss_function, run.kept, run.log_loss, t=run.t, options={"train": "both"}
        )


@pytest.mark.parametrize("options", [{"train": "hidden"}, {"rates": [1.0, 2.0]}, {"decay": -1.0}])
def test_options_that_no_run_with_decay_has_are_refused(run, tmp_path, options):
    replace(run, options={**run.options, **options}).save(tmp_path / "run.rf")
    with pytest.raises(rf.errors.FileError, match="decay"):
        rf.load(tmp_path / "run.rf")


def test_a_run_goes_on_with_its_decay(run, net):
    first = rf.flow(DATA, net, decay=DECAY, t_end=2.0)
    later = rf.flow(first, t_end=6.0)
    assert later.decay == DECAY
    whole = run.at(6.0)
    np.testing.assert_allclose(later.final.W, whole.W, atol=1e-7)
    np.testing.assert_allclose(run.sample(np.log([6.0])).network(0).W, whole.W, atol=1e-7)
    asked = rf.flow(DATA, net, decay=DECAY, t_end=8.0, record=[1.0, 6.0])
    np.testing.assert_allclose(asked.network(1).W, whole.W, atol=1e-7)


# ---------------------------------------------------------------------- the optimum


def test_two_neurons_end_above_one_that_would_do():
    """Two orthogonal points: y shrinks by n mu, in the two outputs or in their length."""
    data = rf.Dataset(np.eye(2), [1.0, 0.5])
    net = rf.Network([0.3, 0.2], [[0.3, -0.1], [-0.1, 0.2]])
    found = excess(rf.flow(data, net, decay=0.01))
    assert found.objective == pytest.approx(0.0002 + 0.005 * 2.92, rel=1e-6)
    best = 0.0001 + 0.01 * (np.sqrt(1.25) - 0.02)
    assert found.optimum.objective == pytest.approx(best, rel=1e-7)
    assert found.at_least == pytest.approx(found.objective / best - 1.0, rel=1e-5)
    assert found.at_least <= found.at_most <= found.at_least + 1e-6


def test_a_vanishing_decay_leads_to_the_least_norm():
    """One neuron on one ray: every end is the optimum, and 2/mu of it tends to the least norm."""
    data = rf.Dataset([[1.0, 0.5], [2.0, 1.0]], [1.0, 2.0])
    net = rf.Network([1.0], [[0.5, -0.3]], log_scale=-1.0)
    least = rf.interpolators.min_norm(data).value
    gaps = []
    for decay in (1e-1, 1e-2, 1e-3):
        found = excess(rf.flow(data, net, decay=decay))
        assert found.at_most <= 1e-7
        gaps.append(1.0 - 2.0 * found.objective / decay / least)
    assert gaps[0] > gaps[1] > gaps[2] > 0.0
    assert gaps[2] < 1e-3


def test_a_fit_without_decay_is_compared_by_its_norm(net):
    plain = rf.flow(DATA, net)
    assert plain.status == "converged"
    found = excess(plain)
    assert found.objective == plain.final.squared_norm
    assert found.at_most > 0.01
    with pytest.raises(InputError, match="not in a fit"):
        excess(rf.flow(DATA, net, t_end=0.1))
    with pytest.raises(InputError, match="trains 'hidden'"):
        excess(rf.descend(DATA, net, lr=0.01, steps=5, decay=0.1, train="hidden"))


def test_theory_and_limits_say_that_the_run_is_another(run):
    assert "weight decay 0.05" in rf.limits.predict_end(run).reason
    with pytest.raises(InputError, match="trained with weight decay"):
        rf.theory.check("correlated", run)


# ---------------------------------------------------------------------- angles


def test_angles_below_rounding_shrink_with_the_decay_too():
    """Three neurons of one row, out of balance: 1 - cos from 40 digits of the closed form.

    On one point the weights times exp(mu t) are moved by one boost of (a, w . x), so that a product
    of two neurons, and their balances, are those of the start times exp(-2 mu t).
    """
    data = rf.Dataset([[1.0, 0.0]], [1.0])
    eps = np.array([1.0, 2.0, -1.5]) * 1e-3
    W = np.column_stack([np.ones(3), eps])
    net = rf.Network(np.full(3, 1.0), W, log_scale=-20.0)
    run = rf.flow(data, net, decay=0.2)
    t = 30.0
    there = run.at(t)
    # w . x grows by the same factor for all, the other component decays alone: angles are ratios
    along = there.mantissa.W[:, 0] * np.exp(there.log_scale + 20.0)
    across = eps * np.exp(-0.2 * t)
    expected = np.log(abs(across[1] / along[1] - across[2] / along[2]))
    assert expected < np.log(1e-6)
    assert run.log_max_angle(t) == pytest.approx(expected, abs=1e-6)
