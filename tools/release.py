"""The steps of a release that can be checked without publishing: ``make release``.

1. The tree is clean, and version and citation agree.
2. Source distribution and wheel are built, and their descriptions are sound (``twine check``).
3. The wheel is installed into an environment of its own, and the quickstart of the README runs
   there, outside the clone.
4. The notes of the release are shown as `towncrier` would write them.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def version() -> str:
    """The version, from the one file that has it."""
    text = (ROOT / "src" / "reluflow" / "_version.py").read_text(encoding="utf-8")
    return re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)[0]


def cited_version() -> str:
    """The version that CITATION.cff repeats."""
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    return re.findall(r"^version: (.+)$", text, re.MULTILINE)[0]


def quickstart() -> str:
    """The first Python block of the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[0]


def main() -> int:
    """Do the steps; the first that fails ends it."""
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True
    )
    if status.stdout:
        print(f"the tree is not clean; commit or stash first:\n{status.stdout}")
        return 1
    if version() != cited_version():
        print(f"CITATION.cff says {cited_version()}, _version.py {version()}: make them agree")
        return 1
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _do([sys.executable, "-m", "build", "--outdir", str(folder / "dist"), str(ROOT)])
        built = sorted(str(path) for path in (folder / "dist").iterdir())
        _do([sys.executable, "-m", "twine", "check", "--strict", *built])
        _do([sys.executable, "-m", "venv", str(folder / "venv")])
        python = str(folder / "venv" / "bin" / "python")
        wheel = next(path for path in built if path.endswith(".whl"))
        _do([python, "-m", "pip", "install", "--quiet", wheel])
        _do([python, "-c", quickstart()], folder)
        print(*(Path(path).name for path in built), "are sound", sep="  ")
    _do([sys.executable, "-m", "towncrier", "build", "--draft", "--version", version()])
    return 0


def _do(command: list[str], place: Path = ROOT) -> None:
    shown = " ".join(Path(word).name if "/" in word else word.split("\n")[0] for word in command)
    print(f"$ {shown}", flush=True)
    done = subprocess.run(command, cwd=place)
    if done.returncode:
        raise SystemExit(f"this step failed (code {done.returncode})")


if __name__ == "__main__":
    raise SystemExit(main())
