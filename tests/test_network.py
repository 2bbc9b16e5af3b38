"""Network: log scales of any size, against 60-digit arithmetic."""

import pickle

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reluflow as rf
from reluflow import files
from reluflow.errors import FileError, InputError

LOG_SCALES = [-1e6, -12345.678, -400.0, -20.0, 0.0, 3.0, 200.0, 1e6]
EPS = np.finfo(float).eps


def sample(seed=0, width=6, d=3, n=5, **options):
    rng = np.random.default_rng(seed)
    net = rf.Network(rng.normal(size=width), rng.normal(size=(width, d)), **options)
    return net, rng.normal(size=(n, d))


def exact_outputs(net, X):
    """h(x_i) as mpmath numbers."""
    with mpmath.workdps(60):
        outputs = []
        for x in np.asarray(X):
            terms = []
            for j in range(net.width):
                z = mpmath.fdot(map(mpmath.mpf, net.mantissa.W[j]), map(mpmath.mpf, x))
                scale = mpmath.mpf(net.log_scale[j]) + mpmath.mpf(net.log_scale_out[j])
                terms.append(mpmath.mpf(net.mantissa.a[j]) * max(z, 0) * mpmath.exp(scale))
            outputs.append(mpmath.fsum(terms))
        return outputs


def exact_squares(net):
    """(a_j^2, |w_j|^2) as mpmath numbers."""
    with mpmath.workdps(60):
        out = [
            (mpmath.mpf(a) * mpmath.exp(p)) ** 2
            for a, p in zip(net.mantissa.a, net.log_scale_out, strict=True)
        ]
        hidden = [
            mpmath.fsum(mpmath.mpf(v) ** 2 for v in w) * mpmath.exp(2 * mpmath.mpf(s))
            for w, s in zip(net.mantissa.W, net.log_scale, strict=True)
        ]
        return out, hidden


def assert_log_close(log_value, exact, size):
    """Equal logarithms, up to rounding of the logs themselves and of the sum behind them."""
    with mpmath.workdps(60):
        reference = mpmath.log(abs(exact))
        assert abs(mpmath.mpf(float(log_value)) - reference) <= 1e-13 + 4 * EPS * size


@pytest.mark.parametrize("log_scale", LOG_SCALES)
def test_log_outputs_and_signs_at_any_scale(log_scale):
    net, X = sample(log_scale=log_scale)
    logs, signs = net.log_predict(X)
    for log_value, sign, exact in zip(logs, signs, exact_outputs(net, X), strict=True):
        assert_log_close(log_value, exact, abs(2 * log_scale))
        assert sign == mpmath.sign(exact)


def test_cancellation_at_a_tiny_common_scale_costs_no_more_than_at_scale_one():
    """Adding the scale before comparing neurons lost ten digits at exp(-1e6)."""
    a = [1.0, -1.0]
    W = [[1.0, 0.0], [1.0 - 2.0**-20, 0.0]]
    log_value, sign = rf.Network(a, W, log_scale=-1e6).log_predict([[1.0, 0.0]])
    assert log_value[0] + 2e6 == pytest.approx(-20 * np.log(2), abs=5e-10)
    assert sign[0] == 1.0


@given(st.integers(0, 10_000), st.sampled_from([0.0, 3.0, 300.0, 1e6]))
def test_per_neuron_scales_of_both_layers(seed, spread):
    rng = np.random.default_rng(seed)
    net, X = sample(
        seed,
        log_scale=rng.uniform(-spread, spread, 6),
        log_scale_out=rng.uniform(-spread, spread, 6),
    )
    logs, signs = net.log_predict(X)
    for log_value, sign, exact in zip(logs, signs, exact_outputs(net, X), strict=True):
        assert sign == mpmath.sign(exact)
        if exact != 0:
            # neurons of near-equal contribution and opposite sign cancel: allow their rounding
            assert_log_close(log_value, exact, 1e3 * (1.0 + 2 * spread))
    out, hidden = exact_squares(net)
    with mpmath.workdps(60):
        total = mpmath.fsum(out + hidden)
        assert_log_close(net.log_squared_norm, total, 2 * spread)
        for j in range(6):
            assert_log_close(net.log_norms[j], mpmath.sqrt(hidden[j]), spread)
            assert_log_close(net.log_outputs[j], mpmath.sqrt(out[j]), spread)


