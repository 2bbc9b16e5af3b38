"""A command of reluflow in a process of its own, to be stopped: ``command.py run FILE ...``."""

import reluflow.cli.run  # noqa: F401
from reluflow.cli import main
from sweeps.helpers import hear_interrupts

if __name__ == "__main__":
    hear_interrupts()
    print("ready", flush=True)
    main()
