"""Descent as practised beside a plain loop, and every step of it repeated by itself."""

import numpy as np
import pytest

import reluflow as rf
from engines.descent.reference import gap, problem, same
from reluflow.engines import checkpoints, resume
from reluflow.statuses import Status

LOSSES = {
    "square": rf.losses.Square(),
    "half": rf.losses.Square("1/2"),
    "logistic": rf.losses.Logistic(),
    "exponential": rf.losses.Exponential(),
}
LR = 0.01


def practised(data, net, run, steps, *, loss, momentum=0.0, decay=0.0, train="both", shares=False):
    """The plain loop, with the batches and labels of a run."""
    flat = net.flat()
    a, W = flat.a.copy(), flat.W.copy()
    va, vW = 0.0 * a, 0.0 * W
    for step in range(steps):
        points, y = rf.batch_of(run, step)
        X = data.X[points]
        P = X @ W.T
        H = np.maximum(P, 0.0)
        h = H @ a
        if shares:
            c = y * loss.shares(y * h)
        elif loss.name == "square":
            c = loss.kappa(data.n) * data.n / len(y) * (y - h)
        else:
            c = loss.forces(h, y)
        va = momentum * va + LR * (H.T @ c - decay * a)
        vW = momentum * vW + LR * (a[:, None] * (((P > 0) * c[:, None]).T @ X) - decay * W)
        a, W = a + va * (train != "hidden"), W + vW * (train != "output")
    return a, W


