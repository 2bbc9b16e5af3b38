"""Univariate checks: where hypotheses hold, and one broken hypothesis at a time."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

import reluflow as rf
from reluflow import theory
from reluflow.errors import InputError
from reluflow.papers.univariate import case as univariate_case
from reluflow.papers.univariate.constants import (
    logistic_counterexample,
    optimisation_requirements,
)
from reluflow.papers.univariate.wrong import _constants, _merged
from reluflow.theory.subject import Subject, subject_of

from .univariate_subjects import (
    DENSITY,
    PAPER,
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


def test_a_start_alone_is_trained_here_or_not_at_all():
    forbidden = theory.check("univariate", (sample(), start()), start_runs=False)
    assert forbidden["U10"].verdict == "NOT_APPLICABLE"
    assert "start_runs=False" in forbidden["U10"].note
    assert forbidden["U12"].verdict == "PASS"  # needs no run


def test_a_run_is_continued_only_while_a_row_is_open():
    asked = []

    def flow(*problem, **options):
        asked.append(options)
        return rf.flow(*problem, **options)

    run = late_run()
    case = PAPER.prepare(Subject(run.data, run.net, (run,), {"flow": flow}))
    assert verdicts(rows(case, "U7", "U8")) == ["PASS", "PASS"]
    assert asked == []


def test_an_open_row_follows_a_run_as_far_as_work_allows_whatever_the_clock_says(monkeypatch):
    asked = []

    def flow(*problem, **options):
        asked.append(options)
        return rf.flow(*problem, **options)

    run = late_run()

    def levels():
        case = PAPER.prepare(Subject(run.data, run.net, (run,), {"flow": flow}))
        found = [-float(later.log_loss[-1]) for later in case.later_runs()]
        assert [-float(later.log_loss[-1]) for later in case.later_runs()] == found  # kept
        return found

    monkeypatch.setattr(univariate_case, "LATER", 1)
    assert levels() == [pytest.approx(2e6)]
    assert {name for options in asked for name in options} == {"stop_log_loss", "max_seconds"}
    monkeypatch.setattr(univariate_case, "WORK", 0.0)
    asked.clear()
    assert levels() == []
    assert len(asked) == 1


@pytest.mark.parametrize(("spent", "levels"), [(3e5, [3.2e5]), (1e5, [])])
def test_an_open_row_is_judged_where_work_ran_out_if_that_is_a_decade_later(
    monkeypatch, spent, levels
):
    """Seeds 11, 65 and 1125: U10 is decided at F = 2e5, and work ran out before 2e6."""
    run = late_run()
    case = PAPER.prepare(Subject(run.data, run.net, (run,), {"flow": rf.flow}))
    work = 2.0 * univariate_case.WORK
    monkeypatch.setattr(case, "_work", lambda one: work * (-float(one.log_loss[-1]) > spent))
    found = [-float(later.log_loss[-1]) for later in case.later_runs()]
    assert found == pytest.approx(levels)


# ---------------------------------------------------------------------- broken hypotheses


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


def test_an_unknown_density_leaves_the_hidden_scale_open():
    run, options = literal()
    assert evaluate(run, "A5b", **options).verdict == "UNRESOLVED"
    run, options = literal(hidden=1e-3)
    assert evaluate(run, "A5b", **options).verdict == "FAIL"


def test_the_printed_threshold_is_enough_for_the_exponential_loss_only():
    data, net = logistic_counterexample()
    exp = rf.losses.Exponential().log_value(net.predict(data.X), data.y)
    assert exp > -np.log(2)  # the exponential loss of the same network is above 1/n
    logistic = rf.losses.Logistic().log_value(net.predict(data.X), data.y)
    assert rf.losses.Logistic().log_at_zero - np.log(2) < logistic < -np.log(2)


def test_one_fixed_layer_is_another_flow():
    run = short_run(sample(), start(), train="hidden", stop_log_loss=-0.1)
    assert verdicts(evaluate(run, "A8", "U2")) == ["FAIL", "NOT_APPLICABLE"]


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


def test_the_error_of_a_coarse_run_hides_the_angle_late_and_is_said_to():
    """Weights of points in the field are exp(-F), known to F * rtol: this was a FAIL."""
    data = rf.datasets.sample_1d(rf.datasets.teacher_1d([-0.3, 0.4]), 9, density=DENSITY, seed=3)
    net = rf.networks.gaussian(2, 34, sigma_hidden=0.3, sigma_output=0.1, seed=3)
    run = rf.flow(data, net, loss=rf.losses.Exponential(), stop_log_loss=-2e4, rtol=1e-4)
    rng, end = np.random.default_rng(3), run.final.flat()
    W, a = (x * (1.0 + 1e-4 * rng.normal(size=x.shape)) for x in (end.W, end.a))
    found = evaluate(replace(run, final=rf.Network(a, W)), "U24")
    assert found.measured > found.bound
    assert found.verdict == "UNRESOLVED"
    fine = rf.flow(data, net, loss=rf.losses.Exponential(), stop_log_loss=-2e4)
    assert evaluate(fine, "U24").verdict == "PASS"


def test_one_sampled_point_in_a_tiny_set_of_errors_contradicts_no_integral():
    """Ten standard errors of the normal law, which speaks about many errors only."""
    x = float(np.sort(DENSITY.sample(100_000, 0))[61_234])
    data = rf.datasets.from_points([-0.5, 0.8], [-1.0, 1.0])
    data = rf.Dataset(data.X, data.y, teacher=rf.datasets.teacher_1d([x - 1e-7]))
    run = replace(short_run(data, start()), final=rf.datasets.teacher_1d([x + 1e-7]))
    assert evaluate(run, "U22", density=DENSITY).verdict == "PASS"
    wrong = replace(run, final=rf.datasets.teacher_1d([x + 0.02]))
    found = evaluate(wrong, "U22", density=DENSITY)
    assert (found.verdict, found.bound) == ("PASS", pytest.approx(0.01, abs=1e-4))


def test_runs_that_stopped_early_do_not_speak_against_theorem_2_3():
    """Theorem 2.3 is about the limit of each run, not of the first one alone."""
    (run, *_), options = _constants(True)
    runs, early = _merged()[0], replace(run, log_loss=np.full(len(run.t), -0.1))
    case = PAPER.prepare(subject_of([runs[0], *[early] * 32], None), **options)
    assert PAPER["U25"].check(case).verdict == "UNRESOLVED"


def test_clocks_are_compared_at_times_far_below_one():
    """A loss of e^200 falls within 1e-80 of time; roots to an absolute 1e-15 once were a FAIL."""
    data = rf.datasets.from_points([-0.7, -0.1, 0.5], [1.0, -1.0, 1.0])
    net = rf.networks.gaussian(2, 12, sigma_hidden=10.0, sigma_output=10.0, seed=5)
    run = rf.flow(data, net, loss=rf.losses.Exponential(), stop_log_loss=-5.0)
    assert run.log_loss[0] > 400.0
    assert evaluate(run, "U1").measured < 1e-9
