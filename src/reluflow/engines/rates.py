"""Step sizes of gradient descent."""

from __future__ import annotations

from dataclasses import dataclass

from reluflow.checks import number


@dataclass(frozen=True)
class LossBased:
    r"""A step that grows as the loss falls, for classification.

    With :math:`G = (1/n) \sum_i -\ell'(q_i)` the step is :math:`\alpha / G`, so the update
    :math:`\theta + \alpha \sum_i p_i \nabla q_i` never underflows. For the exponential loss G is
    the loss itself and the step is alpha / L (Lyu & Li, arXiv 1906.05890).
    """

    alpha: float = 0.1

    def __post_init__(self) -> None:
        number(self.alpha, "alpha", above=0.0)
