"""The command line: one file a command; parse, call the library, print."""

from __future__ import annotations


def main() -> None:
    """Entry point of ``reluflow``; loads the commands only now."""
    try:
        from reluflow.cli.app import app

        app()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
