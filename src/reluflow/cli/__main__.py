"""``python -m reluflow.cli``."""

from reluflow.cli import main

main()
