"""Report: a study's page as one self-contained HTML file."""

from reluflow.report.assemble import write

__all__ = ["write"]
