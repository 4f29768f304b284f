"""Results of an experiment as they are stored: rows, with their settings and circumstances."""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from widebnn._check import one_of
from widebnn.scale import SCALES
from widebnn.tables._rows import Rows

__all__ = ["FORMAT", "Results", "digest", "duration", "folder", "read", "results"]

FORMAT = "widebnn results 2"


@dataclass(frozen=True)
class Results:
    """What an experiment found.

    Attributes
    ----------
    rows
        One dict of numbers and names for each thing that was measured.
    settings
        What it was run with; seeds are part of it.
    provenance
        "seconds", the wall time, "device", "commit" and "versions".
    name
        Name of the experiment.
    scale
        "smoke", "laptop", "colab" or "paper"; empty where settings were changed from these.
    """

    rows: Rows
    settings: dict[str, Any]
    provenance: dict[str, Any]
    name: str = ""
    scale: str = ""

    @property
    def source(self) -> str:
        """Scale, seeds, time and device in words, for a caption."""
        scale = f"{self.scale} scale, " if self.scale else ""
        made = self.provenance
        return f"{scale}{self.seeds}; {duration(made['seconds'])} on {made['device']}"

    @property
    def seeds(self) -> str:
        """How often the run was repeated, in words."""
        parts = [f"seed {self.settings['seed']}"] if "seed" in self.settings else []
        for name in ("repeats", "num_repeats", "num_chains", "num_posteriors"):
            if name in self.settings:
                what, count = name.removeprefix("num_"), self.settings[name]
                count = len(count) if name == what else count
                parts.append(f"{count} {what if count != 1 else what.removesuffix('s')}")
        return ", ".join(parts)


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, to two digits."""
    for size, unit in ((3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.2g} {unit}" if seconds < 100 * size else f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.0f} s"


def digest(settings: dict[str, Any], rows: list[Any]) -> str:
    """SHA-256 of settings and rows as JSON."""
    return hashlib.sha256(json.dumps([settings, rows]).encode()).hexdigest()


def folder() -> Path:
    """The folder of the results that ship with the package; in a checkout, `book/results`."""
    package = Path(__file__).parents[1]
    shipped = package / "results"
    return shipped if shipped.is_dir() else package.parent / "book" / "results"


def results(name: str, scale: str | None = None) -> Results:
    """The shipped results of an experiment of the book.

    Parameters
    ----------
    name
        Of the experiment.
    scale
        "smoke", "laptop", "colab" or "paper"; without one, the largest that has results.

    Examples
    --------
    >>> import widebnn as wb
    >>> wb.results("over_width").rows.values("sampler")[:2]
    ['pCN', 'pCNL']
    """
    held: dict[str, list[str]] = {}
    for path in folder().glob("*_*.json"):
        one, _, at = path.stem.rpartition("_")
        held.setdefault(one, []).append(at)
    scales = sorted(held[one_of(sorted(held), name=name)], key=SCALES.index)
    return read(folder() / f"{name}_{scales[-1] if scale is None else one_of(scales, scale=scale)}.json")


def read(path: str | os.PathLike) -> Results:
    """Results from a file, which must not have been edited since it was written.

    Examples
    --------
    >>> import widebnn as wb
    >>> path = wb.tables.folder() / "over_width_laptop.json"
    >>> wb.tables.read(path).settings["dataset"]
    'cifar10'
    """
    path = Path(path)
    try:
        content = json.loads(path.read_text())
        parts = [content[part] for part in ("rows", "settings", "provenance", "experiment", "scale")]
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"path {path.name} holds no results of an experiment, or damaged ones") from error
    if content.get("format") != FORMAT:
        raise ValueError(f"path {path.name} must have the format {FORMAT!r}; got {content.get('format')!r}")
    if content.get("sha256") != digest(content["settings"], content["rows"]):
        raise ValueError(f"path {path.name} was edited: its rows and settings do not match their checksum")
    return Results(Rows(parts[0]), *parts[1:])
