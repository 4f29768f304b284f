"""What a page may say of its build: version, commit, committed, built and scale, each in double braces."""

import os
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version

from sphinx.application import Sphinx
from sphinx.config import Config


def _git(app: Sphinx, *words: str) -> str:
    """What git prints; "unknown" where the sources are no clone."""
    command = ["git", "-C", app.srcdir, *words]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return run.stdout.strip()


def state(app: Sphinx, config: Config) -> None:
    is_changed = _git(app, "status", "--porcelain", "--untracked-files=no") not in ("", "unknown")
    config.myst_substitutions |= {
        "version": version("widebnn"),
        "commit": _git(app, "rev-parse", "--short", "HEAD") + (", with changes" if is_changed else ""),
        "committed": _git(app, "log", "-1", "--format=%cs"),
        "built": f"{datetime.now(UTC):%Y-%m-%d}",
        "scale": os.environ.get("WIDEBNN_SCALE", "the device's"),
    }


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", state)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
