"""Each claim can fail: runs that were tampered with, and false versions of the statements."""

from dataclasses import replace

import numpy as np
import pytest

import reluflow as rf
from reluflow.theory.univariate import (
    case as case_module,
)
from reluflow.theory.univariate import (
    claims_examples,
    claims_flow,
    claims_limit,
    claims_population,
    constants,
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
    with_states,
)


def other_separator():
    """A large network that separates the points, far from balance and from any limit."""
    x = sample().X[:, 0]
    switch = np.flatnonzero(np.diff(sample().y))
    net = rf.datasets.teacher_1d(0.5 * (x[switch] + x[switch + 1]), strict=True)
    return rf.Network(net.a, net.W, 6.0)


def test_clocks_are_compared_with_the_run():
    drift = 1e-4 * np.arange(len(late_run().t))
    run = with_states(late_run(), a=lambda a: a * (1 + drift[:, None]))
    assert evaluate(run, "U1").verdict == "FAIL"


def test_drifting_balance():
    run = with_states(late_run(), a=lambda a: a * (1 + 1e-6))
    assert evaluate(run, "U2").verdict == "FAIL"


def test_rising_loss():
    losses = late_run().log_loss.copy()
    losses[50] += 2 * (losses[49] - losses[50])
    assert evaluate(replace(late_run(), log_loss=losses), "U3").verdict == "FAIL"


def test_homogeneity_of_the_wrong_degree():
    assert claims_flow.homogeneity_defect(sample(), start()) < 1e-15
    assert claims_flow.homogeneity_defect(sample(), start(), degree=3.0) > 0.01


def test_falling_smoothed_margin():
    def swap(values):
        values[[-1, -20]] = values[[-20, -1]]
        return values

    run = with_states(late_run(), a=swap, W=swap, log_scale=swap, log_scale_out=swap)
    found = evaluate(run, "U5")
    assert found.verdict == "FAIL"
    assert found.measured < -1e-10


def test_the_mean_loss_would_not_be_monotone():
    """With the mean instead of the total loss the margin is over-estimated, and may fall."""
    run, n = late_run(), sample().n
    best = case_of(run).optimum.margin
    mean = np.array([-run.log_loss[k] / run.network(k).squared_norm for k in range(len(run.t))])
    below = run.log_loss < -np.log(n)
    assert np.diff(mean[below]).min() < -1e-6
    assert mean[below].max() > best


def test_sandwich_without_the_logarithm():
    data, net = constants.example_1()  # two equal margins: apart by exactly log 2
    assert claims_flow.sandwich_excess(data, net) == pytest.approx(0.0, abs=1e-15)
    assert claims_flow.sandwich_excess(data, net, width=0.5) > 0.1


@pytest.mark.parametrize("id", ["U7", "U8"])
def test_a_direction_that_is_no_limit(id):
    run = late_run()
    net = other_separator()
    assert rf.geometry.margin(sample(), net) > 0
    assert evaluate(replace(run, final=net), id).verdict == "FAIL"


def test_a_loss_that_stays_positive_after_separation():
    run = replace(late_run(), status=rf.trajectory.Status.STATIONARY)
    assert evaluate(run, "U7").verdict == "FAIL"


def test_kkt_identity_with_the_wrong_factor():
    case = case_of(late_run())
    squared = 1 / rf.geometry.margin(sample(), late_run().final)
    assert claims_limit.identity_defect(case.late_kkt, squared) < 1e-3
    assert claims_limit.identity_defect(case.late_kkt, squared, factor=1.0) > 0.4


def test_regions_against_a_false_bound(monkeypatch):
    monkeypatch.setattr(claims_limit, "region_bound", lambda count: count)
    assert evaluate(late_run(), "U10").verdict == "FAIL"


def test_fewer_regions_than_switches():
    case = case_of(late_run())
    case.__dict__["regions"] = replace(case.regions, count=1)
    assert rows(case, "U10").verdict == "FAIL"