@pytest.mark.parametrize("log_scale", LOG_SCALES)
def test_norms_and_squared_norm(log_scale):
    net, _ = sample(log_scale=log_scale)
    out, hidden = exact_squares(net)
    with mpmath.workdps(60):
        assert_log_close(net.log_squared_norm, mpmath.fsum(out + hidden), 2 * abs(log_scale))
        for j in range(net.width):
            assert_log_close(net.log_norms[j], mpmath.sqrt(hidden[j]), abs(log_scale))
    expected = float(mpmath.fsum(out + hidden)) if abs(log_scale) < 350 else np.inf
    assert net.squared_norm == pytest.approx(0.0 if log_scale < -370 else expected, rel=1e-12)


@pytest.mark.parametrize("log_scale", [-400.0, -340.0, -20.0, 0.0, 3.0, 340.0, 400.0])
def test_plain_outputs_saturate_at_the_ends_of_the_range(log_scale):
    net, X = sample(log_scale=log_scale)
    for value, exact in zip(net.predict(X), exact_outputs(net, X), strict=True):
        # 700 eps: the logarithm of a value near the end of the range is rounded before exp
        assert value == pytest.approx(float(exact), rel=1e-12, abs=1e-320)


def test_a_small_scale_and_huge_weights_meet_inside_the_range():
    net = rf.Network([1e150], [[1e150]], log_scale=-345.0)
    assert net.predict([[1.0]])[0] == pytest.approx(float(mpmath.mpf(10) ** 300 * mpmath.exp(-690)))
    huge = rf.Network([1e200], [[1e200]], log_scale=-460.0)
    assert huge.predict([[1.0]])[0] == pytest.approx(
        float(mpmath.mpf(10) ** 400 * mpmath.exp(-920)), rel=1e-12
    )
    assert huge.squared_norm == pytest.approx(2 * float(mpmath.mpf(10) ** 400 * mpmath.exp(-920)))


def test_subnormal_weights_keep_a_logarithm():
    net = rf.Network([1.0], [[5e-324, 0.0]])
    assert net.log_norms[0] == pytest.approx(np.log(5e-324))
    assert net.directions.tolist() == [[1.0, 0.0]]
    assert net.log_predict([[5e-324, 0.0]])[0][0] == pytest.approx(2 * np.log(5e-324))


def test_inactive_and_zero_neurons():
    net = rf.Network([1.0, 0.0], [[1.0], [0.0]], log_scale=-1e6)
    logs, signs = net.log_predict([[-1.0]])
    assert logs.tolist() == [-np.inf]
    assert signs.tolist() == [0.0]
    assert net.log_norms.tolist() == [-1e6, -np.inf]
    assert net.log_outputs.tolist() == [-1e6, -np.inf]
    assert net.directions.tolist() == [[1.0], [0.0]]
    assert net.signs.tolist() == [1.0, 0.0]
    zero = rf.Network([0.0], [[0.0]])
    assert zero.log_squared_norm == -np.inf
    assert zero.squared_norm == 0.0


# ------------------------------------------------------------------------------ balance


@pytest.mark.parametrize("log_scale", LOG_SCALES)
def test_a_balanced_network_is_balanced_exactly_at_every_scale(log_scale):
    net = rf.Network([5.0, -1.0], [[3.0, 4.0], [0.0, 1.0]], log_scale=log_scale)
    assert net.balance.tolist() == [0.0, 0.0]


@given(st.floats(-340, 340), st.floats(-3, 3), st.floats(-5, 5))
def test_balance_against_exact_squares(log_scale, a, shift):
    net = rf.Network([a], [[1.0, 0.5]], log_scale, log_scale_out=log_scale + shift)
    (out,), (hidden,) = exact_squares(net)
    with mpmath.workdps(60):
        gap, top = float(out - hidden), float(out + hidden)
    assert net.balance[0] == pytest.approx(gap, rel=1e-12, abs=1e-12 * top + 1e-320)


def test_balance_of_a_dominated_neuron_in_the_log_domain():
    net = rf.Network([1.0, 1.0], [[1.0], [1.0]], log_scale=[-1e6, 0.0], log_scale_out=[0.0, -1e6])
    assert net.balance.tolist() == [1.0, -1.0]


# ------------------------------------------------------------------------------ values


