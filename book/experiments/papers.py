"""What the papers state of their experiments, from `papers.yml`."""

from pathlib import Path
from typing import Any, NamedTuple

import yaml


class Stated(NamedTuple):
    """A setting of a paper, where the paper has it, and why "paper" scale has another value where it has."""

    value: Any
    where: str
    why_not: str = ""


_PAPERS = yaml.safe_load(Path(__file__).with_name("papers.yml").read_text())
STATED = {name: {of: Stated(*one) for of, one in every.items()} for name, every in _PAPERS["stated"].items()}
"""By experiment and setting."""
OWN: dict[str, list[str]] = _PAPERS["own"]
"""By the reason, experiments of which the papers state no settings."""
