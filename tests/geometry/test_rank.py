import mpmath
import numpy as np
import pytest
from hypothesis import given
from scipy.stats import ortho_group

from reluflow import Network
from reluflow.errors import InputError
from reluflow.geometry import (
    effective_rank,
    log_nuclear_norm,
    log_singular_values,
    nuclear_norm,
    singular_values,
)

from .helpers import permuted, random_net, seeds, shifted


def test_singular_values_against_fifty_digits():
    rng = np.random.default_rng(0)
    net = Network(rng.normal(size=5), rng.normal(size=(5, 3)), rng.uniform(-2, 2, 5))
    with mpmath.workdps(50):
        rows = [
            [mpmath.exp(mpmath.mpf(s)) * mpmath.mpf(w) for w in row]
            for s, row in zip(net.log_scale.tolist(), net.mantissa.W.tolist(), strict=True)
        ]
        exact = [float(s) for s in mpmath.svd_r(mpmath.matrix(rows), compute_uv=False)]
    assert singular_values(net) == pytest.approx(exact, rel=1e-13)
    assert nuclear_norm(net) == pytest.approx(sum(exact), rel=1e-14)
    p = np.array(exact) / sum(exact)
    assert effective_rank(net) == pytest.approx(np.exp(-(p @ np.log(p))), rel=1e-13)
    assert effective_rank(net, "stable") == pytest.approx(
        sum(s * s for s in exact) / exact[0] ** 2, rel=1e-13
    )


def test_rank_one_bundle_and_second_value():
    direction = np.array([0.6, 0.8, 0.0])
    W = np.outer([1.0, 2.0, 3.0], direction)
    net = Network(np.ones(3), W)
    assert effective_rank(net, "numerical") == 1.0
    assert effective_rank(net) == pytest.approx(1.0, abs=1e-12)
    assert nuclear_norm(net) == pytest.approx(np.sqrt(14), rel=1e-14)
    W[0, 2] = 1e-6
    bent = Network(np.ones(3), W)
    assert effective_rank(bent, "numerical") == 2.0
    assert effective_rank(bent, "numerical", tol=1e-5) == 1.0


@given(seeds)
def test_invariances_and_scale(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 6))
    net = random_net(rng, int(rng.integers(1, 7)), d)
    logs = log_singular_values(net)
    assert log_singular_values(permuted(net, rng)) == pytest.approx(logs, abs=1e-11)
    turned = Network(net.a, net.W @ ortho_group.rvs(d, random_state=rng))
    assert log_singular_values(turned) == pytest.approx(logs, abs=1e-11)
    deep = shifted(net, -(2.0**20))
    assert np.array_equal(log_singular_values(deep), logs - 2.0**20)
    assert log_nuclear_norm(deep) == pytest.approx(log_nuclear_norm(net) - 2.0**20, rel=1e-15)
    for kind in ("entropy", "stable", "numerical"):
        assert effective_rank(deep, kind) == pytest.approx(effective_rank(net, kind), rel=1e-8)


def test_values_outside_the_range_of_floats():
    net = Network([1.0], [[3.0, 4.0]], log_scale=-1e6)
    assert nuclear_norm(net) == 0.0
    assert log_nuclear_norm(net) == pytest.approx(-1e6 + np.log(5), rel=1e-15)
    assert nuclear_norm(net.with_scale(1e4)) == np.inf


def test_zero_weights_have_rank_zero():
    assert effective_rank(Network([1.0], [[0.0, 0.0]])) == 0.0


def test_unknown_kind():
    with pytest.raises(InputError, match="'entropy', 'stable', 'numerical'"):
        effective_rank(Network([1.0], [[1.0, 0.0]]), "nice")
