"""The jump process against a naive one with Python sets, and the facts that follow from it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reluflow as rf
from reluflow.errors import InputError

from_masks = rf.limits.saddle_to_saddle_from_masks


def naive(masks, signs, y, kappa):
    """Jumps (time, neurons, points, margin) by the definition, neuron by neuron."""
    sets = {
        j: {i for i in range(len(y)) if masks[j][i] and signs[j] * y[i] > 0}
        for j in range(len(signs))
    }
    groups = {}
    for j, mine in sets.items():
        if mine:
            groups.setdefault(frozenset(mine), []).append(j)
    r = dict.fromkeys(groups, -1.0)
    unfitted, t, jumps = set(range(len(y))), 0.0, []
    while True:
        v = {g: kappa * math.sqrt(math.fsum(y[i] ** 2 for i in g & unfitted)) for g in r}
        waits = {g: -r[g] / v[g] for g in r if g & unfitted}
        if not waits:
            return jumps, unfitted
        winner = min(waits, key=waits.get)
        wait = waits[winner]
        others = [waits[g] for g in waits if g != winner]
        t += wait
        for g in r:
            r[g] += v[g] * wait
        del r[winner]
        jumps.append((t, groups[winner], winner & unfitted, min(others, default=math.inf) - wait))
        unfitted -= winner


@st.composite
def problems(draw):
    seed = draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    n, m = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    masks = rng.random((m, n)) < draw(st.floats(0.1, 0.9))
    return masks, np.sign(rng.normal(size=m)), rng.normal(size=n), draw(st.floats(0.1, 3.0))


@given(problems())
def test_process_equals_the_naive_one(problem):
    masks, signs, y, kappa = problem
    limit = from_masks(masks, signs, y, kappa=kappa)
    jumps, left = naive(masks.tolist(), signs.tolist(), y.tolist(), kappa)
    assert [list(g) for g in limit.groups] == [g for _, g, _, _ in jumps]
    assert [set(f.tolist()) for f in limit.fitted] == [f for _, _, f, _ in jumps]
    assert limit.times == pytest.approx([t for t, _, _, _ in jumps], rel=1e-12)
    assert limit.margins == pytest.approx([gap for *_, gap in jumps], rel=1e-9, abs=1e-12)
    assert set(limit.uncovered.tolist()) == left


@given(problems())
def test_facts_of_the_process(problem):
    masks, signs, y, kappa = problem
    limit = from_masks(masks, signs, y, kappa=kappa)
    matching = masks & (signs[:, None] * y > 0)
    fitted = np.concatenate([np.empty(0, int), *limit.fitted])
    assert len(np.unique(fitted)) == len(fitted)
    assert sorted(fitted) == np.flatnonzero(matching.any(axis=0)).tolist()
    assert limit.interpolates == matching.any(axis=0).all()
    assert limit.losses[0] == pytest.approx(0.5 * kappa * (y @ y), rel=1e-13)
    assert np.all(np.diff(limit.losses) < 0)
    left = y[limit.uncovered]
    assert limit.losses[-1] == pytest.approx(0.5 * kappa * (left @ left), rel=1e-13)
    # exponents: concave, -1 at the start, never above 0, 0 exactly for those that jumped
    taus = np.linspace(0.0, 1.2 * max(limit.times, default=1.0), 41)
    r = limit.exponents(taus)
    assert np.all(r[0] == -1.0)
    assert np.all(r <= 0)
    assert np.all(np.diff(r, n=2, axis=0) <= 1e-12)
    jumped = np.concatenate([np.empty(0, int), *limit.groups])
    assert sorted([*jumped, *limit.dead, *limit.frozen]) == list(range(len(signs)))
    assert np.all(r[-1][jumped] == 0)
    assert np.all(r[:, limit.dead] == -1)
    assert np.all(r[-1][limit.frozen] < 0)
    if limit.interpolates:
        assert limit.squared_norm >= limit.minimal_squared_norm * (1 - 1e-12)


def dataset(seed, n=6, m=8, d=None, rotate=True):
    rng = np.random.default_rng(seed)
    X = np.eye(n, d or n)
    if rotate:
        X = X @ np.linalg.qr(rng.normal(size=(X.shape[1], X.shape[1])))[0]
    W, s = rng.normal(size=(m, X.shape[1])), np.sign(rng.normal(size=m))
    return rf.Dataset(X, rng.normal(size=n)), rf.Network(s * np.linalg.norm(W, axis=1), W, -30.0)


def gradient(data, net, kappa):
    """Gradient of the loss with relu'(0) = 0; rounding of a rotation is no activity."""
    pre = np.where(np.abs(data.X @ net.W.T) < 1e-14, 0.0, data.X @ net.W.T)
    h = np.maximum(pre, 0) @ net.a
    r = data.y - h
    ga = -kappa * np.maximum(pre, 0).T @ r
    gw = -kappa * net.a[:, None] * ((pre > 0) * r[:, None]).T @ data.X
    return np.concatenate([ga, gw.ravel()])


