"""The README quickstart and the fast tests on every Python of this machine: ``make test-matrix``.

For each interpreter from 3.11 to 3.14 that it finds (on PATH, of pyenv, uv or Debian) it builds two
environments in ``.matrix/``: with the newest releases, and with the lower bounds of pyproject. An
environment is built again when pyproject changes. Standard library only.

    python3 tools/matrix.py                    all interpreters, both sets of packages
    python3 tools/matrix.py --python 3.13      one of them; ``newest`` is the newest one found
    python3 tools/matrix.py --only newest      one set of packages
    python3 tools/matrix.py --quick            the quickstart alone, with the newest Python but
                                               the running one: `make test-other`

The last one is for every change. It takes two or three minutes, nearly all of it to compile, and
a machine without a second Python or without a package index has nothing to test.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".matrix"
MINORS = (11, 12, 13, 14)
KINDS = ("newest", "lowest")
THIS = f"3.{sys.version_info.minor}"
NOTHING = "there is no such Python on this machine: nothing was tested"
SHOWN = ("numpy", "scipy", "numba", "clarabel", "msgspec", "typer", "rich", "dask", "xarray")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
UNREACHED = "no environment could be made or no package index reached"
_PROBE = "import ensurepip, sys, venv; print(*sys.version_info[:3], sep='.')"
_VERSIONS = """
import json, sys
from importlib.metadata import version
print(json.dumps({name: version(name) for name in sys.argv[1:]}))
"""


@dataclass(frozen=True)
class Cell:
    """One environment and how it did."""

    python: str
    kind: str
    versions: dict[str, str]
    quickstart: str
    tests: str

    @property
    def is_good(self) -> bool:
        """Whether both steps passed."""
        return self.quickstart.startswith("passed") and self.tests.startswith("passed")


def interpreters() -> dict[str, Path]:
    """The interpreters of this machine by minor version, such as ``3.12``, oldest first."""
    found: dict[str, Path] = {}
    for minor in MINORS:
        for path in _candidates(f"3.{minor}"):
            version = _version(path)
            if version is not None and version.startswith(f"3.{minor}."):
                found[f"3.{minor}"] = path
                break
    return found


def chosen(found: dict[str, Path], python: str | None, but: str | None) -> dict[str, Path]:
    """Those of the interpreters that were asked for: one, or the newest of all but one."""
    found = {name: path for name, path in found.items() if name != but}
    if python == "newest":
        return dict(list(found.items())[-1:])
    return {name: path for name, path in found.items() if python in (None, name)}


def bounds() -> list[str]:
    """The lower bounds of pyproject that hold for the running Python, as constraints of pip."""
    from pip._vendor.packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    lines = set()
    for text in (text for listed in lists for text in listed):
        wanted = Requirement(text)
        if wanted.marker is None or wanted.marker.evaluate():
            lowest = [spec.version for spec in wanted.specifier if spec.operator == ">="]
            lines.update(f"{wanted.name}=={version}" for version in lowest)
    return sorted(lines)


def quickstart() -> str:
    """The first Python block of the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Test the cells asked for, print the table; 1 if one of them is not good."""
    options = _options(arguments)
    if options.bounds:
        print(*bounds(), sep="\n")
        return 0
    # a background shell starts programs with Ctrl-C ignored, and they hand that on
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if options.quick:
        return quick(chosen(interpreters(), options.python or "newest", options.but or THIS))
    found = chosen(interpreters(), options.python, options.but)
    if not found:
        print(NOTHING)
        return 0
    kinds = (options.only,) if options.only else KINDS
    cells = [_cell(name, path, kind) for name, path in found.items() for kind in kinds]
    print(table(cells))
    return 0 if all(cell.is_good for cell in cells) else 1


def quick(found: dict[str, Path]) -> int:
    """Run the quickstart with these interpreters, without extras; 1 if it fails somewhere."""
    if not found:
        print(NOTHING)
    worked = True
    for name, python in found.items():
        folder = FOLDER / f"{name}-quick"
        failure = _build(folder, python, "newest", extras="")
        if failure == UNREACHED:
            print(f"Python {name}: {failure}, nothing was tested")
            continue
        answer = failure or _quickstart(folder)
        print(f"README quickstart with Python {_version(python)}: {answer}")
        worked = worked and answer.startswith("passed")
    return 0 if worked else 1


def table(cells: Sequence[Cell]) -> str:
    """The cells as a Markdown table."""
    head = ["python", "packages", "quickstart", "test-fast", *SHOWN]
    rows = [
        [cell.python, cell.kind, cell.quickstart, cell.tests]
        + [cell.versions.get(name, "-") for name in SHOWN]
        for cell in cells
    ]
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", metavar="3.X", help="this one alone; `newest` for the newest")
    parser.add_argument("--but", metavar="3.X", help="leave this one out")
    parser.add_argument("--only", choices=KINDS, help="one set of packages alone")
    parser.add_argument("--quick", action="store_true", help="the quickstart with a second Python")
    parser.add_argument("--bounds", action="store_true", help="print the lower bounds and end")
    return parser.parse_args(arguments)


def _candidates(name: str) -> Iterator[Path]:
    """Where an interpreter may be; the newest patch release of a folder first."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", Path.home() / ".local/share/uv/python"))
    for folder, pattern in ((pyenv / "versions", f"{name}.*"), (uv, f"cpython-{name}.*")):
        patched = sorted(folder.glob(pattern), key=_numbers, reverse=True)
        yield from (path / "bin" / f"python{name}" for path in patched)
    on_path = shutil.which(f"python{name}")
    if on_path:
        yield Path(on_path)
    yield Path("/usr/bin") / f"python{name}"
    yield Path(sys.executable)