@pytest.mark.parametrize("id", ["U11", "U12"])
def test_a_bound_on_margins_that_is_too_small(id):
    case = case_of(late_run())
    case.__dict__["optimum"] = replace(case.optimum, lower_bound=1.1 * case.optimum.lower_bound)
    found = rows(case, "U11")
    assert found.verdict == "FAIL"
    case.__dict__["optimum"] = replace(case.optimum, lower_bound=0.9 * case.optimum.lower_bound)
    assert rows(case, "U12").verdict == "FAIL"


def test_a_wrong_closed_form(monkeypatch):
    right = constants.example_1_log_time
    monkeypatch.setattr(
        claims_examples, "example_1_log_time", lambda a, logistic: right(a, logistic=not logistic)
    )
    found = evaluate(late_run(), "U13")
    assert found.verdict == "FAIL"
    assert "log t" in found.note


def test_a_counterexample_that_separates(monkeypatch):
    data, _ = constants.logistic_counterexample()
    both = rf.Network([3.0], [[0.1, 0.5]])
    monkeypatch.setattr(claims_examples, "logistic_counterexample", lambda: (data, both))
    assert evaluate(late_run(), "U14").verdict == "FAIL"


def test_a_dead_neuron_that_moved_by_one_ulp():
    run = late_run()
    dead = np.flatnonzero(np.all(sample().X @ start().W.T < 0, axis=0))
    W = run.final.W.copy()
    W[dead[0], 0] = np.nextafter(W[dead[0], 0], 0.0)
    moved = rf.Network(run.final.a, W, run.final.log_scale, log_scale_out=run.final.log_scale_out)
    assert evaluate(run, "U16").verdict == "PASS"
    assert evaluate(replace(run, final=moved), "U16").verdict == "FAIL"


def crowded():
    """Twenty alternating cells, ten neurons: some cells must be wrong."""
    cells = [(i - 0.25, i + 0.25) for i in range(1, 21)]
    density = rf.densities.union(cells)
    teacher = rf.datasets.teacher_1d([i + 0.5 for i in range(1, 20)])
    data = rf.datasets.sample_1d(teacher, 30, density=density, seed=0)
    net = rf.networks.gaussian(2, 10, sigma_hidden=1.0, sigma_output=0.3, seed=0)
    return short_run(data, net, t_end=2.0, stop_log_loss=None), density


def test_cells_that_few_neurons_cannot_alternate_on(monkeypatch):
    run, density = crowded()
    found = evaluate(run, "U17", density=density)
    assert found.verdict == "PASS"
    assert found.bound > 0
    monkeypatch.setattr(claims_population, "least_wrong_cells", lambda cells, alive: cells - 1)
    assert evaluate(run, "U17", density=density).verdict == "FAIL"


def test_binomial_tail_at_another_probability(monkeypatch):
    monkeypatch.setattr(claims_examples, "quarter_tail", lambda k: 0.2 if k == 1 else 0.3)
    assert evaluate(late_run(), "U18").verdict == "FAIL"


def test_capacity_is_attained_and_a_smaller_one_is_false(monkeypatch):
    net, _ = constants.capacity_example()
    run = replace(late_run(), final=net)
    found = evaluate(run, "U19")
    assert found.verdict == "PASS"
    assert found.measured == 1
    four = constants.capacity_example()[1]
    monkeypatch.setattr(claims_examples, "capacity_example", lambda: (TEACHER, four))
    assert evaluate(late_run(), "U19").verdict == "FAIL"


@pytest.mark.parametrize(("power", "verdict"), [(1.0, "PASS"), (0.5, "FAIL")])
def test_error_rates(power, verdict):
    runs = []
    for n in (20, 40, 80):
        data = sample(n)
        for seed in range(20):
            shift = 0.05 * (20 / n) ** power * (1 + 0.1 * np.cos(seed))
            net = rf.datasets.teacher_1d([-1 / 3 + shift, 1 / 3 + shift])
            # labels of the shifted teacher: the learner is right on its own sample
            y = np.where(net.predict(data.X) > 0, 1.0, -1.0)
            moved = rf.Dataset(data.X, y, teacher=TEACHER)
            final = rf.Network(net.a - 0.0, net.W)
            runs.append(replace(late_run(), data=moved, net=start(), final=strict(final)))
    clean = replace(late_run(), data=sample(20))
    found = evaluate([clean, *runs], "U20", density=DENSITY)
    assert found.verdict == verdict


