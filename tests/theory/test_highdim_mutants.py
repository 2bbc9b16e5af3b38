"""False statements and damaged runs are caught: the rows that must fail, fail."""

from dataclasses import replace

import numpy as np
import pytest

import reluflow as rf
from reluflow.interpolators.fixed_signs import MinimumWeights
from reluflow.theory import Verdict
from reluflow.theory.highdim import claims_many, claims_single, claims_two, lemmas
from reluflow.theory.highdim.gram import gram_loop
from reluflow.theory.highdim.minimum import two_by_hull

from .highdim_subjects import case_of, many, one, row, train, two


def damaged(run, factor=1e-6):
    """The same run with another limit."""
    W = run.final.flat().W
    other = W * (1.0 + factor * np.random.default_rng(0).normal(size=W.shape))
    return replace(run, final=rf.Network(run.final.flat().a, other))


def fails(case, *ids):
    for id in ids:
        assert row(case, id).verdict is Verdict.FAIL, f"{id}: {row(case, id)}"


def test_a_limit_that_is_not_the_limit():
    fails(case_of(damaged(train(one()))), "HD-08", "HD-13")
    fails(case_of(damaged(train(two()))), "HD-08", "HD-23")
    fails(case_of(damaged(train(many()))), "HD-08", "HD-25")


def test_a_limit_with_a_moved_orthogonal_part():
    data = rf.datasets.gaussian(6, 2000, seed=0)
    net = rf.networks.by_preactivations(data, 1e-3, [1])
    run = rf.descend(
        data, net, lr=1 / 4000, steps=np.inf, loss=rf.losses.Square("1/2"), train="hidden"
    )
    fails(case_of(damaged(run)), "HD-03")


def test_records_that_are_not_those_of_descent():
    run = train(one())
    states = dict(run.states)
    states["W"] = states["W"] * (1 + 1e-8 * (np.arange(len(run.t)) == 5))[:, None, None]
    fails(case_of(replace(run, states=states)), "HD-02")


def test_a_run_with_another_step_is_not_this_run():
    run = train(one())
    fails(case_of(replace(run, options={**run.options, "lr": 0.9 * run.options["lr"]})), "HD-01")


def test_events_that_are_missing_or_made_up():
    run = train(one(n=20, d=24, constant=4.0))
    fails(case_of(replace(run, events=run.events[1:])), "HD-10")
    late = run.events.copy()
    late["t"][-1] += 1
    fails(case_of(replace(run, events=late)), "HD-10")


def test_losses_that_rise_after_the_freeze():
    run = train(one())
    log_loss = run.log_loss.copy()
    log_loss[-3] += 1e-3
    fails(case_of(replace(run, log_loss=log_loss)), "HD-09")


def test_the_anchor_of_the_limit_is_the_first_iterate_not_the_start(monkeypatch):
    """The mutant of Theorems 1, 3, 5 that anchors the projection at w(0)."""
    original = claims_single.limit_by_owner

    def anchored_at_the_start(G, y, s, P0, B0, eta, owner):
        return original(G, y, s, P0, B0, 0.0, owner)

    for module, problem, id in (
        (claims_single, one(), "HD-13"),
        (claims_two, two(), "HD-23"),
        (claims_many, many(), "HD-25"),
    ):
        monkeypatch.setattr(module, "limit_by_owner", anchored_at_the_start)
        fails(case_of(problem), id)


def test_lemma_five_without_its_extra_hypothesis_is_false():
    """A second neuron of the same sign on the point may overshoot and push it off."""
    found = violated = 0
    for seed in range(20):
        data = rf.datasets.bartlett(4, 400, n_positive=4, seed=seed)
        eps = np.random.default_rng(seed).uniform(0.02, 2.0, (3, 4))
        net = rf.networks.by_preactivations(data, eps, [1, 1, 1])
        G = data.gram
        eta, B = 1.0 / np.linalg.eigvalsh(G)[-1], np.linalg.solve(G, eps.T).T
        loop = gram_loop(G, data.y, np.ones(3), net.W @ data.X.T, B, eta, 20)
        right = lemmas.lemma5(G, data.y, np.ones(3), eta, loop)
        wrong = lemmas.lemma5(G, data.y, np.ones(3), eta, loop, alone=False)
        assert right.violated == 0
        found, violated = found + wrong.applied, violated + wrong.violated
    assert violated > 0
    assert found > 1000


@pytest.mark.parametrize("mutant", ["larger off-diagonal", "smaller off-diagonal"])
def test_lemma_six_needs_its_threshold(monkeypatch, mutant):
    case = case_of(one(n=20, d=60, constant=4.0))
    assert lemmas.lemma6(case.G, case.loop).violated == 0
    if mutant == "smaller off-diagonal":
        monkeypatch.setattr(lemmas, "off_diagonal", lambda G: np.zeros(len(G)))
        fails(case, "HD-06")
    else:
        monkeypatch.setattr(lemmas, "off_diagonal", lambda G: 10 * np.diag(G))
        assert lemmas.lemma6(case.G, case.loop).applied == 0


def with_stars(case, factor, shift=0.0):
    """The case with other minimum-norm solutions."""
    stars = []
    for star in case.stars:
        W = factor * star.W + shift * np.random.default_rng(0).normal(size=star.W.shape)
        stars.append(MinimumWeights(W, star.signs, float((W**2).sum()), 0.0, True, "mutant", 0.0))
    case.__dict__["stars"] = stars
    return case


def test_a_minimum_that_is_not_the_minimum():
    fails(with_stars(case_of(one()), 1.0 + 1e-5), "HD-11", "HD-12")
    fails(with_stars(case_of(two()), 1.0, 1e-7), "HD-11", "HD-12")