@pytest.mark.parametrize("seed", range(6))
def test_saddles_are_stationary_fit_their_points_and_have_the_stated_norm(seed):
    data, net = dataset(seed, d=9)
    limit = rf.limits.saddle_to_saddle(data, net)
    done = np.zeros(data.n, bool)
    for k in range(len(limit.times) + 1):
        saddle = limit.saddle(k)
        h = saddle.predict(data.X)
        assert h[done] == pytest.approx(data.y[done], abs=1e-13)
        assert np.abs(h[~done]).max(initial=0.0) < 1e-13
        assert np.abs(gradient(data, saddle, limit.kappa)).max() < 1e-13
        loss = rf.losses.Square().value(h, data.y)
        assert loss == pytest.approx(limit.losses[k], abs=1e-13)
        assert saddle.squared_norm == pytest.approx(2 * limit.norms[:k].sum(), rel=1e-13)
        if k < len(limit.times):
            done[limit.fitted[k]] = True
    assert limit.network == limit.saddle(len(limit.times))
    assert limit.squared_norm == pytest.approx(limit.network.squared_norm, rel=1e-13)


def test_full_cover_gives_two_jumps_and_the_minimal_norm():
    y = np.array([3.0, -1.0, 4.0, -2.0])
    W = np.array([[1.0, -1, 1, -1], [-1.0, 1, -1, 1], [1.0, -1, -1, -1]])
    data = rf.Dataset(np.eye(4), y)
    limit = rf.limits.saddle_to_saddle(data, rf.Network([2.0, -2.0, 2.0], W), kappa=0.7)
    assert limit.times == pytest.approx([1 / (0.7 * 5), 1 / (0.7 * np.sqrt(5))], rel=1e-15)
    assert limit.squared_norm == pytest.approx(limit.minimal_squared_norm, rel=1e-15)
    assert limit.minimal_squared_norm == pytest.approx(2 * (5 + np.sqrt(5)), rel=1e-15)
    assert limit.frozen.tolist() == [2]
    assert np.all(limit.exponents(100.0)[[0, 1]] == 0)


def test_one_sign_of_labels_full_cover_gives_one_jump():
    limit = from_masks([[1, 1]], [1], [3.0, 4.0])
    assert limit.times == pytest.approx([2 / 5])
    assert limit.margins == [np.inf]


def test_no_sign_matching_neuron_means_no_jump():
    limit = from_masks([[1, 1]], [-1], [3.0, 4.0])
    assert len(limit.times) == 0
    assert not limit.interpolates
    assert limit.losses == pytest.approx([0.25 * 25])
    assert limit.exponents(3.0) == pytest.approx([-1.0])
    assert limit.rate(2.0) == 1.0
    assert limit.dead.tolist() == [0]


def test_slope_uses_unfitted_points_only():
    # the second neuron shares the large point: after the first jump it grows by the small one alone
    limit = from_masks([[1, 1, 0], [0, 1, 1]], [1, 1], [3.0, 4.0, 1.0], kappa=1.0)
    r = -1 + np.sqrt(17) / 5
    assert limit.times == pytest.approx([0.2, 0.2 - r / 1.0], rel=1e-14)
    assert limit.norms == pytest.approx([5.0, 1.0])
    assert limit.exponents(0.2) == pytest.approx([0.0, r])


def test_wrong_sign_activity_does_not_split_groups():
    limit = from_masks([[1, 1, 0], [1, 1, 1]], [1, 1], [1.0, 2.0, -1.0])
    assert [g.tolist() for g in limit.groups] == [[0, 1]]


