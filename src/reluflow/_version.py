"""The version, in one place that imports nothing."""

__version__ = "0.1.0"

# Raised with every change that moves a number the software has printed (changes/README.md): results
# of another numerics version are never reused. Files that name none were written by version 0.
NUMERICS_VERSION = 28
