"""Every row of the orthogonal table: where it holds, and what breaks it."""

from dataclasses import replace

import numpy as np
import pytest

import reluflow as rf
from reluflow.errors import InputError
from reluflow.papers.orthogonal.measure import half_times

from .orthogonal_problems import network, prepared, proper, proper_run, row

ASSUMPTIONS = ["A1", "A2", "A3", "A4(i)", "A4(ii)"]
CLAIMS = [f"O{k}" for k in range(1, 31)]
NEED_THE_PROCESS = ["O4", "O5", "O6", "O7", "O8", "O9", "O10", "O11", "O12", "O13", "O14", "O16"]
NEED_THE_PROCESS += ["O17", "O18", "O19", "O20", "O21", "O22", "O23", "O24", "O26", "O27", "O28"]
NEED_THE_PROCESS += ["O29", "O30"]


@pytest.fixture(scope="module")
def report():
    return rf.theory.check("orthogonal", proper_run(), draws=200)


def verdicts(report):
    return {check.id: check.verdict.value for check in (*report.assumptions, *report.checks)}


def test_the_two_rates_are_kept_apart(report):
    """Jump times miss by C/L, parameters by a power: the first is much larger."""
    assert "T_k/L misses t_k by" in report["O8"].note
    assert report["O12"].measured == pytest.approx(1.0, abs=1e-2)
    assert report["O10"].measured < 1e-6


def test_several_scales_are_one_problem():
    data, net = proper()
    runs = [rf.flow(data, net.with_scale(s), rtol=1e-9) for s in (-300.0, -40.0)]
    case = prepared(runs)
    assert case.flows[0] is runs[0]
    assert case.run_at(300.0) is runs[0]
    with pytest.raises(InputError, match="the runs are of different data"):
        prepared([runs[0], rf.flow(rf.Dataset(2 * np.eye(4), data.y), net, t_end=1.0)])
    other = rf.flow(data, net, loss=rf.losses.Square("1/n"), t_end=1.0)
    with pytest.raises(InputError, match="one square loss"):
        prepared([runs[0], other])


# ------------------------------------------------------------------ a broken assumption


def all_not_applicable(case, ids):
    return {id: row(id, case).verdict.value for id in ids} == dict.fromkeys(ids, "NOT_APPLICABLE")


def test_points_that_are_not_orthonormal_fail_a1_and_end_the_theory():
    data, net = proper()
    X = data.X.copy()
    X[0, 1] = 0.1
    case = prepared((rf.Dataset(X, data.y), net))
    assert row("A1", case).verdict == "FAIL"
    assert "x_0.x_1 is 0.1" in row("A1", case).note
    assert all_not_applicable(case, [*NEED_THE_PROCESS, "O2", "O15", "O25"])
    assert "not orthonormal" in row("O12", case).note
    assert row("O1", case).verdict == row("O3", case).verdict == "PASS"


def test_a_coordinate_that_comes_back_fails_a2_and_o2():
    run = proper_run()
    W = run.kept["W"].copy()
    j, i = 0, 2  # negative at the start
    assert W[0, j, i] < 0
    W[-1, j, i] = 0.5
    broken = prepared(replace(run, kept={**run.kept, "W": W}))
    assert row("A2", broken).verdict == "FAIL"
    assert row("O2", broken).verdict == "FAIL"


def test_a_neuron_with_its_own_factor_is_allowed():
    data, net = proper()
    factors = np.array([1.0, 0.1, 2.0, 1.0])
    case = prepared(
        (data, rf.Network(net.mantissa.a * factors, net.mantissa.W * factors[:, None], -60.0))
    )
    assert row("A3", case).verdict == "PASS"
    assert "factors" in row("A3", case).note
    assert row("O9", case).verdict == "PASS"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"rows": [0, 1, 3]}, "0 neurons without a point, 0 repeated"),
        ({"signs": [1.0, 1.0, -1.0, -1.0]}, "0 points without a neuron, 0 neurons"),
        ({"flip": 3}, "1 points without a neuron, 1 neurons without a point"),
    ],
)
def test_defects_of_the_mask_matrix_fail_a4i(change, text):
    data, net = proper()
    W, signs = net.mantissa.W.copy(), net.signs.copy()
    if "rows" in change:  # a repeated mask would need an equal row: drop the neuron of point 2
        W, signs = np.vstack([W, [0.2, 0.9, -0.1, -0.4]]), np.append(signs, 1.0)
        text = "0 neurons without a point, 1 repeated"
    if "signs" in change:  # two negative neurons on the only negative label
        signs = np.array(change["signs"])
        text = "0 neurons without a point, 1 repeated"
    if "flip" in change:  # the negative neuron turns away from the only negative label
        W[change["flip"], 3] *= -1.0
    case = prepared((data, network(W, signs)))
    found = row("A4(i)", case)
    assert found.verdict == "FAIL"
    assert text in found.note


def test_a_tie_on_shared_points_fails_a4ii_and_leaves_no_limit():
    data = rf.Dataset(np.eye(3), [1.0, 1.0, 1.0])
    case = prepared((data, network([[1, 1, -0.2], [-0.2, 1, 1]], [1.0, 1.0])))
    assert row("A4(ii)", case).verdict == "FAIL"
    assert "share points" in row("A4(ii)", case).note
    for id in ("O6", "O8", "O9", "O12", "O30"):
        assert row(id, case).verdict == "NOT_APPLICABLE"
        assert "tie at jump 0" in row(id, case).note


