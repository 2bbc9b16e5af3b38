"""The pieces behind the high-dimensional rows against independent computations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

import reluflow as rf
from reluflow.papers.highdim import gram, lemmas, minimum
from reluflow.papers.highdim.draws import (
    assigned_start,
    deal,
    positive_start,
    random_start,
    step_size,
    trace_of,
)

from .highdim_subjects import HALF, case_of, one, row, train

FEW = settings(max_examples=8, deadline=None)


def loop_of(problem, steps):
    X, y, s = problem.data.X, problem.data.y, problem.net.flat().a
    P = problem.net.flat().W @ X.T
    B = np.linalg.solve(problem.data.gram, P.T).T
    return gram.gram_loop(problem.data.gram, y, s, P, B, problem.lr, steps)


def test_gram_form_and_weights_are_the_same_iteration():  # HD-02
    problem = assigned_start(9, 12, (1, -1, 1), eps=0.2, constant=6.0, seed=3)
    loop = loop_of(problem, 400)
    W = gram.weight_loop(
        problem.data.X, problem.data.y, problem.net.a, problem.net.flat().W, problem.lr, 400
    )
    np.testing.assert_allclose(loop.B[-1] @ problem.data.X, W, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(loop.P[-1], W @ problem.data.X.T, rtol=1e-9, atol=1e-11)
    assert loop.steps == 400
    times = [t for t, _, _ in loop.changes()]
    assert times == sorted(times)


def test_overlapping_patterns_end_where_the_long_loop_ends():  # HD-08 with the Hadamard product
    problem = positive_start(6, 5000, signs=(1, 1, -1), eps=0.01, constant=4.0, seed=0)
    loop = loop_of(problem, 400)
    last = loop.P[20]
    A = last > 0
    assert (A.sum(axis=0) > 1).any()
    change = gram.frozen_limit(problem.data.gram, problem.data.y, problem.net.a, last, A)
    np.testing.assert_allclose(loop.B[20] + change, loop.B[-1], rtol=1e-9, atol=1e-15)
    assert gram.smoothness(problem.data.gram, A) >= np.linalg.eigvalsh(problem.data.gram)[-1]
    W, norms = gram.linear_loop(
        problem.data.X,
        problem.data.y,
        problem.net.a,
        loop.B[20] @ problem.data.X,
        A,
        problem.lr,
        380,
    )
    np.testing.assert_allclose(W, loop.B[-1] @ problem.data.X, atol=1e-12)
    assert (np.diff(norms) <= 1e-14).all()
    assert gram.smoothness(problem.data.gram, np.zeros((2, 6), bool)) == 0.0


def test_one_active_set_is_a_projection():  # Lemma 2
    problem = one(n=8, d=2000)
    loop = loop_of(problem, 3)
    X, y, A = problem.data.X, problem.data.y, loop.P[3] > 0
    w = loop.B[3][0] @ X
    closest = w + np.linalg.pinv(X[A[0]]) @ (y[A[0]] - X[A[0]] @ w)
    change = gram.frozen_limit(problem.data.gram, y, np.ones(1), loop.P[3], A)
    np.testing.assert_allclose(w + change[0] @ X, closest, atol=1e-14)


@FEW
@given(seed=st.integers(0, 1000), d=st.sampled_from([9, 14, 200]))
def test_the_shortest_neuron_by_four_routes(seed, d):  # HD-11, HD-12
    data = rf.datasets.bartlett(8, d, seed=seed)
    star = rf.interpolators.single_relu(data)
    G, y, positive = data.gram, data.y, data.y > 0
    b = np.linalg.solve(G, data.X @ star.W[0])
    assert minimum.kkt_residual(G, y, b) < 1e-9
    assert minimum.kkt_residual(G, y, 1.001 * b) > 1e-4
    assert minimum.one_by_enumeration(G, y) == pytest.approx(star.value, rel=1e-9)
    low, high = minimum.one_by_program(data.X, y)
    assert low * (1 - 1e-9) <= star.value <= high * (1 + 1e-9)
    assert high - low < 1e-6 * star.value
    np.testing.assert_allclose(minimum.interpolation_on_support(G, y, b), b, atol=1e-9 / d)
    # non-negative least squares on the Schur complement, by hand
    inv = np.linalg.inv(G[np.ix_(positive, positive)])
    cross = G[np.ix_(~positive, positive)]
    S = G[np.ix_(~positive, ~positive)] - cross @ inv @ cross.T
    L = np.linalg.cholesky(S)
    nu, _ = nnls(L.T, np.linalg.solve(L, cross @ inv @ y[positive]))
    np.testing.assert_allclose(b[~positive], -nu, atol=1e-8 / d)


@FEW
@given(seed=st.integers(0, 1000))
def test_two_neurons_by_enumeration_and_branching(seed):  # HD-21
    data = rf.datasets.bartlett(5, 7, seed=seed)
    least = minimum.two_by_enumeration(data.X, data.y)
    answer = rf.interpolators.two_relu(data)
    assert answer.value == pytest.approx(least, rel=1e-7)
    assert minimum.two_by_hull(data.X, data.y)[0] <= least * (1 + 1e-9)


def test_copies_of_a_sign_are_matched():
    W = np.array([[1.0, 0.0], [0.0, 2.0], [5.0, 5.0]])
    swapped = W[[1, 0, 2]]
    assert minimum.nearest_copy(W, swapped, np.array([1.0, 1.0, -1.0])) == 0.0
    assert minimum.nearest_copy(W, swapped, np.array([1.0, -1.0, 1.0])) > 1.0
    assert minimum.distance_to_shortest(rf.Dataset(np.eye(2), [1.0, -1.0]), W[0]) == 0.0


def test_lemmas_count_what_they_say():
    G, y, s = np.eye(2), np.array([1.0, -1.0]), np.ones(1)
    loop = gram.gram_loop(G, y, s, np.full((1, 2), 0.1), np.full((1, 2), 0.1), 0.5, 2)
    up, down = lemmas.lemma5(G, y, s, 0.5, loop), lemmas.lemma6(G, loop)
    assert (up.applied, up.violated) == (2, 0)  # the first point, at two steps
    assert (down.applied, down.violated) == (1, 0)  # the second, once it is off
    found = lemmas.invariant(y, s, 1.0, np.array([[True, False]]), loop)
    assert all(found.facts.values())
    assert found.lowest == pytest.approx(0.45)  # kicked from 0.1 by half of 1.1
    wrong = lemmas.invariant(y, s, 1.0, np.array([[False, True]]), loop)
    assert not any(list(wrong.facts.values())[:2])


def test_problems_are_built_as_they_say():
    problem = positive_start(6, 500, constant=3.0, seed=1)
    assert 1.0 / (problem.lr * 500) == pytest.approx(3.0)
    np.testing.assert_allclose(
        problem.net.W @ problem.data.X.T, 0.02 * np.abs(problem.data.y).min() / 3.0, rtol=1e-9
    )
    assert step_size(rf.datasets.bartlett(20, 20, seed=0), 1.0) < 1 / 20  # raised by mu_max
    assert trace_of(rf.Dataset(np.eye(3) * 2, np.ones(3))) == 4.0
    P = random_start(30, 10**6, 0.1, seed=0).net.W @ rf.datasets.bartlett(30, 10**6, seed=0).X.T
    assert 0.05 < P.std() < 0.2
    tau = deal(np.array([1.0, -1.0, 2.0, 3.0, -1.0]), np.array([1.0, -1.0, 1.0]))
    assert tau.tolist() == [0, 1, 2, 0, 1]


def test_the_leading_order_of_many_neurons():  # T6 with a start that is not negligible
    n, d, s = 8, 10**6, np.array([1.0, 1.0, -1.0, -1.0, -1.0])
    problem = assigned_start(n, d, s, eps=0.1, seed=0)
    run = train(problem)
    y, eps = np.abs(problem.data.y), 0.1 * np.abs(problem.data.y).min()
    kin = np.where(problem.data.y > 0, 2, 3)
    others, kick = 5 - kin, problem.lr * d
    law = (y * (1 - 1 / kin)) ** 2 + (kin - 1) * (eps + y / kin) ** 2
    law = law + others * (eps - kick * (y + (others - 1) * eps)) ** 2
    star = rf.interpolators.multi_relu(problem.data, s)
    gap = minimum.nearest_copy(run.final.flat().W, star.W, s)
    assert d * gap**2 == pytest.approx(law.sum(), rel=0.02)


# ---------------------------------------------------------------- symmetries of the dynamics


def run_of(data, net, lr):
    return rf.descend(data, net, lr=lr, steps=np.inf, loss=HALF, train="hidden")


@FEW
@given(seed=st.integers(0, 1000), d=st.sampled_from([10, 60, 5000]))
def test_symmetries_of_descent(seed, d):
    rng = np.random.default_rng(seed)
    data = rf.datasets.bartlett(7, d, seed=seed)
    net = rf.networks.by_preactivations(data, rng.uniform(0.01, 0.1, (2, 7)), [1, -1])
    lr = step_size(data, 4.0)
    base = run_of(data, net, lr)
    if base.stats["frozen_from"] is None:
        return  # a limit on a boundary: neighbouring runs may part
    W, size = base.final.flat().W, np.abs(base.final.flat().W).max()

    flipped = run_of(rf.Dataset(data.X, -data.y), rf.Network(-net.a, net.W), lr)
    np.testing.assert_allclose(flipped.final.flat().W, W, atol=1e-12 * size)

    order = rng.permutation(7)
    shuffled = run_of(rf.Dataset(data.X[order], data.y[order]), net, lr)
    np.testing.assert_allclose(shuffled.final.flat().W, W, atol=1e-9 * size)
    assert shuffled.stats["last_change"] == base.stats["last_change"]

    Q = np.linalg.qr(rng.normal(size=(7, 7)))[0]
    turned = run_of(rf.Dataset(data.X @ Q, data.y), rf.Network(net.a, net.W @ Q), lr)
    np.testing.assert_allclose(turned.final.flat().W, W @ Q, atol=1e-9 * size)

    larger = run_of(rf.Dataset(data.X, 4 * data.y), rf.Network(net.a, 4 * net.W), lr)
    np.testing.assert_allclose(larger.final.flat().W, 4 * W, atol=1e-12 * size)
    zoomed = run_of(rf.Dataset(2 * data.X, data.y), rf.Network(net.a, net.W / 2), lr / 4)
    np.testing.assert_allclose(zoomed.final.flat().W, W / 2, atol=1e-12 * size)


# -------------------------------------------------------------------- flow and small steps


def projected_flow(G, y, h, steps):
    """Euler steps of the gradient of the positives, projected on the cone of inactive negatives."""
    up, down = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    L = np.linalg.cholesky(G[np.ix_(down, down)])
    b = np.zeros(len(y))
    for _ in range(steps):
        b[up] -= h * (G[up] @ b - y[up])
        over = G[down] @ b
        if (over > 0).any():
            nu, _ = nnls(L.T, np.linalg.solve(L, over))
            b[down] -= nu
    return b


@pytest.mark.parametrize(("d", "seed"), [(9, 3), (14, 3), (60, 1)])
def test_the_flow_from_a_small_start_ends_where_the_projected_flow_ends(d, seed):
    """Close to the shortest fit, and not at it: complementary slackness fails on the way."""
    data = rf.datasets.bartlett(6, d, n_positive=3, seed=seed)
    G, y = data.gram, data.y
    net = rf.networks.by_preactivations(data, 1e-7, [1])
    flow = rf.flow(data, net, loss=HALF, train="hidden", record=2)
    assert flow.status == "stationary"
    assert (flow.final.preactivations(data.X)[y > 0] > 0).all()
    slow = float(np.linalg.eigvalsh(G[np.ix_(y > 0, y > 0)])[0])
    h = 0.02 / float(np.linalg.eigvalsh(G)[-1])
    steps = int(20 / (h * slow))
    ends = [projected_flow(G, y, h / k, k * steps) @ data.X for k in (1, 2)]
    limit, size = 2 * ends[1] - ends[0], np.linalg.norm(ends[1])  # Richardson
    assert np.linalg.norm(flow.final.flat().W[0] - limit) < 1e-6 * size
    star = rf.interpolators.single_relu(data).W[0]
    assert 1e-3 < np.linalg.norm(limit - star) / size < 1e-2


def test_orthogonal_negatives_are_hit_when_the_formula_says():
    data = rf.Dataset(np.diag([1.0, 2.0, 3.0]), [1.0, -0.7, -1.5])
    eps = 0.05
    net = rf.networks.by_preactivations(data, eps, [1])
    flow = rf.flow(data, net, loss=HALF, train="hidden")
    hits = flow.events[flow.events["kind"] == "deactivate"]
    for i, g in ((1, 4.0), (2, 9.0)):
        t = float(hits["t"][hits["point"] == i][0])
        assert t == pytest.approx(np.log1p(eps / abs(data.y[i])) / g, rel=1e-7)


def test_smaller_steps_bring_descent_to_the_flow():  # HD-32
    found = row(case_of(one(n=6, d=200)), "HD-32")
    assert found.verdict == "PASS", found
