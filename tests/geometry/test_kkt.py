import itertools

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import lsq_linear
from scipy.stats import ortho_group

from reluflow import Dataset, Network
from reluflow.errors import InputError
from reluflow.geometry import kkt

from .helpers import permuted, seeds, shifted

FOUR = Dataset([[4.0, 1.0], [-4.0, 1.0]], [1.0, 1.0])
CONSTANT = Network([1.0, 0.0], [[0.0, 1.0], [0.0, 0.0]])

X6 = np.array([-2.0, -1.2, -0.3, 0.4, 1.1, 2.0])
SIX = Dataset(np.column_stack([X6, np.ones(6)]), [1.0, 1.0, -1.0, -1.0, 1.0, 1.0])


def neuron(w, b, sign):
    """A balanced neuron whose product |v| (w, b) is the one given."""
    size = np.sqrt(np.hypot(w, b))
    return sign * size, [w / size, b / size]


def network(*products):
    neurons = [neuron(*product) for product in products]
    return Network([a for a, _ in neurons], [w for _, w in neurons])


# the certified optimum of the six points: a constant -1 and kinks exactly on -0.3 and 0.4
SIX_OPTIMUM = network((0.0, 1.0, -1.0), (2 / 0.7, -0.8 / 0.7, 1.0), (-2 / 0.9, -0.6 / 0.9, 1.0))


def residual_by_definition(data, net, result):
    """epsilon, delta of the multipliers and gates returned, weight by weight."""
    flat = net.flat()
    q = data.y * flat.predict(data.X)
    root = np.sqrt(q.min())
    a, W = flat.a / root, flat.W / root
    total = 0.0
    for j in range(net.width):
        grad_a, grad_w = 0.0, np.zeros(net.d)
        for i in range(data.n):
            z = W[j] @ data.X[i]
            grad_a += result.multipliers[i] * data.y[i] * max(z, 0.0)
            grad_w += (
                result.multipliers[i] * data.y[i] * a[j] * result.activations[i, j] * data.X[i]
            )
        total += (a[j] - grad_a) ** 2 + ((W[j] - grad_w) ** 2).sum()
    delta = (result.multipliers * (q / q.min() - 1)).max()
    return np.sqrt(total), delta


def test_example_one_is_a_kkt_point():
    result = kkt(FOUR, CONSTANT)
    assert result.multipliers == pytest.approx([0.5, 0.5], rel=1e-12)
    assert result.epsilon < 1e-14
    assert result.delta == 0.0


def test_comparison_point_is_not():
    result = kkt(FOUR, Network([0.5, 0.5], [[0.5, 0.0], [-0.5, 0.0]]))
    assert result.epsilon == pytest.approx(np.sqrt(1 - 8 / 8.25), rel=1e-12)  # 0.174
    assert result.multipliers == pytest.approx([2 / 8.25, 2 / 8.25], rel=1e-12)
    assert result.eps_rel == pytest.approx(result.epsilon, rel=1e-12)  # |theta| = 1


def test_global_optimum_of_example_one():
    net = network((4 / 17, 1 / 17, 1.0), (-4 / 17, 1 / 17, 1.0))
    result = kkt(FOUR, net)
    assert net.squared_norm == pytest.approx(4 / np.sqrt(17), rel=1e-14)
    assert result.multipliers == pytest.approx(np.full(2, 17**-0.5), rel=1e-12)
    assert result.epsilon < 1e-14


def test_kinks_on_data_points_need_clarke_sets():
    result = kkt(SIX, SIX_OPTIMUM)
    assert result.epsilon < 1e-12
    assert result.delta < 1e-12
    assert 2 * result.multipliers.sum() == pytest.approx(SIX_OPTIMUM.squared_norm, rel=1e-12)
    value = 1 + 2 / 0.7 * np.sqrt(1.16) + 2 / 0.9 * np.sqrt(1.09)
    assert result.multipliers.sum() == pytest.approx(value, rel=1e-12)
    gates = result.activations
    assert 0.0 < gates[3, 1] < 1.0
    assert 0.0 < gates[2, 2] < 1.0
    # the same weights with the boundary moved off the points are no KKT point
    shift = np.array([[0.0, 0.0], [0.0, -1e-5], [0.0, -1e-5]])
    moved = Network(SIX_OPTIMUM.a, SIX_OPTIMUM.W + shift)
    assert kkt(SIX, moved).eps_rel > 0.1
    assert kkt(SIX, moved, tol=1e-3).eps_rel < 1e-4


def test_many_neurons_on_one_point():
    """Twenty copies of the sliding neurons: twenty ambiguous gates for each of two points."""
    copies = 20
    a, W = SIX_OPTIMUM.a / np.sqrt(copies), SIX_OPTIMUM.W / np.sqrt(copies)
    rng = np.random.default_rng(0)
    net = permuted(Network(np.tile(a, copies), np.tile(W, (copies, 1))), rng)
    result = kkt(SIX, net)
    assert result.epsilon < 1e-11
    assert result.multipliers == pytest.approx(kkt(SIX, SIX_OPTIMUM).multipliers, abs=1e-9)


