import mpmath
import numpy as np
import pytest
from hypothesis import given
from scipy.stats import ortho_group

from reluflow import Network
from reluflow.errors import InputError
from reluflow.geometry import max_angle, mean_angle, pairwise_angles

from .helpers import permuted, random_net, rescaled, seeds, shifted


def reference(p, q):
    """The angle with 60 digits: Kahan's formula on the exact values of the floats."""
    with mpmath.workdps(60):
        p, q = mpmath.matrix(p.tolist()), mpmath.matrix(q.tolist())
        p, q = p / mpmath.norm(p), q / mpmath.norm(q)
        return 2 * mpmath.atan2(mpmath.norm(p - q), mpmath.norm(p + q))


def pair(p, q):
    return Network([1.0, 1.0], [p, q])


@pytest.mark.parametrize("d", [2, 3, 40])
@pytest.mark.parametrize("angle", [1e-15, 1e-12, 1e-8, 1e-3, 0.3, 1.5707, 2.0, 3.1])
def test_angles_agree_with_sixty_digits(d, angle):
    rng = np.random.default_rng(d)
    for _ in range(5):
        p = rng.normal(size=d)
        across = rng.normal(size=d)
        across -= p * (across @ p) / (p @ p)
        across *= np.linalg.norm(p) / np.linalg.norm(across)
        q = (p * np.cos(angle) + across * np.sin(angle)) * np.exp(rng.uniform(-20, 20))
        exact = reference(p, q)
        for found in (max_angle(pair(p, q)), pairwise_angles(pair(q, p))[0, 1]):
            assert abs(found - exact) <= 1.5e-15 * float(exact)


def test_angle_far_below_the_spacing_of_unit_vectors():
    u = np.finfo(float).eps
    p, q = np.array([1.0, 1.0 + u]), np.array([1.0 + u, 1.0 + 2 * u])
    exact = reference(p, q)  # half of u^2: 2.5e-32
    assert abs(max_angle(pair(p, q)) - exact) <= 1e-31
    assert max_angle(pair([1.0, 0.0], [1.0, 1e-200])) == pytest.approx(1e-200, rel=1e-15)


def test_opposite_and_equal_rows():
    assert max_angle(pair([0.3, 0.1, 2.0], [-0.3, -0.1, -2.0])) == np.pi
    assert max_angle(pair([0.3, 0.1, 2.0], [0.6, 0.2, 4.0])) == 0.0
    assert max_angle(pair([0.3, 0.1, 2.0], [0.9, 0.3, 6.0])) < 1e-15


def test_bundle_of_tiny_angles_keeps_relative_accuracy():
    rng = np.random.default_rng(1)
    centre = rng.normal(size=8)
    W = (centre + 1e-11 * rng.normal(size=(30, 8))) * rng.uniform(0.1, 10, 30)[:, None]
    net = Network(np.ones(30), W)
    exact = max(reference(W[i], W[k]) for i in range(30) for k in range(i))
    assert abs(max_angle(net) - exact) <= 2e-15 * float(exact)


def test_max_and_mean_are_those_of_the_matrix():
    rng = np.random.default_rng(2)
    net = random_net(rng, 25, 4)
    angles = pairwise_angles(net)
    assert np.array_equal(angles, angles.T)
    assert not angles.diagonal().any()
    assert max_angle(net) == pytest.approx(angles.max(), rel=1e-15)
    above = angles[np.triu_indices(25, 1)]
    assert mean_angle(net) == pytest.approx(above.mean(), rel=1e-14)


def test_many_tied_pairs():
    assert max_angle(Network(np.ones(120), np.eye(120))) == pytest.approx(np.pi / 2, rel=1e-15)


@given(seeds)
def test_invariances(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 6))
    net = random_net(rng, int(rng.integers(2, 8)), d, log_scale=rng.uniform(-1e6, 3))
    value = max_angle(net)
    assert max_angle(permuted(net, rng)) == pytest.approx(value, rel=1e-14)
    assert max_angle(rescaled(net, rng)) == pytest.approx(value, rel=1e-14)
    assert max_angle(shifted(net, -1e6)) == value
    turned = Network(net.mantissa.a, net.mantissa.W @ ortho_group.rvs(d, random_state=rng))
    assert max_angle(turned) == pytest.approx(value, rel=1e-13)


def test_subset_by_index_and_by_mask():
    net = Network(np.ones(4), [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [1.0, 1.0]])
    assert max_angle(net) == np.pi
    assert max_angle(net, subset=[0, 3]) == pytest.approx(np.pi / 4, rel=1e-15)
    mask = np.array([True, False, False, True])
    assert max_angle(net, subset=mask) == max_angle(net, subset=[0, 3])
    assert mean_angle(net, subset=[1]) == 0.0
    assert pairwise_angles(net, subset=[1, 0, 3]).shape == (3, 3)


def test_zero_neurons_have_no_direction():
    net = Network([1.0, 1.0, 0.0], [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    assert max_angle(net) == pytest.approx(np.pi / 2, rel=1e-15)
    assert mean_angle(net) == pytest.approx(np.pi / 2, rel=1e-15)
    angles = pairwise_angles(net)
    assert np.isnan(angles[2]).all()
    assert np.isnan(angles[:, 2]).all()
    assert angles[0, 1] == pytest.approx(np.pi / 2, rel=1e-15)
    with pytest.raises(InputError, match="zero hidden weights"):
        max_angle(net, subset=[2])


@pytest.mark.parametrize(
    ("subset", "message"),
    [([], "at least one neuron"), ([0, 7], "names neuron 7"), ([-1], "names neuron -1")],
)
def test_bad_subsets_are_named(subset, message):
    net = Network([1.0, 1.0], np.eye(2))
    with pytest.raises(InputError, match=message):
        max_angle(net, subset=subset)


def test_not_a_network():
    with pytest.raises(InputError, match="not a Network"):
        max_angle([[1.0, 2.0]])
