"""Sphinx: `python -m sphinx -W docs results/site` (pip install -e '.[docs]')."""

import fastops

project = "fastops"
author = "the fastops developers"
version = release = fastops.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
source_suffix = {".md": "markdown"}
nitpicky = True
nitpick_ignore_regex = [("py:class", r".*")]  # the types of parameters are prose, as NumPy's docstrings have it

myst_heading_anchors = 3
napoleon_google_docstring = False
autodoc_typehints = "none"  # the docstrings say what is taken

html_theme = "furo"
html_title = "fastops"
pygments_style = "friendly"
