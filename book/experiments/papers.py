"""What the papers state of their experiments, from `papers.yml`, and our settings beside it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from widebnn.tables import Results

__all__ = ["FIXED", "NAMES", "OWN", "STATED", "Setting", "meets", "of_paper", "of_run", "said"]

Setting = dict[str, list[Any]]
"""By one of `NAMES`, the values that an experiment goes over."""


class Stated(NamedTuple):
    """A setting of a paper, where the paper has it, and why "paper" scale has another value where it has."""

    value: Any
    where: str
    why_not: str = ""


_PAPERS = yaml.safe_load(Path(__file__).with_name("papers.yml").read_text())
STATED = {name: {of: Stated(*one) for of, one in every.items()} for name, every in _PAPERS["stated"].items()}
"""By experiment and setting."""
FIXED: dict[str, dict[str, Any]] = _PAPERS["fixed"]
"""By experiment, settings that its function fixes."""
ROWS: dict[str, dict[str, Any]] = _PAPERS["rows"]
"""By row of the ledger, settings that are not those of its experiment."""
OWN: dict[str, list[str]] = _PAPERS["own"]
"""By the reason, experiments of which the papers state no settings."""

NAMES = {
    "data": ("dataset", "datasets"),
    "n": ("num_train",),
    "width": ("width", "widths"),
    "depth": ("depth", "depths"),
    "draws": (),
    "steps": ("num_steps",),
    "chains": ("num_chains",),
    "epochs": ("num_epochs",),
    "repeats": ("num_repeats", "repeats"),
}
"""What is compared with a paper, by the names of settings that say it."""


def of_paper(experiment: str, row: str = "") -> Setting:
    """What the paper states of a row of the ledger or of its experiment; nothing where it states no sizes."""
    stated = {name: one.value for name, one in STATED.get(experiment, {}).items()}
    return _setting(stated) | _PAPERS["papers_rows"].get(row, {})


def of_run(results: Results, row: str = "") -> Setting:
    """What a run went over for a row, by its settings, what its function fixes, its rows and `ROWS`."""
    columns = ("dataset", "num_train", "width", "depth")
    rows = {c: results.rows.values(c) for c in columns if any(c in row for row in results.rows)}
    settings = dict(results.settings)
    if "repeats" in settings:  # a list of seeds
        settings["repeats"] = len(settings["repeats"])
    found = _setting(rows | settings | FIXED.get(results.name, {}))
    own = ROWS.get(row, {}) if results.name == "theorems" else {}
    found |= {name: as_list(settings[of]) if isinstance(of, str) else of for name, of in own.items()}
    return {name: found[name] for name in NAMES if found.get(name)}


def meets(ours: Setting, paper: Setting) -> bool:
    """Whether a run has the paper's own setting, as far as data, sizes and steps say.

    What the paper does not state cannot be met.
    """
    sizes = all(name in paper and {*paper[name]} <= {*ours.get(name, ())} for name in list(NAMES)[:4])
    return sizes and "steps" in paper and min(ours.get("steps", [0])) >= max(paper["steps"])


def said(name: str, values: Iterable[Any]) -> str:
    """Values in words: a few of them one by one, many by the least and the largest."""
    values = list(dict.fromkeys(values))
    if name == "data":
        return ", ".join(map(str, values))
    values.sort()
    ends = dict.fromkeys(f"{one:,}" for one in (values[0], values[-1]))
    return (" and " if len(values) < 3 else " to ").join(ends)


def _setting(settings: dict[str, Any]) -> Setting:
    found = {}
    for name, sources in NAMES.items():
        values = [settings[one] for one in sources if one in settings]
        if values:
            found[name] = as_list(values[-1])
    return found


def as_list(value: Any) -> list[Any]:
    """One value or several, each by itself."""
    return [one for entry in value for one in as_list(entry)] if isinstance(value, list | tuple) else [value]
