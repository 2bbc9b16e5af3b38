"""Losses against 50-digit arithmetic, at margins from -800 to 1e7."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluflow import losses
from reluflow.errors import InputError

MARGINS = [-800.0, -745.5, -40.0, -30.0, -1.0, -1e-9, 0.0, 1e-300, 1e-9, 0.5, 1.0, 29.999999, 30.0]
MARGINS += [30.000001, 36.0, 37.5, 100.0, 709.0, 746.0, 800.0, 12345.678, 1e6, 1e7]
EPS = np.finfo(float).eps


def exact(loss, q):
    """(log loss, log of minus its slope) of one point, in 50 digits."""
    with mpmath.workdps(50):
        q = mpmath.mpf(q)
        if loss.name == "exponential":
            return -q, -q
        small = mpmath.exp(-q)
        # log log(1 + x) by its series once x is far below 10^-50, where 1 + x rounds to 1
        value = -q - small / 2 if q > 110 else mpmath.log(mpmath.log1p(small))
        return value, -mpmath.log1p(mpmath.exp(q)) if q < 110 else -q - small


def close(value, reference, ulps=4):
    """Equal up to some ulps of the larger of the reference and one."""
    return abs(mpmath.mpf(float(value)) - reference) <= ulps * EPS * max(1, abs(reference))


@pytest.mark.parametrize("loss", [losses.Exponential(), losses.Logistic()], ids=lambda x: x.name)
@pytest.mark.parametrize("q", MARGINS)
def test_margin_losses_in_logs(loss, q):
    value, slope = exact(loss, q)
    one = np.array([1.0])
    for y in (1.0, -1.0):
        assert close(loss.log_value(np.array([y * q]), y * one), value)
    assert close(loss.log_pointwise(np.array([q]))[0], value)
    assert close(loss.log_slope(np.array([q]))[0], slope)
    assert close(loss.log_total_force(np.array([q])), slope)


@pytest.mark.parametrize("loss", [losses.Exponential(), losses.Logistic()], ids=lambda x: x.name)
@pytest.mark.parametrize("q", [q for q in MARGINS if abs(q) < 700])
def test_margin_losses_as_plain_numbers(loss, q):
    value, slope = exact(loss, q)
    h, y = np.array([-q]), np.array([-1.0])
    # the logarithm is rounded before exp, so the relative error grows with its size
    rtol = 4 * EPS * max(1.0, abs(q))
    assert loss.value(h, y) == pytest.approx(float(mpmath.exp(value)), rel=rtol, abs=0)
    assert loss.forces(h, y)[0] == pytest.approx(-float(mpmath.exp(slope)), rel=rtol, abs=0)


def test_values_beyond_the_range_saturate_without_a_warning():
    y = np.array([1.0])
    for loss in (losses.Exponential(), losses.Logistic()):
        assert loss.value(np.array([1e7]), y) == 0.0
        assert loss.forces(np.array([1e7]), y)[0] == 0.0
    assert losses.Exponential().value(np.array([-800.0]), y) == np.inf
    assert losses.Exponential().forces(np.array([-800.0]), y)[0] == np.inf
    assert losses.Logistic().value(np.array([-800.0]), y) == pytest.approx(800.0)
    assert losses.Logistic().forces(np.array([-800.0]), y)[0] == 1.0


@pytest.mark.parametrize("loss", [losses.Exponential(), losses.Logistic()], ids=lambda x: x.name)
def test_the_mean_over_many_margins(loss):
    q = np.array([-700.0, 0.25, 1e7, 3.0])
    with mpmath.workdps(50):
        values = [mpmath.exp(exact(loss, x)[0]) for x in q]
        slopes = [mpmath.exp(exact(loss, x)[1]) for x in q]
        assert close(loss.log_value(q, np.ones(4)), mpmath.log(mpmath.fsum(values) / 4))
        assert close(loss.log_total_force(q), mpmath.log(mpmath.fsum(slopes) / 4))
        shares = [float(s / mpmath.fsum(slopes)) for s in slopes]
    assert loss.shares(q) == pytest.approx(shares, rel=1e-12, abs=0)
    assert loss.shares(q).sum() == pytest.approx(1.0, abs=4 * EPS)


@pytest.mark.parametrize("loss", [losses.Exponential(), losses.Logistic()], ids=lambda x: x.name)
@pytest.mark.parametrize("q", [x for x in MARGINS if x >= -800])
def test_inverse_returns_the_margin(loss, q):
    value = float(exact(loss, q)[0])
    with mpmath.workdps(50):
        total = mpmath.exp(mpmath.mpf(value))
        if loss.name == "exponential":
            reference = -mpmath.mpf(value)
        elif value < -110:
            reference = -mpmath.mpf(value) - total / 2
        else:
            reference = -mpmath.log(mpmath.expm1(total))
    assert close(loss.inverse(value), reference, ulps=8)


@pytest.mark.parametrize("log_total", [-29.9, -25.0, -20.0, -10.0, -1.0, 0.0, 3.0])
def test_inverse_of_a_tiny_logistic_loss_keeps_its_digits(log_total):
    """``log1p(-exp(-S))`` lost up to 1e-3 in the margin just above the switch to the series."""
    with mpmath.workdps(50):
        reference = -mpmath.log(mpmath.expm1(mpmath.exp(mpmath.mpf(log_total))))
    assert close(losses.Logistic().inverse(log_total), reference, ulps=8)


@given(
    st.lists(st.floats(-50, 50), min_size=1, max_size=6),
    st.sampled_from([losses.Square(f) for f in losses.FACTORS]),
)
def test_square_against_exact_sums(h, loss):
    h = np.array(h)
    y = np.linspace(-2.0, 3.0, len(h))
    kappa = {"1/2n": 1.0 / len(h), "1/2": 1.0, "1/n": 2.0 / len(h)}[loss.factor]
    with mpmath.workdps(50):
        reference = mpmath.mpf(kappa) / 2 * mpmath.fsum(mpmath.mpf(v) ** 2 for v in y - h)
    assert loss.value(h, y) == pytest.approx(float(reference), rel=1e-14, abs=0)
    assert loss.forces(h, y) == pytest.approx(kappa * (y - h), rel=1e-15, abs=0)


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1.0, 1e160, 1e300])
def test_log_of_the_square_loss_where_squares_leave_the_range(size):
    r = np.array([3.0, -4.0]) * size
    loss = losses.Square("1/2")
    reference = np.log(12.5) + 2 * np.log(size)
    assert loss.log_value(np.zeros(2), r) == pytest.approx(reference, rel=1e-14)
    assert loss.value(np.zeros(2), r) == (
        0.0 if size < 1e-155 else np.inf if size > 1e155 else 12.5
    )


def test_log_of_a_perfect_fit_and_of_a_blown_up_one():
    loss = losses.Square()
    assert loss.log_value(np.ones(2), np.ones(2)) == -np.inf
    assert loss.log_value_of_residual(np.array([1.0, np.inf])) == np.inf
    assert np.isnan(loss.log_value_of_residual(np.array([np.nan])))


@pytest.mark.parametrize(
    "loss", [losses.Square("1/n"), losses.Exponential(), losses.Logistic()], ids=lambda x: x.name
)
@given(st.lists(st.floats(-20, 20), min_size=1, max_size=5), st.integers(0, 4))
def test_forces_are_minus_the_derivative(loss, h, index):
    """Complex steps would need complex losses; a 50-digit central difference is as good."""
    h = np.array(h)
    i = index % len(h)
    y = np.where(np.arange(len(h)) % 2 == 0, 1.0, -1.0)

    def value(x):
        outputs = [x if k == i else mpmath.mpf(v) for k, v in enumerate(h)]
        if loss.name == "square":
            return mpmath.fsum((o - t) ** 2 for o, t in zip(outputs, y, strict=True)) / len(h)
        point = mpmath.exp if loss.name == "exponential" else lambda z: mpmath.log1p(mpmath.exp(z))
        return mpmath.fsum(point(-o * t) for o, t in zip(outputs, y, strict=True)) / len(h)

    with mpmath.workdps(50):
        step = mpmath.mpf(10) ** -15
        x = mpmath.mpf(h[i])
        derivative = (value(x + step) - value(x - step)) / (2 * step)
    assert loss.forces(h, y)[i] == pytest.approx(-float(derivative), rel=1e-12, abs=1e-25)


def test_loss_at_zero_output():
    for loss in (losses.Exponential(), losses.Logistic()):
        assert loss.log_at_zero == pytest.approx(loss.log_value(np.zeros(3), np.ones(3)), abs=EPS)


@pytest.mark.parametrize("loss", [losses.Square("1/n"), losses.Exponential(), losses.Logistic()])
def test_plain_data_round_trip(loss):
    assert losses.from_dict(loss.to_dict()) == loss


def test_unknown_names_and_factors_are_refused():
    with pytest.raises(InputError, match=r"`factor` is '1/3'; it must be one of '1/2n'"):
        losses.Square("1/3")
    with pytest.raises(InputError, match=r"`loss.name` is 'hinge'"):
        losses.from_dict({"name": "hinge"})


@pytest.mark.parametrize("loss", [losses.Exponential(), losses.Logistic()], ids=lambda x: x.name)
@pytest.mark.parametrize("label", [0.0, 2.0, 1.0 + 1e-9])
def test_labels_of_classification_are_plus_or_minus_one(loss, label):
    y = np.array([1.0, label])
    with pytest.raises(InputError, match=rf"the {loss.name} loss needs labels -1 or 1; y\[1\]"):
        loss.check_labels(y)
    with pytest.raises(InputError, match="needs labels -1 or 1"):
        loss.check_data(np.eye(2), y)


@pytest.mark.parametrize("loss", [losses.Exponential(), losses.Logistic()], ids=lambda x: x.name)
def test_equal_points_may_have_opposite_labels(loss):
    X = np.array([[1.0, 0.0], [2.0, 3.0], [5.0, 1.0], [1.0, -0.0]])
    loss.check_data(X, np.array([1.0, 1.0, -1.0, -1.0]))
    losses.Square().check_data(X, np.array([1.0, 1.0, -1.0, -1.0]))
    with pytest.raises(InputError, match="labels"):
        loss.check_data(X, np.array([1.0, 1.0, -1.0, 0.5]))


@pytest.mark.parametrize(
    ("given", "loss"),
    [
        ("square", losses.Square("1/2n")),
        ("exponential", losses.Exponential()),
        ("logistic", losses.Logistic()),
        (losses.Square("1/n"), losses.Square("1/n")),
    ],
)
def test_losses_have_names(given, loss):
    assert losses.named(given) == loss


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("logisitc", "`loss` is 'logisitc'; .* Did you mean 'logistic'"),
        ("MSE", r"nearest is rf.losses.Square\("),
        ("cross_entropy", r"nearest is rf.losses.Logistic\("),
        (None, "`loss` is None; it must be 'square'"),
        (losses.Square, "it must be 'square', 'exponential', 'logistic' or an object"),
    ],
)
def test_other_losses_are_refused_with_the_nearest(given, message):
    with pytest.raises(InputError, match=message):
        losses.named(given)


def test_labels_0_and_1_are_offered_as_signs():
    with pytest.raises(InputError, match=r"needs labels -1 or 1; y\[1\] is 0.*pass 2 \* y - 1"):
        losses.Logistic().check_labels(np.array([1.0, 0.0]))
    with pytest.raises(InputError, match="map the labels"):
        losses.Logistic().check_labels(np.array([1.0, 0.0, 2.0]))
