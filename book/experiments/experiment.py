"""An experiment: a plain function from settings to rows, its settings by scale, and findings for claims."""

import functools
import inspect
import itertools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

import widebnn as wb
from book.experiments.findings import Finding
from widebnn._check import one_of
from widebnn.driver._interrupts import raised_at_once
from widebnn.scale import SCALES
from widebnn.tables import Results, Row, Rows, read
from widebnn.tables._results import FORMAT, digest

__all__ = ["SETTINGS", "Experiment", "Settings", "experiment", "tuples"]

Settings = dict[str, Any]


class Experiment:
    """A function of keywords that yields rows; made by `experiment`. Called, it is that function.

    Attributes
    ----------
    name
        Of the function. Results are stored as ``<name>_<scale>.json``.
    title
        What it looks at: the first line of its docstring.
    scales
        By scale, the settings.
    findings
        By the id of a claim, the function from results, and others beside them, to what they say of it.
    """

    def __init__(
        self,
        function: Callable[..., Iterable[Row]],
        settings: Mapping[str, Settings],
        parts: tuple[str | tuple[str, ...], ...],
    ):
        functools.update_wrapper(self, function)
        self.name = function.__name__
        self.title = inspect.getdoc(function).partition("\n")[0].rstrip(".")  # type: ignore[union-attr]
        self.findings: dict[str, Callable[..., list[Finding]]] = {}
        self._function, self._axes = function, [(a,) if isinstance(a, str) else a for a in parts]
        found = tuples(settings)
        defaults = found.pop("defaults")
        for name in itertools.chain(*found.values(), *self._axes):
            one_of(defaults, setting=name)
        self.scales = {one_of(SCALES, scale=scale): defaults | found[scale] for scale in found}

    def __call__(self, **settings: Any) -> Iterator[Row]:
        return iter(self._function(**settings))

    def settings(self, scale: str, **changes: Any) -> Settings:
        """The settings at a scale, with changes by name."""
        settings = self.scales[one_of(self.scales, scale=scale)]
        for name in changes:
            one_of(settings, setting=name)
        return settings | changes

    def parts(self, settings: Settings) -> list[Settings]:
        """Settings whose rows together are those of `settings`, in some order."""
        parts = [settings]
        for names in self._axes:
            entries = list(zip(*(settings[name] for name in names), strict=True))
            changes = [{name: (one,) for name, one in zip(names, entry)} for entry in entries]
            parts = [part | change for part in parts for change in changes]
        return parts

    def claim(self, *ids: str) -> Callable[[Callable[..., Iterable[Finding]]], Callable]:
        """A decorator for the function that yields the findings of claims.

        It takes `Rows`, or `Results` where its parameter is called ``results``, and where it has a parameter
        ``beside``, a list of the further results that the claim names. No finding may depend on the order of
        the rows. The function is returned as it is.
        """

        def register(function: Callable[..., Iterable[Finding]]) -> Callable:
            taken = inspect.signature(function).parameters

            def found(results: Results, beside: Sequence[Results] = ()) -> list[Finding]:
                others = [beside] if "beside" in taken else []
                return list(function(results if "results" in taken else results.rows, *others))

            self.findings |= dict.fromkeys(ids, found)
            return function

        return register

    def run(
        self,
        scale: str,
        folder: str | os.PathLike = "results",
        *,
        on_row: Callable[[Row], None] = lambda row: None,
        **changes: Any,
    ) -> Results:
        """The results at a scale: those stored in a folder, or else computed and stored there.

        Until all is computed, every part that is finished lies in a folder beside them, where the next run of
        these settings goes on: an interruption costs one part.

        The folder is made if there is none. `on_row` is called with each row as soon as it is there, and
        `changes` are settings that differ from those of the scale.

        Raises
        ------
        ValueError
            If there is no such scale or setting, or stored results are damaged.
        FileExistsError
            If the folder holds results of other settings under this name, which are kept.
        """
        settings = self.settings(scale, **changes)
        whole = Path(folder) / f"{self.name}_{scale}.json"
        if whole.exists():
            return self.load(whole, settings)
        unfinished = whole.with_suffix(".parts")
        parts = {unfinished / f"{i}.json": part for i, part in enumerate(self.parts(settings))}
        stored = {path: self.load(path, part) for path, part in parts.items() if path.exists()}
        for path, part in parts.items():
            if path not in stored:
                start, rows = time.perf_counter(), Rows()
                with raised_at_once():
                    for row in self(**part):
                        on_row(row)
                        rows.append(row)
                made = {"seconds": round(time.perf_counter() - start, 1)} | circumstances()
                stored[path] = self.store(path, scale, part, rows, made)
        in_order = [stored[path] for path in parts]
        rows = Rows(row for one in in_order for row in one.rows)
        found = self.store(whole, scale, settings, rows, joined([one.provenance for one in in_order]))
        shutil.rmtree(unfinished)
        return found

    def load(self, path: Path, settings: Settings) -> Results:
        """Results of exactly these settings."""
        found = read(path)
        if found.settings != (wanted := plain(settings)):
            differ = [n for n in wanted | found.settings if wanted.get(n) != found.settings.get(n)]
            raise FileExistsError(
                f"path {path.name} holds results of other settings, which are kept ({', '.join(differ)}): "
                "move the file away, or name another folder"
            )
        return found

    def store(self, path: Path, scale: str, settings: Settings, rows: Rows, made: dict[str, Any]) -> Results:
        """Write results to a file, whole or not at all."""
        settings, rows = plain(settings), Rows(plain(rows))
        content = {"format": FORMAT, "experiment": self.name, "scale": scale, "settings": settings}
        content |= {"provenance": made, "sha256": digest(settings, rows), "rows": rows}
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(content, indent=1) + "\n")
        partial.replace(path)
        return Results(rows, settings, made, self.name, scale)


