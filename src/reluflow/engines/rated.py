r"""Layers that learn at rates of their own, as a change of variables at the entrance of the flow.

With rates :math:`(r_w, r_a)` the flow is :math:`\dot w = -r_w \partial_w L`,
:math:`\dot a = -r_a \partial_a L`. Put

.. math:: w = \sqrt{r_w}\, w', \qquad a = \sqrt{r_a}\, a', \qquad x' = \sqrt{r_a r_w}\, x .

Then :math:`a\,\mathrm{relu}(w \cdot x) = a'\,\mathrm{relu}(w' \cdot x')`, and the primed weights
follow the plain flow on the points x', with the same labels, losses, events and times. With fixed
output weights the same holds with :math:`r_a = 1`.

A run is handed out in the weights of the caller; `inside` and `outside` go from one to the other.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reluflow.dataset import Dataset
from reluflow.network import Network
from reluflow.trajectory import Trajectory

Rates = tuple[float, float]


def points_inside(data: Dataset, rates: Rates) -> Dataset:
    """The points x'."""
    return Dataset(np.sqrt(rates[0] * rates[1]) * data.X, data.y, name=data.name)


def network(net: Network, hidden: float, output: float) -> Network:
    """The network with its layers multiplied by these factors; scales are kept as they are."""
    mantissa = net.mantissa
    return Network(
        mantissa.a * output,
        mantissa.W * hidden,
        net.log_scale,
        log_scale_out=net.log_scale_out,
        slope=net.slope,
    )


def network_inside(net: Network, rates: Rates) -> Network:
    """The primed weights of a network."""
    hidden, output = np.sqrt(rates)
    return network(net, 1.0 / hidden, 1.0 / output)


def network_outside(net: Network, rates: Rates) -> Network:
    """The network that has these primed weights."""
    hidden, output = np.sqrt(rates)
    return network(net, hidden, output)


def rates_of(run: Trajectory) -> Rates | None:
    """The rates of a run of the flow, None where they are (1, 1)."""
    given = run.options.get("rates")
    return None if given is None else (float(given[0]), float(given[1]))


def outside(run: Trajectory, data: Dataset, net: Network, rates: Rates) -> Trajectory:
    """A run of the primed problem as one of the caller's."""
    hidden, output = np.sqrt(rates)
    kept = {**run.kept, "a": run.kept["a"] * output, "W": run.kept["W"] * hidden}
    return replace(
        run,
        data=data,
        net=net,
        kept=kept,
        final=network_outside(run.final, rates),
        limit_error=run.limit_error * max(hidden, output),
        options={**run.options, "rates": list(rates)},
    )


def inside(run: Trajectory) -> Trajectory:
    """The run of the primed problem behind one of the caller's."""
    rates = rates_of(run)
    if rates is None:
        return run
    hidden, output = np.sqrt(rates)
    kept = {**run.kept, "a": run.kept["a"] / output, "W": run.kept["W"] / hidden}
    options = {name: value for name, value in run.options.items() if name != "rates"}
    return replace(
        run,
        data=points_inside(run.data, rates),
        net=network_inside(run.net, rates),
        kept=kept,
        final=network_inside(run.final, rates),
        options=options,
    )
