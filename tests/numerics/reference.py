r"""Gradient flow in 40 digits: a Taylor integrator with event location, for small problems.

Independent of the engine: weights instead of forces, Taylor series instead of collocation, modes
chosen by enumeration. With the modes fixed the flow is polynomial in the weights and the forces,

    h_i = sum_j a_j (w_j.x_i) over active pairs,  g_j = M_j c,  a_j' = w_j.g_j,   w_j' = a_j g_j,

``M_j`` (d, n) the map from forces to the pull on neuron j (active points, and the projection where
it slides). Inactive points count ``slope`` times (leaky ReLU), and with weight ``decay`` mu all
weights lose mu times themselves. The forces are polynomial in the outputs (square loss) or obey

    c_i' = -c_i q_i' (exponential),   c_i' = -c_i (1 - n |c_i|) q_i' (logistic),   q_i = y_i h_i,

so Taylor coefficients follow from products of series. Numbers are integers in units of 2^-BITS.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product

import mpmath as mp
import numpy as np

BITS = 200
ONE = 1 << BITS
ORDER = 36
TOL = Fraction(1, 10**42)


def fixed(x):
    """Fixed-point integers of floats, fractions or mpf (exact for ordinary floats)."""
    if isinstance(x, np.ndarray | list):
        return np.array([fixed(v) for v in x], dtype=object)
    if isinstance(x, mp.mpf):
        return int(mp.floor(mp.ldexp(x, BITS)))
    x = Fraction(x)
    return (x.numerator << BITS) // x.denominator


def real(x):
    """Nearest floats of fixed-point numbers."""
    if isinstance(x, np.ndarray):
        return np.array([real(v) for v in x.ravel()]).reshape(x.shape)
    return float(Fraction(int(x), ONE))


def number(x):
    """A fixed-point number as mpf."""
    return mp.ldexp(mp.mpf(int(x)), -BITS)


@dataclass
class Reference:
    """The flow of one small problem; `run` moves it, ``events`` collects what happened."""

    X: np.ndarray
    y: np.ndarray
    a: np.ndarray
    W: np.ndarray
    loss: str = "square"
    kappa: float | None = None
    hidden: bool = False
    decay: float = 0.0
    slope: float = 0.0
    t: Fraction = Fraction(0)
    events: list = field(default_factory=list)

    def __post_init__(self):
        self.n, self.d = self.X.shape
        self.m = len(self.a)
        self.exact_X = [[Fraction(float(v)) for v in row] for row in self.X]
        self.exact_gram = [
            [sum(p * q for p, q in zip(u, v, strict=True)) for v in self.exact_X]
            for u in self.exact_X
        ]
        self.leak = Fraction(self.slope)
        self.k = Fraction(1, self.n) if self.kappa is None else Fraction(self.kappa)
        self.fX = fixed(self.X.ravel().tolist()).reshape(self.n, self.d)
        self.fa = fixed(np.asarray(self.a, dtype=float).tolist())
        self.fw = fixed(np.asarray(self.W, dtype=float).ravel().tolist()).reshape(self.m, self.d)
        size = np.linalg.norm(self.W, axis=1)[:, None] * np.linalg.norm(self.X, axis=1)
        self.on = np.abs(np.asarray(self.W) @ self.X.T) <= 1e-14 * size  # pairs on their plane now
        for j in np.flatnonzero(self.on.any(axis=1)):
            self._project(j, np.flatnonzero(self.on[j]))
        self.mode = ((self._z() > 0) & ~self.on).astype(int)  # 0 inactive, 1 active, 2 sliding
        self.unit = Fraction(1)
        for j in np.flatnonzero(self.on.any(axis=1)).tolist():
            before = self.mode[j].copy()
            self._settle(j, np.flatnonzero(self.on[j]), np.zeros(self.n))
            self._log(j, before)

    # ------------------------------------------------------------------ quantities at one time

    def _z(self):
        return (self.fw @ self.fX.T) >> BITS

    def outputs(self):
        """Outputs (n,) in fixed point."""
        terms = (self.fa[:, None] * self._z()) >> BITS
        weak = (fixed(self.leak) * terms) >> BITS
        return np.choose(self.mode, [weak, terms, 0 * terms]).sum(axis=0)

    def _counts(self, j, i):
        """How much of point i neuron j sees, if it does not slide there."""
        return (self.leak, Fraction(1), Fraction(0))[self.mode[j, i]]

    def _is_dead(self, j):
        return self.leak == 0 and not (self.mode[j] == 1).any()

    def forces(self):
        """Forces (n,) in fixed point."""
        h = self.outputs()
        if self.loss == "square":
            return np.array([(v * self.k.numerator) // self.k.denominator
                             for v in fixed(self.y.tolist()) - h], dtype=object)  # fmt: skip
        with mp.workdps(70):
            q = [number(v) * mp.mpf(float(y)) for v, y in zip(h, self.y, strict=True)]
            if self.loss == "exponential":
                p = [mp.exp(-v) for v in q]
            else:
                p = [1 / (1 + mp.exp(v)) for v in q]
            return fixed([v * mp.mpf(float(y)) / self.n for v, y in zip(p, self.y, strict=True)])

    def _pull_map(self, j):
        """Exact ``(M_j, lift)``: g_j = M_j c, and rho_S = lift c on the sliding points."""
        on = np.flatnonzero(self.mode[j] == 2).tolist()
        weights = [[self._counts(j, i) * int(i == k) for k in range(self.n)]
                   for i in range(self.n)]  # fmt: skip
        if self._is_dead(j):
            return [[Fraction(0)] * self.n for _ in range(self.d)], {}
        if on:
            own = [[self.exact_gram[p][q] for q in on] for p in on]
            for k in range(self.n):
                if self.mode[j, k] < 2:
                    rhs = [-self.exact_gram[p][k] * self._counts(j, k) for p in on]
                    for p, value in zip(on, _solve(own, rhs), strict=True):
                        weights[p][k] = value
        M = [[sum(self.exact_X[i][q] * weights[i][k] for i in range(self.n))
              for k in range(self.n)] for q in range(self.d)]  # fmt: skip
        return M, {i: weights[i] for i in on}

    # ------------------------------------------------------------------ Taylor series

    def _series(self):
        """Coefficients, in the time unit ``self.unit``, of a, w, c; and the lifts of the slides."""
        N, m, n, d = ORDER, self.m, self.n, self.d
        unit = fixed(self.unit)
        a = np.zeros((N + 1, m), dtype=object)
        w = np.zeros((N + 1, m, d), dtype=object)
        g = np.zeros((N + 1, m, d), dtype=object)
        z = np.zeros((N + 1, m, n), dtype=object)
        h = np.zeros((N + 1, n), dtype=object)
        c = np.zeros((N + 1, n), dtype=object)
        a[0], w[0] = self.fa, self.fw
        maps, lifts = [], []
        for j in range(m):
            M, lift = self._pull_map(j)
            maps.append(np.array([[fixed(v) for v in row] for row in M], dtype=object))
            lifts.append({i: fixed(list(row)) for i, row in lift.items()})
        start = self.forces()
        y, decay, leak = fixed(self.y.tolist()), fixed(self.decay), fixed(self.leak)
        for k in range(N + 1):
            z[k] = (w[k] @ self.fX.T) >> BITS
            for j in range(m):
                for i in range(n):
                    part = (a[: k + 1, j] @ z[k::-1, j, i]) >> BITS
                    if self.mode[j, i] == 1:
                        h[k, i] += part
                    elif self.mode[j, i] == 0:
                        h[k, i] += (leak * part) >> BITS
            c[k] = start if k == 0 else self._next_force(k, c, h, y)
            for j in range(m):
                g[k, j] = (maps[j] @ c[k]) >> BITS
            if k == N:
                break
            for j in range(m):
                slope = 0
                for q in range(d):
                    if not self.hidden:
                        slope += w[: k + 1, j, q] @ g[k::-1, j, q]
                    part = (a[: k + 1, j] @ g[k::-1, j, q] - decay * w[k, j, q]) >> BITS
                    w[k + 1, j, q] = part * unit // (ONE * (k + 1))
                a[k + 1, j] = ((slope - decay * a[k, j]) >> BITS) * unit // (ONE * (k + 1))
        return a, w, z, c, lifts

    def _next_force(self, k, c, h, y):
        if self.loss == "square":
            return np.array([-(v * self.k.numerator) // self.k.denominator for v in h[k]], object)
        out = np.zeros(self.n, dtype=object)
        steps = np.arange(1, k + 1)
        for i in range(self.n):
            rate = [(int(s) * int(h[s, i]) * int(y[i])) >> BITS for s in steps]  # s q_s
            slope = c[:k, i].copy()  # c (exponential) or c (1 - n |c|) (logistic)
            if self.loss == "logistic":
                sign = 1 if self.y[i] > 0 else -1
                for p in range(k):
                    slope[p] -= self.n * sign * ((c[: p + 1, i] @ c[p::-1, i]) >> BITS)
            total = sum(int(slope[k - s]) * r for s, r in zip(steps, rate, strict=True))
            out[i] = -(total >> BITS) // k
        return out

    # ------------------------------------------------------------------ stepping

    def run(self, t_end, max_steps=5000):
        """Integrate to ``t_end`` (exactly that float)."""
        t_end = Fraction(float(t_end))
        for _ in range(max_steps):
            if self.t >= t_end:
                return self
            self._step(t_end)
        raise RuntimeError("the reference took too many steps")

    def _step(self, t_end):
        a, w, z, c, lifts = self._series()
        size = max(float(np.abs(real(x[-2:])).max()) for x in (a, w, c))
        scale = max(1e-3, float(np.abs(real(a[0])).max()), float(np.abs(real(w[0])).max()))
        ratio = (float(TOL) * scale / max(size, 1e-300)) ** (1.0 / ORDER)
        tau = Fraction(min(ratio, 2.0)).limit_denominator(10**6)
        tau = min(tau, (t_end - self.t) / self.unit)
        found = self._first_event(a, z, c, lifts, tau)
        stop = fixed(tau) if found is None else found[0]
        self.fa, self.fw = _value(a, stop), _value(w, stop)
        self.t += Fraction(int(stop), ONE) * self.unit
        if self.t > t_end - Fraction(1, 10**38):
            self.t = max(self.t, t_end)
        self.on = self.mode == 2
        if found is not None:
            self._handle(found[1], c, lifts, stop)
        # the next unit of time: the radius of convergence seen in this step
        if ratio > 1.9 or ratio < 0.5:
            self.unit = (self.unit * Fraction(ratio)).limit_denominator(10**6) or self.unit / 2

    def _first_event(self, a, z, c, lifts, tau):
        """Earliest ``(time, [(kind, j, i)])`` in the step; several if at the same instant."""
        found = []
        for j in range(self.m):
            if self._is_dead(j):
                continue
            if not self.hidden and self.fa[j] != 0:
                found.append((first_root(a[:, j], tau), ("flip", j, -1)))
            for i in range(self.n):
                if self.mode[j, i] < 2:
                    found.append((first_root(z[:, j, i], tau, self.on[j, i]), ("plane", j, i)))
            for i, lift in lifts[j].items():
                rho = (c @ lift) >> BITS
                weak = (fixed(self.leak) * c[:, i]) >> BITS
                found.append((first_root(rho - weak, tau), ("theta0", j, i)))
                found.append((first_root(c[:, i] - rho, tau), ("theta1", j, i)))
        found = [(time, what) for time, what in found if time is not None]
        if not found:
            return None
        first = min(time for time, _ in found)
        same = [what for time, what in found if time - first <= ONE >> 100]
        return first, same

    def _handle(self, happened, c, lifts, stop):
        arrival = {}
        for _, j, _ in happened:
            M, _ = self._pull_map(j)
            g = [sum(float(M[q][k]) * real(_value(c[:, k], stop)) for k in range(self.n))
                 for q in range(self.d)]  # fmt: skip
            arrival[j] = real(self.fa[j]) * (self.X @ np.array(g))
        for j in sorted({what[1] for what in happened}):
            mine = [what for what in happened if what[1] == j]
            before = self.mode[j].copy()
            for kind, _, i in mine:
                if kind in ("theta0", "theta1"):
                    self.mode[j, i] = int(kind == "theta1")
                    self.on[j, i] = True
                elif kind == "plane":
                    self.on[j, i] = True
                    self._project(j, np.flatnonzero(self.on[j]))
            hit = [i for kind, _, i in mine if kind == "plane"]
            if any(kind == "flip" for kind, _, _ in mine):
                self._flip(j, real(_value(c, stop)), lifts[j])
            elif hit:
                held = sorted({*hit, *np.flatnonzero(self.mode[j] == 2)})
                self._settle(j, np.array(held), arrival[j])
            self._log(j, before)

    def _flip(self, j, c, lifts):
        """The planes of a slide turn repelling: it leaves to the side of the larger share."""
        self.events.append((float(self.t), j, -1, "flip"))
        self.fa[j] = 0
        for i in np.flatnonzero(self.mode[j] == 2):
            theta = (float(real(lifts[i]) @ c) / c[i] - self.slope) / (1.0 - self.slope)
            self.mode[j, i] = int(theta > 0.5)

    def _project(self, j, points):
        rows = [[Fraction(v) for v in self.exact_X[i]] for i in points]
        own = [[self.exact_gram[p][q] for q in points] for p in points]
        values = [sum(Fraction(int(w), ONE) * x for w, x in zip(self.fw[j], row, strict=True))
                  for row in rows]  # fmt: skip
        multipliers = _solve(own, values)
        for q in range(self.d):
            self.fw[j, q] -= fixed(sum(s * r[q] for s, r in zip(multipliers, rows, strict=True)))

    def _settle(self, j, points, arrival):
        """Choose modes on the planes of ``points``: repelling ones are crossed as they came.

        Where several planes meet the others may turn the neuron round: a mode that its own
        velocity contradicts is changed until all agree.
        """
        a, c = real(self.fa[j]), real(self.forces())
        held = [i for i in points if a * c[i] < 0]
        loose = [i for i in points if i not in held and self.mode[j, i] < 2]
        for i in loose:
            self.mode[j, i] = int(arrival[i] > 0)
        for _ in range(10):
            if held:
                self._box(j, held, c)
            g = np.array(self._pull_map(j)[0], dtype=float) @ c
            wrong = [i for i in loose if (a * (self.X[i] @ g) > 0) != (self.mode[j, i] == 1)]
            wrong = [i for i in wrong if abs(self.X[i] @ g) > 1e-13 * np.linalg.norm(g)]
            if not wrong:
                break
            self.mode[j, wrong] = 1 - self.mode[j, wrong]

    def _box(self, j, held, c):
        """The box rule on attracting planes, by enumeration of its faces."""
        base = np.zeros(self.d)
        for i in range(self.n):
            seen = self.slope if i in held else float(self._counts(j, i))
            base += seen * c[i] * self.X[i]
        theta = box_by_enumeration(base, (1.0 - self.slope) * c[held], self.X[held])
        for i, value in zip(held, theta, strict=True):
            if 0.0 < value < 1.0:
                self.mode[j, i] = 2
            else:
                self.mode[j, i] = int(value)

    def _log(self, j, before):
        if self._is_dead(j):
            self.mode[j] = 0
        t = float(self.t)
        for i in np.flatnonzero(before != self.mode[j]):
            old, new = before[i], self.mode[j, i]
            if old == 2:
                self.events.append((t, j, int(i), "release"))
            name = {0: "deactivate", 1: "activate", 2: "slide"}[int(new)]
            self.events.append((t, j, int(i), name))
        if (before == 1).any() and self._is_dead(j):
            self.events.append((t, j, -1, "die"))

    # ------------------------------------------------------------------ results

    @property
    def state(self):
        """Weights (m, 1 + d) as floats: output weight first."""
        return np.column_stack([real(self.fa), real(self.fw)])

    def slides(self):
        """Pairs (neuron, point) that slide now."""
        return [tuple(map(int, pair)) for pair in np.argwhere(self.mode == 2)]


def box_by_enumeration(base, c, X):
    """Minimiser of |base + sum theta_i c_i x_i| over the unit box: best of all faces' optima."""
    best, answer = np.inf, None
    columns = (c[:, None] * X).T
    for face in product((0.0, 1.0, None), repeat=len(c)):
        theta = np.array([0.0 if f is None else f for f in face])
        free = [k for k, f in enumerate(face) if f is None]
        if free:
            rest = base + columns @ theta
            theta[free] = np.linalg.lstsq(columns[:, free], -rest, rcond=None)[0]
            if np.any(theta < 0.0) or np.any(theta > 1.0):
                continue
        value = np.linalg.norm(base + columns @ theta)
        if value < best - 1e-12 * np.linalg.norm(base):
            best, answer = value, theta
    return answer


