"""High-dimensional theory on problems that meet its hypotheses, and on problems that miss one."""

import numpy as np
import pytest

import reluflow as rf
from reluflow.papers.highdim.claims import regimes as claims_regimes
from reluflow.papers.highdim.claims.scaling import _slope
from reluflow.papers.highdim.draws import Problem, random_start, step_size
from reluflow.theory import Verdict, check
from reluflow.theory.verdicts import verdict_of

from .highdim_subjects import (
    HALF,
    all_pass,
    case_of,
    many,
    one,
    row,
    train,
    two,
    verdicts,
)

NOT_APPLICABLE = Verdict.NOT_APPLICABLE
ONE = {"HD-13", "HD-14", "HD-16", "HD-17"}
TWO = {"HD-23", "HD-24"}
MANY = {"HD-25", "HD-26", "HD-27", "HD-28"}


def test_two_neurons_in_high_dimension():
    case = case_of(two())
    all_pass(case, "A1", "A2", "step", "start", "HD-01", "HD-02", "HD-06", "HD-07", "HD-08")
    all_pass(case, "HD-09", "HD-10", "HD-11", "HD-12", "HD-15", "HD-22", "HD-23", "HD-24")
    assert set(verdicts(case, *(ONE | MANY)).values()) == {NOT_APPLICABLE}


def test_stored_points_and_a_start_with_an_orthogonal_part():
    data = rf.datasets.gaussian(8, 4000, spectrum=("power", 0.1), seed=0)
    span = rf.networks.by_preactivations(data, 1e-3, [1])
    extra = np.random.default_rng(0).normal(size=(1, 4000)) * 1e-3
    extra -= np.linalg.lstsq(data.X, data.X @ extra[0], rcond=None)[0]
    net = rf.Network([1.0], span.W + extra)
    case = case_of(Problem(data, net, step_size(data, 2.0)))
    all_pass(case, "HD-01", "HD-02", "HD-03", "HD-04", "HD-05", "HD-08", "HD-10", "HD-12", "HD-15")
    assert np.linalg.norm(case.apart) > 10 * np.linalg.norm(case.W0 - case.apart)


def test_a_negative_neuron_is_the_mirror_image():
    problem = one()
    mirrored = rf.Dataset(problem.data.X, -problem.data.y, ambient_dim=10**6, spectrum=[1.0])
    net = rf.Network([-1.0], problem.net.W)
    case = case_of(Problem(mirrored, net, problem.lr))
    all_pass(case, "HD-11", "HD-12", "HD-13", "HD-14", "HD-15", "HD-16", "HD-17", "HD-20")
    assert row(case, "HD-17").measured == row(case_of(problem), "HD-17").measured


# ---------------------------------------------------------------- one broken hypothesis each


def test_a_zero_label():
    problem = one()
    y = np.array(problem.data.y)
    y[3] = 0.0
    case = case_of(Problem(rf.Dataset(problem.data.X, y), problem.net, problem.lr))
    assert row(case, "A1").verdict is Verdict.FAIL
    assert "point 3" in row(case, "A1").note
    for id in (*ONE, "HD-22", "HD-33"):
        assert row(case, id).verdict is NOT_APPLICABLE, id
    assert "A1" in row(case, "HD-13").note


@pytest.mark.parametrize(("eps", "text"), [(1e-6, "too small"), (0.4, "too large")])
def test_an_assigned_start_out_of_range(eps, text):
    found = row(case_of(many(eps=eps)), "HD-25")
    assert found.verdict is NOT_APPLICABLE
    assert text in found.note


def test_a_step_too_long():
    problem = one()
    long = Problem(
        problem.data, problem.net, 1.5 / float(np.linalg.eigvalsh(problem.data.gram)[-1])
    )
    case = case_of(long)
    assert row(case, "step").verdict is Verdict.FAIL
    assert "too long" in row(case, "HD-13").note
    assert row(case, "HD-09").verdict is NOT_APPLICABLE
    all_pass(case, "HD-08", "HD-10")  # below 2/mu it still converges


def test_labels_of_one_sign():
    data = rf.datasets.bartlett(6, 10**6, n_positive=6, seed=0)
    net = rf.networks.by_preactivations(data, 1e-3, [1])
    case = case_of(Problem(data, net, step_size(data, 2.0)))
    for id in ("HD-05", "HD-16", "HD-17", "HD-20", "HD-21", "HD-22", "HD-32", "HD-33"):
        assert row(case, id).verdict is NOT_APPLICABLE, id
    all_pass(case, "HD-08", "HD-11", "HD-13", "HD-15")


# ------------------------------------------------------------------------- subjects


def test_data_and_network_without_a_run_get_the_default_step():
    problem = one()
    case = case_of((problem.data, problem.net))
    assert pytest.approx(2.0) == case.C
    all_pass(case, "HD-02", "HD-08", "HD-10", "HD-13")
    assert pytest.approx(3.0) == case_of((problem.data, problem.net), constant=3.0).C


def test_a_plain_run_is_compared_with_the_loop():
    case = case_of(train(one(n=8, d=4000), steps=40, record=40))
    all_pass(case, "HD-02", "HD-13")


def test_a_flow_run_brings_its_own_limit():
    problem = one(n=6, d=300)
    flow = rf.flow(problem.data, problem.net, loss=HALF, train="hidden", record=2)
    case = case_of(flow)
    all_pass(case, "HD-32", "HD-10")
    assert pytest.approx(2.0) == case.C


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"loss": rf.losses.Square()}, "belong to half the sum of squares"),
        ({"train": "both", "steps": 10}, "trains both layers"),
    ],
)
def test_other_losses_and_layers_are_refused(change, text):
    with pytest.raises(rf.errors.InputError, match=text):
        check("highdim", train(one(), **change))


