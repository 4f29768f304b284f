"""How two things are timed against each other."""

import subprocess
from collections.abc import Callable
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
