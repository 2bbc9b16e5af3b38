"""Univariate checks: where hypotheses hold, and one broken hypothesis at a time."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

import reluflow as rf
from reluflow import theory
from reluflow.errors import InputError
from reluflow.theory.univariate import PAPER
from reluflow.theory.univariate.constants import (
    logistic_counterexample,
    optimisation_requirements,
)

from .univariate_subjects import (
    DENSITY,
    TEACHER,
    case_of,
    evaluate,
    late_run,
    rows,
    sample,
    short_run,
    start,
)

LATE = ("U7", "U8", "U9", "U10", "U23", "U24")


def verdicts(found):
    return [row.verdict.value for row in found]


def test_every_row_of_the_specification_is_there():
    assert [claim.id for claim in PAPER.claims] == [f"U{k}" for k in range(1, 25)]
    assert [claim.id for claim in PAPER.assumptions] == [
        *("A1", "A2", "A3", "A4", "A5a", "A5b", "A5c", "A6", "A7", "A8")
    ]


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_all_claims_hold_on_a_late_run(loss):
    report = theory.check("univariate", late_run(loss), density=DENSITY)
    assert {c.id for c in report.checks if c.verdict == "NOT_APPLICABLE"} == {"U15", "U17", "U20"}
    rest = [c for c in report.checks if c.verdict != "NOT_APPLICABLE"]
    assert {c.id: c.verdict.value for c in rest} == {c.id: "PASS" for c in rest}
    failed = {c.id for c in report.assumptions if c.verdict == "FAIL"}
    assert failed == {"A5a", "A5b", "A5c"}  # practice is far from the constants of Theorem 3.1
    assert report["U10"].measured == 3
    assert report["U10"].bound == 32 * 2 + 67
    assert "32 s + 67 = 131 with s = 2, 32 r + 67 = 131" in report["U10"].note
    assert report["U7"].measured == pytest.approx(1.0, abs=0.3)  # dead neurons: 1 - cos ~ 1/F
    assert not report.warnings


def test_a_start_alone_is_trained_here_or_not_at_all():
    forbidden = theory.check("univariate", (sample(), start()), start_runs=False)
    assert forbidden["U10"].verdict == "NOT_APPLICABLE"
    assert "start_runs=False" in forbidden["U10"].note
    assert forbidden["U12"].verdict == "PASS"  # needs no run


@pytest.mark.long
def test_a_start_alone_is_trained_to_a_late_loss():
    report = theory.check("univariate", (sample(), start()), loss=rf.losses.Logistic())
    assert report["U10"].verdict == "PASS"


# ---------------------------------------------------------------------- broken hypotheses


def test_points_off_the_line():
    data = rf.Dataset([[0.5, 0.2], [-0.7, 1.0], [0.1, -0.9]], [1.0, -1.0, 1.0])
    run = short_run(data, start())
    assert evaluate(run, "A1").verdict == "FAIL"
    found = evaluate(run, "U1", "U5", "U10", "U11", "U17", "U19", "U21", "U22")
    assert verdicts(found) == ["NOT_APPLICABLE"] * 8
    assert "A1 fails" in found[3].note


def test_labels_other_than_signs():
    data = rf.datasets.from_points([0.5, -0.5], [2.0, -1.0])
    run = rf.flow(data, start(), t_end=1.0)
    assert verdicts(evaluate(run, "A1", "U11")) == ["FAIL", "NOT_APPLICABLE"]


def test_repeated_inputs():
    x = np.append(sample().X[:, 0], sample().X[3, 0])
    data = rf.datasets.from_points(x, np.append(sample().y, sample().y[3]))
    run = short_run(data, start(), stop_log_loss=-1500.0)
    found = evaluate(run, "A2", "U10", "U8", "U11")
    assert verdicts(found) == ["FAIL", "NOT_APPLICABLE", "PASS", "PASS"]
    assert "A2 fails" in found[1].note


def test_a_label_that_is_not_the_teachers():
    y = sample().y.copy()
    y[0] = -y[0]
    run = late_run()
    wrong = replace(run, data=rf.Dataset(sample().X, y, teacher=TEACHER))
    found = evaluate(wrong, "A3", "U15", "U17", "U20", density=DENSITY)
    assert verdicts(found) == ["FAIL"] + ["NOT_APPLICABLE"] * 3
    assert found[0].measured == 1
    assert all("1 labels are not the teacher's (A3 fails)" in row.note for row in found[1:])


def test_without_a_teacher_only_switches_bound_the_regions():
    run = late_run()
    bare = replace(run, data=rf.Dataset(run.data.X, run.data.y))
    found = evaluate(bare, "A3", "U10", "U21", "U15", density=DENSITY)
    assert verdicts(found) == ["NOT_APPLICABLE", "PASS", "PASS", "NOT_APPLICABLE"]
    assert "no bound in r: the data have no teacher network" in found[1].note


def test_a_start_that_is_not_normal():
    net = rf.networks.balanced(2, 64, directions="sphere", seed=0)
    run = short_run(sample(), net, stop_log_loss=-1.0)
    assert evaluate(run, "A4").verdict == "FAIL"
    few = short_run(sample(), start(8), stop_log_loss=-0.1)
    assert evaluate(few, "A4").verdict == "UNRESOLVED"
    zero = rf.networks.gaussian(2, 64, sigma_hidden=1.0, sigma_output=0.0, seed=0)
    assert evaluate(short_run(sample(), zero, stop_log_loss=-0.1), "A4").verdict == "PASS"


def literal(
    n=3, delta=0.9, *, width=1.0, hidden=1.01, output=0.99, seed=0, stops=MappingProxyType({})
):
    """A start with the constants of Theorem 3.1, each times a factor."""
    teacher = rf.datasets.teacher_1d([0.0])
    data = rf.datasets.sample_1d(teacher, n, density=DENSITY, seed=0)
    k = int(width * optimisation_requirements(n, 1, 1.0, 1.0, 0.5, delta).width)
    sigma_h = hidden * optimisation_requirements(n, 1, 1, 1, 0.5, delta, width=k).sigma_hidden
    asked = optimisation_requirements(n, 1, 1, 1, 0.5, delta, width=k, sigma_hidden=sigma_h)
    sigma_o = output * asked.sigma_output
    net = rf.networks.gaussian(2, k, sigma_hidden=sigma_h, sigma_output=sigma_o, seed=seed)
    run = short_run(data, net, **{"t_end": 1e-30, "stop_log_loss": None, **stops})
    return run, {"sigma_hidden": sigma_h, "sigma_output": sigma_o, "delta": delta}


@pytest.mark.parametrize(
    ("factors", "broken"),
    [
        ({}, None),
        ({"width": 0.5}, "A5a"),
        ({"hidden": 0.5}, "A5b"),
        ({"output": 2.0}, "A5c"),
    ],
)
def test_constants_of_theorem_3_1(factors, broken):
    run, options = literal(**factors)
    found = evaluate(run, "A5a", "A5b", "A5c", "U15", density=DENSITY, **options)
    rows_failed = [row.id for row in found[:3] if row.verdict == "FAIL"]
    assert rows_failed == ([broken] if broken else [])
    if broken:
        assert found[3].verdict == "NOT_APPLICABLE"
        assert "constants of Theorem 3.1 are not met" in found[3].note
    else:
        assert found[3].verdict != "NOT_APPLICABLE"


def test_theorem_3_1_holds_with_its_constants_as_printed():
    stops = {"t_end": np.inf, "stop_log_loss": -np.log(2.001 * 3), "record": 2}
    runs = [literal(seed=seed, stops=stops) for seed in range(3)]
    found = evaluate([run for run, _ in runs], "U15", density=DENSITY, **runs[0][1])
    assert found.verdict == "PASS"
    assert found.note.startswith("3 of 3")


def test_an_unknown_density_leaves_the_hidden_scale_open():
    run, options = literal()
    assert evaluate(run, "A5b", **options).verdict == "UNRESOLVED"
    run, options = literal(hidden=1e-3)
    assert evaluate(run, "A5b", **options).verdict == "FAIL"


def test_a_loss_that_stays_above_the_threshold():
    data, net = logistic_counterexample()
    run = rf.flow(data, net, loss=rf.losses.Logistic())
    assert run.status == "stationary"
    assert evaluate(run, "A6").verdict == "FAIL"
    found = evaluate(run, "U5", *LATE)
    assert verdicts(found) == ["NOT_APPLICABLE"] * 7
    assert all("A6 fails" in row.note for row in found)


def test_the_printed_threshold_is_enough_for_the_exponential_loss_only():
    data, net = logistic_counterexample()
    exp = rf.losses.Exponential().log_value(net.predict(data.X), data.y)
    assert exp > -np.log(2)  # the exponential loss of the same network is above 1/n
    logistic = rf.losses.Logistic().log_value(net.predict(data.X), data.y)
    assert rf.losses.Logistic().log_at_zero - np.log(2) < logistic < -np.log(2)


def test_the_square_loss():
    run = rf.flow(sample(), start(), t_end=5.0)
    found = evaluate(run, "A7", "A6", "U1", "U2", "U3", "U5", *LATE, "U17", density=DENSITY)
    assert verdicts(found) == ["FAIL"] + ["NOT_APPLICABLE"] * 12
    assert "A7 fails" in found[1].note


def test_gradient_descent_is_an_experiment():
    run = rf.descend(
        sample(), start(), lr=rf.LossBased(0.1), steps=200, loss=rf.losses.Exponential()
    )
    found = evaluate(run, "A8", "U1", "U2", "U3", "U5", "U16", *LATE)
    assert verdicts(found) == ["FAIL"] + ["NOT_APPLICABLE"] * 11
    assert "A8 fails" in found[1].note
    assert evaluate(run, "U11").verdict == "PASS"  # true of any weights


def test_one_fixed_layer_is_another_flow():
    run = short_run(sample(), start(), train="hidden", stop_log_loss=-0.1)
    assert verdicts(evaluate(run, "A8", "U2")) == ["FAIL", "NOT_APPLICABLE"]


def test_a_run_that_stops_early_decides_nothing_about_limits():
    run = short_run(sample(), start(), stop_log_loss=-50.0)
    found = evaluate(run, *LATE)
    assert verdicts(found) == ["UNRESOLVED"] * 6
    assert evaluate(run, "A6").verdict == "PASS"


def test_a_count_that_has_not_settled_is_not_a_count():
    run = short_run(sample(), start(64), stop_log_loss=-1000.0)
    found = case_of(run)
    assert not found.regions.resolved
    assert rows(found, "U10").verdict == "UNRESOLVED"
    assert "not settled" in rows(found, "U10").note


# ---------------------------------------------------------------------- options


def test_options_are_checked():
    pair = (sample(), start())
    with pytest.raises(InputError, match=r"`density` is 3, which has no distribution function"):
        theory.check("univariate", pair, density=3)
    with pytest.raises(InputError, match=r"`loss` is Square.*Pass losses.Exponential"):
        theory.check("univariate", pair, loss=rf.losses.Square())
    with pytest.raises(InputError, match=r"`delta` is 1; it must be below 1"):
        theory.check("univariate", pair, delta=1.0)
    with pytest.raises(InputError, match=r"`sigma_hidden` is 0; it must be above 0"):
        theory.check("univariate", pair, sigma_hidden=0.0)
    with pytest.raises(InputError, match=r"`densty` is not an option.*Did you mean 'density'"):
        theory.check("univariate", pair, densty=DENSITY)
