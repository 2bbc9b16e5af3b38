import numpy as np
import pytest
from hypothesis import given
from scipy.stats import ortho_group

from reluflow import Dataset, Network, losses
from reluflow.errors import InputError
from reluflow.geometry import tangent_kernel

from .helpers import permuted, random_net, seeds, shifted


def outputs(data, a, W):
    return np.maximum(data.X @ W.T, 0.0) @ a


def jacobian(data, net, train):
    """Derivative of the outputs by central differences, one weight at a time."""
    step = 1e-6
    columns = []
    for j in range(net.width):
        for k in range(net.d + 1):
            if k == net.d and train == "hidden":
                continue
            sides = []
            for sign in (1, -1):
                a, W = net.a.copy(), net.W.copy()
                if k == net.d:
                    a[j] += sign * step
                else:
                    W[j, k] += sign * step
                sides.append(outputs(data, a, W))
            columns.append((sides[0] - sides[1]) / (2 * step))
    return np.array(columns).T


@pytest.mark.parametrize("train", ["both", "hidden"])
@pytest.mark.parametrize("factor", losses.FACTORS)
def test_kernel_is_the_decay_matrix_of_the_residuals(train, factor):
    rng = np.random.default_rng(3)
    data = Dataset(rng.normal(size=(6, 3)), rng.normal(size=6))
    net = random_net(rng, 5, 3)
    loss = losses.Square(factor)
    kernel = tangent_kernel(data, net, loss, train=train)
    J = jacobian(data, net, train)
    assert kernel.matrix == pytest.approx(loss.kappa(6) * J @ J.T, abs=1e-8)
    # dr/dt = -K r along the flow: one tiny Euler step of gradient descent on the loss itself
    r = data.y - outputs(data, net.a, net.W)
    forces = loss.forces(data.y - r, data.y)
    velocity = J @ (J.T @ forces)
    assert kernel.matrix @ r == pytest.approx(velocity, abs=1e-7)


def test_default_is_half_mean_square_and_classification_uses_the_mean():
    rng = np.random.default_rng(4)
    data = Dataset(rng.normal(size=(4, 2)), [1.0, -1.0, 1.0, 1.0])
    net = random_net(rng, 3, 2)
    matrix = tangent_kernel(data, net).matrix
    assert np.array_equal(matrix, tangent_kernel(data, net, losses.Square("1/2n")).matrix)
    assert np.array_equal(matrix, tangent_kernel(data, net, losses.Logistic()).matrix)
    assert not np.array_equal(matrix, tangent_kernel(data, net, losses.Square("1/2")).matrix)


@given(seeds)
def test_spectrum_and_invariances(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 6)), int(rng.integers(2, 5))
    data = Dataset(rng.normal(size=(n, d)), np.ones(n))
    net = random_net(rng, int(rng.integers(1, 6)), d)
    kernel = tangent_kernel(data, net)
    K, vectors, values = kernel.matrix, kernel.eigenvectors, kernel.eigenvalues
    top = values[0]
    assert np.array_equal(K, K.T)
    assert (np.diff(values) <= 0).all()
    assert (values >= 0).all()
    assert (vectors * values) @ vectors.T == pytest.approx(K, abs=1e-13 * top)
    same = tangent_kernel(data, permuted(net, rng)).matrix
    assert same == pytest.approx(K, abs=1e-13 * top)
    Q = ortho_group.rvs(d, random_state=rng)
    turned = tangent_kernel(Dataset(data.X @ Q, data.y), Network(net.a, net.W @ Q)).matrix
    assert turned == pytest.approx(K, abs=1e-12 * top)
    split = Network(np.tile(net.a, 2) / np.sqrt(2), np.tile(net.W, (2, 1)) / np.sqrt(2))
    assert tangent_kernel(data, split).matrix == pytest.approx(K, abs=1e-13 * top)


def test_logarithms_survive_any_scale():
    rng = np.random.default_rng(5)
    data = Dataset(rng.normal(size=(3, 3)), np.ones(3))
    net = random_net(rng, 6, 3)
    kernel, deep = tangent_kernel(data, net), tangent_kernel(data, shifted(net, -1e6))
    assert not deep.matrix.any()
    assert deep.log_eigenvalues == pytest.approx(kernel.log_eigenvalues - 2e6, rel=1e-14)
    assert kernel.log_eigenvalues == pytest.approx(np.log(kernel.eigenvalues), abs=1e-13)


def test_dead_pairs_do_not_couple():
    data = Dataset([[1.0, 0.0], [-1.0, 0.0]], [1.0, 1.0])
    kernel = tangent_kernel(data, Network([1.0, 1.0], [[1.0, 0.0], [-2.0, 0.0]]))
    assert kernel.matrix.tolist() == [[1.0, 0.0], [0.0, 2.5]]


def test_a_neuron_on_the_boundary_is_inactive():
    data = Dataset([[1.0, 0.0], [1.0, 1.0]], [1.0, 1.0])
    kernel = tangent_kernel(data, Network([1.0], [[0.0, 1.0]]))
    assert kernel.matrix == pytest.approx(np.array([[0.0, 0.0], [0.0, 1.5]]), abs=1e-15)


def test_bad_train_mode_and_dimensions():
    data = Dataset([[1.0, 0.0]], [1.0])
    with pytest.raises(InputError, match="`train` is 'output'"):
        tangent_kernel(data, Network([1.0], [[1.0, 0.0]]), train="output")
    with pytest.raises(InputError, match="takes 3 inputs"):
        tangent_kernel(data, Network([1.0], [[1.0, 0.0, 0.0]]))