def test_a_near_tie_is_decided_by_a_deeper_run_and_undecided_without_one():
    data = rf.Dataset(np.eye(3), [1.0, 1.0, 1.01])
    net = network([[1, 1, -0.2], [-0.2, 1, 1]], [1.0, 1.0])
    found = row("O7", prepared(rf.flow(data, net), start_runs=False))
    assert found.verdict == "UNRESOLVED"
    assert "near tie at jump 0" in found.note
    case = prepared((data, net))
    assert row("O7", case).verdict == "PASS"
    assert row("O9", case).verdict == "PASS"
    assert case.deep > 1000


def test_a_tie_too_close_to_resolve_is_said():
    data = rf.Dataset(np.eye(3), [1.0, 1.0, 1.0 + 1e-7])
    case = prepared((data, network([[1, 1, -0.2], [-0.2, 1, 1]], [1.0, 1.0])))
    for id in ("O8", "O9", "O12"):
        assert row(id, case).verdict == "UNRESOLVED"
        assert "near tie" in row(id, case).note


# ------------------------------------------------------------------ extra conditions


def test_full_cover_gives_two_jumps_and_the_minimal_norm():
    data, net = proper()
    W = np.vstack([net.mantissa.W, [0.5, 0.5, 0.5, -0.5]])
    case = prepared((data, network(W, [*net.signs, 1.0])))
    assert row("O16", case).verdict == "PASS"
    assert row("O16", case).note == "2 jumps"
    assert case.process.squared_norm == pytest.approx(case.process.minimal_squared_norm)


def test_a_norm_that_equals_its_bound_is_within_it():
    data = rf.Dataset(np.eye(1), [1.3])
    found = row("O21", prepared((data, network([[1.0]], [1.0])), start_runs=False))
    assert found.verdict == "PASS"


def test_shared_masks_split_as_chi_squared():
    data, net = proper()
    W = np.vstack([net.mantissa.W, [0.2, 0.9, -0.1, -0.4]])
    case = prepared((data, network(W, [*net.signs, 1.0])))
    assert row("O18", case).verdict == "PASS"
    assert row("O18", case).measured < 1e-8


def test_a_run_that_takes_too_long_leaves_its_claims_open():
    case = prepared(proper(), max_seconds=1e-9)
    assert row("O9", case).verdict == "UNRESOLVED"
    assert "did not end within 1e-09 s" in row("O9", case).note


@pytest.mark.parametrize("option", [{"draws": 0}, {"seed": -1}, {"max_seconds": 0.0}])
def test_options_are_checked(option):
    with pytest.raises(InputError, match=next(iter(option))):
        rf.theory.check("orthogonal", proper(), start_runs=False, **option)


# ------------------------------------------------------------------ sharp times


@pytest.mark.parametrize("seed", [1, 2, 6, 9, 19])
def test_half_times_at_1e_minus_100_are_sharp_when_exponents_are_apart(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(4, 9)), int(rng.integers(3, 9))
    kind = ("positive", "mixed")[seed % 2]
    data = rf.datasets.orthonormal(n, labels=kind, seed=seed)
    net = rf.networks.balanced(
        n,
        m,
        log_scale=-100 * np.log(10),
        directions="sphere",
        signs="positive" if kind == "positive" else "random",
        seed=seed + 100,
    )
    case = prepared(rf.flow(data, net, rtol=1e-9))
    assert (case.gaps >= 0.05).all()
    assert row("O7", case).verdict == row("O9", case).verdict == "PASS"
    times = half_times(case.subject.runs[0], case.process)
    assert np.abs(times - case.process.sharp_times(-case.L)).max() < 1e-6


def test_margins_of_five_percent_of_the_wait_are_not_enough():
    """The rival's exponent counts: at a late jump little of it is left."""
    data = rf.datasets.orthonormal(7, labels="positive", seed=28)
    net = rf.networks.balanced(
        7, 8, log_scale=-100 * np.log(10), directions="sphere", signs="positive", seed=128
    )
    process = rf.limits.saddle_to_saddle(data, net)
    waits = np.diff(process.times, prepend=0.0)
    assert (process.margins / waits).min() > 0.05
    times = half_times(rf.flow(data, net, rtol=1e-9), process)
    assert np.abs(times - process.sharp_times(-100 * np.log(10))).max() > 0.1
    assert prepared((data, net)).gaps.min() < 0.05


def test_a_loss_at_rest_may_rise_by_the_squared_error_of_the_weights():
    """A coarse run near its limit: the loss rises by 9e-10 between records, once a FAIL."""
    rng = np.random.default_rng(0)
    n, d, m = (int(rng.integers(*ends)) for ends in ((2, 8), (1, 4), (2, 12)))
    data = rf.Dataset(rng.normal(size=(n, d)), rng.normal(size=n))
    net = rf.networks.balanced(d, m, log_scale=-3.0, seed=0)
    run = rf.flow(data, net, rtol=1e-2, t_end=1e4)
    losses = run.log_loss.copy()
    losses[-1] = losses[-2] + 9e-10  # by rounding, on some processors
    run = replace(run, log_loss=losses)
    assert row("O3", prepared(run, start_runs=False)).verdict == "PASS"


@pytest.mark.parametrize("log_scale", [0.0, 1.0])
def test_a_start_of_scale_one_is_not_small(log_scale):
    """log(1/lambda) = 0 once passed as positive, and O7 raised an InputError."""
    data = rf.Dataset(np.eye(2)[:1], [1.0])
    net = rf.networks.balanced(
        2, 2, log_scale=log_scale, directions="sphere", signs="positive", seed=1
    )
    run = rf.flow(data, net)
    found = rf.theory.check("orthogonal", run, start_runs=False)
    assert found["O7"].verdict == "NOT_APPLICABLE"
