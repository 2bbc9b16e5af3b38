"""High-dimensional theory on problems that meet its hypotheses, and on problems that miss one."""

from dataclasses import replace

import numpy as np
import pytest

import reluflow as rf
from reluflow.theory import Verdict, check
from reluflow.theory.highdim import PAPER, claims_regimes
from reluflow.theory.highdim.draws import Problem, step_size

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


def test_every_row_of_the_table_is_there_in_order():
    assert [claim.id for claim in PAPER.claims] == [f"HD-{k:02d}" for k in range(1, 34)]
    assert [claim.id for claim in PAPER.assumptions][:5] == ["A1", "A2", "A2a", "A2b", "A3"]


def test_one_neuron_in_high_dimension_passes_every_row(monkeypatch):
    monkeypatch.setattr(claims_regimes, "RANDOM", 25)
    report = check("highdim", train(one()))
    assert report.counts()["FAIL"] == report.counts()["UNRESOLVED"] == 0, str(report)
    missing = {c.id for c in report.checks if c.verdict is NOT_APPLICABLE}
    assert missing == {"HD-03"} | TWO | MANY
    assert "n = 10, d = 1000000, 1 positive and 0 negative neurons" in str(report)


def test_two_neurons_in_high_dimension():
    case = case_of(two())
    all_pass(case, "A1", "A2", "step", "start", "HD-01", "HD-02", "HD-06", "HD-07", "HD-08")
    all_pass(case, "HD-09", "HD-10", "HD-11", "HD-12", "HD-15", "HD-22", "HD-23", "HD-24")
    assert set(verdicts(case, *(ONE | MANY)).values()) == {NOT_APPLICABLE}


def test_four_neurons_with_an_assignment():
    case = case_of(many())
    all_pass(case, "A1", "A2", "A3", "HD-02", "HD-06", "HD-07", "HD-08", "HD-09", "HD-10")
    all_pass(case, "HD-25", "HD-26", "HD-27", "HD-28")
    assert set(verdicts(case, *(ONE | TWO)).values()) == {NOT_APPLICABLE}
    assert row(case, "HD-26").measured > 0.5  # the tiny start loses the assignment


def test_stored_points_and_a_start_with_an_orthogonal_part():
    data = rf.datasets.gaussian(8, 4000, spectrum=("power", 0.1), seed=0)
    span = rf.networks.by_preactivations(data, 1e-3, [1])
    extra = np.random.default_rng(0).normal(size=(1, 4000)) * 1e-3
    extra -= np.linalg.lstsq(data.X, data.X @ extra[0], rcond=None)[0]
    net = rf.Network([1.0], span.W + extra)
    case = case_of(Problem(data, net, step_size(data, 2.0)))
    all_pass(case, "HD-01", "HD-02", "HD-03", "HD-04", "HD-05", "HD-08", "HD-10", "HD-12", "HD-15")
    assert np.linalg.norm(case.apart) > 10 * np.linalg.norm(case.W0 - case.apart)


def test_points_without_a_known_covariance_are_judged_by_their_gram_matrix():
    problem = one()
    case = case_of(Problem(rf.Dataset(problem.data.X, problem.data.y), problem.net, problem.lr))
    assert case.l1 == pytest.approx(np.trace(problem.data.gram) / 10)
    all_pass(case, "A2", "HD-13")
    assert set(verdicts(case, "A2a", "A2b", "HD-04").values()) == {NOT_APPLICABLE}
    close = rf.datasets.bartlett(10, 30, seed=0)
    net = rf.networks.by_preactivations(close, 1e-3, [1])
    far = case_of(Problem(rf.Dataset(close.X, close.y), net, step_size(close, 4.0)))
    assert row(far, "A2").verdict is Verdict.FAIL


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


def test_a_dimension_too_low():
    case = case_of(one(n=20, d=24, constant=4.0))
    for id in ("A2", "A2a", "A2b"):
        assert row(case, id).verdict is Verdict.FAIL
    for id in (*ONE, "HD-22"):
        assert row(case, id).verdict is NOT_APPLICABLE
        assert "A2 fails" in row(case, id).note
    assert row(case, "HD-20").verdict is NOT_APPLICABLE
    all_pass(case, "HD-06", "HD-07", "HD-08", "HD-09", "HD-10", "HD-12", "HD-15", "HD-29")
    assert case.freeze > 1


