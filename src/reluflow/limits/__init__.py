"""Limits: what training must end in, without training."""

from reluflow.limits.alternating import Alternating, alternating
from reluflow.limits.bundle import Bundle, bundle
from reluflow.limits.jumps import saddle_to_saddle, saddle_to_saddle_from_masks
from reluflow.limits.kernel import KernelLimit, kernel
from reluflow.limits.predict import Prediction, predict, predict_end
from reluflow.limits.race import Tie
from reluflow.limits.staircase import SaddleToSaddle
from reluflow.limits.yardsticks import Yardsticks, yardsticks

__all__ = [
    "Alternating",
    "Bundle",
    "KernelLimit",
    "Prediction",
    "SaddleToSaddle",
    "Tie",
    "Yardsticks",
    "alternating",
    "bundle",
    "kernel",
    "predict",
    "predict_end",
    "saddle_to_saddle",
    "saddle_to_saddle_from_masks",
    "yardsticks",
]
