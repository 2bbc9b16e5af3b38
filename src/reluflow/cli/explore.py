"""``reluflow explore [FILE.toml]``: the explorer in the browser, on loopback."""

from __future__ import annotations

import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reluflow.cli.common import Json
from reluflow.cli.guard import Debug, guarded
from reluflow.cli.plain import answer

if TYPE_CHECKING:
    from reluflow.explore.server import Server
    from reluflow.explore.state import State


@guarded
def explore(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE.toml]", help="A run to begin with.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="Begin with this preset of the page.")
    ] = None,
    export: Annotated[
        Path | None, typer.Option(metavar="PAGE.html", help="Write one page and end.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=1024, max=65535, help="Default: the first free one.")
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open a browser; the address is printed.")] = True,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Drag points and neurons in the browser and watch the exact gradient flow follow."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # small problems: threads only get in each other's way
    state = _state(file, preset)
    if export is not None:
        from reluflow.explore.export import write

        write(state, export)
        if as_json:
            answer({"page": export})
        else:
            typer.echo(f"The page is {export}: open it in a browser; it needs nothing else.")
        return
    from reluflow.explore.server import run

    with tempfile.TemporaryDirectory(prefix="reluflow-") as private:
        run(
            state,
            port=port,
            ready=partial(_ready, port, Path(private) if browser else None, as_json),
        )


def _ready(port: int | None, private: Path | None, as_json: bool, server: Server) -> None:
    """Say where the explorer is, and open a browser there."""
    if as_json:
        answer({"address": server.url, "port": server.port})
    else:
        if port is None and server.port != _first_port():
            typer.echo(f"Port {_first_port()} is in use; this is port {server.port}.")
        typer.echo(f"The explorer is at {server.url}")
        typer.echo("The address is yours alone: it holds the key. Ctrl-C ends it.")
    sys.stdout.flush()
    if private is not None:
        _open(server.url, private)


def _state(file: Path | None, preset: str | None) -> State:
    from reluflow.explore import documents, presets

    if file is not None:
        return documents.from_file(file)
    return presets.named(preset) if preset is not None else presets.first()


def _first_port() -> int:
    from reluflow.explore.server import PORTS

    return PORTS[0]


def _open(url: str, private: Path) -> None:
    """Open a browser window where there is a display; the printed address serves elsewhere.

    The browser is told the name of a file that only this user can read, and goes on from there:
    every user of the machine sees the command lines of all programs, and the key would be in one.
    """
    import threading
    import webbrowser

    has_display = sys.platform in ("win32", "darwin") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    if has_display:
        page = private / "explorer.html"
        page.write_text(f'<meta http-equiv="refresh" content="0; url={url}">', encoding="utf-8")
        threading.Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()
