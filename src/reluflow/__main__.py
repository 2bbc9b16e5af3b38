"""``python -m reluflow``: the command line."""

from reluflow.cli import main

main()
