"""Patterns of a run: modes where it has them, signs with their rounding where it has none."""

from dataclasses import replace

import numpy as np
import pytest

import reluflow as rf
from reluflow.errors import InputError
from reluflow.geometry import tangent_kernel
from reluflow.losses import Square
from reluflow.trajectory import EVENT_DTYPE, Mode

SEEDS = (0, 4, 8, 9)


def sliding_run(seed, **options):
    """A flow that ends with neurons held on planes."""
    data = rf.datasets.centred(4, seed=seed)
    net = rf.networks.balanced(4, 60, log_scale=-2 * np.log(4.0), seed=seed + 1)
    return rf.flow(data, net, t_end=20.0, **options)


@pytest.fixture(scope="module")
def runs():
    return [sliding_run(seed) for seed in SEEDS]


def jittered(net, seed):
    """The network with each hidden weight moved by 1e-16 of its neuron."""
    rng = np.random.default_rng(seed)
    size = np.abs(net.mantissa.W).max(axis=1, keepdims=True)
    return rf.Network(
        net.mantissa.a,
        net.mantissa.W + 1e-16 * size * rng.choice([-1, 1], net.mantissa.W.shape),
        net.log_scale,
    )


def signs(net, data):
    return net.preactivations(data.X).T > 0.0


def test_the_runs_end_with_slides_whose_signs_are_rounding(runs):
    slides = [run.modes(-1) == Mode.SLIDING for run in runs]
    assert sum(int(held.sum()) for held in slides) > 4
    seen = [
        np.stack([signs(jittered(run.final, k), run.data)[held] for k in range(20)])
        for run, held in zip(runs, slides, strict=True)
    ]
    assert any((rows.min(axis=0) != rows.max(axis=0)).any() for rows in seen)


