"""Independent references: the equations themselves, integrated by SciPy with patterns as state."""

import numpy as np
from scipy.integrate import solve_ivp


def yardstick(X, y, z, s, t_end, rtol=1e-12):
    """Integrate alpha' = s |alpha| gamma_{I+(alpha)} for one neuron; crossings and dense pieces."""
    n = len(y)
    active, t, state = X @ z > 0, 0.0, np.array(z, dtype=float)
    order, times, pieces = [], [], []
    while t < t_end:
        gamma = (y * active) @ X / n

        def field(_, alpha, gamma=gamma):
            return s * np.linalg.norm(alpha) * gamma

        def boundary(i):
            def value(_, alpha):
                return alpha @ X[i]

            value.terminal, value.direction = True, s
            return value

        waiting = np.flatnonzero(active != (s > 0)) if active.any() else []
        run = solve_ivp(
            field,
            (t, t_end),
            state,
            method="DOP853",
            rtol=rtol,
            atol=1e-14,
            dense_output=True,
            events=[boundary(i) for i in waiting] or None,
        )
        pieces.append((t, run.t[-1], run.sol))
        t, state = run.t[-1], run.y[:, -1]
        hit = [i for i, found in zip(waiting, run.t_events or [], strict=True) if len(found)]
        for i in hit:
            active[i] = s > 0
            order.append(int(i))
            times.append(t)
    return order, times, pieces


def bundle_flow(X, y, W, s, lam, t_end):
    """Log-polar gradient flow of the whole network; log-norms and unit directions at t_end."""
    n, (m, d) = len(y), W.shape
    norms = np.linalg.norm(W, axis=1)
    state, active, t = (
        np.concatenate([np.log(lam * norms), (W / norms[:, None]).ravel()]),
        W @ X.T > 0,
        0.0,
    )
    while t < t_end:

        def field(_, x, active=active):
            r, u = x[:m], x[m:].reshape(m, d)
            h = (s * np.exp(2 * r)) @ np.where(active, u @ X.T, 0.0)
            g = (active * (y - h) / n) @ X
            radial = np.einsum("ij,ij->i", u, g)
            return np.concatenate([s * radial, (s[:, None] * (g - radial[:, None] * u)).ravel()])

        def boundary(j, i, active=active):
            sign = 1.0 if active[j, i] else -1.0

            def value(_, x):
                return sign * (x[m + j * d : m + (j + 1) * d] @ X[i])

            value.terminal, value.direction = True, -1
            return value

        # in this phase points only join positive neurons and only leave negative ones
        pairs = [
            (j, i)
            for j in np.flatnonzero(active.any(axis=1))
            for i in range(n)
            if active[j, i] != (s[j] > 0)
        ]
        run = solve_ivp(
            field,
            (t, t_end),
            state,
            method="DOP853",
            rtol=1e-11,
            atol=1e-13,
            events=[boundary(j, i) for j, i in pairs] or None,
        )
        t, state = run.t[-1], run.y[:, -1]
        active = active.copy()
        for (j, i), found in zip(pairs, run.t_events or [], strict=True):
            if len(found):
                active[j, i] = s[j] > 0
    return state[:m], state[m:].reshape(m, d)


def log_flow(c, y, s, kappa, log_scale, t_end, watch=()):
    """Orthonormal flow in (log|a|, c/|a|); half times of the watched (neurons, Y) and the end."""
    m, n = c.shape
    active, t = c > 0, 0.0
    state = np.concatenate([np.full(m, log_scale), c.ravel()])
    halves = [np.nan] * len(watch)
    while t < t_end:

        def field(_, x, active=active):
            rho, u = x[:m], x[m:].reshape(m, n)
            plus = np.where(active, u, 0.0)
            r = y - (s * np.exp(2 * rho)) @ plus
            growth = kappa * s * (plus @ r)
            turn = kappa * s[:, None] * r * active - u * growth[:, None]
            return np.concatenate([growth, turn.ravel()])

        wrong = np.argwhere(active & (s[:, None] * y < 0))

        def lost(_, x, wrong=wrong):
            return min(x[m + j * n + i] for j, i in wrong) + 1e-13

        def half(neurons, Y):
            return lambda _, x: np.log(np.exp(2 * x[neurons]).sum() + 1e-300) - np.log(Y / 2)

        lost.terminal, lost.direction = True, -1
        events = [half(neurons, Y) for neurons, Y in watch] + ([lost] if len(wrong) else [])
        run = solve_ivp(
            field, (t, t_end), state, method="DOP853", rtol=1e-11, atol=1e-13, events=events or None
        )
        t, state = run.t[-1], run.y[:, -1].copy()
        for k in range(len(watch)):
            if len(run.t_events[k]):
                halves[k] = run.t_events[k][0]
        active = active.copy()
        for j, i in wrong:
            if state[m + j * n + i] < 1e-12:
                active[j, i], state[m + j * n + i] = False, 0.0
    return halves, state[:m], state[m:].reshape(m, n)