def test_where_the_constant_of_a2_is_unknown_failures_are_unresolved():
    run = train(one(n=10, d=3000))
    assert row(case_of(run), "A2").verdict is Verdict.UNRESOLVED
    all_pass(case_of(run), "A2a", "A2b", "HD-13", "HD-14", "HD-16", "HD-17")
    wrong = replace(run, final=rf.Network([1.0], 1.001 * run.final.flat().W))
    found = row(case_of(wrong), "HD-13")
    assert found.verdict is Verdict.UNRESOLVED
    assert "the risk is the least possible" in found.note
    assert "A2 is open here" in found.note


def test_a_point_without_an_owner_or_with_two():
    problem = many()
    P = problem.net.W @ problem.data.X.T
    y = problem.data.y
    plus = int(np.flatnonzero(y > 0)[0])
    for value in (-1.0, 1.0):
        P2 = P.copy()
        P2[:2, plus] = value * np.abs(P2[:2, plus])
        net = rf.networks.by_preactivations(problem.data, P2, problem.net.a)
        case = case_of(Problem(problem.data, net, problem.lr))
        assert row(case, "A3").verdict is Verdict.FAIL
        assert row(case, "A3").measured == 1
        assert row(case, "HD-25").verdict is NOT_APPLICABLE
        assert "one active neuron of its sign" in row(case, "HD-25").note
    missed = P.copy()
    missed[2, plus] *= -1.0  # a neuron of the other sign is off
    net = rf.networks.by_preactivations(problem.data, missed, problem.net.a)
    case = case_of(Problem(problem.data, net, problem.lr))
    assert "of the other sign" in row(case, "HD-25").note


@pytest.mark.parametrize(("eps", "text"), [(1e-6, "too small"), (0.4, "too large")])
def test_an_assigned_start_out_of_range(eps, text):
    found = row(case_of(many(eps=eps)), "HD-25")
    assert found.verdict is NOT_APPLICABLE
    assert text in found.note


def test_a_step_too_short():
    case = case_of(one(constant=64.0))
    assert row(case, "step").verdict is Verdict.FAIL
    for id in ONE:
        assert row(case, id).verdict is NOT_APPLICABLE
        assert "too short" in row(case, id).note
    all_pass(case, "HD-20")  # it brings steps of its own


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


def test_a_start_that_is_not_positive_or_not_small():
    problem = one()
    for eps, text in ((-1e-3, "not active on every point"), (0.3, "too large")):
        values = np.full(10, abs(eps))
        values[0] = eps
        net = rf.networks.by_preactivations(problem.data, values, [1])
        case = case_of(Problem(problem.data, net, problem.lr))
        assert row(case, "start").verdict is Verdict.FAIL
        for id in ONE:
            assert row(case, id).verdict is NOT_APPLICABLE
            assert text in row(case, id).note


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


def test_without_new_runs_claims_use_the_run_or_say_so():
    run = train(one())
    case = case_of(run, start_runs=False)
    all_pass(case, "HD-01", "HD-08", "HD-10", "HD-13", "HD-17")
    for id in ("HD-18", "HD-19", "HD-20", "HD-29", "HD-30", "HD-32", "HD-33"):
        assert row(case, id).verdict is NOT_APPLICABLE
        assert "start_runs=False" in row(case, id).note
    plain = case_of(train(one(), steps=30), start_runs=False)
    assert row(plain, "HD-08").verdict is NOT_APPLICABLE
    all_pass(plain, "HD-05", "HD-11")


def test_a_plain_run_is_compared_with_the_loop():
    case = case_of(train(one(n=8, d=4000), steps=40, record=40))
    all_pass(case, "HD-02", "HD-13")


def test_several_sizes_give_the_slopes_themselves():
    runs = [train(one(seed=s, n=8, d=d)) for d in (2000, 8000, 32000, 128000) for s in range(3)]
    case = case_of(runs, start_runs=False)
    all_pass(case, "HD-18")
    assert "d from 2000 to 128000" in row(case, "HD-18").note
    assert row(case, "HD-19").verdict is NOT_APPLICABLE
    case = case_of([train(one(seed=s, n=n)) for n in (6, 12, 24) for s in range(3)])
    all_pass(case, "HD-19")
    assert "n from 6 to 24" in row(case, "HD-19").note


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
    with pytest.raises(rf.errors.InputError, match=r"output weights are \[0.5\]"):
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
    monkeypatch.setattr(claims_regimes, "RANDOM", 1)
    monkeypatch.setattr(claims_regimes, "MODERATE", 1)
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