def test_the_split_is_kept_as_given():
    net = rf.Network([2.0], [[3.0, 0.0]], -1e6)
    assert net.mantissa.a.tolist() == [2.0]
    assert net.mantissa.W.tolist() == [[3.0, 0.0]]
    assert net.log_scale.tolist() == [-1e6]
    scaled = net.with_scale([-5.0])
    assert scaled.log_scale.tolist() == scaled.log_scale_out.tolist() == [-5.0]
    assert scaled.mantissa.W.tolist() == net.mantissa.W.tolist()


def test_weights_are_the_true_weights_and_zero_where_they_underflow():
    net = rf.Network(
        [2.0, 1.0, -3.0],
        [[3.0, 0.0], [1.0, 1.0], [0.5, 4.0]],
        [np.log(2.0), -1e6, 0.0],
        log_scale_out=[-np.log(4.0), 0.0, -1e6],
    )
    np.testing.assert_allclose(net.a, [0.5, 1.0, 0.0], rtol=1e-15)
    np.testing.assert_allclose(net.W, [[6.0, 0.0], [0.0, 0.0], [0.5, 4.0]], rtol=1e-15)
    assert net.signs.tolist() == [1.0, 1.0, -1.0]  # of the weights as they are, not as floats
    for weights in (net.a, net.W, *net.mantissa):
        with pytest.raises(ValueError, match="read-only"):
            weights[0] = 1.0


def test_without_scales_weights_are_the_mantissa_bit_for_bit():
    net = rf.Network([0.1, 1e-320], [[0.3, -1e300], [5e-324, 7.0]])
    assert net.a.tobytes() == net.mantissa.a.tobytes()
    assert net.W.tobytes() == net.mantissa.W.tobytes()


@pytest.mark.parametrize("points", [[[0.5], [-2.0]], [0.5, -2.0], [[0.5, 1.0], [-2.0, 1.0]]])
def test_a_network_with_a_bias_takes_points_without_it(points):
    net = rf.Network([2.0, -1.0], [[1.0, 3.0], [-1.0, 0.5]], -0.3, bias=True)
    with_ones = [[0.5, 1.0], [-2.0, 1.0]]
    expected = net.with_bias(False).predict(with_ones)
    np.testing.assert_array_equal(net.predict(points), expected)
    for other in (net.flat(), net.with_scale(-0.3), rf.Network.from_arrays(net.to_arrays())):
        np.testing.assert_allclose(other.with_bias().predict(points), expected, rtol=1e-13)
    assert net.flat().bias
    assert net.with_scale(1.0).bias


def test_points_of_another_width_are_refused_and_a_bias_is_suggested():
    plain = rf.Network([1.0], [[1.0, 2.0, 3.0]])
    with pytest.raises(InputError, match=r"`X` has 2 columns .* 3 inputs.*`net.with_bias\(\)`"):
        plain.predict([[1.0, 2.0]])
    for net, columns in ((plain, 4), (plain.with_bias(), 4), (plain.with_bias(), 1)):
        with pytest.raises(InputError, match=rf"`X` has {columns} columns .* agree\.$"):
            net.predict(np.ones((2, columns)))


@pytest.mark.parametrize("bias", [False, True])
def test_a_bias_is_kept_in_files(tmp_path, bias):
    rf.Network([1.0], [[1.0, 2.0]], bias=bias).save(tmp_path / "net.rf")
    assert rf.Network.load(tmp_path / "net.rf").bias is bias


def test_flat_multiplies_the_scales_in():
    net = rf.Network([2.0], [[3.0, 0.0]], np.log(2.0), log_scale_out=np.log(5.0))
    assert net.flat().a == pytest.approx([10.0])
    assert pytest.approx(np.array([[6.0, 0.0]])) == net.flat().W
    assert net.flat().log_scale.tolist() == [0.0]
    assert rf.Network([1.0], [[0.0, 1.0]], 800.0).with_scale(-1e6).flat().squared_norm == 0.0


def test_flat_beyond_the_range_is_refused():
    with pytest.raises(InputError, match=r"`a` has 1 non-finite entries \(first: inf"):
        rf.Network([1.0], [[0.0, 1.0]], 800.0).flat()


@pytest.mark.parametrize("name", ["a", "W", "log_norms", "log_outputs", "directions", "balance"])
def test_arrays_cannot_be_changed_in_place(name):
    with pytest.raises(ValueError, match="read-only"):
        getattr(sample()[0], name)[0] = 0.0


