"""Compiled inner loops, the only place that imports numba. Each has a twin in the tests."""
