"""One self-contained page of an explored run: scrub and play it without Python or a network."""

from __future__ import annotations

import base64
import hashlib
import json
from os import PathLike

from reluflow import files
from reluflow.explore import bundle, compute, frames, jobs
from reluflow.explore.state import State, to_json

_SCRIPT_END = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def write(state: State, path: str | PathLike[str]) -> None:
    """Compute the run and what belongs to it, and write the page."""
    files.write_bytes(path, page(state).encode())


def page(state: State) -> str:
    """The page as text; its policy lets it run its own script and fetch nothing."""
    result = compute.full(state, lambda: False)
    body = [frames.encode({"id": 1, "kind": "run", **result.header}, result.arrays)]
    body += list(jobs.parts(1, to_json(state), lambda: False))
    stored = {"state": to_json(state), "frames": [base64.b64encode(f).decode() for f in body]}
    data = json.dumps(stored).translate(_SCRIPT_END)
    script, style = bundle.bundle("alone.js"), bundle.read("style.css")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>reluflow: an explored run</title>\n<style>{style}</style>\n</head>\n<body>\n"
        '<div id="app"></div>\n'
        f'<script type="application/json" id="stored">{data}</script>\n'
        f'<script type="module">{script}</script>\n</body>\n</html>\n'
    )


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