CASES = {
    "batches": {"batch": 4, "seed": 1},
    "one point": {"batch": 1, "seed": 2},
    "all points in batches": {"batch": 11, "seed": 2},
    "replacement": {"batch": rf.Batches(5, replacement=True), "seed": 3},
    "more than there are": {"batch": rf.Batches(30, replacement=True), "seed": 3},
    "momentum": {"momentum": 0.9},
    "decay": {"decay": 0.3},
    "noise": {"label_noise": 0.2, "seed": 4},
    "everything": {"batch": 3, "momentum": 0.8, "decay": 0.1, "label_noise": 0.5, "seed": 5},
    "hidden": {"batch": 4, "momentum": 0.5, "train": "hidden", "seed": 6},
    "output": {"train": "output"},
    "output in batches": {"batch": 4, "momentum": 0.5, "train": "output", "seed": 7},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", LOSSES)
def test_it_equals_a_plain_loop_with_the_same_order(case, name):
    loss, options = LOSSES[name], dict(CASES[case])
    if loss.name != "square":
        options.pop("label_noise", None)
    data, net = problem(11, 3, 8, loss, seed=1)
    run = rf.descend(data, net, lr=LR, steps=60, loss=loss, **options)
    assert run.status == "steps"
    known = {key: options[key] for key in ("momentum", "decay", "train") if key in options}
    a, W = practised(data, net, run, 60, loss=loss, **known)
    assert gap(run.final, a, W) < 1e-12
    h = run.final.predict(data.X)
    assert np.isclose(run.log_loss[-1], loss.log_value(h, data.y), rtol=0.0, atol=1e-12)


def test_the_loss_based_step_looks_at_the_batch():
    loss = LOSSES["exponential"]
    data, net = problem(11, 3, 8, loss, seed=2)
    run = rf.descend(
        data, net, lr=rf.LossBased(LR), steps=40, loss=loss, batch=4, momentum=0.5, seed=0
    )
    a, W = practised(data, net, run, 40, loss=loss, momentum=0.5, shares=True)
    assert gap(run.final, a, W) < 1e-12


def test_an_epoch_takes_every_point_once_and_the_next_in_another_order():
    data, net = problem(11, 3, 8, LOSSES["square"], seed=1)
    run = rf.descend(data, net, lr=LR, steps=6, batch=4, seed=0)
    batches = [rf.batch_of(run, step).points for step in range(6)]
    assert [len(points) for points in batches] == [4, 4, 3, 4, 4, 3]
    epochs = [np.concatenate(batches[:3]), np.concatenate(batches[3:])]
    assert [sorted(epoch) for epoch in epochs] == [list(range(11))] * 2
    assert not np.array_equal(*epochs)
    other = rf.descend(data, net, lr=LR, steps=6, batch=4, seed=1)
    assert not np.array_equal(rf.batch_of(other, 0).points, batches[0])


def test_noise_is_fresh_in_every_step_and_as_large_as_asked():
    data, net = problem(11, 3, 8, LOSSES["square"], seed=1)
    run = rf.descend(data, net, lr=LR, steps=2, label_noise=0.5, seed=0)
    noise = np.array([rf.batch_of(run, step).labels - data.y for step in range(400)])
    assert len(np.unique(noise)) == noise.size
    assert 0.45 < noise.std() < 0.55


def test_a_plain_run_is_made_of_all_points():
    data, net = problem(5, 3, 8, LOSSES["square"], seed=1)
    run = rf.descend(data, net, lr=LR, steps=2)
    assert run.stats["form"] == "weights"
    assert "momentum" not in run.options
    assert rf.batch_of(run, 1).points.tolist() == [0, 1, 2, 3, 4]
    assert rf.batch_of(run, 1).labels.tolist() == data.y.tolist()


EXACT = {
    "everything": (CASES["everything"], 0.0),
    "tiny": ({"batch": 3, "momentum": 0.8, "decay": 0.1, "seed": 5}, -2000.0),
    "hidden": (CASES["hidden"], 0.0),
    "replacement": (CASES["replacement"], -30.0),
}


@pytest.mark.parametrize("case", EXACT)
def test_any_step_is_repeated_bit_for_bit(case):
    options, log_scale = EXACT[case]
    data, net = problem(11, 3, 8, LOSSES["square"], seed=3)
    net = net.with_scale(log_scale)
    run = rf.descend(data, net, lr=LR, steps=400, record=6, **options)
    for step in (0, 1, 5, 77, 203, 399, 400):
        alone = rf.descend(data, net, lr=LR, steps=step, record=2, **options).final
        assert same(run.at(step), alone)


def test_a_tiny_start_is_trained_like_one_of_ordinary_size():
    """Far below the labels the network does not matter, so weights are proportional to the start.

    Powers of two commute with every step.
    """
    data, net = problem(11, 3, 8, LOSSES["square"], seed=3)
    options = {"lr": LR, "steps": 200, "batch": 4, "momentum": 0.5, "decay": 0.2, "seed": 0}
    small = rf.descend(data, net.with_scale(-300.0), **options).final
    tiny = rf.descend(data, net.with_scale(-3000.0), **options).final
    np.testing.assert_allclose(tiny.log_norms + 2700.0, small.log_norms, atol=1e-9)
    np.testing.assert_allclose(tiny.directions, small.directions, atol=1e-12)


def test_files_keep_what_a_run_is_repeated_from(tmp_path):
    data, net = problem(11, 3, 8, LOSSES["square"], seed=3)
    for options in (CASES["everything"], CASES["output"], CASES["noise"], CASES["replacement"]):
        run = rf.descend(data, net, lr=LR, steps=100, record=4, **options)
        run.save(tmp_path / "run.rf")
        loaded = rf.load(tmp_path / "run.rf")
        assert loaded.options == run.options
        assert same(loaded.at(63), run.at(63))
        points, labels = rf.batch_of(loaded, 5)
        assert np.array_equal(points, rf.batch_of(run, 5).points)
        assert np.array_equal(labels, rf.batch_of(run, 5).labels)


@pytest.mark.parametrize("seed", [5, "generator"])
def test_an_interrupted_run_ends_in_the_same_bits(tmp_path, seed):
    def options():
        drawn = np.random.default_rng(8) if seed == "generator" else seed
        return {
            "lr": LR,
            "steps": 300,
            "loss": LOSSES["square"],
            "train": "both",
            "stop_loss": None,
            "stop_log_loss": None,
            "record": 7,
            "max_seconds": None,
            "progress": False,
            "batch": 3,
            "momentum": 0.8,
            "decay": 0.1,
            "label_noise": 0.5,
            "seed": drawn,
        }

    data, net = problem(11, 3, 8, LOSSES["square"], seed=3)
    saved = []
    with checkpoints.saving(0.0, saved.append):
        whole = rf.descend(data, net, **options())
    part = saved[len(saved) // 2]
    assert part.status is Status.INTERRUPTED
    part.save(tmp_path / "part.rf")
    again = resume(rf.load(tmp_path / "part.rf"), **options())
    assert same(whole.final, again.final)
    assert all(np.array_equal(whole.kept[name], again.kept[name]) for name in whole.kept)


def test_the_loss_to_stop_at_is_looked_for_at_the_ends_of_epochs():
    data, net = problem(12, 3, 30, LOSSES["square"], seed=1)
    run = rf.descend(data, net, lr=0.1, steps=20_000, batch=4, seed=0, stop_loss=0.05)
    assert run.status == "stop_loss"
    end = run.stats["iterations"]
    assert end % 3 == 0
    assert run.log_loss[-1] <= np.log(0.05)
    assert same(run.at(log_loss=np.log(0.05)), run.final)
    before = LOSSES["square"].value(run.at(end - 3).predict(data.X), data.y)
    assert before > 0.05
    with pytest.raises(rf.InputError, match="never falls to -100 at the end of an epoch"):
        run.at(log_loss=-100.0)


def test_decay_ends_where_the_gradient_is_that_of_the_penalty():
    data, net = problem(6, 2, 5, LOSSES["square"], seed=1)
    end = rf.descend(data, net, lr=0.2, steps=40_000, decay=0.01).final
    H = np.maximum(data.X @ end.W.T, 0.0)
    c = LOSSES["square"].forces(H @ end.a, data.y)
    np.testing.assert_allclose(H.T @ c, 0.01 * end.a, atol=1e-12)
    assert np.abs(end.a).max() > 0.1


def test_momentum_at_rest_is_unchanged():
    data = rf.Dataset([[1.0]], [4.0])
    run = rf.descend(data, rf.Network([0.5], [[0.5]]), lr=0.1, steps=10**6, momentum=0.5)
    assert run.status == "unchanged"
    assert run.final.a[0] == pytest.approx(2.0, abs=1e-15)


def test_dead_neurons_coast_to_rest():
    """The velocity of a neuron that is active nowhere fades and becomes none."""
    data = rf.Dataset([[1.0, 0.0], [0.5, 0.2]], [-1.0, -1.0])
    net = rf.Network([1.0, -0.1], [[0.3, 0.3], [0.1, 0.1]])
    run = rf.descend(data, net, lr=0.5, steps=2_000, momentum=0.9)
    assert not run.active(-1)[0].any()
    assert run.kept["velocity_W"][-1][0].tolist() == [0.0, 0.0]


def test_a_step_that_is_too_long_ends_as_diverged():
    data, net = problem(11, 3, 8, LOSSES["square"], seed=3)
    run = rf.descend(data, net, lr=50.0, steps=10_000, batch=4, momentum=0.9, seed=0)
    assert run.status == "diverged"
    assert np.isfinite(run.final.a).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch": 4}, "`seed` is not given"),
        ({"label_noise": 1.0}, "`seed` is not given"),
        ({"batch": 12, "seed": 0}, "there are 11 points"),
        ({"batch": 0, "seed": 0}, "at least 1"),
        ({"batch": 2.5, "seed": 0}, "not a whole number"),
        ({"batch": 4, "seed": -1}, "`seed` is -1"),
        ({"momentum": 1.0}, "`momentum` is 1; it must be below 1"),
        ({"decay": -1.0}, "`decay` is -1"),
        ({"label_noise": 1.0, "seed": 0, "loss": "logistic"}, "labels are -1 and 1"),
        ({"decay": 1.0, "loss": "logistic", "lr": rf.LossBased()}, "blow up"),
        ({"train": "hiden"}, "Did you mean 'hidden'"),
        ({"train": "linearised"}, "solved without steps"),
        ({"steps": np.inf, "momentum": 0.5, "train": "hidden"}, "no limit can be certified"),
    ],
)
def test_what_cannot_be_done_is_refused(options, message):
    loss = rf.losses.named(options.get("loss", "square"))
    data, net = problem(11, 3, 8, loss, seed=3)
    with pytest.raises(rf.InputError, match=message):
        rf.descend(data, net, **({"lr": LR, "steps": 5} | options))


def test_theory_is_about_plain_runs():
    data = rf.datasets.centred(d=3, seed=0)
    net = rf.networks.balanced(3, width=6, log_scale=-6.0, seed=0)
    run = rf.descend(data, net, lr=LR, steps=5, batch=2, momentum=0.5, seed=0)
    with pytest.raises(rf.InputError, match=r"run 0 is trained with batches of 2, momentum 0\.5"):
        rf.theory.check("correlated", run)
    assert rf.limits.predict_end(run).network is None
    assert "plain training" in rf.limits.predict_end(run).reason
    plain = rf.descend(data, net, lr=LR, steps=5)
    assert rf.limits.predict_end(plain).reason == rf.limits.predict(data, net).reason