@pytest.mark.parametrize("name", ["a", "W", "log_scale", "log_norms", "signs", "width"])
def test_attributes_cannot_be_replaced(name):
    with pytest.raises(AttributeError, match=rf"`{name}` of a Network cannot be changed"):
        setattr(sample()[0], name, 3)


def test_copies_travel_between_processes():
    net, X = sample(log_scale=-1e6)
    data = rf.Dataset(X, np.ones(len(X)))
    again, points = pickle.loads(pickle.dumps((net, data)))
    assert again == net
    assert points == data


def test_equality():
    net, _ = sample(log_scale=-1e6)
    assert net == sample(log_scale=-1e6)[0]
    assert net != net.with_scale(-2e6)
    assert net != "net"
    assert net != sample(width=5)[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0], [[1.0]]), "`W` has 1 rows but `a` has 2 entries"),
        (([], np.empty((0, 3))), r"`W` has shape \(0, 3\): it is empty. Give at least one neuron"),
        (([1.0], np.empty((1, 0))), r"`W` has shape \(1, 0\): it is empty"),
        (([1.0], [1.0]), r"`W` has shape \(1,\); 2 axes are needed"),
        (([[1.0]], [[1.0]]), r"`a` has shape \(1, 1\); 1 axes are needed"),
        (([np.nan], [[1.0]]), "`a` has 1 non-finite entries"),
        (([1.0], [[np.inf]]), r"`W` has 1 non-finite entries \(first: inf at \(0, 0\)\)"),
        (([None], [[1.0]]), "`a` has dtype object"),
        (([1.0], [["x"]]), "`W` has dtype <U1"),
        (([1.0], [[1.0]], [1.0, 2.0]), "`log_scale` has 2 entries for 1 neurons"),
        (([1.0], [[1.0]], np.nan), "`log_scale` has 1 non-finite entries"),
        (([1.0], [[1.0]], -np.inf), r"`log_scale` has 1 non-finite entries \(first: -inf"),
        (([1.0], [[1.0]], "small"), "`log_scale` has dtype <U5"),
        (([1.0], [[1.0]], [[1.0]]), r"`log_scale` has shape \(1, 1\)"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(InputError, match=message):
        rf.Network(*arguments)


def test_refusals_of_the_output_scale_and_of_points():
    with pytest.raises(InputError, match="`log_scale_out` has 3 entries for 1 neurons"):
        rf.Network([1.0], [[1.0]], log_scale_out=[1.0, 2.0, 3.0])
    net, _ = sample()
    for function in (net.predict, net.log_predict, net.preactivations):
        with pytest.raises(InputError, match="`X` has 2 columns but the network takes 3 inputs"):
            function(np.ones((4, 2)))
        with pytest.raises(InputError, match="`X` has 1 non-finite"):
            function([[np.nan, 0.0, 0.0]])


# ------------------------------------------------------------------------------ exchange


@pytest.mark.parametrize("log_scale", LOG_SCALES)
def test_saving_keeps_every_bit(log_scale, tmp_path):
    net, _ = sample(log_scale=log_scale)
    net.save(tmp_path / "net.rf")
    assert rf.Network.load(tmp_path / "net.rf") == net
    split, _ = sample(log_scale=log_scale, log_scale_out=np.arange(6.0) - 1e6)
    split.save(tmp_path / "net.rf")
    assert rf.Network.load(tmp_path / "net.rf") == split


def test_a_sound_file_with_unusable_contents_is_refused(tmp_path):
    path = tmp_path / "net.rf"
    arrays = sample()[0].to_arrays()
    files.write(path, "network", {}, {k: v for k, v in arrays.items() if k != "W"})
    with pytest.raises(FileError, match=r"net\.rf is whole but .* \('W' is missing\)"):
        rf.Network.load(path)
    files.write(path, "network", {}, {**arrays, "a": np.array([np.nan] * 6)})
    with pytest.raises(FileError, match=r"`a` has 6 non-finite entries"):
        rf.Network.load(path)
    files.write(path, "network", {}, {**arrays, "a": np.array(["x"] * 6)})
    with pytest.raises(FileError, match=r"`a` has dtype"):
        rf.Network.load(path)
