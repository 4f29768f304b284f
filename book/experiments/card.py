"""A queue of runs for a card that is there for minutes: in order of value, stored part by part, resumed."""

import os
import re
import time
from collections.abc import Callable, Iterable
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import jax
import yaml

import widebnn as wb
from book.experiments.experiment import Settings, circumstances, joined, tuples
from book.experiments.registry import EXPERIMENTS
from widebnn.driver._interrupts import raised_at_once
from widebnn.tables import Results, Rows

__all__ = ["Part", "finished", "left", "queue", "run", "settling", "table"]

PRECISION = "highest"
"""Of matrix products, which cards round to three digits else."""


class Part(NamedTuple):
    """What is run in one go and stored as one file.

    Attributes
    ----------
    name
        Block, number of the comparison in it, and number of the part in that, such as "A1-2".
    comparison
        Block and number: parts that are compared with one another, and so are of one device.
    rows
        Ids of rows of the ledger that it helps to settle.
    experiment, settings
        What is run.
    seconds, tflop, gib
        Estimates of the time, the operations and the memory.
    """

    name: str
    comparison: str
    rows: list[str]
    experiment: str
    settings: Settings
    seconds: float
    tflop: float
    gib: float


def queue(scale: str = "paper") -> list[Part]:
    """All parts in order of value, at the scale "paper", or "smoke" to try them."""
    parts = []
    for block, of in yaml.safe_load(Path(__file__).with_name("card.yml").read_text()).items():
        for i, comparison in enumerate(of["comparisons"], start=1):
            for j, one in enumerate(comparison, start=1):
                one = tuples(one)
                settings = EXPERIMENTS[one["experiment"]].settings(scale)
                settings = settings | one.get("always", {}) | (one["settings"] if scale == "paper" else {})
                estimates = (one[name] for name in ("seconds", "tflop", "gib"))
                name = f"{block}{i}"
                rows = one.get("rows", of["rows"])
                parts.append(Part(f"{name}-{j}", name, [*rows], one["experiment"], settings, *estimates))
    return parts


def finished(folder: str | os.PathLike, parts: Iterable[Part]) -> dict[str, dict[str, Results]]:
    """By device, the results of the parts that are stored, by name.

    Raises
    ------
    ValueError
        If results are damaged, or the folder of one device has those of another.
    FileExistsError
        If they are of other settings.
    """
    found: dict[str, dict[str, Results]] = {}
    for part in parts:
        for path in sorted(Path(folder).glob(f"*/{part.name}.json")):
            results = EXPERIMENTS[part.experiment].load(path, part.settings)
            device = results.provenance["device"]
            if path.parent.name != _slug(device):
                raise ValueError(
                    f"{path.parent.name} must hold results of one device, and those of two are not compared; "
                    f"{path.name} is of {device}"
                )
            found.setdefault(device, {})[part.name] = results
    return found


def left(parts: Iterable[Part], held: dict[str, dict[str, Results]], device: str) -> list[Part]:
    """What is to do on this device: no part of a comparison that one device has finished, nor its own."""
    found = []
    for _, together in groupby(parts, key=attrgetter("comparison")):
        names = {part.name: part for part in together}
        if not any(names.keys() <= of.keys() for of in held.values()):
            found += [part for name, part in names.items() if name not in held.get(device, {})]
    return found


def settling(folder: str | os.PathLike) -> dict[str, list[Results]]:
    """By row of the ledger, results of each comparison that one device has finished, by experiment.

    Raises what `finished` raises.
    """
    parts = queue()
    held, found = finished(folder, parts), {}
    for _, comparison in groupby(parts, key=attrgetter("comparison")):
        names = {part.name: part for part in comparison}
        done = next((of for of in held.values() if names.keys() <= of.keys()), {})
        together: dict[tuple[str, str], list[Results]] = {}
        for name in names if done else ():
            for row in names[name].rows:
                together.setdefault((row, names[name].experiment), []).append(done[name])
        for (row, _), runs in together.items():
            found.setdefault(row, []).append(_as_one(runs))
    return found


