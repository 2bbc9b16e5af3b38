"""Proposition 2 and Theorem 3 over random starts of the subject's size (O19 to O22)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluflow.checks import Array
from reluflow.limits import SaddleToSaddle, saddle_to_saddle_from_masks
from reluflow.theory.orthogonal import probability
from reluflow.theory.orthogonal.case import Case
from reluflow.theory.verdicts import Claims, NotApplicable, Outcome, Verdict, at_most, holds

CLAIMS = Claims()
CONSTANT = 2.0 * (np.sqrt(2.0) / (1.0 - np.sqrt(0.5)) + 2.0)  # 13.66, of one sign
TIE = 1e-12  # of the waiting time


@dataclass(frozen=True)
class Sizes:
    """What the law of a random start depends on."""

    y: Array
    positive: int
    negative: int
    m: int
    matched: bool


@CLAIMS("O19", "Proposition 2: chance of A4(i), Monte Carlo against exact (standard errors)")
def o19(case: Case) -> Outcome:
    """Also the printed lower bound against the exact value."""
    sizes = sizes_of(case)
    n, draws = sizes.positive + sizes.negative, max(case.draws, 1000)
    if n * sizes.m > probability.LARGEST_EXACT:
        raise NotApplicable(
            f"n m = {n * sizes.m}: the exact value is computed up to {probability.LARGEST_EXACT}"
        )
    parts = (sizes.positive, sizes.negative, sizes.m)
    exact = probability.exact_probability(*parts, matched=sizes.matched)
    bound = probability.lower_bound(*parts, matched=sizes.matched)
    found = probability.frequency(
        np.sign(sizes.y), sizes.m, draws, np.random.default_rng(case.seed), matched=sizes.matched
    )
    p = float(exact)
    note = f"exact {p:.6g}, lower bound {bound:.4g}, frequency {found:.4g} of {draws} starts"
    # a frequency of a nearly certain event moves in steps of one draw
    error = max(np.sqrt(p * (1.0 - p) / draws), 0.25 / draws)
    if bound > p + 1e-12:
        return Outcome(Verdict.FAIL, bound, p, f"the bound exceeds the exact value; {note}")
    return at_most(abs(found - p) / error, 4.0, note=note)


@CLAIMS("O20", "Proposition 2(ii): no ties for labels with a density (ties over random starts)")
def o20(case: Case) -> Outcome:
    """Gaussian labels of the subject's signs, random masks; tie: a margin of 1e-12 of the wait."""
    sizes = sizes_of(case)
    rng = np.random.default_rng(case.seed + 1)
    count = 0
    for _ in range(case.draws):
        y = np.sign(sizes.y) * np.abs(rng.standard_normal(len(sizes.y)))
        masks, signs = probability.draw_masks(np.sign(y), sizes.m, rng, matched=sizes.matched)
        process = saddle_to_saddle_from_masks(masks, signs, y)
        waits = np.diff(process.times, prepend=0.0)
        count += int((process.margins <= TIE * waits).sum())
    return holds(count == 0, measured=count, note=f"{case.draws} random starts")


@CLAIMS("O21", "Theorem 3: squared norm over 2 ymax sum_k sqrt|U_k| never exceeds 1 (largest)")
def o21(case: Case) -> Outcome:
    """Deterministic in the measured |U_k|; violations of the constant bound against p_fail."""
    sizes = sizes_of(case)
    ratios, beyond = [], 0
    ceiling = CONSTANT * np.abs(sizes.y).max() * (sizes.positive**0.5 + sizes.negative**0.5)
    for process in random_processes(case):
        bound = set_bound(process)
        ratios.append(process.squared_norm / bound if bound > 0.0 else 0.0)
        beyond += process.squared_norm > ceiling
    allowed = sum(
        probability.failure_probability(n1, sizes.m) for n1 in (sizes.positive, sizes.negative)
    )
    share = beyond / len(ratios)
    note = f"constant bound exceeded in {share:.2g} of {len(ratios)} starts, " + (
        f"p_fail = {allowed:.2g}" if allowed < 1.0 else "p_fail above 1: nothing is promised"
    )
    spread = 4.0 * np.sqrt(max(min(allowed, 1.0), 1.0 / len(ratios)) / len(ratios))
    if share > allowed + spread:
        return Outcome(Verdict.FAIL, share, allowed, note)
    return at_most(max(ratios), 1.0 + 1e-12, note=note)


@CLAIMS("O22", "squared norm over its minimum: at least 1, mean below 2.5 (mean)")
def o22(case: Case) -> Outcome:
    """Interpolating random starts only; meant for m = O(log n), and smaller beyond."""
    kept = [process for process in random_processes(case) if process.interpolates]
    if len(kept) < 10:
        chance = probability.coverage(*_parts(case), matched=sizes_of(case).matched)
        raise NotApplicable(
            f"{len(kept)} of {case.draws} random starts interpolate (probability {chance:.2g})"
        )
    ratios = np.array([process.squared_norm / process.minimal_squared_norm for process in kept])
    if ratios.min() < 1.0 - 1e-12:
        return holds(False, measured=float(ratios.min()), note="below the minimum norm")
    error = 2.0 * float(ratios.std()) / np.sqrt(len(ratios))
    note = f"{len(kept)} interpolating starts, ratios {ratios.min():.3g} to {ratios.max():.3g}"
    return at_most(float(ratios.mean()), 2.5, error=error, note=note)


def sizes_of(case: Case) -> Sizes:
    """The sizes of a subject with non-zero labels on orthonormal points."""
    if case.failures:
        raise NotApplicable("; ".join(case.failures))
    y = case.data.y
    positive = int((y > 0.0).sum())
    one_sign = positive in (0, len(y))
    matched = one_sign and bool((case.start.signs * y[0] > 0.0).all())
    return Sizes(y, positive, len(y) - positive, case.start.width, matched)


def random_processes(case: Case) -> list[SaddleToSaddle]:
    """Jump processes of random starts on the subject's labels; drawn once for all claims."""
    if "random_processes" not in case.cache:
        sizes = sizes_of(case)
        rng = np.random.default_rng(case.seed + 2)
        drawn = [
            probability.draw_masks(np.sign(sizes.y), sizes.m, rng, matched=sizes.matched)
            for _ in range(case.draws)
        ]
        case.cache["random_processes"] = [
            saddle_to_saddle_from_masks(masks, signs, sizes.y) for masks, signs in drawn
        ]
    found: list[SaddleToSaddle] = case.cache["random_processes"]
    return found


def set_bound(process: SaddleToSaddle) -> float:
    """``2 ymax [sum_(k<K) sqrt|U_k| + |U_K|]`` summed over the two signs, U_k as measured."""
    y = process.y
    top, total = float(np.abs(y).max()), 0.0
    for s in (1.0, -1.0):
        mine = [points for points in process.fitted if s * y[points[0]] > 0.0]
        left = int((s * y > 0.0).sum())
        m = int((process.signs == s).sum())
        rest = left - np.cumsum([0, *(len(points) for points in mine)])
        K = min(probability.halvings(left, m), len(mine))
        covered = left - rest[-1]
        # points without a neuron are in every U_k but in no jump: they may be left out
        unfitted = rest - (left - covered)
        total += float(np.sqrt(unfitted[:K]).sum() + unfitted[K])
    return 2.0 * top * total


def _parts(case: Case) -> tuple[int, int, int]:
    sizes = sizes_of(case)
    return sizes.positive, sizes.negative, sizes.m