def sliding_problem(seed):
    """Random weights with several neurons exactly on several points; never a KKT point."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.choice(np.arange(-8, 9), 5, replace=False)) / 4.0
    kink = rng.choice(x, 6)
    w = rng.choice([-1.0, 1.0], 6) * rng.choice([0.5, 1.0, 2.0], 6)
    net = Network(rng.normal(size=6), np.column_stack([w, -w * kink]))
    X = np.column_stack([x, np.ones(5)])
    h = net.predict(X)
    keep = np.abs(h) > 1e-3
    return Dataset(X[keep], np.sign(h[keep])), net


@pytest.mark.parametrize("seed", range(8))
def test_optimal_over_clarke_sets_by_enumeration(seed):
    """All vertices of all Clarke sets as columns, solved by bounded least squares."""
    data, net = sliding_problem(seed)
    result = kkt(data, net)
    q = data.y * net.predict(data.X)
    root = np.sqrt(q.min())
    a, W, q = net.a / root, net.W / root, q / q.min()
    z = data.X @ W.T
    columns = []
    for i in range(data.n):
        choices = [(0.0, 1.0) if abs(v) < 1e-12 else (float(v > 0),) for v in z[i]]
        for gates in itertools.product(*choices):
            hidden = np.outer(data.y[i] * a * gates, data.X[i]).ravel()
            slack = 10.0 * (q[i] - 1.0) * np.eye(data.n)[i]
            columns.append(np.concatenate([hidden, data.y[i] * np.maximum(z[i], 0.0), slack]))
    target = np.concatenate([W.ravel(), a, np.zeros(data.n)])
    best = lsq_linear(np.array(columns).T, target, (0.0, np.inf), method="bvls", tol=1e-14)
    ours = result.epsilon**2 + ((10 * result.multipliers * (result.margins - 1)) ** 2).sum()
    assert len(columns) > data.n
    assert ours == pytest.approx(2 * best.cost, rel=1e-9, abs=1e-12)
    epsilon, delta = residual_by_definition(data, net, result)
    assert result.epsilon == pytest.approx(epsilon, rel=1e-10)
    assert result.delta == pytest.approx(delta, rel=1e-9, abs=1e-13)
    assert ((result.activations >= 0) & (result.activations <= 1 + 1e-12)).all()


def test_slackness_rows_keep_weight_off_slack_points():
    """A slack point with the gradient of a tight one, doubled: only slackness tells them apart."""
    data = Dataset([[1.0, 0.0], [2.0, 0.0]], [1.0, 1.0])
    net = Network([1.0], [[1.0, 0.0]])
    result = kkt(data, net)
    assert result.multipliers == pytest.approx([1.0, 0.0], abs=1e-12)
    assert result.delta == pytest.approx(0.0, abs=1e-12)
    assert result.epsilon < 1e-12


def test_general_dimension_without_bias():
    """Max margin of one neuron through two orthogonal points: w = (1, 1), lambda both 1."""
    rng = np.random.default_rng(1)
    Q = ortho_group.rvs(4, random_state=rng)
    data = Dataset(np.eye(4)[:2] @ Q, [1.0, 1.0])
    size = 2**0.25
    net = Network([size], [np.array([1.0, 1.0, 0.0, 0.0]) / size @ Q])
    result = kkt(data, net)
    assert result.epsilon < 1e-13
    assert result.multipliers == pytest.approx([2**-0.5, 2**-0.5], rel=1e-12)
    assert kkt(data, Network([1.0], [np.array([1.0, 1.0, 0.3, 0.0]) @ Q])).eps_rel > 0.1


@given(seeds)
def test_invariances(seed):
    rng = np.random.default_rng(seed)
    n, d, width = 4, 3, 4
    X = rng.normal(size=(n, d))
    net = Network(rng.normal(size=width), rng.normal(size=(width, d)))
    h = net.predict(X)
    keep = np.abs(h) > 1e-2
    if not keep.any():
        return
    data = Dataset(X[keep], np.sign(h[keep]))
    base = kkt(data, net)
    Q = ortho_group.rvs(d, random_state=rng)
    for other_data, other in (
        (data, permuted(net, rng)),
        (data, shifted(net, -1e6)),
        (data, shifted(net, 500.0)),
        (Dataset(data.X @ Q, data.y), Network(net.a, net.W @ Q)),
    ):
        result = kkt(other_data, other)
        assert result.epsilon == pytest.approx(base.epsilon, rel=1e-9)
        assert result.multipliers == pytest.approx(base.multipliers, rel=1e-7, abs=1e-9)
    epsilon, delta = residual_by_definition(data, net, base)
    assert base.epsilon == pytest.approx(epsilon, rel=1e-9)
    assert base.delta == pytest.approx(delta, rel=1e-7, abs=1e-12)
    assert base.eps_rel <= 1.0 + 1e-12  # lambda = 0 is allowed


def test_unseparated_points_are_named():
    with pytest.raises(InputError, match=r"point 1 has the normalised margin -0\.5"):
        kkt(Dataset(FOUR.X, [1.0, -1.0]), CONSTANT)
    with pytest.raises(InputError, match="margin 0, which is not positive"):
        kkt(FOUR, Network([1.0], [[1.0, 0.0]]))
    with pytest.raises(InputError, match=r"y\[1\] is 3"):
        kkt(Dataset(FOUR.X, [1.0, 3.0]), CONSTANT)