def _as_one(runs: list[Results]) -> Results:
    """Settings that differ become lists."""
    settings: dict[str, Any] = {}
    for name in dict.fromkeys(name for run in runs for name in run.settings):
        values = [run.settings[name] for run in runs if name in run.settings]
        each = [one for value in values for one in (value if isinstance(value, list) else [value])]
        settings[name] = values[0] if values.count(values[0]) == len(values) else each
    rows = Rows(row for run in runs for row in run.rows)
    return Results(rows, settings, joined([run.provenance for run in runs]), runs[0].name, "paper")


def run(
    folder: str | os.PathLike,
    seconds: float,
    scale: str = "paper",
    say: Callable[[str], Any] = print,
) -> None:
    """Run what is left and fits into the time, the most valuable first.

    Parameters
    ----------
    folder
        Of results, in it one for each device.
    seconds
        For all; a part is begun if by its estimate it ends in time.
    scale
        "paper", or "smoke" to try the queue on any device.
    say
        Called with a line on each part.

    Raises
    ------
    ValueError
        If there is no card, or it is too small for all that is left, or the data are not there.
    """
    began, parts, device = time.monotonic(), queue(scale), wb.device()
    if scale == "paper" and jax.default_backend() == "cpu":
        raise ValueError(f"the device must be a card, or the scale smoke; got {device}")
    todo = left(parts, finished(folder, parts), device)
    hindered = {part.name: why for part in todo if (why := _hindrance(part, scale))}
    if todo and len(hindered) == len(todo):
        raise ValueError(f"nothing that is left can run here: {'; '.join(dict.fromkeys(hindered.values()))}")
    for part in todo:
        spent = time.monotonic() - began
        if part.name in hindered:
            say(f"{part.name} is left out: {hindered[part.name]}")
        elif scale == "paper" and spent + part.seconds > seconds:
            say(f"{part.name} is left for later: it takes some {part.seconds:g} s of {seconds - spent:.0f} s")
        else:
            say(f"{part.name} took {_run(part, scale, Path(folder) / _slug(device)):.1f} s")


def _run(part: Part, scale: str, folder: Path) -> float:
    """Seconds that it took."""
    experiment, start = EXPERIMENTS[part.experiment], time.perf_counter()
    with raised_at_once(), jax.default_matmul_precision(PRECISION):
        rows = Rows(experiment(**part.settings))
    seconds = round(time.perf_counter() - start, 1)
    folder.mkdir(parents=True, exist_ok=True)
    made = {"seconds": seconds, "precision": PRECISION} | circumstances()
    experiment.store(folder / f"{part.name}.json", scale, part.settings, rows, made)
    return seconds


def _hindrance(part: Part, scale: str) -> str:
    """Why this device or the data at hand do not let it run."""
    stats = jax.devices()[0].memory_stats() or {}
    held = stats.get("bytes_limit", 0) / 2**30
    if scale == "paper" and held < part.gib:
        return f"{part.comparison} needs {part.gib:g} GiB of a card, of which JAX has {held:.1f} here"
    try:
        EXPERIMENTS[part.experiment].look_for_data(part.settings)
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def _slug(device: str) -> str:
    return re.sub(r"\W+", "-", device.lower()).strip("-")


def table(folder: str | os.PathLike, scale: str = "paper") -> str:
    """What is left on the device at hand, with its estimates, as lines."""
    parts, device = queue(scale), wb.device()
    held = finished(folder, parts)
    todo = left(parts, held, device)
    lines = [f"{part.name}  {', '.join(part.rows):12}  {part.experiment:18}{_cost([part])}" for part in todo]
    done = [f"{len(of)} parts on {name}" for name, of in held.items()]
    return "\n".join([*lines, f"left on {device}:{_cost(todo)}", f"stored: {', '.join(done) or 'nothing'}"])


def _cost(parts: list[Part]) -> str:
    seconds, tflop = (sum(map(attrgetter(name), parts)) for name in ("seconds", "tflop"))
    return f"{seconds:7,.0f} s {tflop:8,.0f} TFLOP"
