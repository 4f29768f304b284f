"""Light pages: of icons, MathJax and colours what the book uses.

The theme loads 2,000 icons twice, as fonts and as a script that draws them anew: 2 MB. MathJax's usual bundle
holds a menu and a speech engine, 0.5 MB. Figures are drawn in 16 million colours and need a few hundred.
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
    icons(out / "_static", set(re.findall(r"fa-[\w-]+", "".join([*pages.values(), *scripts]))))
    for picture in (out / "_images").glob("*.png"):
        with Image.open(picture) as image:
            if image.mode != "P":
                image.convert("RGB").quantize(256).save(picture, optimize=True)


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