def experiment(
    settings: Mapping[str, Settings],
    *,
    parts: str | tuple[str | tuple[str, ...], ...] = (),
) -> Callable[[Callable[..., Iterable[Row]]], Experiment]:
    """Make an experiment of a function that takes settings as keywords and yields rows.

    Parameters
    ----------
    settings
        Of the function, as in `settings.yml`: "defaults", and for each scale what differs from them.
    parts
        Settings whose entries are independent of one another: a run is stored in one part for each
        combination of them, the first outermost. Settings that go together stand in one tuple.
    """
    axes = (parts,) if isinstance(parts, str) else parts
    return lambda function: Experiment(function, settings, axes)


def tuples(value: Any) -> Any:
    """Lists of YAML as tuples, which no experiment can change."""
    if isinstance(value, dict):
        return {name: tuples(one) for name, one in value.items()}
    return tuple(map(tuples, value)) if isinstance(value, list | tuple) else value


SETTINGS: dict[str, dict[str, Settings]] = yaml.safe_load(
    Path(__file__).with_name("settings.yml").read_text()
)
"""By experiment."""


def plain(value: Any) -> Any:
    """What JSON makes of it."""
    return json.loads(json.dumps(value))


def circumstances() -> dict[str, Any]:
    """Device, commit and versions."""
    names = ("widebnn", "jax", "jaxlib", "flax", "numpy")
    versions = {name: version(name) for name in names}
    return {"device": wb.device(), "commit": _commit(), "versions": versions}


def joined(made: list[dict[str, Any]]) -> dict[str, Any]:
    """The sum of the seconds of parts, and every device, commit and version."""

    def every(values: Iterable[str | None]) -> str | None:
        return "; ".join(dict.fromkeys(value for value in values if value is not None)) or None

    return {
        "seconds": round(sum(one["seconds"] for one in made), 1),
        "device": every(one["device"] for one in made),
        "commit": every(one["commit"] for one in made),
        "versions": {name: every(one["versions"].get(name) for one in made) for name in made[0]["versions"]},
    }


def _commit() -> str | None:
    """Of the checkout that this file lies in."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
