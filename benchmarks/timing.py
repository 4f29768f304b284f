"""How two things are timed against each other."""

import json
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TypedDict

import numpy as np

from book.experiments.clock import in_turn
from widebnn.versions import device


class Comparison(TypedDict):
    """A row of the table: medians over rounds, and the quartiles of the ratio."""

    id: str
    ours: float
    peer: float
    ratio: float
    spread: tuple[float, float]
    unit: str
    device: str


def compare(id: str, ours: Callable[[], float], peer: Callable[[], float], rounds: int = 7) -> Comparison:
    """Time both in turn, `rounds` times.

    Parameters
    ----------
    id
        Name of the row.
    ours, peer
        Functions that do some work and return milliseconds per step.
    rounds
        Pairs of timings.

    Returns
    -------
    Comparison
        `ratio` is peer ÷ ours, larger is better for us; `spread` its quartiles over the rounds.
    """
    times = in_turn({"ours": ours, "peer": peer}, rounds)
    ratios = np.divide(times["peer"], times["ours"])
    low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75]).tolist()
    return Comparison(
        id=id,
        ours=float(np.median(times["ours"])),
        peer=float(np.median(times["peer"])),
        ratio=middle,
        spread=(low, high),
        unit="ms/step",
        device=device(),
    )


def has(python: str, module: str) -> bool:
    """Whether an interpreter can import the library of a peer."""
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0


def can_run(id: str, python: str, module: str, library: str) -> bool:
    """Whether the interpreter, which an environment variable may name, has a peer's library; says if not."""
    if not (found := has(python, module)):
        hint = f"install the extra `bench`, or name an interpreter that has it in {module.upper()}_PYTHON"
        print(f"skipped {id}: {python} has no {library}; {hint}", flush=True)
    return found


def measured(path: Path, cases: Sequence, measure: Callable[..., list[dict]]) -> None:
    """Measure the named tuples that a file of rows lacks, each in a process of its own, and add the rows."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {tuple(row[name] for name in cases[0]._fields) for row in rows}
    path.parent.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as executor:
        for case in cases:
            for row in [] if tuple(case) in done else executor.submit(measure, case).result():
                with path.open("a") as file:
                    print(json.dumps(row), file=file)
                print(json.dumps(row), flush=True)
