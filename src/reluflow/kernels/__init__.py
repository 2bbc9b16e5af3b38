"""Compiled inner loops, the only place that imports numba. Each has a twin in the tests."""

from reluflow.kernels import freshness as freshness  # before any kernel is declared
