"""Geometry: pure functions of networks, exact up to rounding and right at any scale.

Angles, ranks and kernels work in any dimension; kinks, regions, sign changes and population
quantities are for networks of one real input, written ``(x, 1)``.
"""

from reluflow.geometry.angles import max_angle, mean_angle, pairwise_angles
from reluflow.geometry.expected_loss import log_population_loss, population_loss
from reluflow.geometry.hessian import HessianSpectrum, hessian_spectrum
from reluflow.geometry.kernel import TangentKernel, tangent_kernel
from reluflow.geometry.kkt import KKT, kkt
from reluflow.geometry.margins import margin, smoothed_margin
from reluflow.geometry.nonnegative import NonnegativeFit, nnls
from reluflow.geometry.pieces import Kinks, kinks
from reluflow.geometry.population import population_error
from reluflow.geometry.rank import (
    effective_rank,
    log_nuclear_norm,
    log_singular_values,
    nuclear_norm,
    singular_values,
)
from reluflow.geometry.regions import (
    ResolvedRegions,
    convexity_changes,
    linear_regions,
    resolved_regions,
)
from reluflow.geometry.signs import sign_changes
from reluflow.geometry.stationary import StationaryPoint, stationary_point

__all__ = [
    "KKT",
    "HessianSpectrum",
    "Kinks",
    "NonnegativeFit",
    "ResolvedRegions",
    "StationaryPoint",
    "TangentKernel",
    "convexity_changes",
    "effective_rank",
    "hessian_spectrum",
    "kinks",
    "kkt",
    "linear_regions",
    "log_nuclear_norm",
    "log_population_loss",
    "log_singular_values",
    "margin",
    "max_angle",
    "mean_angle",
    "nnls",
    "nuclear_norm",
    "pairwise_angles",
    "population_error",
    "population_loss",
    "resolved_regions",
    "sign_changes",
    "singular_values",
    "smoothed_margin",
    "stationary_point",
    "tangent_kernel",
]
