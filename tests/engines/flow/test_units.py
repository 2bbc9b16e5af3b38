"""Natural units: the same problem in other units is the same run, to the bit where it can be."""

import numpy as np
import pytest

import reluflow as rf
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.state import start
from reluflow.engines.flow.units import WIDEST, Units, natural_units
from reluflow.errors import InputError

LOSSES = [rf.losses.Square(), rf.losses.Exponential(), rf.losses.Logistic()]


def problem(seed=0, balanced=True, classes=False):
    """A small data set with shared planes, and a network; its parts as arrays."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(5, 2))
    X[4] = -2.0 * X[0]
    y = rng.normal(size=5)
    if classes:
        y = np.sign(y)
    W = 0.3 * rng.normal(size=(4, 2))
    a = rng.choice([-1.0, 1.0], 4) * np.linalg.norm(W, axis=1)
    if not balanced:
        a = a * rng.uniform(0.3, 3.0, 4)
    return X, y, a, W


def scaled(parts, length=0, label=0, train="both"):
    """The same problem with points times 2^length and labels times 2^label; ``(data, net, time)``.

    Both layers share the change of the weights; fixed output weights stay as they are.
    """
    X, y, a, W = parts
    data = rf.Dataset(np.ldexp(X, length), np.ldexp(y, label))
    change = label - length
    if train == "hidden":
        return data, rf.Network(a, np.ldexp(W, change)), change - label - length
    assert change % 2 == 0
    half = change // 2
    return data, rf.Network(np.ldexp(a, half), np.ldexp(W, half)), -label - length


def entrance(data, net, loss, train):
    found = Problem(data, net, loss, train)
    return found, natural_units(data, net, loss, train == "hidden")


EXPONENTS = [-300, -40, -2, 2, 38, 300]


@pytest.mark.parametrize("k", EXPONENTS)
@pytest.mark.parametrize("train", ["both", "hidden"])
@pytest.mark.parametrize("which", ["length", "label"])
def test_the_problem_inside_is_the_same_to_the_bit(k, train, which):
    parts = problem(balanced=False)
    plain, units = entrance(*scaled(parts, train=train)[:2], rf.losses.Square(), train)
    data, net, time = scaled(parts, train=train, **{which: k})
    other, moved = entrance(data, net, rf.losses.Square(), train)
    for name in ("U", "gram", "both", "owner", "length", "y"):
        np.testing.assert_array_equal(getattr(other.planes, name), getattr(plain.planes, name))
    assert other.law == plain.law
    assert moved.time - units.time == time
    if train == "both":
        np.testing.assert_array_equal(other.sign, plain.sign)
        np.testing.assert_array_equal(other.log_balance, plain.log_balance)


@pytest.mark.parametrize("k", EXPONENTS)
@pytest.mark.parametrize("loss", LOSSES[1:], ids=lambda loss: loss.name)
def test_points_in_other_units_are_the_same_problem_for_a_classifier(k, loss):
    parts = problem(classes=True)
    plain, units = entrance(*scaled(parts)[:2], loss, "both")
    data, net, time = scaled(parts, length=k)
    other, moved = entrance(data, net, loss, "both")
    np.testing.assert_array_equal(other.planes.length, plain.planes.length)
    assert moved.time - units.time == time
    assert moved.label == 0


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("train", ["both", "hidden"])
def test_units_are_consistent_and_near_the_sizes(loss, train):
    for length in range(-5, 6):
        X, y, a, W = problem(classes=loss != rf.losses.Square())
        data, net = rf.Dataset(np.ldexp(X, length), y), rf.Network(a, W)
        units = natural_units(data, net, loss, train == "hidden")
        # outputs a w.x are in units of labels, and both layers of a trained neuron scale alike
        assert units.output + units.hidden + units.length == units.label
        if train == "both":
            assert units.output == units.hidden
        longest = np.linalg.norm(np.ldexp(data.X, -units.length), axis=1).max()
        assert 0.35 <= longest <= 1.5
        if loss == rf.losses.Square():
            assert 0.35 <= np.abs(np.ldexp(y, -units.label)).max() <= 1.5


def test_without_labels_the_outputs_at_the_start_are_the_unit():
    net = rf.Network([1.0], [[2.0**40, 0.0]])
    units = natural_units(rf.Dataset(np.eye(2), [0.0, 0.0]), net, rf.losses.Square(), False)
    assert units.label == 40
    silent = rf.Network([1.0], [[-1.0, -1.0]])
    assert natural_units(rf.Dataset(np.eye(2), [0.0, 0.0]), silent, rf.losses.Square(), False) == (
        Units(0, 0, 0, 0)
    )


def test_times_are_scaled_by_a_power_of_two():
    units = Units(length=3, label=-2, output=-1, hidden=-1)
    assert units.time == -1
    assert units.to_time(3.0) == 1.5
    assert units.from_time(1.5) == 3.0
    assert units.log_time == pytest.approx(-np.log(2.0))
    assert units.from_time(np.inf) == np.inf


# ---------------------------------------------------------------------- whole runs


def run_of(data, net, exponent, train="both", loss=None, t_end=6.0):
    loss = loss or rf.losses.Square()
    return rf.flow(data, net, loss=loss, train=train, t_end=np.ldexp(t_end, exponent), rtol=1e-8)


@pytest.mark.parametrize("k", EXPONENTS)
@pytest.mark.parametrize("train", ["both", "hidden"])
@pytest.mark.parametrize("which", ["length", "label"])
def test_runs_in_other_units_are_equal_to_the_bit(k, train, which):
    parts = problem(seed=3, balanced=False)
    plain = run_of(*scaled(parts, train=train), train)
    data, net, time = scaled(parts, train=train, **{which: k})
    other = run_of(data, net, time, train)
    assert len(plain.events) >= 1
    change = (k if which == "label" else -k) // (2 if train == "both" else 1)
    np.testing.assert_array_equal(other.t, np.ldexp(plain.t, time))
    np.testing.assert_array_equal(other.final.mantissa.W, np.ldexp(plain.final.mantissa.W, change))
    output = change if train == "both" else 0
    np.testing.assert_array_equal(other.final.mantissa.a, np.ldexp(plain.final.mantissa.a, output))
    np.testing.assert_array_equal(other.final.log_scale, plain.final.log_scale)
    np.testing.assert_array_equal(other.kept["mode"], plain.kept["mode"])
    for name in ("neuron", "point", "kind"):
        np.testing.assert_array_equal(other.events[name], plain.events[name])
    np.testing.assert_array_equal(other.events["t"], np.ldexp(plain.events["t"], time))
    shift = 2.0 * k * np.log(2.0) if which == "label" else 0.0
    np.testing.assert_allclose(other.log_loss, plain.log_loss + shift, atol=1e-9)


@pytest.mark.parametrize("k", [-39, -1, 1, 39])
def test_odd_powers_agree_to_the_tolerance(k):
    X, y, a, W = problem(seed=3)
    plain = run_of(rf.Dataset(X, y), rf.Network(a, W), 0)
    root = 2.0 ** (-0.5 * k)
    other = run_of(rf.Dataset(np.ldexp(X, k), y), rf.Network(root * a, root * W), -k)
    np.testing.assert_allclose(
        other.final.flat().W / root, plain.final.flat().W, rtol=1e-6, atol=1e-7
    )
    np.testing.assert_array_equal(other.events["kind"], plain.events["kind"])
    np.testing.assert_allclose(np.ldexp(other.events["t"], k), plain.events["t"], rtol=1e-6)


@pytest.mark.parametrize("loss", LOSSES[1:], ids=lambda loss: loss.name)
@pytest.mark.parametrize("k", [-300, 300])
def test_classifiers_in_other_units_are_equal_to_the_bit(loss, k):
    parts = problem(seed=5, classes=True)
    plain = run_of(*scaled(parts), loss=loss)
    other = run_of(*scaled(parts, length=k), loss=loss)
    np.testing.assert_array_equal(other.final.mantissa.W, np.ldexp(plain.final.mantissa.W, -k // 2))
    np.testing.assert_allclose(other.log_loss, plain.log_loss, rtol=1e-12)


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize("exponent", [-WIDEST - 3, WIDEST + 3])
@pytest.mark.parametrize("which", ["X", "y"])
def test_data_beyond_the_range_are_refused_with_a_sentence(exponent, which):
    X, y, a, W = problem()
    size = np.ldexp(1.0, exponent)
    with pytest.raises(InputError, match=f"({which}|label).* size .*([Rr]escale|Scale)"):
        rf.flow(
            rf.Dataset(X * size, y) if which == "X" else rf.Dataset(X, y * size),
            rf.Network(a, W),
            t_end=1.0,
        )


@pytest.mark.parametrize("exponent", [-WIDEST - 1, WIDEST + 1])
def test_networks_beyond_the_range_are_refused_with_a_sentence(exponent):
    size, data = np.ldexp(1.0, exponent), rf.Dataset(np.eye(2), [1.0, 1.0])
    range_ = rf"the flow needs sizes from 2\^-{WIDEST} to 2\^{WIDEST}"
    with pytest.raises(InputError, match=f"the largest output weight has size .*{range_}"):
        rf.flow(data, rf.Network([size], [[1.0, 0.0]]), train="hidden", t_end=1.0)
    silent = rf.Dataset(np.eye(2), [0.0, 0.0])
    with pytest.raises(InputError, match=f"the largest output has size .*{range_}"):
        rf.flow(silent, rf.Network([size], [[1.0, 0.0]]), t_end=1.0)


@pytest.mark.parametrize(("length", "label"), [(-400, 400), (400, -400), (400, 400), (-400, -400)])
@pytest.mark.parametrize("train", ["both", "hidden"])
def test_points_and_labels_at_opposite_ends_of_the_range_are_the_same_problem(length, label, train):
    parts = problem()
    plain, _ = entrance(*scaled(parts, train=train)[:2], rf.losses.Square(), train)
    data, net, _ = scaled(parts, length, label, train)
    other, _ = entrance(data, net, rf.losses.Square(), train)
    np.testing.assert_array_equal(start(other).w, start(plain).w)
    np.testing.assert_array_equal(start(other).a, start(plain).a)


@pytest.mark.parametrize("train", ["both", "hidden"])
def test_the_bound_on_the_distance_to_a_limit_has_the_units_of_the_weights(train):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(3, 4)), rng.normal(size=3)
    a, W = rng.choice([-1.0, 1.0], 8), rng.normal(size=(8, 4))
    outer = 1.0 if train == "hidden" else 16.0
    inner = 256.0 / outer
    plain = rf.flow(rf.Dataset(X, y), rf.Network(a, W), train=train)
    other = rf.flow(rf.Dataset(X, 256.0 * y), rf.Network(outer * a, inner * W), train=train)
    assert plain.limit_error > 0.0
    assert other.limit_error == pytest.approx(inner * plain.limit_error, rel=1e-9)