# ------------------------------------------------------------------ ties


def test_tie_of_disjoint_groups_is_harmless_and_flagged():
    limit = from_masks(np.eye(3), [1, -1, 1], [2.0, -2.0, 2.0])
    assert limit.times == pytest.approx([1.5, 1.5, 1.5])
    assert not limit.is_degenerate
    assert [(tie.jump, tie.groups, tie.overlap) for tie in limit.ties] == [
        (0, (0, 1), False),
        (0, (0, 2), False),
        (1, (1, 2), False),
    ]


@pytest.mark.parametrize("scale", [3 / 97, 11 / 97, 17 / 97])
def test_tie_of_three_is_seen_through_the_rounding_of_the_first_jump(scale):
    # three ways to write 5: the waits left after the first jump are of the order of rounding
    y = np.array([3.0, 4.0, 5.0, np.sqrt(5), 2 * np.sqrt(5)]) * scale
    masks = [[1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 1]]
    limit = from_masks(masks, [1, 1, 1], y)
    assert [tie.jump for tie in limit.ties] == [0, 0, 1]
    assert np.ptp(limit.times) < 1e-13 * limit.times[0]


def test_tie_of_overlapping_groups_is_degenerate():
    limit = from_masks([[1, 1, 0], [0, 1, 1]], [1, 1], [1.0, 2.0, 1.0])
    assert limit.is_degenerate
    assert limit.margins[0] == 0.0
    assert limit.ties[0].overlap


def test_margin_above_tolerance_is_no_tie():
    y = [1.0, 2.0, 1.0 + 1e-6]
    assert not from_masks([[1, 1, 0], [0, 1, 1]], [1, 1], y).ties
    y = [1.0, 2.0, 1.0 + 1e-12]
    assert from_masks([[1, 1, 0], [0, 1, 1]], [1, 1], y).is_degenerate


def test_continuous_labels_never_tie():
    for seed in range(20):
        data, net = dataset(seed, n=12, m=10, rotate=False)
        assert not rf.limits.saddle_to_saddle(data, net).ties


def test_labels_of_very_different_size_survive():
    limit = from_masks(np.eye(3), [1, 1, 1], [1e-100, 1.0, 1e100], kappa=1.0)
    assert limit.times == pytest.approx([1e-100, 1.0, 1e100], rel=1e-14, abs=0.0)
    assert limit.interpolates


# ------------------------------------------------------------------ invariances


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.floats(0.1, 10.0))
def test_invariance_under_rotation_permutation_and_scaling(seed, factor):
    rng = np.random.default_rng(seed)
    data, net = dataset(seed)
    base = rf.limits.saddle_to_saddle(data, net)
    Q = np.linalg.qr(rng.normal(size=(data.d, data.d)))[0]
    rotated = rf.limits.saddle_to_saddle(
        rf.Dataset(data.X @ Q, data.y),
        rf.Network(net.mantissa.a, net.mantissa.W @ Q, net.log_scale),
    )
    points, neurons = rng.permutation(data.n), rng.permutation(net.width)
    permuted = rf.limits.saddle_to_saddle(
        rf.Dataset(data.X[points], data.y[points]),
        rf.Network(net.mantissa.a[neurons], net.mantissa.W[neurons]),
    )
    for other in (rotated, permuted):
        assert other.times == pytest.approx(base.times, rel=1e-9)
        assert other.losses == pytest.approx(base.losses, rel=1e-9, abs=1e-15)
        assert other.sharp_times(-200.0) == pytest.approx(base.sharp_times(-200.0), rel=1e-9)
    assert [set(neurons[g]) for g in permuted.groups] == [set(g) for g in base.groups]
    assert pytest.approx(base.network.W, abs=1e-12) == rotated.network.W @ Q.T
    assert permuted.network.a == pytest.approx(base.network.a[neurons], abs=1e-12)

    faster = rf.limits.saddle_to_saddle(data, net, kappa=factor / data.n)
    assert faster.times == pytest.approx(base.times / factor, rel=1e-12)
    assert faster.norms == pytest.approx(base.norms, rel=1e-12)
    assert faster.sharp_times(-99.0) == pytest.approx(base.sharp_times(-99.0) / factor, rel=1e-10)
    larger = rf.limits.saddle_to_saddle(rf.Dataset(data.X, factor * data.y), net)
    assert larger.times == pytest.approx(base.times / factor, rel=1e-12)
    assert larger.squared_norm == pytest.approx(factor * base.squared_norm, rel=1e-12)


