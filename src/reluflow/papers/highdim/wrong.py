"""A good subject for each row, and a wrong run for each claim that a run can contradict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from reluflow import engines
from reluflow.dataset import Dataset
from reluflow.datasets import gaussian
from reluflow.network import Network
from reluflow.networks import by_preactivations
from reluflow.papers.highdim.accepted import HALF
from reluflow.papers.highdim.draws import Problem, assigned_start, positive_start, random_start
from reluflow.papers.highdim.paper import paper
from reluflow.theory.wrong import Change, ending, forged, hidden, recorded
from reluflow.trajectory import Trajectory

N, D = 10, 10**6
SIGNS = [1.0, 1.0, 1.0, -1.0, -1.0, -1.0]


def trained(problem: Problem) -> Trajectory:
    """Descent to its limit."""
    run: Trajectory = engines.descend(
        problem.data, problem.net, lr=problem.lr, steps=np.inf, loss=HALF, train="hidden"
    )
    return run


def _generator(make: Any) -> Any:
    def draw(k: int) -> tuple[Dataset, Network]:
        problem = make(100 + k)
        return problem.data, problem.net

    return draw


def _one(seed: int = 0) -> Problem:
    return positive_start(N, D, seed=seed)


@paper.example
def one() -> Any:
    """One neuron in a million dimensions, and its generator."""
    return trained(_one()), {"generator": _generator(_one)}


def _two() -> Any:
    return trained(positive_start(N, D, signs=(1, -1), seed=0)), {}


def _many(eps: float = 0.1) -> Any:
    return trained(assigned_start(N, D, (1, 1, -1, -1), eps=eps, seed=0)), {}


def _span() -> Any:
    data = gaussian(6, 60, seed=1)
    net = by_preactivations(data, 0.005, [1])
    W = net.W + 0.1 * np.random.default_rng(0).normal(size=net.W.shape)
    return trained(Problem(data, Network(net.a, W), 0.25 / 60)), {}


def _sizes(axis: str) -> Any:
    sizes = [(N, 10**5), (N, 10**6), (N, 10**7)] if axis == "d" else [(8, D), (16, D), (32, D)]
    return [trained(positive_start(n, d, seed=k)) for n, d in sizes for k in range(4)], {}


def _moderate() -> Any:
    def make(seed: int) -> Problem:
        return positive_start(15, 18, constant=4.0, eps=0.005, seed=seed)

    return trained(make(0)), {"generator": _generator(make)}


def _asleep() -> Any:
    for seed in range(20):
        problem = random_start(N, 1000, 0.02, n_positive=6, seed=seed)
        if ((problem.net.W @ problem.data.X.T)[0][problem.data.y > 0] <= 0).any():
            return trained(problem), {"generator": _generator(lambda k: _random(k))}
    raise AssertionError


def _random(k: int) -> Problem:
    """Three neurons a sign with random directions."""
    problem = random_start(N, 1000, 1.0, seed=k)
    W = np.random.default_rng([k, 2]).normal(size=(6, problem.data.d))
    return Problem(problem.data, Network(SIGNS, W), problem.lr)


def _copied(k: int) -> Problem:
    """One random direction for all neurons: signs are fair coins, but not independent."""
    problem = _random(k)
    W = np.tile(problem.net.W[:1], (6, 1))
    return Problem(problem.data, Network(SIGNS, W), problem.lr)


def _orthogonal() -> Any:
    data = Dataset(2.0 * np.eye(6), [1.0, -0.8, 1.3, -1.1, 0.7, 0.9])
    return trained(Problem(data, by_preactivations(data, 0.003, [1]), 0.125)), {}


def _with_flow() -> Any:
    problem = positive_start(8, 400, seed=2)
    flow: Trajectory = engines.flow(problem.data, problem.net, loss=HALF, train="hidden", record=2)
    return [trained(problem), flow], {}


for _ids, _make in (
    (("HD-15", "HD-23", "HD-24"), _two),
    (("HD-25", "HD-27", "HD-28"), _many),
    (("HD-26",), lambda: _many(1e-7)),
    (("HD-03",), _span),
    (("HD-18",), lambda: _sizes("d")),
    (("HD-19",), lambda: _sizes("n")),
    (("HD-29",), _moderate),
    (("HD-30",), _asleep),
    (("HD-31",), lambda: ((_random(0).data, _random(0).net), {"generator": _generator(_random)})),
    (("HD-32",), _with_flow),
    (("HD-33",), _orthogonal),
):
    for _id in _ids:
        paper[_id].passes_on(_make)


# ---------------------------------------------------------------------- wrong runs


def _of(change: Any) -> Any:
    return lambda given: (change(given[0]), given[1])


def _pushed(amount: float) -> Change:
    """Hidden weights moved along one point."""

    def push(net: Network, share: float) -> Network:
        W = net.mantissa.W.copy()
        W[:, 0] += amount * np.linalg.norm(W) / np.sqrt(len(W))
        return Network(net.mantissa.a, W, net.log_scale, log_scale_out=net.log_scale_out)

    return push


def _shifted(run: Trajectory) -> Trajectory:
    """Changes of the pattern two steps late."""
    events = run.events.copy()
    events["t"] += 2.0
    return replace(run, events=events)


def _rising(log_loss: Any) -> Any:
    log_loss[-3] = log_loss[2] + 1.0
    return log_loss


def _isotropic(given: Any) -> Any:
    """Correlated points that pretend to be isotropic."""
    data = given[0].data
    X = data.X + 3.0 * data.X[:1]
    fake = Dataset(X, data.y, ambient_dim=data.ambient_dim, spectrum=data.spectrum)
    return trained(Problem(fake, by_preactivations(fake, 0.005, [1]), 1e-8)), given[1]


def _flat(runs: list[Trajectory]) -> list[Trajectory]:
    """Distances that do not depend on the size."""
    return [
        ending(run, _pushed(3.0 * np.sqrt(run.data.n * (run.data.ambient_dim or 1)) / 1e3))
        for run in runs
    ]


for _id in (
    "HD-13",
    "HD-16",
    "HD-17",
    "HD-20",
    "HD-23",
    "HD-24",
    "HD-25",
    "HD-26",
    "HD-30",
    "HD-33",
    "HD-08",
    "HD-03",
):
    paper[_id].fails_on(_of(lambda run: ending(run, _pushed(2.0))))
paper["HD-27"].fails_on(_of(lambda run: ending(run, hidden(50.0))))
paper["HD-14"].fails_on(_of(lambda run: ending(run, hidden(-1.0))))
for _id in ("HD-01", "HD-02", "HD-07"):
    paper[_id].fails_on(_of(lambda run: forged(run, _pushed(0.01))))
paper["HD-04"].fails_on(_isotropic)
paper["HD-09"].fails_on(_of(lambda run: recorded(run, log_loss=_rising)))
paper["HD-10"].fails_on(_of(_shifted))
paper["HD-18"].fails_on(_of(_flat))
paper["HD-19"].fails_on(_of(_flat))
paper["HD-29"].fails_on(lambda given: (given[0], {"generator": _generator(_one)}))
paper["HD-31"].fails_on(lambda given: (given[0], {"generator": _generator(_copied)}))
paper["HD-32"].fails_on(_of(lambda runs: [runs[0], ending(runs[1], hidden(1.01))]))
paper["HD-36"].fails_on(
    lambda given: (
        given[0],
        {"generator": _generator(lambda k: positive_start(N, 12, constant=4.0, seed=k))},
    )
)


def _leaning(k: int) -> Problem:
    """Correlated points that pretend to be isotropic, again and again."""
    problem = _one(k)
    data = problem.data
    X = data.X + 3.0 * data.X[:1]
    fake = Dataset(X, data.y, ambient_dim=data.ambient_dim, spectrum=data.spectrum)
    return Problem(fake, problem.net, problem.lr)


paper["HD-37"].fails_on(lambda given: (given[0], {"generator": _generator(_leaning)}))
