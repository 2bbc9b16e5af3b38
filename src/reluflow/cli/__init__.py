"""The command line: one file a command; parse, call the library, print."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of ``reluflow``; loads the commands only now."""
    try:
        from reluflow.cli.app import app

        app()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except OSError as error:  # what is printed outside of commands, such as help
        from reluflow.cli.guard import echo, outcome

        if "--debug" in sys.argv:
            raise
        message, code = outcome(error)
        echo(message, err=True)
        raise SystemExit(code) from None
