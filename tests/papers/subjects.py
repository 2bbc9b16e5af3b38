"""Which subjects the tests use: a good one for each row, one for each broken hypothesis.

A paper names the wrong run of each claim itself; the subjects on which a hypothesis fails are here,
by paper and id: functions of the paper's good subject. A pair (subject, options) has options.
"""

from dataclasses import replace

import numpy as np

import reluflow as rf
from reluflow import spec
from reluflow.papers.highdim.draws import assigned_start, positive_start

BROKEN = {}


def broken(paper, id):
    """Register the subject on which an assumption fails."""

    def register(function):
        BROKEN[paper, id] = function
        return function

    return register


def again(run, *, data=None, net=None, **options):
    """The problem of a run with other data or another start."""
    settings = {"loss": run.loss_function, **options}
    return rf.flow(data or run.data, net or run.net, **settings)


# ---------------------------------------------------------------------- separable


@broken("separable", "A1")
def one_pair_apart(run):
    """Two points of one class with a negative product."""
    X = np.vstack([run.data.X, [[3.0, -2.9, 0.0, 0.0], [-2.9, 3.0, 0.0, 0.0]]])
    return again(run, data=rf.Dataset(X, [*run.data.y, 1.0, 1.0]), stop_log_loss=-30.0)


@broken("separable", "A2")
def square_loss(run):
    return again(run, loss=rf.losses.Square(), t_end=10.0)


@broken("separable", "A3")
def descent(run):
    return rf.descend(run.data, run.net, lr=0.01, steps=50, loss=run.loss_function)


@broken("separable", "A4")
def twice_the_outputs(run):
    net = rf.Network(2.0 * run.net.mantissa.a, run.net.mantissa.W, run.net.log_scale)
    return again(run, net=net, stop_log_loss=-30.0)


@broken("separable", "A5")
def no_negative_neuron(run):
    net = rf.Network(np.abs(run.net.mantissa.a), run.net.mantissa.W, run.net.log_scale)
    return again(run, net=net, t_end=100.0)


@broken("separable", "mu")
def orthogonal_classes(run):
    data = rf.Dataset(np.eye(4), [1.0, -1.0, 1.0, -1.0])
    return again(run, data=data, stop_log_loss=-30.0)


# ---------------------------------------------------------------------- correlated


def several(paper, **subjects):
    """Register subjects that are functions without an argument, by id; `_` stands for a space."""
    for id, make in subjects.items():
        BROKEN[paper, id.replace("_", " ")] = lambda good, make=make: make()


def cone(d=3, n=3, half_angle=0.7, seed=17):
    return rf.datasets.cone(d, n, half_angle=half_angle, seed=seed)


def bundle(width=20, log_scale=-50.0, d=3, **options):
    return rf.networks.balanced(
        d, width, log_scale=log_scale, directions="sphere", seed=1017, **options
    )


def labelled(X, teacher):
    """Points with the labels of a teacher neuron."""
    X, teacher = np.asarray(X, dtype=float), np.asarray(teacher, dtype=float)
    return rf.Dataset(X, np.maximum(X @ teacher, 0.0), teacher=teacher)


def unbalanced(net):
    return rf.Network(2.0 * net.mantissa.a, net.mantissa.W, net.log_scale)


def mirrored():
    """A neuron that meets two mirrored points at once."""
    data = labelled([[0.8, 0.4, 0.0], [0.8, -0.4, 0.0], [0.87, 0.0, 0.5]], [1.0, 0.0, 0.0])
    w = np.array([[-1.0, 0.0, 2.0]]) / np.sqrt(5.0)
    return data, rf.Network([1.0], w, -50.0)


def rank_two_is_shorter():
    """The paper's preset."""
    document = rf.papers.named("correlated").preset
    task = spec.build({key: value for key, value in document.items() if key != "study"})
    return task.data, task.net


