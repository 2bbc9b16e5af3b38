"""One HTML file from a page: template, style, scripts, figures and downloads, all inside.

The page asks nobody for anything: its content security policy forbids every request, and runs only
the scripts whose hashes it lists. Texts are escaped by the template; the data of the figures is
JSON in which no character can end the script element that holds it.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from importlib import resources
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from reluflow import files
from reluflow.errors import InputError, MissingExtraError
from reluflow.figures import page as drawing
from reluflow.figures import palette
from reluflow.report.contents import contents

if TYPE_CHECKING:
    from reluflow.studies.page import Page

SHORT = 16  # shorter lists stay lists
_UNSAFE = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def write(page: Page, path: str | PathLike[str]) -> None:
    """Write a page as one HTML file that opens anywhere, without a network.

    Parameters
    ----------
    page : Page
        What to show (`reluflow.theory.contract`).
    path : path
        The file; an old one is replaced at once, when the new one is whole.
    """
    from reluflow.studies.page import Page as Contract

    if not isinstance(page, Contract):
        raise InputError(
            f"`page` is a {type(page).__name__}, not a Page. There is nothing to write. "
            "Make one with reluflow.studies."
        )
    for name, body in page.downloads.items():
        if not isinstance(body, bytes):
            raise InputError(
                f"the download {name!r} is a {type(body).__name__}, not bytes. It cannot be put "
                "into the page. Encode it."
            )
    files.write_bytes(path, _document(page).encode(errors="replace"))


def _document(page: Page) -> str:
    figures = [figure for section in page.sections for figure in section.figures]
    scripts = [_asset("theme.js"), _asset("report.js")]
    library = _plotly() if figures else ""
    drawn = {
        "figures": [packed(drawing.to_plotly(figure)) for figure in figures],
        "dark": palette.to_dark(),
    }
    text: str = _template().render(
        **contents(page),
        policy=_policy([*scripts, library] if library else scripts),
        style=_asset("report.css"),
        first_script=scripts[0],
        scripts=scripts[1:],
        data=_json(drawn),
        library_size=len(library),
        library=base64.b64encode(gzip.compress(library.encode(), mtime=0)).decode(),
    )
    return text


def packed(figure: dict[str, Any]) -> dict[str, Any]:
    """The same figure with long lists of numbers as typed arrays: a third of their size as text.

    Single precision, seven digits; a gap is a NaN. Lists that it cannot hold stay as they are.
    """

    def trace(given: dict[str, Any]) -> dict[str, Any]:
        return {name: _typed(value) if name in "xyz" else value for name, value in given.items()}

    frames = [
        {**frame, "data": [trace(one) for one in frame["data"]]} for frame in figure["frames"]
    ]
    return {**figure, "data": [trace(one) for one in figure["data"]], "frames": frames}


def _typed(values: Any) -> Any:
    if not isinstance(values, list) or len(values) < SHORT:
        return values
    rows = values if isinstance(values[0], list) else [values]
    if len({len(row) for row in rows}) > 1:
        return values
    numbers = np.array(
        [[np.nan if value is None else value for value in row] for row in rows], np.float64
    )
    size = np.abs(numbers[np.isfinite(numbers) & (numbers != 0.0)])
    if size.size and not (size.min() > 1e-37 and size.max() < 1e37):
        return values
    body = base64.b64encode(numbers.astype("<f4").tobytes()).decode()
    shape = {"shape": f"{numbers.shape[0]}, {numbers.shape[1]}"} if rows is values else {}
    return {"dtype": "f4", "bdata": body, **shape}


def _template() -> Any:
    try:
        import jinja2
    except ImportError:
        raise _missing("jinja2") from None
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("reluflow.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html")


def _plotly() -> str:
    """The library that draws: plotly.js with cartesian axes only, a third of the whole."""
    folder = resources.files("reluflow.report").joinpath("vendored")
    text = folder.joinpath("plotly-cartesian.min.js").read_text(encoding="utf-8")
    # a browser reads CR as LF, which would change the hash; `</script` would end the element
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.replace("</script", "<\\/script")


def _missing(package: str) -> MissingExtraError:
    return MissingExtraError(
        f"the report needs {package}. Install it with: pip install 'reluflow[report]'"
    )


def _asset(name: str) -> str:
    return resources.files("reluflow.report").joinpath("assets", name).read_text(encoding="utf-8")


def _policy(scripts: list[str]) -> str:
    """The content security policy: nothing from outside, these scripts only.

    The library is kept compressed; the page unpacks it into a script that its hash allows.

    Styles may be inline because plotly sets style attributes; images are its rasters.
    """
    hashes = [
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in scripts
    ]
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {' '.join(hashes)}",
            "style-src 'unsafe-inline'",
            "img-src data: blob:",
            "connect-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _json(value: Any) -> str:
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return text.translate(_UNSAFE)