def test_distances_out_of_the_law():
    case = case_of(one())
    case.__dict__["W_inf"] = case.stars[0].W + 0.2 * (case.W_inf - case.stars[0].W)
    fails(case, "HD-16", "HD-17")
    case.__dict__["W_inf"] = case.stars[0].W + 9.0 * (case.W_inf - case.stars[0].W)
    fails(case, "HD-16", "HD-17")


def test_the_sandwich_with_wrong_eigenvalues():
    case = case_of(one())
    case.__dict__["spectrum"] = np.array([case.spectrum[0] * 1.3, case.spectrum[-1] * 1.3])
    fails(case, "HD-15")
    two_case = case_of(two())
    two_case.__dict__["W_inf"] = two_case.stars[0].W + 5.0 * (two_case.W_inf - two_case.stars[0].W)
    fails(two_case, "HD-24")


def test_the_block_bound_without_its_half():
    """|X_+ X_-^T| <= mu_max/4 is false for points that nearly coincide."""
    data = rf.Dataset([[1.0, 0.0], [1.0, 0.1]], [1.0, -1.0])
    case = case_of((data, rf.networks.by_preactivations(data, 1e-3, [1])), constant=4.0)
    assert 0.9 < row(case, "HD-05").measured <= 1.0
    case.__dict__["spectrum"] = case.spectrum / 2.0
    fails(case, "HD-05")


def test_concentration_fails_for_points_that_are_not_random():
    X = np.ones((6, 50)) + 0.1 * np.random.default_rng(0).normal(size=(6, 50))
    data = rf.Dataset(X, [1, -1, 1, -1, 1, -1.0], ambient_dim=50, spectrum=np.ones(50))
    fails(case_of((data, rf.networks.by_preactivations(data, 1e-3, [1]))), "HD-04")


def test_problem_eight_with_wrong_solvers(monkeypatch):
    case = case_of(two())
    monkeypatch.setattr(claims_two.minimum, "two_by_enumeration", lambda X, y: 1.0)
    fails(case, "HD-21")

    def loose(X, y):
        hull, own, other = two_by_hull(X, y)
        return hull, own + 1e-3, other

    monkeypatch.setattr(claims_two.minimum, "two_by_hull", loose)
    fails(case, "HD-22")


def test_shorter_than_the_shortest_fit_is_refused():
    case = case_of(many())
    case.__dict__["W_inf"] = 0.5 * case.W_inf
    fails(case, "HD-27")


def test_a_step_sweep_of_a_flow_is_not_proportional(monkeypatch):
    """HD-20 and HD-32 measure opposite things: a limit that ignores the step fails both."""
    problem = one(n=6, d=2000)
    case = case_of(problem)
    run = train(replace(problem, lr=1.0 / (512 * 2000)))
    monkeypatch.setattr(type(case), "run_of", lambda self, problem: run)
    fails(case, "HD-20", "HD-32")


def test_steps_that_all_end_far_from_the_flow_decide_nothing(monkeypatch):
    problem = one(n=6, d=2000)
    case, run = case_of(problem), train(problem)
    monkeypatch.setattr(type(case), "run_of", lambda self, problem: run)
    assert row(case, "HD-32").verdict is Verdict.UNRESOLVED


def test_scaling_laws_reject_other_exponents(monkeypatch):
    from reluflow.theory.highdim import claims_scaling

    case = case_of(one())
    monkeypatch.setattr(claims_scaling, "_mean_gap", lambda case, n, d: n**0.4 * d**-0.4)
    fails(case, "HD-18", "HD-19")


def test_random_starts_whose_revival_depends_on_the_dimension(monkeypatch):
    from reluflow.theory.highdim import claims_regimes

    monkeypatch.setattr(claims_regimes, "RANDOM", 25)
    original = claims_regimes.random_start

    def same_sigma(n, d, sigma, **options):  # sigma not scaled with the dimension
        return original(n, d, sigma * np.sqrt(d / 1000), **options)

    monkeypatch.setattr(claims_regimes, "random_start", same_sigma)
    fails(case_of(one()), "HD-30")
    monkeypatch.setattr(claims_regimes, "random_start", original)
    monkeypatch.setattr(claims_regimes, "risk_identity", lambda *arguments: 1e-6)
    fails(case_of(one()), "HD-29", "HD-30")


def test_moderate_dimension_must_change_more_than_once(monkeypatch):
    from reluflow.theory.highdim import claims_regimes

    calm = one(n=8)
    monkeypatch.setattr(claims_regimes, "positive_start", lambda *a, **k: calm)
    fails(case_of(calm), "HD-29")


def test_coverage_with_half_the_points_is_another_number(monkeypatch):
    from reluflow.theory.highdim import claims_regimes

    monkeypatch.setattr(claims_regimes, "expected_coverage", lambda k, n: (1 - 2.0**-k) ** (n / 2))
    fails(case_of(one()), "HD-31")


def test_coverage_is_not_asked_of_correlated_points():
    X = np.ones((8, 40)) + 0.05 * np.random.default_rng(0).normal(size=(8, 40))
    data = rf.Dataset(X, [1, -1, 1, -1, 1, -1, 1, -1.0])
    case = case_of((data, rf.networks.by_preactivations(data, 1e-3, [1])))
    assert row(case, "HD-31").verdict is Verdict.NOT_APPLICABLE


def test_orthogonal_points_and_a_wrong_distance(monkeypatch):
    from reluflow.theory.highdim import claims_regimes

    case = case_of(one(n=5))
    original = claims_regimes.distance_to_shortest
    monkeypatch.setattr(
        claims_regimes, "distance_to_shortest", lambda *a: original(*a) * (1 + 1e-8) + 1e-14
    )
    fails(case, "HD-33")
