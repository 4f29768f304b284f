"""Light pages: of icons, styles, MathJax and colours what the book uses.

The theme loads 2,000 icons twice, as fonts and as a script that draws them anew: 2 MB. Its styles are for
every component that there is: 0.2 MB. MathJax's usual bundle holds a menu and a speech engine, 0.5 MB.
Figures are drawn in 16 million colours and need a few dozen.
"""

import re
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from PIL import Image
from sphinx.application import Sphinx
from sphinx.config import Config

SCRIPT = r'\s*<script src="[^"]*/fontawesome/[^"]*"></script>'
PRELOAD = r'\s*<link rel="preload"[^>]*/fontawesome/[^>]*>'
STYLES = "bootstrap.css", "pydata-sphinx-theme.css", "sphinx-design.min.css"
RULE = r"([^{}]+)\{[^{}]*\}"
ICON = r'((?:\.fa-[\w-]+:before,?)+)\{content:"\\(\w+)"\}'


def parts_of_mathjax(app: Sphinx, config: Config) -> None:
    """The offline MathJax names its bundle while extensions load, later than a line of `_config.yml`."""
    config.mathjax_path = "mathjax/startup.js"


def lighten(app: Sphinx, error: Exception | None) -> None:
    if error or app.builder.format != "html":
        return
    out = Path(app.outdir)
    pages = {page: page.read_text() for page in out.rglob("*.html")}
    for page, text in pages.items():
        page.write_text(re.sub(f"{SCRIPT}|{PRELOAD}", "", text))
    scripts = [path.read_text() for path in out.glob("_static/**/*theme.js")]
    everything = "".join([*pages.values(), *scripts])
    icons(out / "_static", set(re.findall(r"fa-[\w-]+", everything)))
    scripts = [path.read_text() for path in out.glob("_static/**/*.js") if "mathjax" not in path.parts]
    classes = re.findall(r'class="([^"]*)"', everything)
    styles(out / "_static", set(re.findall(r"[\w-]+", " ".join([*classes, *scripts]))))
    for picture in (out / "_images").glob("*.png"):
        with Image.open(picture) as image:
            if image.mode != "P":
                image.convert("RGB").quantize(64).save(picture, optimize=True)


def styles(static: Path, names: set[str]) -> None:
    """Leave out the rules for classes that no page has and no script sets."""

    def used(found: re.Match[str]) -> str:
        selectors = re.sub(r":[\w-]+\([^()]*\)|\[[^]]*\]", "", found[1])
        wanted = (names.issuperset(re.findall(r"\.(-?[A-Za-z_][\w-]*)", one)) for one in selectors.split(","))
        return found[0] if any(wanted) else ""

    for sheet in (path for name in STYLES for path in static.rglob(name)):
        css = re.sub(r"/\*.*?\*/", "", sheet.read_text(), flags=re.DOTALL)
        sheet.write_text(re.sub(RULE, used, css))


def icons(static: Path, names: set[str]) -> None:
    """Cut fonts and style sheet down to the icons of these names, and to those that other sheets draw."""
    (folder,) = static.glob("vendor/fontawesome/*")
    sheet = folder / "css" / "all.min.css"
    others = "".join(path.read_text() for path in static.glob("**/*.css") if path != sheet)
    codes = set(re.findall(r"\\(f\w{3})\b", others))

    def rule(found: re.Match[str]) -> str:
        if names.isdisjoint(re.findall(r"fa-[\w-]+", found[1])):
            return ""
        codes.add(found[2])
        return found[0]

    css = re.sub(ICON, rule, sheet.read_text())
    sheet.write_text(re.sub(r'url\([^)]*\.woff2\) format\("woff2"\),', "", css))
    for path in (folder / "webfonts").glob("*.ttf"):
        font = TTFont(path)
        subsetter = Subsetter(Options(drop_tables=["FFTM"]))
        subsetter.populate(unicodes=[int(code, 16) for code in codes])
        subsetter.subset(font)
        font.save(path)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", parts_of_mathjax)
    app.connect("build-finished", lighten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
