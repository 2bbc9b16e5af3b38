"""The 40-digit reference itself: closed forms, invariants, and independence of its settings."""

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from numerics import reference
from numerics.problems import draw
from numerics.reference import Reference, box_by_enumeration, first_root, fixed, number


def test_aligned_neuron_follows_the_logistic_law_to_38_digits():
    x = np.array([1.25, -0.5])
    solution = Reference(x[None], np.array([0.75]), np.array([0.125]), 0.125 * x[None])
    solution.run(3.0)
    with mp.workdps(60):
        # a' = r w.x, w = s x: (a, s |x|) is a boost with rapidity int r |x|, not balanced here
        a, s = number(solution.fa[0]), number(solution.fw[0, 0]) / mp.mpf(1.25)
        square = mp.mpf(0.125) ** 2 * (1 - mp.mpf(29) / 16)
        assert abs(a * a - s * s * mp.mpf(29) / 16 - square) < mp.mpf(10) ** -38
        length = mp.sqrt(mp.mpf(29) / 16)

        def field(th):
            root = mp.sqrt(-square)
            return length * (mp.mpf(0.75) - root * mp.sinh(th) * root * mp.cosh(th) * length)

        begin = mp.asinh(mp.mpf(0.125) / mp.sqrt(-square))
        end = mp.asinh(a / mp.sqrt(-square))
        assert abs(mp.quad(lambda th: 1 / field(th), [begin, end]) - 3) < mp.mpf(10) ** -36


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_univariate_example_follows_the_exponential_integral_to_35_digits(loss):
    X = np.array([[4.0, 1.0], [-4.0, 1.0]])
    solution = Reference(X, np.ones(2), np.ones(1), np.array([[0.0, 1.0]]), loss=loss).run(5.0)
    with mp.workdps(60):
        a = number(solution.fa[0])
        t = (mp.ei(a * a) - mp.ei(1)) / 2 + (mp.log(a) if loss == "logistic" else 0)
        assert abs(t - 5) < mp.mpf(10) ** -35


@pytest.mark.parametrize("seed", [4, 17, 55])
def test_other_settings_give_the_same_38_digits(seed, monkeypatch):
    problem = draw(seed)
    first = problem.reference()
    monkeypatch.setattr(reference, "ORDER", 29)
    monkeypatch.setattr(reference, "TOL", Fraction(1, 10**45))
    second = problem.reference()
    gap = max(abs(int(v)) for v in (first.fw - second.fw).ravel())
    assert number(gap) < mp.mpf(10) ** -36
    assert [e[1:] for e in first.events] == [e[1:] for e in second.events]


def test_balance_is_conserved_to_38_digits_across_events():
    problem = draw(55)
    solution = problem.reference()
    assert len(solution.events) > 5
    assert solution.slides()
    for j in range(len(problem.a)):
        start = Fraction(problem.a[j]) ** 2 - sum(Fraction(v) ** 2 for v in problem.W[j])
        a = Fraction(int(solution.fa[j]), reference.ONE)
        w = [Fraction(int(v), reference.ONE) for v in solution.fw[j]]
        assert abs(float(a**2 - sum(v**2 for v in w) - start)) < 1e-38


def test_box_enumeration_finds_the_three_kinds_of_faces():
    X, c = np.eye(2), np.array([-1.0, -1.0])
    np.testing.assert_allclose(box_by_enumeration(np.array([0.4, 2.0]), c, X), [0.4, 1.0])
    np.testing.assert_allclose(box_by_enumeration(np.array([-0.4, 0.5]), c, X), [0.0, 0.5])


def test_first_root_sees_a_double_crossing_between_grid_points():
    # (s - 0.5)^2 - 1e-8 with the two roots 2e-4 apart
    series = fixed([0.25 - 1e-8, -1.0, 1.0])
    root = first_root(series, Fraction(1))
    assert float(number(root)) == pytest.approx(0.5 - 1e-4, rel=1e-12)
    assert first_root(fixed([0.25 + 1e-8, -1.0, 1.0]), Fraction(1)) is None
