"""Results on disk: rows of numbers with the configuration and the circumstances that made them."""

import contextlib
import dataclasses
import hashlib
import json
import os
import platform
import subprocess
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax

from widebnn._interrupts import raised_at_once
from widebnn.scale import SCALES
from widebnn.study.rows import Row, Rows

__all__ = ["Results", "config_hash", "device", "gather", "load", "load_or_run", "place", "save"]

FORMAT = "widebnn results 1"


@dataclass(frozen=True)
class Results:
    """What an experiment found.

    Attributes
    ----------
    rows
        One dict of numbers and names for each thing that was measured.
    config
        The configuration, as a dictionary; seeds are part of it.
    provenance
        "seconds", the wall time, "device", "commit" and "versions".
    name
        Name of the experiment, as in the name of the file; empty if the file has another name.
    scale
        The scale, as in the name of the file; empty if the file has another name.
    """

    rows: Rows
    config: dict[str, Any]
    provenance: dict[str, Any]
    name: str = ""
    scale: str = ""

    @property
    def source(self) -> str:
        """Scale, seeds, time and device in words, for a caption."""
        made = self.provenance
        scale = f"{self.scale} scale, " if self.scale else ""
        return f"{scale}{self.seeds}; {duration(made['seconds'])} on {made['device']}"

    @property
    def seeds(self) -> str:
        """How often the run was repeated, in words."""
        parts = [f"seed {self.config['seed']}"] if "seed" in self.config else []
        for name in ("repeats", "num_repeats", "num_chains", "num_posteriors"):
            if name in self.config:
                what = name.removeprefix("num_")
                count = len(self.config[name]) if name == what else self.config[name]
                parts.append(f"{count} {what if count != 1 else what.removesuffix('s')}")
        return ", ".join(parts)


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, to two digits."""
    for size, unit in ((3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.2g} {unit}" if seconds < 100 * size else f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.0f} s"


def config_hash(config: Any) -> str:
    """SHA-256 of a configuration, a frozen dataclass of numbers, names and tuples of them.

    Raises
    ------
    TypeError
        If `config` is not a dataclass instance, or holds what JSON cannot.

    Examples
    --------
    >>> from widebnn.experiments import OverWidth
    >>> from widebnn.study import config_hash
    >>> config_hash(OverWidth(seed=1)) == config_hash(OverWidth(seed=2))
    False
    """
    return hashlib.sha256(json.dumps(_as_dict(config), sort_keys=True).encode()).hexdigest()


def place(folder: str | os.PathLike, config: Any) -> Path:
    """The file for the results of a configuration among others: ``<folder>/<its class>-<its hash>.json``.

    Raises
    ------
    TypeError
        If `config` is not an instance of a dataclass.

    Examples
    --------
    >>> from widebnn.experiments import OverWidth
    >>> from widebnn.study import place
    >>> place("over-width", OverWidth()).suffix
    '.json'
    """
    digest = config_hash(config)
    return Path(folder) / f"{type(config).__name__}-{digest[:32]}.json"


def save(path: str | os.PathLike, config: Any, rows: Iterable[Row], seconds: float) -> Results:
    """Write results with their provenance; an older file is replaced only when the new one is complete.

    Parameters
    ----------
    path
        A ``.json`` file in a folder that exists.
    config
        The experiment's frozen dataclass.
    rows
        What was measured.
    seconds
        Wall time of the whole experiment.

    Raises
    ------
    FileExistsError
        If `path` holds results of another configuration, or anything else.
    OSError
        If the file cannot be written, for instance because the disk is full; what was stored before stays as
        it is.

    Examples
    --------
    >>> import tempfile
    >>> from widebnn.experiments import OverWidth
    >>> from widebnn.study import load, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = [{"width": 128, "acceptance": 0.5}]
    ...     _ = save(f"{folder}/width.json", OverWidth(), rows, seconds=3.0)
    ...     again = load(f"{folder}/width.json", OverWidth())
    >>> again.rows[0]["acceptance"]
    0.5
    """
    provenance = {
        "seconds": round(seconds, 1),
        "device": device(),
        "commit": _commit(),
        "versions": {name: version(name) for name in ("widebnn", "jax", "jaxlib", "flax", "numpy")},
    }
    return _write(Path(path), config, rows, provenance)


def gather(path: str | os.PathLike, config: Any, parts: Sequence[Results]) -> Results:
    """As `save`, of the rows of parts, with the sum of their seconds and every device, commit and version."""
    made = [part.provenance for part in parts]
    versions = [one["versions"] for one in made]
    provenance = {
        "seconds": round(sum(one["seconds"] for one in made), 1),
        "device": _joined(one["device"] for one in made),
        "commit": _joined(one["commit"] for one in made),
        "versions": {name: _joined(one.get(name) for one in versions) for name in versions[0]},
    }
    return _write(Path(path), config, (row for part in parts for row in part.rows), provenance)


def _joined(values: Iterable[str | None]) -> str | None:
    return "; ".join(dict.fromkeys(value for value in values if value is not None)) or None


def _write(path: Path, config: Any, rows: Iterable[Row], provenance: dict[str, Any]) -> Results:
    if path.exists() and _read(path).get("config_hash") != config_hash(config):
        raise FileExistsError(f"path {path.name} holds something else than results of this configuration")
    content = {
        "format": FORMAT,
        "config_hash": config_hash(config),
        "config": _as_dict(config),
        "provenance": provenance,
        "rows": (rows := Rows(rows)),
    }
    whole = path.with_suffix(f".{uuid.uuid4().hex}.partial")  # no other process writes to it
    try:
        whole.write_text(json.dumps(content, indent=1) + "\n")
        whole.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):  # on a full disk what there is of it would only be in the way
            whole.unlink(missing_ok=True)
        error.add_note(f"path {path.name} could not be stored; what was stored before is as it was")
        raise
    return Results(rows, content["config"], provenance, *_name_and_scale(path))


def load(path: str | os.PathLike, config: Any) -> Results:
    """Read results of exactly this configuration.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file does not hold results of this package, is damaged, was made with another configuration, or
        states a configuration that was edited afterwards.

    Examples
    --------
    >>> import tempfile
    >>> from widebnn.experiments import OverWidth
    >>> from widebnn.study import load, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = save(f"{folder}/width.json", OverWidth(seed=1), [], seconds=3.0)
    ...     load(f"{folder}/width.json", OverWidth(seed=2))
    Traceback (most recent call last):
        ...
    ValueError: path width.json was made with another configuration: run the experiment again
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"path {path.name} does not exist: run the experiment at this scale first")
    content = _read(path)
    parts = {"config_hash", "config", "provenance", "rows"}
    if content.get("format") != FORMAT or not content.keys() >= parts:
        raise ValueError(f"path {path.name} is no results file of widebnn, or a damaged one")
    if content["config_hash"] != config_hash(config):
        raise ValueError(f"path {path.name} was made with another configuration: run the experiment again")
    if content["config"] != _as_dict(config):
        raise ValueError(
            f"path {path.name} states another config than its hash, that of its rows: it was edited; run the "
            "experiment again"
        )
    return Results(Rows(content["rows"]), content["config"], content["provenance"], *_name_and_scale(path))


