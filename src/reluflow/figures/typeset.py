"""Mathematics in plain words, set as readers of papers expect it.

Descriptions hold plain words: ``scale 4^-7``, ``|theta|^2``, ``x_i . w``. `pieces` finds what
stands raised or lowered in them; pages get ``<sup>`` and ``<sub>`` (`marked`), Matplotlib gets
mathtext (`mathtext`), and where only characters can go, Unicode has to do (`typeset`). Words
between backticks are code and stay as they are.
"""

from __future__ import annotations

import html
import re
from typing import Literal

Place = Literal["", "letter", "up", "down"]

_UP = str.maketrans("0123456789-+T", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ᵀ")
_DOWN = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_GREEK = {
    **{"gamma": "γ", "delta": "δ", "Delta": "Δ", "epsilon": "ε", "eps": "ε", "eta": "η"},
    **{"theta": "θ", "kappa": "κ", "lambda": "λ", "mu": "μ", "Xi": "Ξ", "pi": "π", "rho": "ρ"},
    **{"sigma": "σ", "tau": "τ"},
}
_WORD = re.compile(rf"(?<![A-Za-z_.`])({'|'.join(_GREEK)})(?![A-Za-z(`])")
_SIGNS = (
    (re.compile(r"<="), "≤"),
    (re.compile(r">="), "≥"),
    (re.compile(r"!="), "≠"),
    (re.compile(r"->"), "→"),
    (re.compile(r"\+-(?=\d)"), "±"),
    (re.compile(r"\bsqrt(?=\()"), "√"),
    (re.compile(r"(?<=\S) \. (?=\S)|(?<=_\w)\.(?=[A-Za-z]_\w)"), " · "),
    (re.compile(r"\b0\.0*e\+00\b"), "0"),
    (re.compile(r"(?<![\^\d.+-])(-?\d+(?:\.\d+)?)e\+?(-?)0*(\d+)\b"), r"\1·10^\2\3"),
)
_POWER = (
    r"\^(?:\((?P<inner>[^()]{1,8})\)"
    r"|(?P<power>[-+−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?|T\b|[-−]?[a-zα-ω](?!\w)))"
)
_LOG = r"\b(?P<log>log)10\b"
# one letter with its index; without `_` the index is a digit, and a capital is the id of a claim
_LETTER = r"[A-Za-zα-ωΑ-Ω]"
_INDEX = (
    rf"(?<![\w.`])(?P<letter>{_LETTER}\*?)_(?P<index>[A-Za-z]{{1,5}}|\w|\d+|[-+])(?![\w`]|\.\w)"
    r"|(?<![\w.`])(?P<small>[a-zα-ω])(?P<digit>\d)(?![\w`]|\.\w)"
)
_MARK = re.compile(f"{_LOG}|{_INDEX}|{_POWER}")


class Html(str):
    """A text that is markup already: templates put it in as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        """The text itself."""
        return str(self)


def pieces(words: str) -> list[tuple[str, Place]]:
    """The words in order, each with its place: on the line, a letter with an index, up, down.

    Examples
    --------
    >>> pieces("log10 of |theta|^2")
    [('log', ''), ('10', 'down'), (' of |θ|', ''), ('2', 'up')]
    >>> pieces("x_i . w")
    [('x', 'letter'), ('i', 'down'), (' · w', '')]
    """
    found: list[tuple[str, Place]] = []
    for k, part in enumerate(words.split("`")):
        if k % 2:
            found.append((f"`{part}`" if k < words.count("`") else f"`{part}", ""))
        else:
            found += _pieces(part)
    return [(text, place) for text, place in found if text]


def _pieces(words: str) -> list[tuple[str, Place]]:
    words = _WORD.sub(lambda match: _GREEK[match[1]], words)
    for sign, better in _SIGNS:
        words = sign.sub(better, words)
    found: list[tuple[str, Place]] = []
    last = 0
    for match in _MARK.finditer(words):
        found.append((words[last : match.start()], ""))
        if match["log"]:
            found += [("log", ""), ("10", "down")]
        elif match["letter"]:
            found += [(match["letter"], "letter"), (match["index"], "down")]
        elif match["small"]:
            found += [(match["small"], "letter"), (match["digit"], "down")]
        else:
            found.append(((match["inner"] or match["power"]).replace("−", "-"), "up"))
        last = match.end()
    return [*found, (words[last:], "")]


def typeset(words: str) -> str:
    """In characters alone: those that Unicode can raise or lower.

    Examples
    --------
    >>> typeset("scale 4^-7, |theta|^2 and log10 of x1"), typeset("(10^-4342.94), along X^T y")
    ('scale 4⁻⁷, |θ|² and log₁₀ of x₁', '(10^-4342.94), along Xᵀ y')
    >>> typeset("claim O2 of net_1.toml, x_i <= `a_1`")
    'claim O2 of net_1.toml, x_i ≤ `a_1`'
    """
    done = []
    for text, place in pieces(words):
        if place == "up":
            raised = text.translate(_UP)
            kept = f"^({text})" if "/" in text else f"^{text}"
            done.append(kept if set(raised) & set(text) else raised)
        elif place == "down":
            done.append(text.translate(_DOWN) if text.isdigit() else f"_{text}")
        else:
            done.append(text)
    return "".join(done)


def marked(words: str) -> Html:
    """As markup: everything escaped, and what is raised or lowered in its tags.

    Examples
    --------
    >>> marked("10^-4342.94 < x_i")
    '10<sup>−4342.94</sup> &lt; x<sub>i</sub>'
    """
    tags = {"up": "sup", "down": "sub"}
    done = []
    for text, place in pieces(words):
        safe = html.escape(text)
        if place in tags:
            tag, shown = tags[place], safe.replace("-", "−")
            done.append(f"<{tag}>{shown}</{tag}>")
        else:
            done.append(safe)
    return Html("".join(done))


def mathtext(words: str) -> str:
    r"""For Matplotlib: a dollar of the words starts no formula.

    Examples
    --------
    >>> print(mathtext("x_i . w in $, 4^-7"))
    $x_{i}$ · w in \$, 4$^{-7}$
    """
    done = []
    for text, place in pieces(words):
        if place == "letter":
            star = "^{*}" if text.endswith("*") else ""
            done.append(f"${text.rstrip('*')}{star}")
        elif place == "down" and done and done[-1].startswith("$") and not done[-1].endswith("$"):
            done.append(f"_{{{text}}}$")
        elif place in ("up", "down"):
            done.append(f"${'^' if place == 'up' else '_'}{{{text}}}$")
        else:
            done.append(text.replace("$", r"\$"))
    return "".join(done)
