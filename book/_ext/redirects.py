"""Old addresses of pages lead to new ones."""

from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>This page has moved</title>
<meta http-equiv="refresh" content="0; url={address}">
<link rel="canonical" href="{address}">
<link rel="icon" href="{icon}">
</head>
<body><p>This page has moved to <a href="{address}">{address}</a>.</p></body>
</html>
"""


def write(app: Sphinx, error: Exception | None) -> None:
    """Write a page for each old name in the setting `redirects` whose new page is in this build."""
    if error or app.builder.format != "html":
        return
    for old, new in app.config.redirects.items():
        if new not in app.env.found_docs:  # a tour builds one chapter
            continue
        here = app.builder.get_target_uri(old)
        address = relative_uri(here, app.builder.get_target_uri(new))
        icon = relative_uri(here, "_static/favicon.svg")
        place = Path(app.outdir, here)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(_PAGE.format(address=address, icon=icon))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_config_value("redirects", {}, "html", [dict])
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
