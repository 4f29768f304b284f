"""How two things are timed against each other."""

from collections.abc import Callable
from typing import TypedDict

import numpy as np

from book.experiments.clock import in_turn
from widebnn.versions import device

__all__ = ["Comparison", "compare"]


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
