"""How the manual is built, with the records and the glossary behind it: `make manual`.

The source folder is docs/. Its pages are Markdown that reads as well where it stands.
"""

from pygments.lexers.rust import RustLexer
from sphinx.application import Sphinx

project = "Starfish"
author = "the Starfish developers"
root_doc = "manual/index"

extensions = ["myst_parser"]
myst_heading_anchors = 3
# Decision records are listed on a page, not in the table of contents.
suppress_warnings = ["toc.not_included"]

html_theme = "furo"
html_title = "Starfish"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_static_path = ["style"]
html_css_files = ["wide.css"]
highlight_language = "text"


def setup(app: Sphinx) -> None:
    """Name the lexer of examples in Rust that are compiled and not run."""
    app.add_lexer("rust,no_run", RustLexer)
