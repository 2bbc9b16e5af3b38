"""Networks of extremal norm that fit or separate data: convex programs with their certificates.

No answer rests on a solver's word: every result carries a value attained by the weights it
returns, a lower bound proved from multipliers it can show, and `certified` when the two meet.
"""

from reluflow.interpolators.excess import Excess, excess
from reluflow.interpolators.fixed_signs import MinimumWeights
from reluflow.interpolators.max_margin import MaxMargin, max_margin
from reluflow.interpolators.min_norm import MinNorm, min_norm
from reluflow.interpolators.multi_relu import multi_relu
from reluflow.interpolators.rank_versus_norm import RankVersusNorm, rank_versus_norm
from reluflow.interpolators.single_relu import single_relu
from reluflow.interpolators.two_relu import two_relu

__all__ = [
    "Excess",
    "MaxMargin",
    "MinNorm",
    "MinimumWeights",
    "RankVersusNorm",
    "excess",
    "max_margin",
    "min_norm",
    "multi_relu",
    "rank_versus_norm",
    "single_relu",
    "two_relu",
]