several(
    "correlated",
    balanced=lambda: (cone(), unbalanced(bundle())),
    data=lambda: (cone(half_angle=1.2), bundle()),
    flow=lambda: rf.descend(cone(), bundle(log_scale=-3.0), lr=0.01, steps=5),
    crossings=lambda: (cone(), rf.Network(np.ones(2), np.tile(cone().teacher, (2, 1)), -50.0)),
    first_phase=lambda: (cone(), bundle(log_scale=-1.0)),
    pair=lambda: (cone(), rf.Network([1.0], cone().teacher[None], -50.0)),
    correlated=lambda: (cone(half_angle=1.4, n=6), bundle()),
    small_program=lambda: (cone(9, 9), bundle(d=9)),
    orthogonal=lambda: (cone(), bundle()),
)
BROKEN["correlated", "1(i)"] = lambda good: (
    labelled(np.column_stack([cone(2, 3).X, np.zeros(3)]), [*cone(2, 3).teacher, 0.0]),
    bundle(),
)
BROKEN["correlated", "1(ii)"] = lambda good: (cone(), bundle(signs=-np.ones(20)))
BROKEN["correlated", "1(iii)"] = lambda good: (
    labelled([*cone().X, 2.0 * cone().X[0]], cone().teacher),
    bundle(),
)
BROKEN["correlated", "1(iv)"] = lambda good: mirrored()
BROKEN["correlated", "J-"] = lambda good: (cone(), bundle(signs=np.ones(20)))
BROKEN["correlated", "3"] = lambda good: (cone(3, 4), bundle())
BROKEN["correlated", "M > 0"] = lambda good: (cone(), bundle())
BROKEN["correlated", "M < 0"] = BROKEN["correlated", "Z-matrix"] = lambda good: (
    rank_two_is_shorter()
)


# ---------------------------------------------------------------------- orthogonal

LABELS = (1.0, 1.4, 0.6, -1.2)


def start(rows, signs, log_scale=-100.0):
    W = np.asarray(rows, dtype=float)
    W = W / np.linalg.norm(W, axis=1)[:, None]
    return rf.Network(np.asarray(signs, dtype=float), W, log_scale)


def staircase(labels=LABELS, log_scale=-100.0, signs=(1, 1, 1, -1), X=None):
    rows = [(0.7, 0.6, -0.4, 0.3), (-0.5, 0.5, 0.6, -0.3), (0.4, -0.3, 0.5, 0.6)]
    net = start([*rows, (-0.6, 0.3, -0.2, 0.7)], signs, log_scale)
    return rf.Dataset(np.eye(4) if X is None else X, labels), net


def tilted(amount):
    X = np.eye(4)
    X[0, 1] = amount
    return X


def tied():
    """Two masks of equal norm that share a point."""
    net = start([(1.0, 1.0, -1.0), (-1.0, 1.0, 1.0)], (1, 1))
    return rf.Dataset(np.eye(3), np.ones(3)), net


def one_by_one():
    """Neurons that see one point each: nothing is halved."""
    return rf.Dataset(np.eye(16), np.linspace(1.0, 2.0, 16)), start(2 * np.eye(16) - 1, np.ones(16))


def crowd():
    """So many neurons for sixteen points that a union bound over them is empty."""
    net = rf.networks.balanced(16, 40, log_scale=-100.0, directions="sphere", seed=1)
    return rf.Dataset(np.eye(16), np.linspace(1.0, 2.0, 16)), net


several(
    "orthogonal",
    flow=lambda: rf.descend(*staircase(log_scale=-3.0), lr=0.01, steps=5),
    A1=lambda: staircase(X=tilted(0.01)),
    A3=lambda: (staircase()[0], unbalanced(staircase()[1])),
    labels=lambda: staircase((1.0, 0.0, 0.6, -1.2)),
    jumps=lambda: staircase(np.abs(LABELS), signs=(-1, -1, -1, -1)),
    untied=tied,
    exact=lambda: staircase(X=tilted(1e-12), log_scale=-3.0),
    mixed=lambda: staircase(np.abs(LABELS), signs=(1, 1, 1, 1)),
    two_signs=lambda: staircase(np.abs(LABELS)),
    small=lambda: staircase(log_scale=1.0),
    interpolates=lambda: staircase(signs=(1, 1, 1, 1)),
    cover=staircase,
    shared=staircase,
    random=staircase,
    promised=lambda: (crowd(), {"generator": lambda k: crowd()}),
    halving=one_by_one,
)


# ---------------------------------------------------------------------- highdim


def high(n=10, d=10**6, **options):
    problem = positive_start(n, d, seed=0, **options)
    return problem.data, problem.net


def dealt(count, eps=0.1):
    signs = np.where(np.arange(count) % 2 == 0, 1.0, -1.0)
    problem = assigned_start(10, 10**6, signs, eps=eps, seed=0)
    return problem.data, problem.net


