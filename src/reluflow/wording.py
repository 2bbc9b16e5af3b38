"""Foreign text in our sentences: values cut to a readable length, control characters made visible.

Paths, column names and values of a document come from outside. Printed raw they could move the
cursor, change colours or hide other text (terminal escapes), and a value of 15 MB would bury the
sentence that speaks of it.
"""

from __future__ import annotations

import reprlib
import sys
from typing import Any

VALUE_LIMIT = 200
MESSAGE_LIMIT = 2000


class _Brief(reprlib.Repr):
    """`repr` that looks at the first items only, so its cost does not grow with the value."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = 20
        self.maxarray = self.maxdeque = 20
        self.maxstring = self.maxlong = self.maxother = VALUE_LIMIT

    def repr_int(self, x: int, level: int) -> str:
        """Long integers by their number of digits: beyond 4300 Python refuses to write them."""
        if x.bit_length() < 4 * self.maxlong // 2:
            return repr(x)
        digits = int(x.bit_length() * 0.30103) + 1
        return f"{'-' if x < 0 else ''}<an integer of about {digits} digits>"


_BRIEF = _Brief()


def shown(value: Any, limit: int = VALUE_LIMIT) -> str:
    """A value for a message: its `repr`, cut in the middle if it is long.

    Examples
    --------
    >>> shown("sqare"), len(shown("x" * 10**6)) <= VALUE_LIMIT, shown(10**400)
    ("'sqare'", True, '<an integer of about 401 digits>')
    """
    return cut(_BRIEF.repr(value), limit)


def cut(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """A text of at most ``limit`` characters; what is left out is replaced by three dots.

    Examples
    --------
    >>> cut("a long sentence", 9)
    'a l...nce'
    """
    if len(text) <= limit:
        return text
    side = (limit - 3) // 2
    return f"{text[:side]}...{text[len(text) - side :]}"


def printable(text: object) -> str:
    r"""Text that is safe on a terminal: control, direction and undecodable characters as escapes.

    Examples
    --------
    >>> printable("red \x1b[31m and \u202e reversed, caf\u00e9")
    'red \\x1b[31m and \\u202e reversed, café'
    """
    plain = str(text)
    if plain.isprintable():
        return plain
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in plain
    )


def is_terminal() -> bool:
    """Whether messages go to a terminal; they may go nowhere at all, as under ``2>&-``."""
    return sys.stderr is not None and sys.stderr.isatty()
