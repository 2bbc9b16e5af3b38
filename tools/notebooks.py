"""Run the notebooks of ``examples`` and keep what they show: ``python tools/notebooks.py``.

Cells run in this process, one notebook after the other. Of each cell the printed text and the value
of its last expression are kept, as HTML or PNG where the value has one. Nothing else of the file is
changed, so that equal results give equal files.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[1] / "examples"


def outputs_of(source: str, space: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell; what it printed and what its last expression is."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), space)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), space)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        found.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None:
        found.append({"data": shown(value), "metadata": {}, "output_type": "display_data"})
    return found


def shown(value: Any) -> dict[str, Any]:
    """The forms in which a notebook can show a value."""
    if hasattr(value, "_repr_png_"):
        picture = base64.b64encode(value._repr_png_()).decode()
        return {"image/png": picture, "text/plain": ["<Figure>"]}
    data: dict[str, Any] = {"text/plain": repr(value).splitlines(keepends=True)}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = value._repr_html_().splitlines(keepends=True)
    return data


def run(path: Path) -> None:
    """Fill in the outputs of one notebook."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    space: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            cell["outputs"] = outputs_of("".join(cell["source"]), space)
            cell["execution_count"] = count
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    names = sys.argv[1:] or sorted(path.name for path in EXAMPLES.glob("*.ipynb"))
    for name in names:
        run(EXAMPLES / name)
        print(f"{name}: done")