def descended(data, net, lr, steps=np.inf):
    return rf.descend(data, net, lr=lr, steps=steps, loss=rf.losses.Square("1/2"), train="hidden")


def axes(labels, lr, eps=0.1):
    """Orthogonal points, so that every coordinate moves by itself."""
    data = rf.Dataset(np.eye(len(labels)), labels)
    return descended(data, rf.networks.by_preactivations(data, eps, [1]), lr)


def nearly_parallel():
    data = high()[0]
    return rf.Dataset(data.X + 3.0 * data.X[:1], data.y), high()[1]


def without_covariance():
    data, net = high()
    return rf.Dataset(data.X, data.y), net


def on_a_plane():
    data = high()[0]
    return data, rf.networks.by_preactivations(data, [[0.0, *[0.01] * 9]], [1])


def unsettled():
    """A run to the limit whose pattern is not certified to stay."""
    run = axes([1.0, 0.5, -1.0], 0.5)
    return replace(run, stats={**run.stats, "frozen_from": None})


several(
    "highdim",
    certified=lambda: descended(*high(), lr=1e-7, steps=2),
    off_planes=on_a_plane,
    span=high,
    covariance=without_covariance,
    both_signs=lambda: high(n_positive=10),
    settles=unsettled,
    short_step=lambda: axes([1.0, 0.5, -1.0], 1.5),
    own=lambda: high(n_positive=0),
    A1=lambda: (rf.Dataset(high()[0].X, [0.0, *high()[0].y[1:]]), high()[1]),
    step=lambda: descended(*high(), lr=1e-9),
    one=lambda: high(signs=(1, -1)),
    start=lambda: high(eps=10.0),
    start_at_8=lambda: high(eps=0.05),
    few=lambda: dealt(4),
    law=lambda: high(d=40),
    several_d=high,
    several_n=high,
    each=lambda: [descended(*high(d=d), lr=1 / d**1.1) for d in (10**5, 10**6, 10**7)],
    two=high,
    many=high,
    A3=high,
    assigned=lambda: dealt(4, eps=1e-7),
    tiny=lambda: dealt(4),
    gentle=lambda: dealt(12, eps=1e-7),
    interpolates=lambda: axes([1.0, 0.5, -1.0], 0.5),
    patterns=lambda: dealt(8),
    moderate=high,
    asleep=high,
    nearly_orthogonal=nearly_parallel,
    random=lambda: high(n=16),
    orthogonal=high,
    proper=lambda: high(eps=10.0),
)


# ---------------------------------------------------------------------- univariate

LAW = rf.densities.uniform(-1, 1)


def line(n=20):
    return rf.datasets.sample_1d(rf.datasets.teacher_1d([-1 / 3, 1 / 3]), n, density=LAW, seed=0)


def wide(width=16):
    return rf.networks.gaussian(2, width, sigma_hidden=1.0, sigma_output=0.1, seed=100)


def early(data=None, net=None, **options):
    settings = {"loss": rf.losses.Exponential(), "t_end": 0.01} | options
    return rf.flow(data or line(), net or wide(), **settings)


def doubled():
    data = line()
    return rf.Dataset(np.vstack([data.X, data.X[:1]]), [*data.y, data.y[0]], teacher=data.teacher)


several(
    "univariate",
    A1=lambda: early(
        cone(),
        rf.networks.gaussian(3, 16, sigma_hidden=1.0, sigma_output=0.1, seed=1),
        loss=rf.losses.Square(),
    ),
    A7=lambda: early(loss=rf.losses.Square()),
    A8=lambda: rf.descend(line(), wide(), lr=0.01, steps=5, loss=rf.losses.Exponential()),
    records=early,
    A6=early,
    dead=lambda: early(net=rf.Network(np.ones(2), [[0.1, 1.0], [-0.1, 1.0]])),
    A2=lambda: early(doubled()),
    wide=early,
    example_1=early,
    counterexample=early,
    A3=lambda: early(rf.Dataset(line().X, -line().y, teacher=line().teacher)),
    A4=lambda: early(net=rf.Network(np.ones(20), np.ones((20, 2)))),
    A5a=early,
    A5b=early,
    A5c=lambda: early(net=rf.networks.gaussian(2, 16, sigma_hidden=1e6, sigma_output=1.0, seed=1)),
    A9=early,
    density=early,
    positive=early,
    sizes=early,
)
