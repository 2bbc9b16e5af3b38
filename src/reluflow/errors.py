"""Exception and warning types. Every message names the value, the consequence, the remedy."""

__all__ = [
    "FileError",
    "InputError",
    "MissingExtraError",
    "ReluflowError",
    "ReluflowWarning",
    "RunError",
]


class ReluflowError(Exception):
    """Base of all errors raised on purpose; the command line turns it into exit code 2."""


class InputError(ReluflowError, ValueError):
    """An argument, a data set or a specification cannot be used as given."""


class FileError(ReluflowError, OSError):
    """A file is missing, damaged, foreign or cannot be written."""


class MissingExtraError(ReluflowError, ImportError):
    """An optional package is needed; the message names the extra that brings it."""


class RunError(ReluflowError, RuntimeError):
    """A run that a computation needs did not end as was asked."""


class ReluflowWarning(UserWarning):
    """Something worth knowing that does not stop the work."""
