"""Means and standard errors over splits, and differences from ours on the splits that both have."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.tabular.data_sets import DATA_SETS, TEST_FRACTION
from benchmarks.tabular.methods import METHODS, OURS
from benchmarks.tabular.rows import Row
from widebnn.tables import Measure

__all__ = ["SCORES", "Estimate", "Summary", "summaries"]

SCORES = ("rmse", "nll", "crps", "coverage")


class Estimate(NamedTuple):
    """A mean over splits and its standard error, NaN for less than two of them."""

    value: float
    error: float

    def __str__(self) -> str:
        if not math.isfinite(self.error):
            return f"{self.value:.3g}"
        digits = max(0, 1 - math.floor(math.log10(self.error))) if self.error > 1e-9 else 3
        return f"{self.value:.{digits}f} ± {self.error:.{digits}f}"


class Summary(NamedTuple):
    """A method on a set.

    Attributes
    ----------
    scores, differences
        By name, the mean over the splits, and that of the method less ours over the splits that both have;
        below 0, the method is better, other than in coverage.
    num_splits, num_common
        How many splits there are of it, and with ours.
    median_seconds, first_seconds
        Of a fit, and of the first in its process, which compiles.
    cpu_seconds
        Median of a fit, where they were measured, else NaN.
    num_converged
        Of how many fits it was said.
    """

    data: str
    method: str
    scores: dict[str, Estimate]
    differences: dict[str, Estimate]
    num_splits: int
    num_common: int
    median_seconds: float
    first_seconds: float
    cpu_seconds: float
    num_converged: int


def summaries(rows: Iterable[Row]) -> list[Summary]:
    """Of every set and method that there are rows of."""
    of: dict[tuple[str, str], dict[int, Row]] = {}
    for row in rows:
        of.setdefault((row.data, row.method), {})[row.split] = row
    return [
        _summary(of[data, method], of.get((data, OURS), {}))
        for data in DATA_SETS
        for method in METHODS
        if (data, method) in of
    ]


def _summary(rows: dict[int, Row], ours: dict[int, Row]) -> Summary:
    common = sorted(rows.keys() & ours.keys())
    first = next(iter(rows.values()))
    return Summary(
        data=first.data,
        method=first.method,
        scores={name: _estimate([getattr(row, name) for row in rows.values()]) for name in SCORES},
        differences={
            name: _estimate([getattr(rows[i], name) - getattr(ours[i], name) for i in common])
            for name in SCORES
        },
        num_splits=len(rows),
        num_common=len(common),
        median_seconds=float(np.median([row.seconds for row in rows.values()])),
        first_seconds=next(row.seconds for row in rows.values() if row.place == 0),
        cpu_seconds=float(np.median([row.cpu_seconds or math.nan for row in rows.values()])),
        num_converged=sum(row.said.startswith("converged") for row in rows.values()),
    )


def _estimate(values: Sequence[float]) -> Estimate:
    if not values:
        return Estimate(math.nan, math.nan)
    if len(values) == 1:
        return Estimate(float(values[0]), math.nan)
    value, error = Measure.over_splits(values, TEST_FRACTION)
    return Estimate(value, error or 0.0)
