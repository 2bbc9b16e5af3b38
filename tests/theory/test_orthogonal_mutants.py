"""False statements are caught: a run or a process is spoiled, and its row must fail."""

from dataclasses import replace

import numpy as np
import pytest

import reluflow as rf
from reluflow.theory.orthogonal import claims_exact, claims_random, claims_symmetry, probability

from .orthogonal_problems import network, prepared, proper, proper_run, row


def with_states(run, **states):
    return replace(run, states={**run.states, **states})


def spoiled_process(case, **changes):
    """A case whose limit process is not the true one."""
    case.__dict__["process"] = replace(case.process, **changes)
    return case


def test_o1_sees_an_output_weight_off_balance():
    run = proper_run()
    a = run.states["a"].copy()
    a[-1, 0] *= 1.0 + 1e-6
    assert row("O1", prepared(with_states(run, a=a))).verdict == "FAIL"


def test_o2_sees_a_sign_change_and_an_activation():
    run = proper_run()
    a = run.states["a"].copy()
    a[-1, 0] *= -1.0
    assert row("O2", prepared(with_states(run, a=a))).verdict == "FAIL"
    events = run.events.copy()
    events["kind"][0] = "activate"
    assert row("O2", prepared(replace(run, events=events))).verdict == "FAIL"


def test_o3_sees_a_loss_that_grows():
    run = proper_run()
    log_loss = run.log_loss.copy()
    log_loss[5] = log_loss[4] + 1e-9
    assert row("O3", prepared(replace(run, log_loss=log_loss))).verdict == "FAIL"


def test_o4_sees_a_wrong_sign_point_that_stays(monkeypatch):
    case = prepared(proper())
    run = case.run_at(case.L)
    assert row("O4", case).verdict == "PASS"
    late = run.events.copy()
    late["t"][late["kind"] == "deactivate"] *= 1e4
    case.cache[case.L] = replace(run, events=late)
    assert row("O4", case).verdict == "FAIL"
    case.cache[case.L] = replace(run, events=run.events[:0])
    assert "stay" in row("O4", case).note


def test_o5_o6_o14_see_a_wrong_norm():
    """The classical mistake: a jump that fits its whole mask, not what is left of it."""
    case = prepared(proper())
    process = case.process
    k = 1
    fitted = list(process.fitted)
    fitted[k] = np.union1d(fitted[0], fitted[k])
    broken = spoiled_process(case, fitted=tuple(fitted))
    assert row("O5", broken).verdict == "FAIL"
    assert row("O14", broken).verdict == "FAIL"
    losses = process.losses.copy()
    losses[1] *= 1.0 + 1e-9
    broken = spoiled_process(prepared(proper()), losses=losses)
    assert row("O6", broken).verdict == "FAIL"


def test_o6_sees_a_flow_off_its_plateau():
    case = prepared(proper())
    assert row("O6", case).verdict == "PASS"
    times = case.deep_half_times.copy()
    times[0] *= 3.0  # the middle of the first plateau lies behind the first jump
    case.__dict__["deep_half_times"] = times
    assert row("O6", case).verdict == "FAIL"


def test_o7_o8_o9_o10_see_wrong_jump_times():
    case = prepared(proper())
    true = case.process
    for id in ("O8", "O9", "O10"):
        assert row(id, case).verdict == "PASS"
    slopes = 1.02 * true.race.slopes
    broken = spoiled_process(case, times=true.times / 1.02, race=replace(true.race, slopes=slopes))
    for id in ("O8", "O9", "O10"):
        assert row(id, broken).verdict == "FAIL", id
    swapped = spoiled_process(
        prepared(proper()), groups=true.groups[::-1], norms=true.norms[::-1].copy()
    )
    assert row("O7", swapped).verdict == "FAIL"


def test_o9_sees_the_sharp_constant():
    """Without the alignment constants times are off by O(1)."""
    case = prepared(proper())
    broken = spoiled_process(case, log_chi=np.zeros_like(case.process.log_chi))
    assert row("O9", broken).verdict == "FAIL"


def test_o11_o13_see_slopes_and_directions_of_the_whole_mask():
    case = prepared(proper())
    assert row("O11", case).verdict == row("O13", case).verdict == "PASS"
    race = case.process.race
    # slopes that never forget the fitted points
    slopes = np.where(race.slopes > 0, race.slopes[0], 0.0)
    broken = spoiled_process(case, race=replace(race, slopes=slopes))
    assert row("O11", broken).verdict == "FAIL"
    turned = prepared(proper())
    turned.__dict__["deep_run"] = Rotated(turned.deep_run)
    turned.__dict__["deep_half_times"] = case.deep_half_times
    assert row("O13", turned).verdict == "FAIL"


class Rotated:
    """A run whose hidden weights are tilted."""

    def __init__(self, run):
        self.run, self.t, self.status, self.final = run, run.t, run.status, run.final
        self.data, self.active = run.data, run.active

    def at(self, t):
        net = self.run.at(t)
        return rf.Network(net.a, net.W + 0.2 * np.abs(net.W).max(), net.log_scale)


