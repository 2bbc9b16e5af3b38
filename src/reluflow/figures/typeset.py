"""Mathematics in plain words, set with the signs of Unicode: every renderer and font has them."""

from __future__ import annotations

import re

_UP = str.maketrans("0123456789-+", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺")
_DOWN = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_GREEK = {"theta": "θ", "lambda": "λ", "kappa": "κ", "epsilon": "ε", "delta": "δ", "Delta": "Δ"}
_WORD = re.compile(rf"(?<![A-Za-z_.`]){'(' + '|'.join(_GREEK) + ')'}(?![A-Za-z(`])")
# an exponent of digits that does not go on as a decimal number
_POWER = re.compile(r"(?<=[\w|)\]])\^\(?([-+−]?\d+)(?![\d.]*\d)\)?")
_TRANSPOSED = re.compile(r"(?<=[A-Za-z])\^T\b")
_LOG = re.compile(r"\blog10\b")
_INDEX = re.compile(r"(?<![A-Za-z0-9_.`])([a-zA-Zθλ])_?(\d)(?![\w.`])")
_TAGS = re.compile(r"^[A-Z]\d+$")


def typeset(words: str) -> str:
    """Set powers, indices, Greek letters and log10 as a reader of papers expects them.

    Examples
    --------
    >>> typeset("scale 4^-7, |theta|^2 and log10 of x1"), typeset("10^-4342.94, along X^T y")
    ('scale 4⁻⁷, |θ|² and log₁₀ of x₁', '10^-4342.94, along Xᵀ y')
    >>> typeset("claim O2 of net_1.toml")
    'claim O2 of net_1.toml'
    """
    words = _WORD.sub(lambda found: _GREEK[found[1]], words)
    words = _POWER.sub(lambda found: found[1].replace("−", "-").translate(_UP), words)
    words = _TRANSPOSED.sub("ᵀ", words)
    words = _LOG.sub("log₁₀", words)
    return _INDEX.sub(_indexed, words)


def _indexed(found: re.Match[str]) -> str:
    """A letter with an index, unless it looks like the number of a claim (capital and digit)."""
    if _TAGS.match(found[0]):
        return found[0]
    return found[1] + found[2].translate(_DOWN)