def test_modes_are_those_the_engine_stored(runs):
    for run in runs:
        stored = run.kept["mode"]
        for k in (0, len(run.t) // 2, len(run.t) - 1):
            assert np.array_equal(run.active(k), stored[k] == 1)
            assert np.array_equal(run.modes(k), np.minimum(stored[k], 2))
        assert np.array_equal(run.modes(-1), run.modes(len(run.t) - 1))
        assert run.active(0).dtype == np.bool_
        assert run.active(0).shape == (run.net.width, run.data.n)
        assert not run.active(-1)[run.modes(-1) == Mode.SLIDING].any()


def test_modes_at_a_time_are_the_record_before_it_and_the_events_since(runs):
    for run in runs:
        for k in range(len(run.t)):
            assert np.array_equal(run.modes(log_t=run.log_t[k]), run.modes(k))
        # with two records all that lies between comes from the events
        few = replace(
            run,
            t=run.t[[0, -1]],
            log_t=run.log_t[[0, -1]],
            log_loss=run.log_loss[[0, -1]],
            kept={name: array[[0, -1]] for name, array in run.kept.items()},
        )
        for k in range(1, len(run.t) - 1):
            assert np.array_equal(few.modes(t=run.t[k]), run.modes(t=run.t[k]))


def test_modes_agree_with_clear_signs_at_any_time(runs):
    for run in runs:
        for t in np.geomspace(1e-2, 19.0, 12):
            net, modes = run.at(t), run.modes(t=t)
            z = net.directions @ run.data.X.T
            clear = np.abs(z) > 1e-6
            assert np.array_equal((z > 0.0)[clear], (modes == Mode.ACTIVE)[clear])
            assert np.abs(z[modes == Mode.SLIDING]).max(initial=0.0) < 1e-12


def test_the_end_is_that_of_the_run_where_records_stop_before_it():
    whole, part = sliding_run(0), sliding_run(0, record=[1.0, 2.0])
    assert np.array_equal(part.modes(-1), whole.modes(-1))
    assert np.array_equal(part.modes(1), whole.modes(t=2.0))
    assert not np.array_equal(part.modes(1), part.modes(-1))
    assert np.array_equal(part.modes(t=0.0), whole.modes(0))


def test_a_start_on_an_attracting_plane_slides_from_the_beginning():
    data = rf.Dataset([[1.0, 0.0], [1.0, 1.0]], [-2.0, 2.0])
    run = rf.flow(data, rf.Network([1.0], [[0.0, 1.0]]), t_end=0.1)
    assert run.modes(0).tolist() == run.modes(t=0.0).tolist() == [[Mode.SLIDING, Mode.ACTIVE]]


def test_kernel_and_rank_by_modes_do_not_depend_on_rounding(runs):
    flickers = 0
    for run in runs:
        pattern = run.active(-1)
        kernel = tangent_kernel(run.data, run.final, active=pattern)
        rank = np.linalg.matrix_rank(kernel.matrix, tol=1e-10 * kernel.eigenvalues[0])
        by_sign = tangent_kernel(run.data, run.final).matrix
        for k in range(20):
            net = jittered(run.final, k)
            moved = tangent_kernel(run.data, net, active=pattern)
            assert moved.matrix == pytest.approx(kernel.matrix, rel=1e-13, abs=1e-13)
            assert np.linalg.matrix_rank(moved.matrix, 1e-10 * moved.eigenvalues[0]) == rank
            change = tangent_kernel(run.data, net).matrix - by_sign
            flickers += np.abs(change).max() > 1e-9 * kernel.eigenvalues[0]
    assert flickers > 0  # signs alone would not do


def test_the_kernel_takes_its_pattern_from_the_signs_where_none_is_given():
    data = rf.Dataset([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0])
    net = rf.Network([2.0], [[1.0, 0.0]])  # on the plane of the second point: inactive
    first = np.array([[True, False]])
    assert tangent_kernel(data, net).matrix == pytest.approx(np.diag([2.5, 0.0]))
    assert tangent_kernel(data, net, active=first).matrix == pytest.approx(np.diag([2.5, 0.0]))
    assert tangent_kernel(data, net, active=~first).matrix == pytest.approx(np.diag([0.0, 2.0]))


@pytest.mark.parametrize("active", [np.ones((2, 1), bool), np.ones((1, 2)), [[1, 0]]])
def test_the_kernel_refuses_another_pattern(active):
    data = rf.Dataset([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0])
    with pytest.raises(InputError, match=r"`active` has shape .* need \(1, 2\) booleans"):
        tangent_kernel(data, rf.Network([2.0], [[1.0, 1.0]]), active=active)


def test_descent_has_the_pattern_of_its_signs():
    data = rf.datasets.gaussian(6, 9, seed=3)
    net = rf.networks.balanced(9, 5, log_scale=-1.0, seed=4)
    run = rf.descend(data, net, lr=0.1, steps=40)
    for k in (0, 3, len(run.t) - 1):
        assert np.array_equal(run.active(k), signs(run.network(k), data))
    assert np.array_equal(run.active(-1), signs(run.final, data))
    assert np.array_equal(run.active(t=7), signs(run.at(7), data))


def test_tiny_inner_products_without_rounding_keep_their_sign():
    data = rf.Dataset(np.eye(2), [1.0, 1.0])
    run = rf.descend(data, rf.Network([1.0], [[1.0, 1e-300]], -1e5), lr=0.1, steps=0)
    assert run.active(0).tolist() == [[True, True]]


@pytest.mark.parametrize("seed", [2, 3])
def test_the_limit_of_descent_on_a_boundary_does_not_flicker(seed):
    rng = np.random.default_rng(seed)
    data = rf.Dataset(
        rng.normal(size=(20, 24)), rng.uniform(0.5, 2.0, 20) * rng.choice([-1.0, 1.0], 20)
    )
    a = rng.choice([-1.0, 1.0], 3)
    net = rf.Network(a, 0.05 * rng.normal(size=(3, 24)))
    lr = 0.3 / np.linalg.eigvalsh(data.gram)[-1]
    run = rf.descend(data, net, lr=lr, steps=np.inf, loss=Square("1/2"), train="hidden")
    assert run.stats["frozen_from"] is None  # no pattern settles: the limit is on a plane
    z = np.abs(run.final.directions @ data.X.T)
    held = z < 1e-11
    assert held.any()
    assert z[~held].min() > 1e-6
    pattern = run.active(-1)
    assert not pattern[held].any()
    assert np.array_equal(pattern[~held], signs(run.final, data)[~held])
    for k in range(10):
        assert np.array_equal(replace(run, final=jittered(run.final, k)).active(-1), pattern)


def test_what_cannot_be_asked_is_refused(runs):
    run = runs[0]
    with pytest.raises(InputError, match="`k` is 999; the run has records 0 to"):
        run.modes(999)
    with pytest.raises(InputError, match=r"`k` is 0\.5"):
        run.active(0.5)
    with pytest.raises(InputError, match="got 0 of `k`, `t`, `log_t`"):
        run.modes()
    with pytest.raises(InputError, match="got 2 of"):
        run.active(0, t=1.0)
    with pytest.raises(InputError, match=r"`log_t` is .* after the end of the run"):
        run.modes(t=21.0)
    assert np.array_equal(run.modes(t=np.inf), run.modes(-1))


def test_events_that_change_no_mode_are_passed_over(runs):
    run = runs[0]
    rows = [(30.0, np.log(30.0), 0, 0, "branch"), (30.0, np.log(30.0), 0, -1, "flip")]
    longer = replace(run, events=np.concatenate([run.events, np.array(rows, EVENT_DTYPE)]))
    assert np.array_equal(longer.modes(-1), run.modes(-1))


# ---------------------------------------------------------------- what is measured on runs


def jittered_run(run, seed):
    """The run with all recorded hidden weights moved by 1e-16 of their neurons."""
    rng = np.random.default_rng(seed)
    W = run.kept["W"]
    step = 1e-16 * np.abs(W).max(axis=2, keepdims=True) * rng.choice([-1, 1], W.shape)
    return replace(run, kept={**run.kept, "W": W + step}, final=jittered(run.final, seed))


def test_the_gradient_of_a_run_does_not_depend_on_rounding(runs):
    from reluflow.papers.correlated import paper
    from reluflow.papers.correlated.moments import moment, squared_gradient
    from reluflow.theory.subject import subject_of

    flickers = 0
    for run in runs:
        k = len(run.t) - 1
        values, by_sign = [], []
        for seed in range(6):
            moved = jittered_run(run, seed)
            case = paper.prepare(subject_of(moved, None))
            net = moved.network(k)
            values.append(squared_gradient(case, moment(case, 20.0, net, k)))
            assert squared_gradient(case, moment(case, 20.0, net)) == values[-1]
            flat = net.flat()
            g = (signs(flat, run.data) * (run.data.y - flat.predict(run.data.X))) @ run.data.X
            by_sign.append(float((flat.a**2 * (g * g).sum(axis=1)).sum()))
        assert np.ptp(values) <= 1e-11 * max(values)
        flickers += np.ptp(by_sign) > 1e-9 * max(by_sign)
    assert flickers > 0


def test_verdicts_on_a_run_do_not_depend_on_rounding(runs):
    def told(run):
        report = rf.theory.check("correlated", run, start_runs=False)
        return [(row.id, row.verdict) for row in (*report.assumptions, *report.checks)]

    assert told(runs[0]) == told(jittered_run(runs[0], 0)) == told(jittered_run(runs[0], 1))


def test_the_field_holds_the_kinks_that_the_run_holds():
    from reluflow.papers.univariate.field import field, misalignment

    data = rf.datasets.from_points([-1.0, -0.2, 0.3, 1.0], [1.0, -1.0, 1.0, -1.0])
    net = rf.networks.balanced(2, 40, seed=0)
    loss = rf.losses.Exponential()
    run = rf.flow(data, net, loss=loss, stop_log_loss=-30.0)
    modes, flat = run.modes(-1), run.final.flat()
    held = modes == Mode.SLIDING
    assert held.any()
    found = field(data, flat.a, flat.W, loss, modes)
    assert ((found.gates.T[held] > 0.0) & (found.gates.T[held] < 1.0)).all()
    assert np.array_equal(found.gates.T[~held], run.active(-1)[~held])
    # a kink so near to a point that it could be taken for one that rests there
    W = flat.W.copy()
    j, i = np.argwhere(run.active(-1))[0]
    x = data.X[i]
    W[j] += (1e-12 * np.linalg.norm(W[j]) - W[j] @ x) * x / (x @ x)
    assert field(data, flat.a, W, loss, modes).gates[i, j] == 1.0
    gaps = [misalignment(data, jittered(run.final, k), loss, modes) for k in range(6)]
    assert np.ptp(gaps) < 1e-12


def test_slides_are_drawn():
    from reluflow.papers.highdim import page
    from reluflow.theory.contract import LabelledRun

    data = rf.Dataset([[1.0, 0.0], [1.0, 1.0]], [-2.0, 2.0])
    net = rf.Network([1.0], [[0.5, 1.0]])
    run = rf.flow(data, net, loss=Square("1/2"), train="hidden")
    assert (run.modes(-1) == Mode.SLIDING).any()
    sections = page.findings([LabelledRun("x", run)]).sections
    raster = next(s for s in sections if s.title.startswith("Pattern")).figures[0].panels[0]
    assert raster.layers[0].categories == ("inactive", "active", "sliding")
    order = np.argsort(-data.y, kind="stable")
    assert raster.layers[0].z[:, -1].tolist() == run.modes(-1)[0][order].tolist()
