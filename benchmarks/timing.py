"""How two things are timed against each other."""

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import TypedDict

import numpy as np
from threadpoolctl import threadpool_limits

from widebnn.versions import device

__all__ = ["Comparison", "compare", "in_turn", "on_one_thread"]

on_one_thread = partial(threadpool_limits, 1, user_api="blas")
"""LAPACK as it is in `widebnn.sample`: for us and, beside us, for whatever it makes faster."""


class Comparison(TypedDict):
    """A row of the table: medians over rounds, and the quartiles of the ratio."""

    id: str
    ours: float
    peer: float
    ratio: float
    spread: tuple[float, float]
    unit: str
    device: str


def in_turn[Name: Hashable](
    timed: Mapping[Name, Callable[[], float]], rounds: int
) -> dict[Name, list[float]]:
    """Times of each, one per round, so that whatever else the machine does falls on all."""
    with on_one_thread():
        times = [{name: run() for name, run in timed.items()} for _ in range(rounds)]
    return {name: [found[name] for found in times] for name in timed}


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
