"""Problems whose neurons pass or rest at w = 0, and whether a run stays there against the pulls."""

from __future__ import annotations

import numpy as np

from . import degenerate, hull, small_steps

AT_ZERO = 1e-12  # of the largest weight of the start
MOMENT = 1e-6  # of the end time: records closer than this may both belong to a passage
FREE = 1e-3  # least pull, of the largest, that must move a neuron: well above rounding
KNOWN = 1e-10  # pulls below this, of the largest at the start, are the error of the run


def problem(seed):
    """A problem in which descent comes to w = 0 with some neuron: draws until it does."""
    for attempt in range(1000):
        drawn = _draw(np.random.default_rng([seed, attempt, 17]), seed)
        if visits(drawn):
            return drawn
    raise AssertionError(f"no visit to the origin in 1000 draws of seed {seed}")


def _draw(rng, seed):
    """Neurons at, aimed at or sliding into the origin, on degenerate or ordinary points."""
    start = str(rng.choice(["origin", "aimed", "aimed", "plane", "plain"]))
    data = str(rng.choice([*degenerate.DATA, "line", "around"]))
    return degenerate.problem(int(rng.integers(2**31)), data=data, start=start)


def visits(drawn):
    """Whether some neuron starts at zero or comes as near as the step lets it.

    Descent passes the origin at a distance of the order of its step: the least norm is below
    five steps' motion at two step sizes.
    """
    net = drawn.net.flat()
    if (~net.W.any(axis=1) & (net.a != 0.0)).any():
        return True
    begin = small_steps.start(drawn)
    reach = np.abs(drawn.data.X).sum() * max(1.0, np.abs(net.a).max())
    fine, coarse = (small_steps.path(drawn, begin, h)[2][:, 0] for h in (4e-5, 3.2e-4))
    moving = np.linalg.norm(net.W, axis=1) > 1e-2
    near = (fine < 4e-5 * reach) & (coarse < 3.2e-4 * reach)
    return bool((near & moving).any())


def stays(drawn, run):
    """Times and neurons found at w = 0 at two neighbouring records though no mixture of pulls is 0.

    Records of the run are looked at, not the run's own account of its modes.
    """
    nets = [run.network(k).flat() for k in range(len(run.t))]
    X, y, loss = drawn.data.X, drawn.data.y, drawn.loss
    size = max(np.abs(nets[0].a).max(), np.abs(nets[0].W).max())
    at_zero = np.array(
        [(np.abs(net.W).max(axis=1) <= AT_ZERO * size) & (net.a != 0) for net in nets]
    )
    if not at_zero.any():
        return []
    cells = hull.cells(X)
    outside = np.zeros(len(nets), dtype=bool)
    first = np.abs(hull.pulls(cells, loss.forces(nets[0].predict(X), y), X)).max()
    for k in np.flatnonzero(at_zero.any(axis=1)):
        out = hull.pulls(cells, loss.forces(nets[k].predict(X), y), X)
        outside[k] = np.abs(out).max() > KNOWN * first and hull.zero_is_outside(out, FREE)
    return [
        (float(run.t[k]), int(j))
        for k in range(len(nets) - 1)
        if outside[k] and outside[k + 1] and run.t[k + 1] - run.t[k] > MOMENT * drawn.t_end
        for j in np.flatnonzero(at_zero[k] & at_zero[k + 1])
    ]