def test_masks_and_network_agree_and_both_orientations_are_read():
    data, net = dataset(3)
    masks = net.mantissa.W @ data.X.T > 0
    full = rf.limits.saddle_to_saddle(data, net)
    for given_masks in (masks, masks.T, masks.astype(int)):
        limit = from_masks(given_masks, net.signs, data.y)
        assert np.array_equal(limit.times, full.times)
        assert limit.network is None
    with pytest.raises(InputError, match="masks, which do not hold the points"):
        limit.saddle(0)
    with pytest.raises(InputError, match="Sharp times need them"):
        limit.sharp_times(-10.0)


def test_many_points_need_no_inputs():
    rng = np.random.default_rng(0)
    n, m = 20_000, 60
    limit = from_masks(rng.random((m, n)) < 0.5, np.sign(rng.normal(size=m)), rng.normal(size=n))
    assert limit.interpolates
    assert 1.0 <= limit.squared_norm / limit.minimal_squared_norm < 3.0


# ------------------------------------------------------------------ refusals


def test_data_that_is_not_orthonormal_at_the_scale_of_the_start_is_refused():
    X = np.eye(3)
    X[0, 1] = 1e-6
    data = rf.Dataset(X, np.ones(3))
    assert rf.limits.saddle_to_saddle(data, rf.Network([1.0], [[1.0, 0, 0]])).groups
    deep = rf.Network([1.0], [[1.0, 0, 0]], log_scale=-20.0)
    with pytest.raises(InputError, match=r"not orthonormal: x_0\.x_1 is 1e-06"):
        rf.limits.saddle_to_saddle(data, deep)
    X[0, 1] = 1e-16
    assert rf.limits.saddle_to_saddle(rf.Dataset(X, np.ones(3)), deep).groups


def test_unbalanced_networks_and_zero_labels_are_refused():
    data = rf.Dataset(np.eye(2), [1.0, 2.0])
    with pytest.raises(InputError, match=r"not balanced: .* at neuron 1"):
        rf.limits.saddle_to_saddle(data, rf.Network([1.0, 0.5], np.eye(2)))
    with pytest.raises(InputError, match=r"label y\[1\] is zero"):
        rf.limits.saddle_to_saddle(rf.Dataset(np.eye(2), [1.0, 0.0]), rf.Network([1.0], [[1.0, 0]]))
    deep = rf.Network([1.0], [[1.0, 0]], -1e6, log_scale_out=-1e6)
    assert len(rf.limits.saddle_to_saddle(data, deep).times) == 1


@pytest.mark.parametrize(
    ("masks", "signs", "y", "message"),
    [
        ([[1, 0]], [1], [1.0, 0.0], r"y\[1\] is 0"),
        ([[1, 0]], [2], [1.0, 1.0], r"signs\[0\]` is 2"),
        ([[1, 0, 1]], [1], [1.0, 1.0], r"shape \(1, 3\) for 1 signs and 2 labels"),
        ([[0.5, 0]], [1], [1.0, 1.0], "other than 0 and 1"),
        ([[1, 0]], [1], [1.0, np.nan], "non-finite"),
        (np.empty((1, 0)), [1], [], "`y` is empty"),
    ],
)
def test_bad_masks_are_refused(masks, signs, y, message):
    with pytest.raises(InputError, match=message):
        from_masks(masks, signs, y)


def test_bad_times_plateaus_and_kappa_are_refused():
    data, net = dataset(0)
    limit = rf.limits.saddle_to_saddle(data, net)
    with pytest.raises(InputError, match="training starts at 0"):
        limit.exponents(-0.5)
    with pytest.raises(InputError, match="`tau` is -1"):
        limit.rate(-1.0)
    with pytest.raises(InputError, match="plateaus are numbered"):
        limit.saddle(99)
    with pytest.raises(InputError, match="`kappa` is 0"):
        rf.limits.saddle_to_saddle(data, net, kappa=0.0)
    with pytest.raises(InputError, match="takes 2 inputs"):
        rf.limits.saddle_to_saddle(data, rf.Network([1.0], [[1.0, 0.0]]))
