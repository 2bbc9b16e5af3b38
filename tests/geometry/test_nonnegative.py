import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluflow.errors import InputError
from reluflow.geometry.nonnegative import active_set, nnls, violation_of

from .helpers import seeds


def unit(A):
    return A / np.linalg.norm(A, axis=0)


def degenerate_cone():
    """A projection that is zero: cone and target of the negative family, d = 7, t = 0.3."""
    d, t, K = 7, 0.3, [3, 5]
    X = t * np.eye(d) + (1 - t) / d
    dual = np.linalg.inv(X)
    zeta = dual.T @ np.full(d, d**-0.5)
    signs = np.where(np.isin(np.arange(d), K), 1.0, -1.0)
    return dual * signs, -(X[K].T @ zeta[K])


def test_zero_projection_on_a_degenerate_cone():
    A, b = degenerate_cone()
    assert (A.T @ b < 1e-12).all()  # optimality of zero
    fit = nnls(A, b)
    assert np.abs(fit.x).max() < 1e-12
    assert fit.residual == pytest.approx(np.linalg.norm(b), rel=1e-14)
    assert fit.violation < 1e-12


@pytest.mark.parametrize("answer", ["wrong", "negative", "raises"])
def test_a_wrong_library_answer_is_not_believed(monkeypatch, answer):
    import scipy.optimize

    def broken(A, b):
        if answer == "raises":
            raise RuntimeError("too many iterations")
        return np.full(A.shape[1], 1.0 if answer == "wrong" else -1.0), 0.0

    monkeypatch.setattr(scipy.optimize, "nnls", broken)
    rng = np.random.default_rng(0)
    for _ in range(20):
        A, b = rng.normal(size=(9, 6)), rng.normal(size=9)
        fit = nnls(A, b)
        assert fit.violation < 1e-12
        assert (fit.x >= 0).all()
        g = A.T @ (b - A @ fit.x)
        assert g.max() < 1e-11
        assert np.abs(g[fit.x > 0]).max(initial=0.0) < 1e-11


@given(seeds, st.sampled_from(["gaussian", "integer", "parallel", "polar"]))
def test_active_set_and_library_reach_the_same_residual(seed, kind):
    rng = np.random.default_rng(seed)
    r, k = (int(v) for v in rng.integers(1, 8, 2))
    A, b = rng.normal(size=(r, k)), rng.normal(size=r)
    if kind == "integer":
        A, b = np.round(A), np.round(b)
    if kind == "parallel":
        A = A[:, rng.integers(0, k, k)] * rng.uniform(0.5, 2, k)
    if kind == "polar":
        A = A * np.where(A.T @ b > 0, -1.0, 1.0)
    fit = nnls(A, b)
    assert fit.violation < 1e-12
    assert (fit.x >= 0).all()
    assert fit.residual == pytest.approx(np.linalg.norm(A @ fit.x - b), abs=1e-12)
    used = A.any(axis=0)
    if used.any() and b.any():
        own = active_set(unit(A[:, used]), b, 1e-12)
        assert violation_of(unit(A[:, used]), b, own) < 1e-12
        assert np.linalg.norm(unit(A[:, used]) @ own - b) == pytest.approx(fit.residual, abs=1e-12)


def test_solution_scales_with_columns_and_target():
    rng = np.random.default_rng(1)
    A, b = rng.normal(size=(8, 4)), rng.normal(size=8)
    x = nnls(A, b).x
    scales = np.array([1e-150, 1e150, 1.0, 1e-3])
    assert nnls(A * scales, b * 1e-120).x * scales * 1e120 == pytest.approx(x, rel=1e-10)


def test_zero_columns_and_zero_targets():
    assert nnls([[0.0, 1.0]], [2.0]).x.tolist() == [0.0, 2.0]
    fit = nnls([[1.0, 1.0]], [0.0])
    assert fit.x.tolist() == [0.0, 0.0]
    assert fit.residual == 0.0
    assert nnls([[0.0], [0.0]], [3.0, 4.0]).residual == 5.0


def test_violation_counts_negative_entries():
    assert violation_of(np.eye(1), np.ones(1), np.array([-1.0])) == np.inf


def test_shapes_must_agree():
    with pytest.raises(InputError, match="has 2 rows but `b` has 3"):
        nnls(np.eye(2), np.ones(3))
