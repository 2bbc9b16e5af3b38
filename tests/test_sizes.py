"""Functions that a reader can hold in mind, read from the source."""

import ast
from pathlib import Path

import pytest

import reluflow

ROOT = Path(reluflow.__file__).parent
PARAMETERS, LINES = 8, 60


def functions(source):
    """Name, parameters that may be given by place, and lines without the docstring, of each."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = [arg.arg for arg in node.args.posonlyargs + node.args.args]
            body = node.body[1:] if ast.get_docstring(node) else node.body
            lines = node.end_lineno - body[0].lineno + 1 if body else 0
            yield node.name, len(set(given) - {"self", "cls"}), lines


def test_what_is_counted():
    source = 'def f(a, b, *, c):\n    """Text.\n\n    More.\n    """\n    a = b\n    return a\n'
    assert list(functions(source)) == [("f", 2, 2)]


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: path.stem)
def test_functions_are_short_and_take_few_parameters(path):
    for name, parameters, lines in functions(path.read_text(encoding="utf-8")):
        assert parameters <= PARAMETERS, f"{name} has {parameters} parameters"
        assert lines <= LINES, f"{name} has {lines} lines"