def test_o12_sees_a_wrong_limit_and_a_wrong_exponent(monkeypatch):
    case = prepared(proper())
    assert row("O12", case).verdict == "PASS"
    y = case.process.y.copy()
    y[0] *= 1.01
    assert row("O12", spoiled_process(case, y=y)).verdict == "FAIL"
    honest = prepared(proper())
    rate = type(honest.process).rate
    monkeypatch.setattr(type(honest.process), "rate", lambda self, tau: 2.0 * rate(self, tau))
    assert row("O12", honest).verdict == "FAIL"


def test_o15_sees_a_norm_below_the_minimum():
    run = proper_run()
    small = rf.Network(0.7 * run.final.a, 0.7 * run.final.W, run.final.log_scale)

    class Lucky(rf.Network):
        def predict(self, X):
            return run.data.y

    lucky = Lucky(small.a, small.W, small.log_scale)
    assert row("O15", prepared(replace(run, final=lucky))).verdict == "FAIL"


def test_o16_o17_see_a_third_jump_and_a_lost_point():
    data, net = proper()
    W = np.vstack([net.W, [0.5, 0.5, 0.5, -0.5]])
    case = prepared((data, network(W, [*net.signs, 1.0])))
    process = case.process
    broken = spoiled_process(case, times=1.01 * process.times)
    assert row("O16", broken).verdict == "FAIL"
    lost = spoiled_process(case, fitted=(process.fitted[0], process.fitted[1][:0]))
    assert row("O17", lost).verdict == "FAIL"


def test_o18_sees_an_even_split():
    data, net = proper()
    W = np.vstack([net.W, [0.2, 0.9, -0.1, -0.4]])
    case = prepared((data, network(W, [*net.signs, 1.0])))
    a = case.process.network.a.copy()
    a[[0, 4]] = np.sqrt(np.mean(a[[0, 4]] ** 2))
    even = rf.Network(a, case.process.network.W)
    assert row("O18", spoiled_process(case, network=even)).verdict == "FAIL"


def test_o19_sees_a_wrong_probability(monkeypatch):
    case = prepared(proper(), start_runs=False)
    true = probability.exact_probability(3, 1, 4, matched=False)
    monkeypatch.setattr(probability, "exact_probability", lambda *a, **k: true * 2)
    assert row("O19", case).verdict == "FAIL"
    monkeypatch.setattr(probability, "exact_probability", lambda *a, **k: true)
    monkeypatch.setattr(probability, "lower_bound", lambda *a, **k: 0.9)
    assert "exceeds the exact value" in row("O19", case).note


def test_o20_o21_o22_see_ties_and_norms_that_are_too_large(monkeypatch):
    case = prepared(proper(), start_runs=False, draws=200)
    processes = claims_random.random_processes(case)
    case.cache["random_processes"] = [replace(p, norms=20.0 * p.norms) for p in processes]
    assert row("O21", case).verdict == "FAIL"
    assert row("O22", case).verdict == "FAIL"
    case.cache["random_processes"] = [replace(p, norms=0.5 * p.norms) for p in processes]
    assert "below the minimum norm" in row("O22", case).note
    monkeypatch.setattr(
        claims_random,
        "saddle_to_saddle_from_masks",
        lambda *a: replace(processes[0], margins=np.zeros(len(processes[0].times))),
    )
    assert row("O20", case).verdict == "FAIL"


def test_o23_to_o26_see_a_wrong_law(monkeypatch):
    case = prepared(proper())
    exact = claims_exact.one_neuron
    monkeypatch.setattr(claims_exact, "one_neuron", lambda v, y, k, t: exact(v, y, k, 1.001 * t))
    assert row("O23", case).verdict == "FAIL"
    boost = claims_exact.boost
    monkeypatch.setattr(claims_exact, "boost", lambda v, d, t: boost(v, d, t * (1 + 1e-9)))
    assert row("O24", case).verdict == "FAIL"
    plain = claims_exact._plain
    monkeypatch.setattr(
        claims_exact, "_plain", lambda a, W, d, r, k: plain(a, W, d, r * (1 + 1e-12), k)
    )
    assert row("O25", case).verdict == "FAIL"
    # the law of the flow, growth lr g, is not that of descent
    race = case.process.race
    slopes = np.expm1(0.25 * race.slopes) / 0.25
    assert row("O26", spoiled_process(case, race=replace(race, slopes=slopes))).verdict == "FAIL"


def test_o27_to_o30_see_a_broken_symmetry(monkeypatch):
    case = prepared(proper())
    true = case.process
    shifted = replace(true, times=true.times * (1 + 1e-8))
    monkeypatch.setattr(claims_symmetry, "saddle_to_saddle", lambda *a, **k: shifted)
    for id in ("O27", "O28", "O29"):
        assert row(id, case).verdict == "FAIL"
    monkeypatch.setattr(
        claims_symmetry, "saddle_to_saddle", lambda *a, **k: replace(true, fitted=true.fitted[::-1])
    )
    for id in ("O27", "O28", "O29"):
        assert "order" in row(id, case).note
    late = spoiled_process(prepared(proper()), times=true.times * 1.001)
    assert row("O30", late).verdict == "FAIL"


@pytest.mark.parametrize("id", ["O5", "O14", "O17", "O19", "O20", "O21", "O22", "O29"])
def test_the_unspoiled_rows_pass(id):
    assert row(id, prepared(proper(), start_runs=False)).verdict == "PASS"
