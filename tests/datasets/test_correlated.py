"""Correlated data: laws, angles, labels, rejection, families."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from reluflow import datasets
from reluflow.datasets import correlated
from reluflow.errors import InputError
from reluflow.network import Network

MAKERS = {
    "centred": lambda seed: datasets.centred(6, n=9, seed=seed),
    "uncentred": lambda seed: datasets.uncentred(6, n=9, seed=seed),
    "two_teachers": lambda seed: datasets.two_teachers(6, n=9, seed=seed),
    "two uncentred": lambda seed: datasets.two_teachers(6, n=9, uncentred=True, seed=seed),
    "cone": lambda seed: datasets.cone(6, 9, half_angle=0.7, seed=seed),
}


def cosines(data):
    return data.X @ data.teacher / np.linalg.norm(data.X, axis=1)


@pytest.fixture(params=list(MAKERS))
def maker(request):
    return MAKERS[request.param]


def test_a_seed_repeats_and_another_differs(maker):
    assert maker(4) == maker(4)
    assert maker(4) == maker(np.random.default_rng(4))
    assert maker(4) != maker(5)


def test_a_generator_moves_on(maker):
    rng = np.random.default_rng(4)
    assert maker(rng) != maker(rng)


@given(seed=st.integers(0, 10**6), d=st.integers(2, 12), rho=st.floats(0.01, 3.0))
def test_single_teacher_labels_are_its_outputs(seed, d, rho):
    for make in (datasets.centred, datasets.uncentred):
        data = make(d, rho=rho, seed=seed)
        assert data.n == data.d == d
        np.testing.assert_array_equal(data.y, np.maximum(data.X @ data.teacher, 0.0))
        assert (data.y > 0).all()
        assert (cosines(data) > 0).all()
        assert abs(np.linalg.norm(data.teacher) - 1.0) < 1e-15


def test_rho_multiplies_the_variance():
    data = datasets.centred(50, n=4000, rho=0.36, seed=1)
    noise = data.X - data.teacher
    assert noise.var() == pytest.approx(0.36 / 50, rel=0.02)
    assert stats.kstest(noise.ravel()[:20_000] / np.sqrt(0.36 / 50), "norm").pvalue > 0.01


def test_angles_concentrate_at_45_degrees_by_default():
    for make in (datasets.centred, datasets.uncentred):
        angles = np.arccos(cosines(make(1500, n=40, seed=2)))
        assert np.abs(angles - np.pi / 4).max() < 0.1


def test_uncentred_teacher_is_as_far_from_the_centre_as_the_points():
    # the unnormalised x_0 has distance sqrt(rho) to mu; after normalising sqrt(2 - 2^(3/4))
    data = datasets.uncentred(3000, n=200, seed=3)
    mu = data.X.mean(axis=0) / np.linalg.norm(data.X.mean(axis=0))
    assert np.linalg.norm(data.teacher - mu) == pytest.approx(np.sqrt(2 - 2**0.75), abs=0.03)


def test_rejection_keeps_the_centre_and_redraws_all_points():
    # the draws done by hand, in the documented order
    seed, d = next(s for s in range(100) if _first_draw_fails(s, 3)), 3
    rng = np.random.default_rng(seed)
    mu = rng.standard_normal(d)
    mu /= np.linalg.norm(mu)
    while True:
        X = mu + np.sqrt(2.0 / d) * rng.standard_normal((4, d))
        if (X @ mu > 0).all():
            break
    data = datasets.centred(d, n=4, rho=2.0, seed=seed)
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.teacher, mu)


def _first_draw_fails(seed, d):
    rng = np.random.default_rng(seed)
    mu = rng.standard_normal(d)
    mu /= np.linalg.norm(mu)
    return not ((mu + np.sqrt(2.0 / d) * rng.standard_normal((4, d))) @ mu > 0).all()


def test_uncentred_rejection_redraws_the_teacher_too():
    rng = np.random.default_rng(11)
    mu = rng.standard_normal(2)
    mu /= np.linalg.norm(mu)
    rounds = 0
    while True:
        rounds += 1
        X = mu + np.sqrt(4.0 / 2) * rng.standard_normal((3, 2))
        x0 = mu + np.sqrt(4.0 / 2) * rng.standard_normal(2)
        if (X @ x0 > 0).all():
            break
    assert rounds > 1
    data = datasets.uncentred(2, n=3, rho=4.0, seed=11)
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.teacher, x0 / np.linalg.norm(x0))


def test_endless_rejection_ends_with_advice():
    with pytest.raises(InputError, match=r"10000 draws of 60 points.*smaller `rho`"):
        datasets.centred(2, n=60, rho=100.0, seed=0)


def test_large_sets_give_up_after_fewer_draws(monkeypatch):
    monkeypatch.setattr(correlated, "_REDRAWN_NUMBERS", 10_000)
    with pytest.raises(InputError, match="100 draws of 200 points"):
        datasets.centred(4, n=200, rho=100.0, seed=0)


@pytest.mark.parametrize("uncentred", [False, True])
def test_two_teachers(uncentred):
    data = datasets.two_teachers(16, rho=0.2, norms=(2.0, 5.0), uncentred=uncentred, seed=5)
    assert (data.n, data.d) == (32, 16)
    assert isinstance(data.teacher, Network)
    v1, v2 = data.teacher.W
    assert np.linalg.norm(v1) == pytest.approx(2.0, rel=1e-15)
    assert np.linalg.norm(v2) == pytest.approx(5.0, rel=1e-15)
    np.testing.assert_array_equal(data.y, data.teacher.predict(data.X))
    direct = np.maximum(data.X @ v1, 0) - np.maximum(data.X @ v2, 0)
    np.testing.assert_allclose(data.y, direct, rtol=1e-13)
    assert (data.y[:16] > 0).all()
    assert (data.y[16:] < 0).all()
    assert np.allclose(v2 / 5, -v1 / 2, atol=1e-15) is not uncentred


def test_two_teachers_default_norms_are_one_and_three():
    data = datasets.two_teachers(4, seed=0)
    np.testing.assert_allclose(np.linalg.norm(data.teacher.W, axis=1), [1, 3], rtol=1e-15)


@given(
    seed=st.integers(0, 10**6),
    d=st.integers(2, 40),
    half_angle=st.one_of(st.floats(1e-6, 1.5), st.floats(1.5, 1.5707)),
)
def test_cone_points_are_unit_and_inside(seed, d, half_angle):
    data = datasets.cone(d, 15, half_angle=half_angle, seed=seed)
    np.testing.assert_allclose(np.linalg.norm(data.X, axis=1), 1.0, rtol=4e-15)
    chords = np.linalg.norm(data.X - data.teacher, axis=1)  # 2 sin(angle / 2)
    assert (2 * np.arcsin(chords / 2) <= half_angle + 4e-15).all()
    np.testing.assert_array_equal(data.y, data.X @ data.teacher)
    assert (data.y > 0).all()


@pytest.mark.parametrize(
    ("d", "half_angle"), [(2, 1.0), (3, 0.2), (5, 1.57), (40, 0.6), (200, 1.5)]
)
def test_cone_is_uniform_in_the_cap(d, half_angle):
    data = datasets.cone(d, 3000, half_angle=half_angle, seed=7)
    sines = 1.0 - data.y**2  # sin^2 of the angle is a truncated beta variable
    top = special.betainc((d - 1) / 2, 0.5, np.sin(half_angle) ** 2)
    shares = special.betainc((d - 1) / 2, 0.5, np.clip(sines, 0, 1)) / top
    assert stats.kstest(shares, "uniform").pvalue > 0.01
    tangents = data.X - data.y[:, None] * data.teacher
    mean = (tangents / np.linalg.norm(tangents, axis=1)[:, None]).mean(axis=0)
    assert np.linalg.norm(mean) < 3.0 / np.sqrt(3000)


def test_cone_of_a_small_angle_in_many_dimensions_does_not_underflow():
    data = datasets.cone(3000, 5, half_angle=0.01, seed=0)
    angles = 2 * np.arcsin(np.linalg.norm(data.X - data.teacher, axis=1) / 2)
    assert ((angles > 0.0099) & (angles <= 0.01 + 1e-15)).all()


@pytest.mark.parametrize("d", [2, 3, 7])
def test_negative_family(d):
    t = np.sqrt(2 * (np.sqrt(2) - 1) / (d - 1))
    data = datasets.negative_family(d, t)
    np.testing.assert_allclose(np.arccos(cosines(data)), np.arctan(t * np.sqrt(d - 1)), rtol=1e-12)
    assert (np.arccos(cosines(data)) < np.pi / 4).all()
    np.testing.assert_allclose(data.X.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_array_equal(data.y, data.X @ data.teacher)
    # every off-diagonal entry of the inverse Gram matrix is non-positive: M < 0
    inverse = np.linalg.inv(data.gram)
    assert (inverse - np.diag(np.diag(inverse)) <= 1e-9).all()


def test_positive_family():
    data = datasets.positive_family(5, 11.0)
    assert (np.arccos(cosines(data)) < np.pi / 4).all()
    assert np.linalg.matrix_rank(data.X) == 5
    assert np.linalg.norm(data.teacher) == pytest.approx(1.0, abs=1e-15)
    np.testing.assert_array_equal(data.y, data.X @ data.teacher)
    np.testing.assert_allclose(data.X[2] - data.X[1], [0, 2 * np.sqrt(11), 0, 0, 0])
    np.testing.assert_array_equal(data.X[3:, 3:], np.eye(2))


@pytest.mark.parametrize(("d", "b"), [(3, 11.0), (6, 11.0), (4, 50.0)])
def test_positive_family_has_positive_m(d, b):
    # p and q along the dual vectors of x_3 and x_2 reach the closed-form lower bound on M
    data = datasets.positive_family(d, b)
    dual = np.linalg.inv(data.X.T)
    dual /= np.linalg.norm(dual, axis=1)[:, None]
    p, q = dual[2], dual[1]
    value = p @ q - np.sqrt(1 - (p @ data.teacher) ** 2)
    bound = (b - 1) / (b + 1) - np.sqrt(1 - 0.36 * b / (b + 1))
    assert value == pytest.approx(bound, abs=1e-12)
    assert bound > 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: datasets.centred(0, seed=0), "`d` is 0; it must be at least 1"),
        (lambda: datasets.centred(2.5, seed=0), "`d` is 2.5, not a whole number"),
        (lambda: datasets.centred(4, rho=0.0, seed=0), "`rho` is 0; it must be above 0"),
        (lambda: datasets.uncentred(4, n=0, seed=0), "`n` is 0; it must be at least 1"),
        (lambda: datasets.uncentred(4, seed=None), "`seed` is None"),
        (lambda: datasets.two_teachers(4, norms=(1, 2, 3), seed=0), "two positive norms"),
        (lambda: datasets.two_teachers(4, norms=(1, -3), seed=0), "two positive norms"),
        (lambda: datasets.two_teachers(4, norms=2.0, seed=0), "`norms` has shape"),
        (lambda: datasets.cone(4, 3, half_angle=0.0, seed=0), "`half_angle` is 0"),
        (lambda: datasets.cone(4, 3, half_angle=np.pi / 2, seed=0), "must be below 1.5708"),
        (lambda: datasets.cone(1, 3, half_angle=0.1, seed=0), "`d` is 1; it must be at least 2"),
        (lambda: datasets.negative_family(5, 0.5), "`t` is 0.5; it must be at most 0.455"),
        (lambda: datasets.negative_family(1, 0.5), "`d` is 1"),
        (lambda: datasets.positive_family(2, 20), "`d` is 2; it must be at least 3"),
        (lambda: datasets.positive_family(3, 10.9), "`b` is 10.9; it must be at least 11"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