def strict(net):
    """The same signs, with a small negative constant where the network is zero."""
    return rf.Network(np.append(net.a, -1e-9), np.vstack([net.W, [0.0, 1.0]]))


def test_few_runs_say_nothing_about_rates():
    found = evaluate(late_run(), "U20", density=DENSITY)
    assert found.verdict == "NOT_APPLICABLE"
    assert "20 seeds" in found.note


def test_a_teacher_with_a_zero_elsewhere(monkeypatch):
    right = rf.datasets.teacher_1d
    monkeypatch.setattr(
        claims_examples, "teacher_1d", lambda zeros, **options: right(zeros + 1e-9, **options)
    )
    assert evaluate(late_run(), "U21").verdict == "FAIL"
    monkeypatch.setattr(
        claims_examples, "teacher_1d", lambda zeros, **options: right(zeros[1:], **options)
    )
    assert evaluate(late_run(), "U21").verdict == "FAIL"


def test_a_population_error_that_is_off(monkeypatch):
    exact = rf.geometry.population_error
    monkeypatch.setattr(claims_population, "population_error", lambda *args: exact(*args) + 0.01)
    assert evaluate(late_run(), "U22", density=DENSITY).verdict == "FAIL"


def test_a_limit_out_of_balance():
    net = late_run().final
    loud = rf.Network(1.01 * net.a, net.W, net.log_scale, log_scale_out=net.log_scale_out)
    assert evaluate(replace(late_run(), final=loud), "U23").verdict == "FAIL"


def test_a_clock_that_is_late():
    run = late_run()
    assert evaluate(replace(run, log_t=run.log_t + 0.1), "U24").verdict == "FAIL"


# ---------------------------------------------------------------------- Theorem 3.1


def easy(count, reached):
    """Runs with their width and deviations, under requirements small enough to be met."""
    run = short_run(sample(), start(64), stop_log_loss=-np.log(50.0))
    if not reached:
        dead = rf.Network(np.ones(64), np.tile([0.0, -1.0], (64, 1)))
        run = replace(run, log_loss=run.log_loss[:1], final=dead)
    return [run] * count


@pytest.mark.parametrize(
    ("count", "reached", "verdict"),
    [(40, True, "PASS"), (40, False, "FAIL"), (3, True, "UNRESOLVED")],
)
def test_share_of_runs_that_reach_half_the_threshold(monkeypatch, count, reached, verdict):
    monkeypatch.setattr(
        case_module,
        "optimisation_requirements",
        lambda *args, **options: constants.Requirements(8.0, 0.5, 0.2),
    )
    assert evaluate(easy(count, reached), "U15", density=DENSITY).verdict == verdict


def test_a_run_that_was_stopped_early_is_no_failure(monkeypatch):
    monkeypatch.setattr(
        case_module,
        "optimisation_requirements",
        lambda *args, **options: constants.Requirements(8.0, 0.5, 0.2),
    )
    runs = [short_run(sample(), start(64), stop_log_loss=-0.1)] * 40
    found = evaluate(runs, "U15", density=DENSITY)
    assert found.verdict == "UNRESOLVED"
    assert "40 of 40 runs ended above 1/(2n) while still moving" in found.note


def test_a_start_that_is_not_normal_is_outside_theorem_3_1(monkeypatch):
    monkeypatch.setattr(
        case_module,
        "optimisation_requirements",
        lambda *args, **options: constants.Requirements(8.0, 0.5, 2.0),
    )
    net = rf.networks.balanced(2, 64, directions="sphere", seed=0)
    run = short_run(sample(), net, stop_log_loss=-0.1)
    found = evaluate(run, "U15", density=DENSITY)
    assert found.verdict == "NOT_APPLICABLE"
    assert "A4 fails" in found.note


def test_dead_neurons_of_a_start_with_two_scales_are_compared_to_rounding():
    net = rf.Network(start().a, start().W, -1.3, log_scale_out=0.7)
    found = evaluate(short_run(sample(), net, stop_log_loss=-5.0), "U16")
    assert found.verdict == "PASS"
    assert "to rounding" in found.note
