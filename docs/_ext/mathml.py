"""Formulas as MathML, written when the site is built.

Browsers draw MathML by themselves, so a page loads neither a script nor fonts: it works from a
file, offline, and is read aloud. MathJax would be several MB for a site with some hundred formulas.
"""

from docutils import nodes
from latex2mathml.converter import convert

BAR = '<mo stretchy="false">&#x0007C;</mo>'
NORM = '<mo stretchy="false" lspace="0" rspace="0">&#x0007C;</mo>'


def mathml(text: str, display: str = "inline") -> str:
    """A formula; bars are those of a norm here, not a relation with space around it."""
    return convert(text, display=display).replace(BAR, NORM)


def _inline(writer, node):
    writer.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def _block(writer, node):
    writer.body.append(writer.starttag(node, "div", CLASS="math"))
    writer.body.append(mathml(node.astext(), "block"))
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app):
    """Take over from the renderers that need a script."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.config.html_math_renderer = "mathml"
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
