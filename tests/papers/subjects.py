"""Which subjects the tests use: a good one for each row, one for each broken hypothesis.

A paper names the wrong run of each claim itself; the subjects on which a hypothesis fails are here,
by paper and id: functions of the paper's good subject. A pair (subject, options) has options.
"""

import numpy as np

import reluflow as rf

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