def _numbers(path: Path) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", path.name)]


def _version(python: Path) -> str | None:
    """The version of an interpreter that can make environments; None if it cannot."""
    try:
        answer = subprocess.run([python, "-c", _PROBE], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def _cell(name: str, python: Path, kind: str) -> Cell:
    folder = FOLDER / f"{name}-{kind}"
    print(f"{name}, {kind} packages: {python}", flush=True)
    full = _version(python) or name
    failure = _build(folder, python, kind)
    if failure:
        return Cell(full, kind, {}, failure, "not run")
    inside = folder / "bin" / "python"
    asked = [inside, "-c", _VERSIONS, *SHOWN]
    versions = json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
    first = _quickstart(folder, "-W", "error")
    tests = ["make", "test-fast", f"BIN={folder / 'bin'}", "ENVIRONMENT="]
    return Cell(full, kind, versions, first, _timed(tests, _environment(folder)))


def _quickstart(folder: Path, *options: str) -> str:
    command = [folder / "bin" / "python", *options, "-c", quickstart()]
    return _timed(command, _environment(folder))


def _environment(folder: Path) -> dict[str, str]:
    """One thread, and kernels of its own: numba keeps one set for each Python only."""
    return {**os.environ, **ONE_THREAD, "NUMBA_CACHE_DIR": str(folder / "kernels")}


def _build(folder: Path, python: Path, kind: str, extras: str = "[all,dev]") -> str:
    """Make an environment, unless it is there and pyproject is the same; returns what failed."""
    body = (ROOT / "pyproject.toml").read_bytes()
    wanted = hashlib.sha256(body + str(python).encode()).hexdigest()
    stamp = folder / "pyproject.sha256"
    if stamp.is_file() and stamp.read_text() == wanted:
        return ""
    shutil.rmtree(folder, ignore_errors=True)
    inside = folder / "bin" / "python"
    install = [inside, "-m", "pip", "install", "--quiet"]
    for first in ([python, "-m", "venv", folder], [*install, "--upgrade", "pip"]):
        if subprocess.run(first).returncode:
            return UNREACHED
    chosen: list[str | Path] = []
    if kind == "lowest":
        script = [inside, __file__, "--bounds"]
        lines = subprocess.run(script, capture_output=True, text=True, check=True).stdout
        (folder / "bounds.txt").write_text(lines)
        chosen = ["--constraint", folder / "bounds.txt"]
    answer = subprocess.run([*install, *chosen, "--editable", f"{ROOT}{extras}"])
    if answer.returncode:
        return "not installed"
    stamp.write_text(wanted)
    return ""


def _timed(command: Sequence[str | Path], environment: dict[str, str]) -> str:
    began = time.monotonic()
    answer = subprocess.run(command, cwd=ROOT, env=environment)
    word = "passed" if answer.returncode == 0 else "FAILED"
    return f"{word}, {time.monotonic() - began:.0f} s"


if __name__ == "__main__":
    sys.exit(main())
