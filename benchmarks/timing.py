"""How two things are timed against each other."""

import statistics
from collections.abc import Callable
from functools import partial
from typing import TypedDict

import numpy as np
from threadpoolctl import threadpool_limits

from widebnn.experiments import device

__all__ = ["Comparison", "compare", "on_one_thread"]

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


def compare(id: str, ours: Callable[[], float], peer: Callable[[], float], rounds: int = 7) -> Comparison:
    """Time both in turn, `rounds` times, so that whatever else the machine does falls on both.

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
    with on_one_thread():
        times = [(ours(), peer()) for _ in range(rounds)]
    ratios = [theirs / mine for mine, theirs in times]
    low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75]).tolist()
    return Comparison(
        id=id,
        ours=statistics.median(mine for mine, _ in times),
        peer=statistics.median(theirs for _, theirs in times),
        ratio=middle,
        spread=(low, high),
        unit="ms/step",
        device=device(),
    )
