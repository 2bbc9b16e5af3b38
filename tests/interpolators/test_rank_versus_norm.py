"""V, M and the verdict: families with known M, second methods, both sides and the middle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reluflow as rf
from reluflow import Dataset
from reluflow.errors import InputError
from reluflow.interpolators import min_norm, rank_versus_norm
from reluflow.interpolators.cone_program import Cones, solve
from reluflow.interpolators.half_network import bend_by_ascent, bend_exactly

from .checks import outputs, rotation, squared_norm


def draw(seed, d, half_angle=0.75):
    return rf.datasets.cone(d, d, half_angle=half_angle, seed=seed)


def is_z_matrix(data):
    inverse = np.linalg.inv(data.gram)
    return inverse[~np.eye(data.d, dtype=bool)].max() <= 0


def positive_m(b):
    return (b - 1) / (b + 1) - np.sqrt(1 - 9 / 25 * b / (b + 1))


@pytest.mark.parametrize("d", [3, 4, 7])
@pytest.mark.parametrize("b", [11.0, 30.0])
def test_positive_family_has_the_m_of_its_proof(d, b):
    answer = rank_versus_norm(rf.datasets.positive_family(d, b))
    assert pytest.approx(positive_m(b), rel=1e-9) == answer.M
    assert pytest.approx(0.3 * np.sqrt(b + 1), rel=1e-12) == answer.V
    assert answer.is_exact
    assert answer.min_rank_is_min_norm is False


@pytest.mark.parametrize("d", [2, 3, 6])
def test_negative_family_is_a_z_matrix_with_negative_m(d):
    data = rf.datasets.negative_family(d, 0.3)
    inverse = np.linalg.inv(data.gram)
    assert inverse[~np.eye(d, dtype=bool)].max() < 0
    answer = rank_versus_norm(data)
    assert answer.V < 1
    assert answer.M < 0
    assert answer.min_rank_is_min_norm is True
    # by symmetry the best pair is a single generator against a single generator
    chi = np.linalg.inv(data.X).T
    chi /= np.linalg.norm(chi, axis=1)[:, None]
    sine = np.sqrt(1 - (chi[0] @ data.teacher) ** 2)
    assert chi[0] @ chi[1] - sine - 1e-12 <= answer.M


def value_by_cone_program(X, target, subset):
    """Largest ``target . w`` over unit w with the signs of the subset, by a second solver."""
    d = len(X)
    inward = np.where(subset, 1.0, -1.0)[:, None] * X
    A = np.vstack([-inward, np.zeros((1, d)), -np.eye(d)])
    b = np.concatenate([np.zeros(d), [1.0], np.zeros(d)])
    answer = solve(None, -target, A, b, Cones(0, d, (d + 1,)))
    assert answer.status == "solved"
    return target @ answer.x


@pytest.mark.parametrize("seed", range(3))
def test_v_against_a_second_solver(seed):
    data = draw(seed, 4)
    zeta = np.linalg.inv(data.X).T @ data.teacher
    best = 0.0
    for k in range(1, 15):
        subset = (k >> np.arange(4)) & 1 > 0
        for sign in (1.0, -1.0):
            target = sign * (subset * zeta) @ data.X
            best = max(best, value_by_cone_program(data.X, target, subset))
    assert pytest.approx(best, rel=1e-7) == rank_versus_norm(data).V


def m_on_a_grid(data, steps=60):
    """M for d = 3 by brute force: p a generator or on an edge, q likewise (one of them single)."""
    chi = np.linalg.inv(data.X).T
    chi /= np.linalg.norm(chi, axis=1)[:, None]
    s = np.linspace(0, 1, steps * 50 + 1)[:, None]
    best = -np.inf
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        edge = (1 - s) * chi[j] + s * chi[k]
        edge /= np.linalg.norm(edge, axis=1)[:, None]
        cos = edge @ chi[i]
        alone = np.sqrt(1 - (chi[i] @ data.teacher) ** 2)
        best = max(best, (cos - alone).max())
        best = max(best, (cos - np.linalg.norm(np.cross(edge, data.teacher), axis=1)).max())
    return best


@pytest.mark.parametrize("seed", range(8))
def test_m_against_a_grid_in_three_dimensions(seed):
    data = draw(seed, 3)
    answer = rank_versus_norm(data)
    assert pytest.approx(m_on_a_grid(data), abs=1e-6) == answer.M
    assert (answer.M > 0) == (answer.V > 1)


@pytest.mark.parametrize("seed", range(3))
def test_m_is_not_beaten_by_random_pairs_in_four_dimensions(seed):
    data = draw(seed, 4)
    chi = np.linalg.inv(data.X).T
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(100_000, 4)) * rng.choice([0.0, 1.0, 30.0], size=(100_000, 4))
    u = u[(u > 0).any(axis=1) & (u < 0).any(axis=1)]
    p, q = np.maximum(u, 0) @ chi, np.maximum(-u, 0) @ chi
    p /= np.linalg.norm(p, axis=1)[:, None]
    q /= np.linalg.norm(q, axis=1)[:, None]
    sine = np.linalg.norm(p - np.outer(p @ data.teacher, data.teacher), axis=1)
    values = np.einsum("ij,ij->i", p, q) - sine
    assert values.max() - 1e-9 <= rank_versus_norm(data).M


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.integers(2, 5), st.floats(0.3, 1.4))
def test_the_verdict_agrees_with_the_minimum_norm(seed, d, half_angle):
    data = draw(seed, d, half_angle)
    answer, best = rank_versus_norm(data), min_norm(data)
    assert 2 / max(answer.V, 1.0) <= best.value * (1 + 1e-7)
    assert best.value <= 2 + 1e-7
    if answer.min_rank_is_min_norm:
        assert answer.M < 0
        assert best.value == pytest.approx(2.0, rel=1e-7)
    else:
        assert answer.M > 0
        net = answer.counterexample
        assert best.lower_bound <= net.squared_norm < 2
        assert net.width == np.linalg.matrix_rank(net.W) == 2
        np.testing.assert_allclose(outputs(net, data.X), data.y, atol=1e-10 * data.y.max())
        assert squared_norm(net) == pytest.approx(net.squared_norm, rel=1e-12)


@settings(max_examples=8)
@given(st.integers(0, 10**6))
def test_invariances(seed):
    data = draw(seed, 4)
    rng = np.random.default_rng(seed)
    answer = rank_versus_norm(data)
    turn, order = rotation(rng, 4), rng.permutation(4)
    scale = rng.uniform(0.2, 5.0, 4)[:, None]
    for X, v in (
        (data.X[order], data.teacher),
        (data.X @ turn, data.teacher @ turn),
        (scale * data.X, data.teacher),
        (data.X, 3 * data.teacher),
    ):
        other = rank_versus_norm(Dataset(X, X @ v, teacher=v))
        assert pytest.approx(answer.V, rel=1e-9) == other.V
        assert pytest.approx(answer.M, abs=1e-6) == other.M


def test_a_long_teacher_scales_the_counterexample():
    one = rf.datasets.positive_family(3, 20.0)
    nine = Dataset(one.X, 9 * one.y, teacher=9 * one.teacher)
    small, large = rank_versus_norm(one), rank_versus_norm(nine)
    ratio = large.counterexample.squared_norm / small.counterexample.squared_norm
    assert ratio == pytest.approx(9.0)
    np.testing.assert_allclose(outputs(large.counterexample, nine.X), nine.y, rtol=1e-12)


def test_a_network_of_one_neuron_is_a_teacher():
    data = draw(0, 3)
    net = rf.Network([2.0], data.teacher[None, :] / 2)
    assert (
        pytest.approx(rank_versus_norm(data).V)
        == rank_versus_norm(Dataset(data.X, data.y, teacher=net)).V
    )


def test_two_acute_points_in_the_plane_agree_and_obtuse_ones_need_not():
    # angles below pi/4 to the teacher make x_1 . x_2 positive; up to pi/2 the claim fails
    v = np.array([1.0, 0.0])
    for angle, verdict in ((0.7, True), (1.2, False)):
        X = np.array([[np.cos(angle), np.sin(angle)], [np.cos(0.9 * angle), -np.sin(0.9 * angle)]])
        assert rank_versus_norm(Dataset(X, X @ v, teacher=v)).min_rank_is_min_norm is verdict


def test_the_threshold_is_undecided():
    answer = rank_versus_norm(rf.datasets.positive_family(3, 11.0))
    b = 91 / 9  # V = 0.3 sqrt(b + 1) = 1
    X = np.array([[b, 0.0, 0.0], [b, -np.sqrt(b), 1.0], [b, np.sqrt(b), 1.0]])
    v = np.array([0.8, 0.0, 0.6])
    middle = rank_versus_norm(Dataset(X, X @ v, teacher=v))
    assert pytest.approx(1.0, abs=1e-9) == middle.V
    assert middle.min_rank_is_min_norm is None
    assert "within 1e-09 of 1" in middle.reason
    assert middle.counterexample is None
    assert answer.min_rank_is_min_norm is False


def test_beyond_twelve_dimensions_tests_that_suffice_decide():
    z_matrix = rank_versus_norm(rf.datasets.negative_family(14, 0.2))
    assert z_matrix.min_rank_is_min_norm is True
    assert "Z-matrix" in z_matrix.reason
    assert not z_matrix.is_exact
    found = rank_versus_norm(rf.datasets.positive_family(14, 20.0))
    assert found.min_rank_is_min_norm is False
    assert pytest.approx(0.3 * np.sqrt(21), rel=1e-9) == found.V
    assert found.counterexample.squared_norm < 2


def test_beyond_twelve_dimensions_undecided_is_an_answer():
    for seed in range(20):
        data = draw(seed, 13, half_angle=0.5)
        answer = rank_versus_norm(data)
        if answer.min_rank_is_min_norm is None:
            break
    assert answer.min_rank_is_min_norm is None
    assert answer.V <= 1
    assert "beyond the exact method" in answer.reason


@pytest.mark.parametrize("seed", range(3))
def test_ascent_never_exceeds_the_exact_value(seed):
    data = draw(seed, 6)
    zeta = np.linalg.inv(data.X).T @ data.teacher
    exact, found = bend_exactly(data.X, zeta), bend_by_ascent(data.X, zeta)
    assert found.value <= exact.value * (1 + 1e-9)
    assert exact.kkt <= 1e-10
    assert not found.is_exact


def test_an_unverified_projection_decides_nothing(monkeypatch):
    for seed in range(50):
        data = draw(seed, 4)
        if rank_versus_norm(data).min_rank_is_min_norm and not is_z_matrix(data):
            break
    assert rank_versus_norm(data).min_rank_is_min_norm is True
    monkeypatch.setattr("reluflow.interpolators.half_network._VERIFIED", -1.0)
    answer = rank_versus_norm(data)
    assert answer.min_rank_is_min_norm is None
    assert "could not be verified" in answer.reason


def test_hypotheses_are_checked_one_by_one():
    v = np.array([1.0, 0.0])
    with pytest.raises(InputError, match=r"3 points in 2 dimensions"):
        rank_versus_norm(Dataset(np.ones((3, 2)), np.ones(3), teacher=v))
    with pytest.raises(InputError, match=r"linearly dependent"):
        rank_versus_norm(Dataset([[1.0, 0.0], [2.0, 0.0]], [1.0, 2.0], teacher=v))
    with pytest.raises(InputError, match=r"point 1 makes an angle of 2\.\d+ with the teacher"):
        rank_versus_norm(Dataset([[1.0, 0.0], [-1.0, 1.0]], [1.0, 0.0], teacher=v))
    with pytest.raises(InputError, match=r"`teacher` is the zero vector"):
        rank_versus_norm(Dataset(np.eye(2), [0.0, 0.0], teacher=[0.0, 0.0]))
    net = rf.Network([1.0, 1.0], np.eye(2))
    with pytest.raises(InputError, match=r"2 neurons .* one positive neuron"):
        rank_versus_norm(Dataset(np.eye(2), [1.0, 1.0], teacher=net))
