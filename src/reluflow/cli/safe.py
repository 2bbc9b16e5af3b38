"""Foreign text on the terminal: paths, names and values without markup or control characters."""

from __future__ import annotations

from rich.markup import escape
from rich.text import Text

from reluflow.wording import printable


def safe(text: object) -> str:
    r"""Text for a cell or title of a table, where rich would read markup; lines stay lines.

    Examples
    --------
    >>> safe("[bold]x"), safe("\x1b[31mred")
    ('\\[bold]x', '\\x1b[31mred')
    """
    return "\n".join(escape(printable(part)) for part in str(text).split("\n"))


def line(*parts: str | tuple[object, str]) -> Text:
    """A line of texts, as they are or with a style; nothing in them is markup."""
    pieces = [(part, "") if isinstance(part, str) else part for part in parts]
    return Text.assemble(
        *(("\n".join(map(printable, str(text).split("\n"))), style) for text, style in pieces)
    )
