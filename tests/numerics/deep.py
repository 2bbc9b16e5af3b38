r"""Gradient flow from starts of any log scale in hundreds of digits, events and ends included.

Independent of the engine: Taylor series of the weights themselves, patterns by enumeration, no
closed forms. Every neuron has a power of two of its own,

    (a_j, w_j) = 2^e_j (A_j, W_j) / 2^bits,      A_j, W_j integers, the larger near 2^bits,

so a dormant neuron is as exact as a large one, and digits are lost only where the flow itself
multiplies errors: a neuron that shrinks by e^-S and grows again costs 2 S / ln 10 of them, unless
it is balanced and slides along a line (then (a_j, w_j) = r(t) (a_j, w_j)(0) exactly). Outputs and
forces are integers in units of 2^-bits. With fixed modes, in a unit of time H,

    P_j = a_j w_j,  h_i = x_i . sum_j P_j over active pairs,  g_j = M_j c,
    a_j' = w_j . g_j,   w_j' = a_j g_j,   c = (y - h) / n,   or   c_i' = -c_i y_i h_i',

``M_j`` the exact sum over active points, projected where the neuron slides. The series of order p
is summed up to where its last terms are 2^-(3.32 digits). A neuron on a plane takes the pattern
that agrees with its own velocities; a slide ends where its share theta leaves [0, 1].

Supported: square loss (factor 1/2n) and exponential loss, neurons that do not meet w = 0, points in
general position. A neuron that violates this raises `UnsupportedError`.

Numerics
--------
Answers are certain where two precisions agree (`test_deep.py`). About 3 m d p^2 / 2 products of
integers a step; a step covers p / 25 e-folds of the fastest growth at p = 1.15 digits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from operator import mul

import mpmath as mp
import numpy as np

from .roots import first_root, value

try:  # ten times as fast as Python's own integers
    from gmpy2 import isqrt
    from gmpy2 import mpz as integer
except ImportError:
    from math import isqrt

    integer = int

INACTIVE, ACTIVE, SLIDING = 0, 1, 2
# bits beyond the digits asked for: a neuron may shrink so much within one step
GUARD = 64
# a pull below this no longer moves a neuron
QUIET = 1e-12
# a neuron that shrinks along a line for ever no longer matters below exp of this
WITHERED = -30.0


class UnsupportedError(RuntimeError):
    """The problem leaves what this reference treats: w = 0, ties, several solutions."""


def dot(u, v):
    """Coefficient of the product of two series known to the same order: sum_l u_l v_(k-l)."""
    return sum(map(mul, u, reversed(v)))


def exact(array):
    """Fractions equal to the floats of an array, as nested lists."""
    return [[Fraction(float(v)) for v in row] for row in np.atleast_2d(array)]


def solve(matrix, rhs):
    """Solution of a small linear system (Cramer's rule, one or two unknowns)."""
    if len(rhs) == 1:
        return [rhs[0] / matrix[0][0]]
    (a, b), (c, d) = matrix
    det = a * d - b * c
    return [(rhs[0] * d - b * rhs[1]) / det, (a * rhs[1] - c * rhs[0]) / det]


@dataclass
class Deep:
    """The flow of one problem; `run` moves it to its end, ``events`` collects what happened.

    ``log_scale`` (m,) multiplies both layers. ``balanced`` replaces |a_j| by |w_j| to all digits,
    where the floats agree to rounding only, and holds it there: a neuron that slides along a line
    may then shrink by any factor and grow again.
    """

    X: np.ndarray
    y: np.ndarray
    a: np.ndarray
    W: np.ndarray
    log_scale: np.ndarray | float = 0.0
    loss: str = "square"
    balanced: bool = False
    digits: int = 200
    order: int | None = None
    events: list = field(default_factory=list)

    def __post_init__(self):
        self.n, self.d = np.shape(self.X)
        self.m = len(self.a)
        self.bits = int(self.digits * 3.3219281) + GUARD
        self.order = self.order or int(1.15 * self.digits) + 10
        self.one = integer(1) << self.bits
        self.points = exact(self.X)
        self.gram = [[sum(map(mul, u, v)) for v in self.points] for u in self.points]
        self.labels = [self.fix(v) for v in exact(self.y)[0]]
        # coordinates as integers in units of 2^-fine
        self.fine = max(v.denominator for row in self.points for v in row).bit_length() - 1
        self.grain = [[integer(int(v * 2**self.fine)) for v in row] for row in self.points]
        self.t, self.unit, self.steps, self.drift = integer(0), Fraction(1, 8), 0, integer(0)
        self.skip = np.zeros((self.m, self.n), dtype=int)  # roots at the start of the next step
        self._start()

    def _start(self):
        logs = np.broadcast_to(np.asarray(self.log_scale, dtype=float), self.m)
        self.A, self.W_, self.e = [], [], []
        with mp.workprec(self.bits + 32):
            for j in range(self.m):
                size = mp.exp(mp.mpf(float(logs[j])))
                w = [mp.mpf(float(v)) for v in self.W[j]]
                a = mp.mpf(float(self.a[j]))
                if self.balanced:
                    a = mp.sign(a) * mp.sqrt(mp.fsum(v * v for v in w))
                power = int(mp.floor(mp.log(size * max(map(abs, [a, *w])), 2))) + 1
                scaled = [mp.ldexp(v * size, self.bits - power) for v in [a, *w]]
                self.A.append(integer(int(mp.nint(scaled[0]))))
                self.W_.append([integer(int(mp.nint(v))) for v in scaled[1:]])
                self.e.append(power)
        z = [[self.z(j, i) for i in range(self.n)] for j in range(self.m)]
        if any(abs(v) < self.one >> 40 for row in z for v in row):
            raise UnsupportedError("A neuron starts on a plane.")
        self.mode = np.array([[int(v > 0) for v in row] for row in z])

    # ------------------------------------------------------------------ quantities at one time

    def fix(self, fraction):
        """A fraction in fixed point."""
        return integer((fraction.numerator << self.bits) // fraction.denominator)

    def real(self, v):
        """A fixed-point number as mpf, of limited precision."""
        return mp.ldexp(mp.mpf(int(v)), -self.bits)

    def z(self, j, i):
        """The product w_j . x_i in units of the neuron."""
        return sum(map(mul, self.W_[j], self.grain[i])) >> self.fine

    def outputs(self):
        """Outputs (n,) in fixed point."""
        return [
            sum(
                shifted(self.A[j] * self.z(j, i) >> self.bits, 2 * self.e[j])
                for j in range(self.m)
                if self.mode[j, i] == ACTIVE
            )
            for i in range(self.n)
        ]

    def forces(self):
        """Forces (n,) in fixed point."""
        h = self.outputs()
        if self.loss == "square":
            return [(y - v) // self.n for y, v in zip(self.labels, h, strict=True)]
        with mp.workprec(self.bits + 32):
            terms = [mp.exp(-self.real(v) * y) * y / self.n for v, y in zip(h, self.y, strict=True)]
            return [integer(int(mp.nint(mp.ldexp(v, self.bits)))) for v in terms]

    def alive(self, j):
        """Whether some point or slide moves neuron j."""
        return bool(self.mode[j].any())

    def pull_map(self, row):
        """Exact shares s_ik of a row of modes: g = sum_i x_i sum_k s_ik c_k."""
        shares = {i: {i: Fraction(1)} for i in np.flatnonzero(row == ACTIVE).tolist()}
        held = np.flatnonzero(row == SLIDING).tolist()
        if held:
            own = [[self.gram[p][q] for q in held] for p in held]
            columns = {k: solve(own, [-self.gram[p][k] for p in held]) for k in shares}
            for at, p in enumerate(held):
                shares[p] = {k: column[at] for k, column in columns.items()}
        return shares

    def pull(self, row, c):
        """The pull (d,) of a row of modes, and the forces theta_i c_i of its slides."""
        shares = {
            i: sum(self.fix(s) * c[k] >> self.bits for k, s in row.items())
            for i, row in self.pull_map(row).items()
        }
        g = [
            sum(force * self.grain[i][q] for i, force in shares.items()) >> self.fine
            for q in range(self.d)
        ]
        return g, {i: shares[i] for i in np.flatnonzero(row == SLIDING).tolist()}

    # ------------------------------------------------------------------ Taylor series

    def series(self):
        """Coefficients of a, w (neurons' units) and of c, in the unit of time."""
        motions = {j: self._motion(j) for j in range(self.m) if self.alive(j)}
        rows = {j: self.mode[j].tobytes() for j in motions}
        maps = {}
        for j, row in rows.items():
            if row not in maps:
                shares = self.pull_map(self.mode[j]).items()
                maps[row] = {i: {k: self.fix(s) for k, s in part.items()} for i, part in shares}
        G = {row: [[] for _ in range(self.d)] for row in maps}
        C = [[v] for v in self.forces()]
        h = [[] for _ in range(self.n)]
        numerator, power = self.unit.numerator, self.unit.denominator.bit_length() - 1
        for k in range(self.order + 1):
            self._next_output(motions, h)
            if k:
                self._next_force(k, C, h)
            for row, shares in maps.items():
                self._next_pull(G[row], shares, C)
            if k < self.order:
                for j, motion in motions.items():
                    motion.extend(G[rows[j]], numerator, power, k + 1)
        A, W = {}, {}
        for j, motion in motions.items():
            A[j], W[j] = motion.weights()
        return A, W, C

    def _motion(self, j):
        on_a_line = (self.mode[j] == SLIDING).sum() == self.d - 1
        kind = Ray if self.balanced and on_a_line else Free
        return kind(self.A[j], self.W_[j], self.e[j], self.bits)

    def _next_output(self, motions, h):
        products = {j: motion.product() for j, motion in motions.items()}
        for i in range(self.n):
            total = 0
            for j, parts in products.items():
                if parts is not None and self.mode[j, i] == ACTIVE:
                    total += sum(map(mul, parts, self.grain[i]))
            h[i].append(total >> self.fine)

    def _next_force(self, k, C, h):
        for i in range(self.n):
            if self.loss == "square":
                C[i].append(-h[i][k] // self.n)
            else:
                rates = [s * h[i][s] for s in range(1, k + 1)]
                total = dot(C[i], rates) >> self.bits
                C[i].append(-int(self.y[i]) * total // k)

    def _next_pull(self, g, shares, C):
        forces = {
            i: C[i][-1]
            if set(row) == {i}
            else sum(s * C[k][-1] for k, s in row.items()) >> self.bits
            for i, row in shares.items()
        }
        for q in range(self.d):
            g[q].append(sum(v * self.grain[i][q] for i, v in forces.items()) >> self.fine)

    # ------------------------------------------------------------------ stepping

    def run(self, t_end=np.inf, stop_log_loss=None, max_steps=20000):
        """Integrate to the time, the loss, or the end; returns what it was, as a word."""
        for _ in range(max_steps):
            if self.settled():
                return "settled"
            if self.t >= t_end * self.one if np.isfinite(t_end) else False:
                return "t_end"
            if self._step(t_end, stop_log_loss):
                return "stop_loss"
        return "max_steps"

    def _step(self, t_end, stop_log_loss):
        A, W, C = self.series()
        ratio = self._ratio(A, W, C)
        top = min(ratio, 1.5)
        if np.isfinite(t_end):
            left = Fraction(float(t_end)) - Fraction(int(self.t), int(self.one))
            top = min(top, float(left / self.unit) * (1 + 1e-12))
        found = self._events(A, W, C, top)
        if stop_log_loss is not None:
            found.append((self._stop(C, top, stop_log_loss), ("stop", -1, -1)))
        found = [pair for pair in found if pair[0] is not None]
        s = integer(int(top * 2.0**60)) << (self.bits - 60)
        if found:
            s = min(time for time, _ in found)
        if np.isfinite(t_end):
            # the end itself, not its rounding
            s = min(s, self.fix(left / self.unit) + 1)
        self._move(A, W, s)
        now = [what for time, what in found if time - s <= self.one >> (self.bits // 2)]
        self.skip[:] = 0
        for j in sorted({what[1] for what in now} - {-1}):
            self._handle(j, [what for what in now if what[1] == j])
        self.steps += 1
        factor = Fraction(min(max(ratio, 0.25), 2.0)).limit_denominator(64)
        self.unit = self._dyadic(self.unit * factor)
        return any(what[0] == "stop" for what in now)

    def _dyadic(self, unit):
        power = 20 - int(np.floor(np.log2(float(unit))))
        return Fraction(int(unit * Fraction(2) ** power)) / Fraction(2) ** power

    def _ratio(self, A, W, C):
        """How far the series may be summed, in the unit of time: last terms below the digits."""
        last = 1
        for series in (*A.values(), *(w for rows in W.values() for w in rows), *C):
            last = max(last, abs(series[-1]), abs(series[-2]))
        excess = last.bit_length() - GUARD
        return float(2.0 ** (-excess / self.order))

    def _move(self, A, W, s):
        for j in A:
            self.A[j] = value(A[j], s, self.bits)
            self.W_[j] = [value(w, s, self.bits) for w in W[j]]
            shift = self.bits - max(abs(v).bit_length() for v in (self.A[j], *self.W_[j]))
            self.A[j] = shifted(self.A[j], shift)
            self.W_[j] = [shifted(v, shift) for v in self.W_[j]]
            self.e[j] -= shift
            held = np.flatnonzero(self.mode[j] == SLIDING).tolist()
            if held:
                self._project(j, held)
            if self.balanced:
                self._balance(j)
        self.t += self.fix(self.unit) * s >> self.bits

    def _balance(self, j):
        """Restore |a_j| = |w_j|; what a step leaves of the difference is kept in ``drift``."""
        exact = isqrt(sum(v * v for v in self.W_[j]))
        self.drift = max(self.drift, abs(exact - abs(self.A[j])))
        self.A[j] = exact if self.A[j] > 0 else -exact

    # ------------------------------------------------------------------ events

    def _events(self, A, W, C, top):
        """All first roots in the step: ``(s, (kind, neuron, point))``."""
        found = []
        for j in A:
            for i in range(self.n):
                if self.mode[j, i] != SLIDING:
                    found.append((self._crossing(j, i, W[j], top), ("plane", j, i)))
            for i, row in self.pull_map(self.mode[j]).items():
                if self.mode[j, i] == SLIDING:
                    shares = {k: self.fix(s) for k, s in row.items()}
                    rho = [
                        sum(s * C[k][at] for k, s in shares.items()) >> self.bits
                        for at in range(self.order + 1)
                    ]
                    rest = [c - r for c, r in zip(C[i], rho, strict=True)]
                    found.append((first_root(rho, top, self.bits), ("theta0", j, i)))
                    found.append((first_root(rest, top, self.bits), ("theta1", j, i)))
            if self.unbalanced(j):
                found.append((first_root(A[j], top, self.bits), ("flip", j, -1)))
        return found

    def _crossing(self, j, i, W, top):
        x = self.grain[i]
        z = [sum(map(mul, w, x)) >> self.fine for w in zip(*W, strict=True)]
        z = z[self.skip[j, i] :]
        if (z[0] > 0) != (self.mode[j, i] == ACTIVE):
            raise UnsupportedError(f"Neuron {j} leaves the plane of point {i} to the other side.")
        return first_root(z, top, self.bits)

    def _stop(self, C, top, stop_log_loss):
        """Where the exponential loss sum_i |c_i| has fallen to exp(stop_log_loss)."""
        with mp.workprec(self.bits + 32):
            level = integer(int(mp.ldexp(mp.exp(mp.mpf(stop_log_loss)), self.bits)))
        excess = [sum(int(y) * c[k] for y, c in zip(self.y, C, strict=True))
                  for k in range(self.order + 1)]  # fmt: skip
        excess[0] -= level
        return first_root(excess, top, self.bits)

    def unbalanced(self, j):
        """Whether |a_j| < |w_j| beyond rounding: only then a_j may change its sign."""
        square = sum(v * v for v in self.W_[j]) - self.A[j] ** 2
        return square >> self.bits > self.one >> (self.bits // 2)

    def _handle(self, j, happened):
        before = self.mode[j].copy()
        c = self.forces()
        for kind, _, i in happened:
            if kind == "flip":
                self._flip(j, c)
            elif kind == "plane":
                self._meet(j, i, c)
            else:
                self.mode[j, i] = int(kind == "theta1")
                self.skip[j, i] = 2
        if not (self.mode[j] == ACTIVE).any():
            self.mode[j] = INACTIVE
        self._log(j, before)

    def _meet(self, j, i, c):
        """Choose the modes of a neuron that has just come to a plane, maybe sliding on others."""
        held = sorted({i, *np.flatnonzero(self.mode[j] == SLIDING).tolist()})
        if len(held) >= self.d:
            raise UnsupportedError(f"Neuron {j} comes to w = 0.")
        self._project(j, held)
        choices = []
        for choice in product((INACTIVE, ACTIVE, SLIDING), repeat=len(held)):
            row = self.mode[j].copy()
            row[held] = choice
            if self._agrees(j, row, held, c):
                choices.append(row)
        if len(choices) != 1:
            raise UnsupportedError(f"Neuron {j} has {len(choices)} ways to leave the plane of {i}.")
        self.mode[j] = choices[0]
        self.skip[j, held] = 1

    def _agrees(self, j, row, held, c):
        """Whether the velocities of a pattern keep the neuron in it."""
        if not (row == ACTIVE).any():
            return not (row == SLIDING).any()
        g, rho = self.pull(row, c)
        small = self.one >> (self.bits // 2)
        for i in held:
            speed = (self.A[j] > 0) - (self.A[j] < 0)
            speed *= sum(map(mul, g, self.grain[i])) >> self.fine
            if row[i] == SLIDING:
                attracts = self.A[j] * c[i] < 0
                low, high = sorted((0, c[i]))
                if not (attracts and low + small < rho[i] < high - small):
                    return False
            elif not (speed > small if row[i] == ACTIVE else speed < -small):
                return False
        return True

    def _flip(self, j, c):
        """A slide turns repelling: leave to the side on which descent spends more time."""
        self.events.append((self.time, j, -1, "flip"))
        _, rho = self.pull(self.mode[j], c)
        for i, force in rho.items():
            self.mode[j, i] = int(2 * abs(force) > abs(c[i]))
            self.skip[j, i] = 2
            self.events.append((self.time, j, i, "branch"))

    def _project(self, j, held):
        """Put w_j on the planes of the points exactly (to the last bit)."""
        own = [[self.gram[p][q] for q in held] for p in held]
        unit = [[Fraction(int(p == q)) for q in held] for p in held]
        inverse = [solve(own, column) for column in unit]
        z = [sum(map(mul, self.W_[j], self.grain[p])) for p in held]
        for at, p in enumerate(held):
            weight = sum(self.fix(inverse[q][at]) * z[q] for q in range(len(held)))
            for q in range(self.d):
                self.W_[j][q] -= weight * self.grain[p][q] >> (self.bits + 2 * self.fine)

    def _log(self, j, before):
        for i in np.flatnonzero(before != self.mode[j]).tolist():
            if before[i] == SLIDING:
                self.events.append((self.time, j, i, "release"))
            name = ("deactivate", "activate", "slide")[self.mode[j, i]]
            self.events.append((self.time, j, i, name))
        if before.any() and not self.mode[j].any():
            self.events.append((self.time, j, -1, "die"))

    # ------------------------------------------------------------------ ends and results

    def settled(self):
        """Whether nothing moves any more: every neuron dead, without pull, or withered."""
        c = self.forces()
        return all(self._rests(j, c) for j in range(self.m) if self.alive(j))

    def _rests(self, j, c):
        g, _ = self.pull(self.mode[j], c)
        g = [float(self.real(v)) for v in g]
        if max(map(abs, g)) < QUIET:
            return True
        on_a_line = (self.mode[j] == SLIDING).sum() == self.d - 1
        growth = sum(v * float(self.real(w)) for v, w in zip(g, self.W_[j], strict=True))
        shrinks = growth * float(self.real(self.A[j])) < -1e-6
        return bool(on_a_line and shrinks and self.e[j] * np.log(2.0) < WITHERED)

    @property
    def time(self):
        """Time as a float."""
        return float(self.real(self.t))

    @property
    def log_sizes(self):
        """Logarithm of each neuron's larger layer (m,)."""
        sizes = [max(abs(v) for v in (a, *w)) for a, w in zip(self.A, self.W_, strict=True)]
        return np.array([float(mp.log(self.real(v))) for v in sizes]) + np.array(self.e) * np.log(2)

    @property
    def state(self):
        """Weights (m, 1 + d) as floats: output weight first."""
        return np.array(
            [
                [float(mp.ldexp(self.real(v), e)) for v in (a, *w)]
                for a, w, e in zip(self.A, self.W_, self.e, strict=True)
            ]
        )

    def balance(self, j):
        """The invariant a_j^2 - |w_j|^2 in units of the neuron's own square, as mpf."""
        square = self.A[j] ** 2 - sum(v * v for v in self.W_[j])
        return mp.ldexp(mp.mpf(int(square)), -2 * self.bits)

    def predict(self, X):
        """Outputs of the network on points (k, d)."""
        state = self.state
        return np.maximum(np.asarray(X) @ state[:, 1:].T, 0.0) @ state[:, 0]


class Free:
    """Series of a neuron: ``A``, ``W`` in its own unit 2^e, and absolute ones for the outputs."""

    def __init__(self, a, w, e, bits):
        self.A, self.W = [a], [[v] for v in w]
        self.e, self.bits = e, bits
        # whether it adds to the outputs, were it to grow by the guard bits within the step
        self.felt = 2 * e > -bits - GUARD
        self.a, self.w = [], [[] for _ in w]

    def product(self):
        """Next coefficient of a w, absolute; what dormant neurons add is short."""
        if not self.felt:
            return None
        self.a.append(shifted(self.A[-1], self.e))
        for mine, w in zip(self.w, self.W, strict=True):
            mine.append(shifted(w[-1], self.e))
        return [dot(self.a, w) >> self.bits for w in self.w]

    def extend(self, G, numerator, power, k):
        """Append coefficient k: a' = w.g, w' = a g in the unit numerator / 2^power."""
        slopes = [dot(self.A, g) for g in G]
        slope = sum(dot(w, g) for w, g in zip(self.W, G, strict=True))
        self.A.append((slope * numerator >> (self.bits + power)) // k)
        for w, v in zip(self.W, slopes, strict=True):
            w.append((v * numerator >> (self.bits + power)) // k)

    def weights(self):
        """The series of a and w."""
        return self.A, self.W


class Ray:
    """Series of a balanced neuron that slides along a line: (a, w) = r (a_0, w_0)."""

    def __init__(self, a, w, e, bits):
        self.start, self.bits = (a, w), bits
        self.r, self.kappa = [integer(1) << bits], []
        # r' = r w_0.g / a_0
        self.lean = [(v << bits) // a for v in w]
        self.felt = 2 * e > -bits - GUARD
        self.outer = [shifted(a * v >> bits, 2 * e) for v in w]

    def product(self):
        """Next coefficient of a w, absolute."""
        if not self.felt:
            return None
        square = dot(self.r, self.r) >> self.bits
        return [v * square >> self.bits for v in self.outer]

    def extend(self, G, numerator, power, k):
        """Append coefficient k of r in the unit numerator / 2^power."""
        self.kappa.append(sum(v * g[-1] for v, g in zip(self.lean, G, strict=True)) >> self.bits)
        slope = dot(self.r, self.kappa) * numerator
        self.r.append((slope >> (self.bits + power)) // k)

    def weights(self):
        """The series of a and w."""
        a, w = self.start
        return (
            [a * r >> self.bits for r in self.r],
            [[v * r >> self.bits for r in self.r] for v in w],
        )


def shifted(v, bits):
    """An integer times 2^bits, rounded down."""
    return v << bits if bits >= 0 else v >> -bits
