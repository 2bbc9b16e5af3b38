"""The wrapper of the cone solver: an honest status, for good, infeasible and unbounded programs."""

from types import SimpleNamespace

import clarabel
import numpy as np
import pytest

from reluflow.interpolators.cone_program import Cones, solve
from reluflow.interpolators.least_norm import Polyhedron, shortest


def test_a_small_program_has_the_four_parts_of_optimality():
    # min x0 + x1 s.t. x0 - x1 = 1, x >= 0, |(x0, x1)| <= 3
    A = np.array([[1.0, -1.0], [-1.0, 0.0], [0.0, -1.0], [0.0, 0.0], [-1.0, 0.0], [0.0, -1.0]])
    b = np.array([1.0, 0.0, 0.0, 3.0, 0.0, 0.0])
    q = np.ones(2)
    answer = solve(None, q, A, b, Cones(1, 2, (3,)))
    assert answer.status == "solved"
    np.testing.assert_allclose(answer.x, [1.0, 0.0], atol=1e-8)
    s = b - A @ answer.x
    assert abs(s[0]) < 1e-8
    assert s[1:3].min() > -1e-8
    assert s[3] >= np.linalg.norm(s[4:]) - 1e-8
    assert answer.z[1:3].min() >= -1e-9
    assert answer.z[3] >= np.linalg.norm(answer.z[4:]) - 1e-8
    np.testing.assert_allclose(q + A.T @ answer.z, 0.0, atol=1e-8)
    assert abs(s @ answer.z) < 1e-7


def test_infeasible_and_unbounded_twins_are_named():
    up_and_down = np.array([[-1.0], [1.0]])
    answer = solve(None, np.ones(1), up_and_down, np.array([-2.0, 1.0]), Cones(0, 2))
    assert answer.status == "infeasible"
    answer = solve(None, -np.ones(1), np.array([[-1.0]]), np.zeros(1), Cones(0, 1))
    assert answer.status == "unbounded"


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("Solved", "solved"),
        ("AlmostSolved", "almost_solved"),
        ("MaxIterations", "failed"),
        ("NumericalError", "failed"),
        ("InsufficientProgress", "failed"),
    ],
)
def test_almost_solved_is_never_called_solved(monkeypatch, word, status):
    class Solver:
        def __init__(self, *_):
            pass

        def solve(self):
            return SimpleNamespace(status=word, x=[0.0], z=[0.0])

    monkeypatch.setattr(clarabel, "DefaultSolver", Solver)
    assert solve(None, np.ones(1), np.ones((1, 1)), np.ones(1), Cones(1)).status == status


@pytest.mark.parametrize("seed", range(5))
def test_shortest_vector_meets_its_dual_bound(seed):
    rng = np.random.default_rng(seed)
    E, A = rng.normal(size=(2, 6)), rng.normal(size=(5, 6))
    inside = rng.normal(size=6)
    region = Polyhedron(E, E @ inside, A, A @ inside - rng.uniform(0, 0.3, 5))
    answer = shortest(region)
    assert answer.is_feasible
    assert (answer.nu >= 0).all()
    # weak duality by hand: no feasible vector is shorter than the bound
    g = E.T @ answer.mu + A.T @ answer.nu
    bound = 2 * (answer.mu @ region.f + answer.nu @ region.b) - g @ g
    assert bound == pytest.approx(answer.lower_bound, rel=1e-12)
    assert answer.w @ answer.w == pytest.approx(bound, rel=1e-9)
    assert inside @ inside >= bound


def test_an_empty_polyhedron_is_infeasible():
    answer = shortest(
        Polyhedron(np.zeros((0, 1)), np.zeros(0), np.array([[1.0], [-1.0]]), np.ones(2))
    )
    assert answer.status == "infeasible"
    assert not answer.is_feasible