def load_or_run[C](path: str | os.PathLike, config: C, run: Callable[[C], Iterable[Row]]) -> Results:
    """The results at `path`, or, where there is no such file, those of ``run(config)``, saved there.

    Raises
    ------
    ValueError
        As `load`, where there is a file: it is neither used nor overwritten.

    Examples
    --------
    >>> import tempfile
    >>> from widebnn.experiments import OverWidth
    >>> from widebnn.study import load_or_run
    >>> def run(config):
    ...     print("runs")
    ...     yield {"seed": config.seed}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = load_or_run(f"{folder}/seed.json", OverWidth(), run)
    ...     second = load_or_run(f"{folder}/seed.json", OverWidth(), run)
    runs
    """
    if Path(path).exists():
        return load(path, config)
    start = time.perf_counter()
    with raised_at_once():
        rows = Rows(run(config))
    return save(path, config, rows, time.perf_counter() - start)


def device() -> str:
    """The device in words: a GPU by its name, a CPU by its kind and the number of cores it may use."""
    kind = jax.devices()[0].device_kind
    if jax.devices()[0].platform != "cpu":
        return kind
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{kind}, {platform.machine()}, {cores} core{'s' * (cores != 1)}"


def _as_dict(config: Any) -> dict[str, Any]:
    if not dataclasses.is_dataclass(config) or isinstance(config, type):
        raise TypeError(f"config must be an instance of a dataclass; got {config!r}")
    return {"experiment": type(config).__name__} | json.loads(json.dumps(dataclasses.asdict(config)))


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError):
        return {}
    return content if isinstance(content, dict) else {}


def _name_and_scale(path: Path) -> tuple[str, str]:
    """Of `<name>_<scale>.json`; of another name nothing."""
    name, _, scale = path.stem.rpartition("_")
    return (name, scale) if scale in SCALES else ("", "")


def _commit() -> str | None:
    """Of this package's own checkout; a project that has the package installed inside it is none."""
    package = Path(__file__).parents[1]
    try:
        found = subprocess.run(
            ["git", "rev-parse", "--show-toplevel", "HEAD"],
            cwd=package,
            capture_output=True,
            text=True,
            check=True,
        )
        top, commit = found.stdout.split("\n")[:2]
        is_ours = Path(top).resolve() == package.resolve().parent and 'name = "widebnn"' in (
            Path(top) / "pyproject.toml"
        ).read_text(encoding="utf-8")
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit if is_ours else None
