"""Extreme eigenvalues: against 40-digit differences, closed forms, and each method another."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings

import reluflow as rf
from reluflow import Dataset, Network, losses
from reluflow.errors import InputError
from reluflow.geometry import hessian_spectrum, piece_hessian, tangent_kernel

from .helpers import permuted, random_net, seeds

LOSSES = {
    "square": (losses.Square(), lambda h, y: (h - y) ** 2 / 2),
    "mean square": (losses.Square("1/n"), lambda h, y: (h - y) ** 2),
    "exponential": (losses.Exponential(), lambda h, y: mpmath.exp(-h * y)),
    "logistic": (losses.Logistic(), lambda h, y: mpmath.log(1 + mpmath.exp(-h * y))),
}


def draw(seed, n=4, d=2, m=3):
    rng = np.random.default_rng(seed)
    return Dataset(rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], n)), random_net(rng, m, d)


def differences(data, net, pointwise):
    """Second differences of the loss in ``(a_j, w_j)`` with 40 digits and steps of 1e-12."""
    theta = np.column_stack([net.a, net.W])

    def value(moves):
        table = [[mpmath.mpf(v) for v in row] for row in theta]
        for (j, k), by in moves:
            table[j][k] += by
        total = mpmath.mpf(0)
        for x, y in zip(data.X, data.y, strict=True):
            h = mpmath.mpf(0)
            for a, *w in table:
                z = mpmath.fdot(w, [mpmath.mpf(v) for v in x])
                h += a * max(z, 0)
            total += pointwise(h, mpmath.mpf(y))
        return total / data.n

    places, step = list(np.ndindex(theta.shape)), mpmath.mpf(10) ** -12
    found = np.empty((len(places), len(places)))
    for r, p in enumerate(places):
        for c, q in enumerate(places[: r + 1]):
            four = sum(
                s * t * value([(p, s * step), (q, t * step)]) for s in (1, -1) for t in (1, -1)
            )
            found[r, c] = found[c, r] = float(four / (4 * step**2))
    return found


@pytest.mark.parametrize("name", LOSSES)
def test_eigenvalues_are_those_of_differences_with_forty_digits(name):
    data, net = draw(3)
    loss, pointwise = LOSSES[name]
    with mpmath.workdps(40):
        matrix = differences(data, net, pointwise)
    values = np.linalg.eigvalsh(matrix)
    found = hessian_spectrum(data, net, 9, loss=loss)
    np.testing.assert_allclose(found.smallest, values, atol=1e-13 * np.abs(values).max())
    np.testing.assert_array_equal(found.largest, found.smallest[::-1])
    assert found.method == "dense"


def test_one_neuron_has_a_closed_form():
    # away from the fit: kappa (z^2 + a^2 x^2) couples with -c x off the diagonal
    a, w, x, y = 0.7, 1.3, 2.0, 3.0
    c = y - a * w * x
    matrix = np.array([[(w * x) ** 2, a * w * x**2 - c * x], [a * w * x**2 - c * x, (a * x) ** 2]])
    found = hessian_spectrum(Dataset([[x]], [y]), Network([a], [[w]]), 2)
    np.testing.assert_allclose(found.smallest, np.linalg.eigvalsh(matrix), rtol=1e-13)


@settings(max_examples=10)
@given(seeds)
def test_at_a_fit_the_eigenvalues_are_those_of_the_tangent_kernel(seed):
    data, net = draw(seed, n=5, d=3, m=4)
    fitted = Dataset(data.X, net.predict(data.X))
    loss = losses.Square("1/2")
    found = hessian_spectrum(fitted, net, 5, loss=loss)
    kernel = tangent_kernel(fitted, net, loss).eigenvalues
    np.testing.assert_allclose(found.largest, kernel, atol=1e-12 * max(kernel[0], 1e-300))
    assert found.smallest[0] >= -1e-12 * kernel[0]


@settings(max_examples=10)
@given(seeds)
def test_invariances(seed):
    data, net = draw(seed, n=5, d=3, m=4)
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    found = hessian_spectrum(data, net, 16)
    for other in (
        hessian_spectrum(data, permuted(net, rng), 16),
        hessian_spectrum(Dataset(data.X @ Q, data.y), Network(net.a, net.W @ Q), 16),
        hessian_spectrum(Dataset(data.X[::-1], data.y[::-1]), net, 16),
    ):
        top = np.abs(found.largest).max()
        np.testing.assert_allclose(other.largest, found.largest, atol=1e-13 * top)
        assert other.kink_distance == pytest.approx(found.kink_distance, abs=1e-14)


def test_at_the_origin_only_the_pulls_are_left_at_any_scale():
    data, net = draw(1, m=5)
    pulls = ((net.preactivations(data.X).T > 0) * data.y / data.n) @ data.X
    sizes = np.sort(np.linalg.norm(pulls, axis=1))
    for log_scale in (-50.0, -1e6):
        found = hessian_spectrum(data, net.with_scale(log_scale), 5)
        np.testing.assert_allclose(found.largest, sizes[::-1], atol=1e-14)
        np.testing.assert_allclose(found.smallest, -sizes[::-1], atol=1e-14)


@pytest.mark.parametrize("loss", ["square", "logistic"])
@pytest.mark.parametrize(("n", "d", "m"), [(8, 6, 30), (20, 2, 60), (2, 1, 100)])
def test_the_range_and_lanczos_give_what_the_whole_matrix_gives(monkeypatch, n, d, m, loss):
    data, net = draw(n, n=n, d=d, m=m)  # in one and two dimensions many neurons share eigenvalues
    whole = hessian_spectrum(data, net, 4, loss=loss)
    monkeypatch.setattr(piece_hessian, "LARGEST", 10)
    ranged = hessian_spectrum(data, net, 4, loss=loss)
    monkeypatch.setattr(piece_hessian, "WORK", 0.0)
    lanczos = hessian_spectrum(data, net, 4, loss=loss)
    assert (whole.method, ranged.method, lanczos.method) == ("dense", "dense", "lanczos")
    top = whole.sharpness
    for other, tol in ((ranged, 1e-13), (lanczos, 1e-10)):
        assert other.is_complete
        assert other.error <= 1e-9 * top
        np.testing.assert_allclose(other.smallest, whole.smallest, atol=tol * top)
        np.testing.assert_allclose(other.largest, whole.largest, atol=tol * top)


def test_products_are_those_of_the_matrix_with_and_without_planes():
    rng = np.random.default_rng(0)
    data, net = draw(0, n=6, d=4, m=5)
    z = net.W @ data.X.T
    on = z > 0
    held = {
        1: np.linalg.qr(rng.normal(size=(4, 2)))[0],
        3: np.linalg.qr(rng.normal(size=(4, 1)))[0],
    }
    for planes in ({}, held):
        pull, bend = rng.normal(size=(5, 4)), rng.uniform(size=6)
        hessian = piece_hessian.PieceHessian(data.X, net.a, z, on, pull, bend, planes)
        matrix = hessian.dense()
        np.testing.assert_allclose(matrix, matrix.T, atol=1e-14)
        for v in rng.normal(size=(3, hessian.size)):
            np.testing.assert_allclose(hessian.times(v), matrix @ v, atol=1e-13)
        on_range = np.linalg.eigvalsh(hessian.on_range())
        values = np.linalg.eigvalsh(matrix)
        for end in (slice(3), slice(-3, None)):
            np.testing.assert_allclose(on_range[end], values[end], atol=1e-13)


def test_the_nearest_kink_is_named():
    data = Dataset([[1.0, 0.0], [0.0, 2.0]], [1.0, 1.0])
    far = hessian_spectrum(data, Network([1.0, 1.0], [[3.0, 4.0], [1.0, 1.0]]))
    assert far.kink_distance == pytest.approx(0.6)
    assert far.kink == (0, 0)
    assert not far.is_near_kink
    near = hessian_spectrum(data, Network([1.0, 1.0], [[3.0, 4.0], [1e-9, 1.0]]))
    assert near.kink_distance == pytest.approx(1e-9)
    assert near.kink == (1, 0)
    assert near.is_near_kink
    assert hessian_spectrum(data, Network([1.0], [[0.0, 0.0]])).kink_distance == 0.0


def test_a_pattern_decides_on_the_plane():
    data = Dataset([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0])
    net = Network([1.0], [[1.0, 0.0]])
    off = hessian_spectrum(data, net)
    over = hessian_spectrum(data, net, active=np.array([[True, True]]))
    assert off.sharpness == pytest.approx(1.0)  # (z^2 + a^2) / n of the first point
    assert over.smallest[0] < -0.5  # the second point pulls
    with pytest.raises(InputError, match="`active` has shape"):
        hessian_spectrum(data, net, active=np.ones((2, 2), dtype=bool))


def test_descent_stays_at_a_minimum_below_the_largest_stable_step_only():
    points, fit = draw(5, n=3, d=2, m=2)
    data = Dataset(points.X, fit.predict(points.X))
    limit = hessian_spectrum(data, fit).largest_stable_step
    assert hessian_spectrum(data, fit).kink_distance > 0.01
    start = Network(fit.a + 1e-9, fit.W)
    ends = {
        share: rf.descend(data, start, lr=share * limit, steps=5000).final for share in (0.97, 1.03)
    }
    moved = {share: np.abs(end.a - fit.a).max() for share, end in ends.items()}
    assert moved[0.97] <= 1e-8
    assert moved[1.03] > 1e-3


def test_without_an_active_neuron_nothing_is_curved():
    found = hessian_spectrum(Dataset([[1.0, 1.0]], [1.0]), Network([1.0], [[-1.0, -1.0]]), 2)
    np.testing.assert_array_equal(found.largest, 0.0)
    assert found.largest_stable_step == np.inf


def test_a_search_that_does_not_converge_says_so(monkeypatch):
    data, net = draw(0, n=30, d=4, m=60)
    monkeypatch.setattr(piece_hessian, "LARGEST", 10)
    monkeypatch.setattr(piece_hessian, "WORK", 0.0)
    monkeypatch.setattr(piece_hessian, "_RESTARTS", 1)
    found = hessian_spectrum(data, net, 20)
    assert not found.is_complete
    assert len(found.largest) == len(found.smallest) == 20


def test_bad_input_gets_a_sentence():
    data, net = draw(0)
    with pytest.raises(InputError, match="`k` is 0"):
        hessian_spectrum(data, net, 0)
    with pytest.raises(InputError, match="labels -1 or 1"):
        hessian_spectrum(Dataset(data.X, 2 * data.y), net, loss="logistic")
    assert len(hessian_spectrum(data, net, 100).largest) == 9