def test_other_output_weights_and_dependent_points_are_refused():
    problem = one()
    net = rf.Network([0.5], problem.net.W)
    with pytest.raises(rf.errors.InputError, match=r"output weights begin with 0\.5"):
        check("highdim", (problem.data, net))
    data = rf.Dataset([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]], [1.0, -1.0, 1.0])
    with pytest.raises(rf.errors.InputError, match="linearly dependent"):
        check("highdim", (data, rf.Network([1.0], [[1.0, 0.0]])))
    zero = rf.Dataset(problem.data.X, 0 * problem.data.y)
    with pytest.raises(rf.errors.InputError, match="all 10 labels are zero"):
        check("highdim", (zero, problem.net))
    with pytest.raises(rf.errors.InputError, match="constant"):
        check("highdim", (problem.data, problem.net), constant=-1.0)
    with pytest.raises(rf.errors.InputError, match="not an option"):
        check("highdim", (problem.data, problem.net), konstant=1.0)


@pytest.mark.parametrize("kind", ["one point", "dead", "zero weights", "many random", "boundary"])
def test_odd_subjects_get_an_answer_in_every_row(kind, monkeypatch):
    monkeypatch.setattr(claims_regimes, "DRAWS", 2)
    monkeypatch.setattr(claims_regimes, "STEPS", claims_regimes.STEPS[:5])
    data = rf.datasets.bartlett(8, 200, seed=0)
    if kind == "one point":
        data, net = rf.Dataset([[1.0, 2.0]], [1.0]), rf.Network([1.0], [[0.1, 0.1]])
    elif kind == "dead":
        net = rf.networks.by_preactivations(data, -1.0, [1])
    elif kind == "zero weights":
        net = rf.Network([1.0, -1.0], np.zeros((2, 8)))
    elif kind == "many random":
        W = 0.1 * np.random.default_rng(0).normal(size=(5, 8))
        net = rf.Network([1.0, -1.0, 1.0, 1.0, -1.0], W)
    else:
        data = rf.datasets.bartlett(10, 12, seed=6)
        net = rf.networks.by_preactivations(data, 0.01, [1, -1])
    report = check("highdim", (data, net))
    assert [c.id for c in report.checks if c.verdict is Verdict.FAIL] == []


@pytest.mark.parametrize("d", [15, 60])
def test_in_low_dimension_the_law_of_the_distance_is_open_not_confirmed(d):
    """Products of points may move the distance by more than the law: every distance would pass."""
    found = row(case_of(one(d=d)), "HD-17")
    assert found.verdict is Verdict.UNRESOLVED
    assert "a higher dimension decides" in found.note


def sizes(dims, constants):
    runs = []
    for d, constant in zip(dims, constants, strict=True):
        problem = one(d=d, constant=constant, n_positive=5)
        runs.append(train(problem))
    return case_of(runs)


def test_slopes_compare_steps_of_one_constant():
    """The distance is proportional to the step: other steps once were a FAIL, slope -0.81."""
    dims = (10**5, 10**6, 10**7)
    assert row(sizes(dims, (2.0, 2.0, 2.0)), "HD-18").verdict is Verdict.PASS
    found = row(sizes(dims, (2.0, 4.0, 8.0)), "HD-18")
    assert found.verdict is Verdict.NOT_APPLICABLE
    assert (found.observed, found.measured > 0.2) == (False, True)


def test_a_slope_that_is_not_known_is_no_pass():
    """Few points for the line: -2.4 +- 2.1 once passed as -1/2."""
    gaps = {11: [1.0], 13: [0.2], 20: [0.7], 30: [0.05]}
    found = _slope(gaps, -0.5)
    assert found.measured > 0.5
    assert verdict_of(found) is Verdict.UNRESOLVED


def test_slopes_in_low_dimension_are_outside_the_regime():
    found = row(sizes((40, 80, 160), (4.0, 4.0, 4.0)), "HD-18")
    assert found.verdict is not Verdict.FAIL
    assert "outside the regime each high" in found.note


@pytest.mark.parametrize(("n", "d", "positive"), [(2, 4, 1), (5, 10, 4)])
def test_few_points_change_their_pattern_in_some_draws(n, d, positive):
    """In a quarter of the draws, which once was a FAIL: half of nine draws were asked for."""

    def draw(k):
        problem = one(n=n, d=d, n_positive=positive, seed=k)
        return problem.data, problem.net

    case = case_of(one(n=n, d=d, n_positive=positive), generator=draw)
    found = row(case, "HD-29")
    assert found.verdict is Verdict.PASS
    assert found.measured < 0.5


def test_coverage_in_low_dimension_is_open_where_products_of_points_may_explain_it():
    """All neurons along one direction: d below n^2 once let any share of covered draws pass."""

    def draw(k):
        problem = random_start(10, 60, 1.0, seed=k)
        W = np.random.default_rng([k, 2]).normal(size=(1, problem.data.d))
        signs = [1.0, 1.0, 1.0, -1.0, -1.0, -1.0]
        return problem.data, rf.Network(signs, np.tile(W, (6, 1)))

    found = row(case_of(draw(0), generator=draw), "HD-31")
    assert found.verdict is Verdict.UNRESOLVED
    assert "higher dimension" in found.note
