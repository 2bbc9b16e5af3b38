"""What ``import reluflow`` loads, and how much processor time it takes (printed, not judged)."""

import json
import subprocess
import sys

import pytest

LATE = {
    *("scipy", "numba", "matplotlib", "plotly", "rich", "typer", "click", "msgspec", "clarabel"),
    *("torch", "xarray", "pandas", "dask", "llvmlite"),
}
PROGRAM = """
import json, sys, time
start = time.process_time()
{statement}
seconds = time.process_time() - start
print(json.dumps([seconds, sorted(name.partition(".")[0] for name in sys.modules)]))
"""


def load(statement):
    """Processor seconds and packages loaded by a statement in a fresh interpreter."""
    program = PROGRAM.format(statement=statement)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    seconds, packages = json.loads(done.stdout.splitlines()[-1])
    return seconds, set(packages)


def test_importing_the_package_loads_numpy_only():
    seconds, packages = load("import reluflow")
    print(f"import reluflow: {seconds:.3f} CPU s (aim: below 0.2)")
    assert "numpy" in packages
    assert not packages & LATE


def test_making_values_loads_nothing_more():
    _, packages = load(
        "import reluflow as rf; d = rf.Dataset([[1.0]], [1.0]);"
        "n = rf.Network([1.0], [[1.0]]); n.predict(d.X); rf.losses.Square()"
    )
    assert not packages & LATE


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["run", "--help"]])
def test_help_loads_no_engine(arguments):
    statement = (
        f"sys.argv = ['reluflow', *{arguments}]\n"
        "from reluflow.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 0"
    )
    seconds, packages = load(statement)
    print(f"reluflow {' '.join(arguments)}: {seconds:.3f} CPU s (aim: below 0.4)")
    assert "typer" in packages
    assert not packages & {"scipy", "numba", "matplotlib", "msgspec", "clarabel"}
