"""Sphinx's settings for the site that `make docs` makes of docs/."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
sys.path.insert(0, os.fspath(HERE))

project = html_title = "shrimpmx"
extensions = ["myst_parser"]
exclude_patterns = ["site"]
# A heading has the anchor that a code host gives it.
myst_heading_anchors = 4
# Quotes as they are typed.
smartquotes = False
highlight_language = "none"
pygments_style, pygments_dark_style = "friendly", "github-dark"

html_theme = "furo"
html_static_path = [os.fspath(HERE / "static")]
html_css_files = ["site.css"]
html_use_index = html_copy_source = html_show_sphinx = html_show_copyright = False


def setup(app: Sphinx) -> None:
    """What pages get before Sphinx reads them."""
    from navigation import add_navigation
    from reference import add_reference

    app.connect("source-read", add_navigation)
    app.connect("source-read", add_reference)
