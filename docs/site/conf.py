"""Sphinx's configuration. `make docs` collects the pages (flashladder/site) and calls Sphinx on them."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "common/python"))

from flashladder.core import project as flashladder_project  # noqa: E402
from flashladder.lessons import notebook_format  # noqa: E402
from flashladder.plot.climbing import FRONT_WORDS  # noqa: E402

project = "FlashLadder"
copyright = "the FlashLadder authors, MIT licence"
version = release = flashladder_project.version()
language = "en"

extensions = ["myst_nb", "sphinx.ext.autodoc", "flashladder.site.extension"]
exclude_patterns = ["**.ipynb_checkpoints"]
templates_path = ["templates"]
highlight_language = "text"  # of code that names no language
nitpicky = False

# Notebooks are shown as they were saved: nothing is executed here.
nb_execution_mode = "off"
nb_merge_streams = True
myst_heading_anchors = 6  # as GitHub names them
myst_links_external_new_tab = False

autodoc_member_order = "bysource"
autodoc_typehints = "signature"

html_theme = "furo"
html_title = f"FlashLadder {release}"
# Where the site is published, for those who share a page: its picture needs a whole address.
html_baseurl = os.environ.get("FLASHLADDER_SITE", "")
html_static_path = ["static", "../results/climb.svg"]
html_favicon = "favicon.svg"
html_context = {"front_words": FRONT_WORDS, "site_address": html_baseurl}
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {"color-brand-primary": "#0b5394", "color-brand-content": "#0b5394"},
    "dark_css_variables": {"color-brand-primary": "#7cb7ff", "color-brand-content": "#7cb7ff"},
}
# One setting of pyproject.toml says where the project lives; there is no link to it where it is empty.
if notebook_format.settings()["repository"]:
    html_theme_options["footer_icons"] = [
        {"name": "Source", "url": notebook_format.settings()["repository"], "html": "source", "class": ""}
    ]

# `%%write` cells hold C++, which the lexer of Python cannot read to its end.
suppress_warnings = ["misc.highlighting_failure"]