def first_root(series, tau, on_plane=False):
    """First root in (0, tau] of a series (fixed point), or None; ``on_plane``: skip the one at 0.

    Sign changes on a fine grid of the float polynomial and at its turning points, then Newton's
    method in fixed point.
    """
    series = series[1:] if on_plane else series
    coefficients = real(series) * np.float64(tau) ** np.arange(len(series))
    s = np.concatenate([[0.0], 0.5 - 0.5 * np.cos(np.pi * np.arange(1, 65) / 64)])
    f = np.polynomial.polynomial.polyval(s, coefficients)
    slope = np.polynomial.polynomial.polyder(coefficients)
    d = np.polynomial.polynomial.polyval(s, slope)
    points = list(s)
    for k in np.flatnonzero(d[:-1] * d[1:] < 0):
        points.append(_bisect(lambda v: np.polynomial.polynomial.polyval(v, slope), s[k], s[k + 1]))
    points = np.unique(points)
    f = np.polynomial.polynomial.polyval(points, coefficients)
    if not f.any():
        return None
    size = np.abs(coefficients).max()
    sign = np.sign(f[np.flatnonzero(np.abs(f) > 1e-15 * size)[0]])
    beyond = np.flatnonzero(sign * f < 0)
    if not len(beyond):
        return None
    k = beyond[0]
    guess = _bisect(lambda v: np.polynomial.polynomial.polyval(v, coefficients),
                    points[k - 1], points[k])  # fmt: skip
    x = fixed(Fraction(guess) * tau)
    derivative = np.array([k * v for k, v in enumerate(series)][1:], dtype=object)
    for _ in range(8):
        x -= (_value(series, x) << BITS) // _value(derivative, x)
    return x if 0 < x <= fixed(tau) else None


def _bisect(f, low, high):
    sign = np.sign(f(low))
    for _ in range(55):
        middle = 0.5 * (low + high)
        if sign * f(middle) > 0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def _value(series, x):
    """Horner's rule in fixed point along the first axis."""
    total = series[-1]
    for row in series[-2::-1]:
        total = ((total * x) >> BITS) + row
    return total


def _solve(matrix, rhs):
    """Gauss elimination in exact fractions; free unknowns of a singular consistent system are 0."""
    rows = [[*row, value] for row, value in zip(matrix, rhs, strict=True)]
    size, rank, pivots = len(rows), 0, []
    for p in range(size):
        best = max(range(rank, size), key=lambda r, p=p: abs(rows[r][p]), default=None)
        if best is None or rows[best][p] == 0:
            continue
        rows[rank], rows[best] = rows[best], rows[rank]
        for r in range(size):
            if r != rank:
                factor = rows[r][p] / rows[rank][p]
                rows[r] = [u - factor * v for u, v in zip(rows[r], rows[rank], strict=True)]
        pivots.append(p)
        rank += 1
    solution = [Fraction(0)] * size
    for r, p in enumerate(pivots):
        solution[p] = rows[r][-1] / rows[r][p]
    return solution
