"""The site: `make docs` builds it into docs/_build/html, where it needs no network to be read."""

import logging
import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

version_file = HERE.parent / "src" / "reluflow" / "_version.py"
release = re.findall(r'__version__ = "(.*)"', version_file.read_text(encoding="utf-8"))[0]
version = release
project = "reluflow"
author = "The reluflow developers"
project_copyright = author

# Notebooks and what they import use one thread, as the tests do
threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
os.environ.update(dict.fromkeys(threads, "1"))

logging.getLogger("traitlets").setLevel(logging.WARNING)

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "api",  # pages of the reference, one for each public module
    "gallery",  # the page of pictures, from docs/gallery/gallery.json
    "mathml",  # formulas as MathML: no script and no font to fetch
]
exclude_patterns = ["_build", "_ext", "gallery/*"]
root_doc = "index"
language = "en"

# Sphinx could ask other sites for their indices; a build must not need a network
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_in_temp = True  # what a tutorial writes does not stay
nb_execution_timeout = 120
nb_merge_streams = True
nb_render_image_options = {"class": "drawn"}

default_role = "py:obj"
autosummary_generate = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = ["Numerics"]

html_theme = "furo"
pygments_dark_style = "github-dark"
html_title = f"reluflow {release}"
html_static_path = ["_static", "gallery"]
html_css_files = ["reluflow.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0b5c8c",
        "color-brand-content": "#0b5c8c",
    },
    "dark_css_variables": {
        "color-brand-primary": "#6cb8e6",
        "color-brand-content": "#6cb8e6",
    },
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
