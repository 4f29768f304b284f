"""Light pages: the theme's icons from its fonts alone, and of MathJax the parts that the book uses.

The theme loads every icon twice, as fonts and as a script of 1.5 MB that draws them anew. MathJax's usual
bundle holds a menu and a speech engine, 0.5 MB.
"""

import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

ICONS = re.compile(r'\s*<script src="[^"]*/fontawesome/[^"]*"></script>')


def only_what_is_used(app: Sphinx, config: Config) -> None:
    """The offline MathJax names its own file while extensions load, so a setting would come too early."""
    config.mathjax_path = "mathjax/startup.js"


def without_script(app: Sphinx, error: Exception | None) -> None:
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text()
        if text != (lighter := ICONS.sub("", text)):
            page.write_text(lighter)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", only_what_is_used)
    app.connect("build-finished", without_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
