"""The reference in hundreds of digits: closed forms, invariants, independence of its settings."""

import mpmath as mp
import numpy as np
import pytest

from numerics import decided, deep
from numerics.deep import Deep, UnsupportedError

# the reference has the square and the exponential loss
KINDS = [kind for kind in decided.KINDS if "logistic" not in kind]

# one point of length 1.25; an aligned balanced neuron, exact in floats
POINT = np.array([[0.75, 1.0]])


def reference(problem, **options):
    return Deep(
        problem.data.X,
        problem.data.y,
        *mantissa(problem.net),
        problem.net.log_scale,
        loss=problem.loss,
        **{"balanced": True, "digits": 60, **options},
    )


def mantissa(net):
    split = getattr(net, "mantissa", net)
    return split.a, split.W


def same_events(one, other):
    """Equal kinds in equal order, times to 1e-12."""
    assert [e[1:] for e in one.events] == [e[1:] for e in other.events]
    np.testing.assert_allclose([e[0] for e in one.events], [e[0] for e in other.events], rtol=1e-12)


@pytest.mark.parametrize("scale", [-1.0, -1000.0])
def test_an_aligned_neuron_grows_by_the_logistic_law_to_all_digits(scale):
    flow = Deep(POINT, np.array([0.5]), np.array([1.25]), POINT, scale, digits=120)
    # h = a |w| |x| obeys h' = 2 |x| h (y - h): at this time it is about y / 2
    end = max(1.0, round(-2 * scale / (2 * 1.25 * 0.5)))
    assert flow.run(end) == "t_end"
    with mp.workdps(140):
        first = mp.exp(2 * mp.mpf(scale)) * mp.mpf(1.25) ** 3
        want = mp.mpf(0.5) / (1 + (mp.mpf(0.5) / first - 1) * mp.exp(-1.25 * mp.mpf(end)))
        assert abs(mp.ldexp(int(flow.outputs()[0]), -flow.bits) / want - 1) < mp.mpf(10) ** -112


def test_an_aligned_neuron_follows_the_exponential_integral_to_all_digits():
    flow = Deep(POINT, np.ones(1), np.array([1.25]), POINT, -3.0, loss="exponential", digits=120)
    assert flow.run(stop_log_loss=-6.0) == "stop_loss"
    with mp.workdps(140):
        first = mp.exp(-6) * mp.mpf(1.25) ** 3
        want = (mp.ei(mp.mpf(6)) - mp.ei(first)) / (2 * mp.mpf(1.25))
        assert abs(mp.ldexp(int(flow.t), -flow.bits) / want - 1) < mp.mpf(10) ** -112


def test_balances_are_conserved_to_all_digits_across_events():
    problem = decided.problem("line", 3, 4, -1.0)
    a, W = mantissa(problem.net)
    factors = np.array([0.5, 1.5, 0.75, 2.0])
    flow = Deep(problem.data.X, problem.data.y, a * factors, W, -1.0, digits=80)
    with mp.workdps(100):
        first = [mp.ldexp(flow.balance(j), 2 * flow.e[j]) for j in range(4)]
        flow.run(20.0)
        assert len(flow.events) == 4
        for j in range(4):
            now = mp.ldexp(flow.balance(j), 2 * flow.e[j])
            assert abs(now - first[j]) < mp.mpf(10) ** -78


def test_balance_is_kept_by_the_steps_not_only_by_its_restoring(monkeypatch):
    problem = decided.problem("line", 205, 2, -100.0)
    held = reference(problem, digits=100)
    assert held.run() == "settled"
    monkeypatch.setattr(Deep, "_balance", lambda flow, j: None)
    monkeypatch.setattr(deep, "Ray", deep.Free)
    free = reference(problem, digits=100)
    assert free.run() == "settled"
    same_events(held, free)
    np.testing.assert_allclose(free.state, held.state, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_precision_and_order_do_not_matter(kind):
    problem = decided.problem(kind, 1, 3, -10.0)
    one, other = reference(problem), reference(problem, digits=90, order=70)
    assert one.run(20.0) == other.run(20.0) == "t_end"
    same_events(one, other)
    np.testing.assert_allclose(one.state, other.state, rtol=1e-12)


@pytest.mark.parametrize("scale", [-1.0, -10.0])
@pytest.mark.parametrize("kind", KINDS)
def test_shallow_runs_agree_with_the_engine(kind, scale):
    problem = decided.problem(kind, 2, 4, scale)
    flow = reference(problem, digits=40)
    assert flow.run(40.0) == "t_end"
    run = problem.flow(1e-10, t_end=40.0)
    assert problem.gap(run.final.predict(problem.grid), flow.predict(problem.grid)) < 1e-8


def test_what_the_reference_does_not_treat_is_refused():
    with pytest.raises(UnsupportedError, match="starts on a plane"):
        Deep(np.array([[1.0, 0.0]]), np.ones(1), np.ones(1), np.array([[0.0, 1.0]]))
    # more output weight than hidden: the neuron is driven along its slide into the origin
    X, y = np.array([[1.0, 1.0], [-2.0, 1.0]]), np.array([-1.0, -1.0])
    flow = Deep(X, y, np.array([2.0]), np.array([[0.3, 1.0]]), digits=40)
    with pytest.raises(UnsupportedError, match="w = 0"):
        flow.run()
