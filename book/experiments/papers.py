"""What the papers state of their experiments, from `papers.yml`, and our settings beside it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from widebnn.tables import Results

__all__ = ["NAMES", "Setting", "meets", "of_paper", "of_run", "said"]

Setting = dict[str, list[Any]]
"""By one of `NAMES`, the values that an experiment goes over."""


_PAPERS = yaml.safe_load(Path(__file__).with_name("papers.yml").read_text())

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
    stated = _PAPERS["stated"]
    found = stated.get(experiment, {}) | stated.get(row, {})
    return {name: as_list(value) for name, value in found.items()}


def of_run(results: Results, row: str = "") -> Setting:
    """What a run went over for a row, by its settings, what its function fixes, and its rows."""
    columns = ("dataset", "num_train", "width", "depth")
    of: dict[str, Any] = {c: results.rows.values(c) for c in columns if any(c in row for row in results.rows)}
    of |= results.settings
    if "repeats" in of:  # a list of seeds
        of["repeats"] = len(of["repeats"])
    of |= _PAPERS["fixed"].get(results.name, {})
    found = {name: as_list(of[one]) for name, sources in NAMES.items() for one in sources if one in of}
    own = _PAPERS["rows"].get(row, {}) if results.name == "theorems" else {}
    found |= {name: as_list(of[one]) if isinstance(one, str) else one for name, one in own.items()}
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


def as_list(value: Any) -> list[Any]:
    """One value or several, each by itself."""
    return [one for entry in value for one in as_list(entry)] if isinstance(value, list | tuple) else [value]
