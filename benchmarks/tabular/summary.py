"""Means and standard errors over splits, and differences from ours on the splits that both have."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.tabular.data_sets import CLASSES, DATA_SETS, OF_CLASSES, TEST_FRACTION
from benchmarks.tabular.methods import METHODS, OURS
from benchmarks.tabular.rows import Row
from widebnn.tables import Measure

__all__ = ["Estimate", "Seconds", "Summary", "ratio_of_seconds", "summaries"]


class Estimate(NamedTuple):
    """A mean over splits and its standard error, NaN for less than two of them."""

    value: float
    error: float

    def __str__(self) -> str:
        if not math.isfinite(self.error):
            return f"{self.value:.3g}"
        digits = max(0, 1 - math.floor(math.log10(self.error))) if self.error > 1e-9 else 3
        return f"{self.value:.{digits}f} ± {self.error:.{digits}f}"


class Seconds(NamedTuple):
    """Processor seconds: the first in its process, which compiles, and the median of the others."""

    first: float
    again: float

    @classmethod
    def of(cls, rows: Iterable[Row], name: str) -> "Seconds":
        """Of fits or predictions; NaN where they were not measured."""
        parts: tuple[list[float], list[float]] = [], []
        for row in rows:
            parts[row.place > 0].append(getattr(row, name) or math.nan)
        return cls(*(float(np.median(part or [math.nan])) for part in parts))

    def __str__(self) -> str:
        return f"{self.first:.2g}, {self.again:.2g}"


class Summary(NamedTuple):
    """A method on a set.

    Attributes
    ----------
    scores, differences
        By name, the mean over the splits, and that of the method less ours over the splits that both have.
    fit, predict
        Processor seconds.
    num_splits, num_common
        How many splits there are of it, and with ours.
    """

    data: str
    method: str
    scores: dict[str, Estimate]
    differences: dict[str, Estimate]
    fit: Seconds
    predict: Seconds
    num_splits: int
    num_common: int


def summaries(rows: Iterable[Row]) -> list[Summary]:
    """Of every set and method that there are rows of."""
    of: dict[tuple[str, str], dict[int, Row]] = {}
    for row in rows:
        of.setdefault((row.data, row.method), {})[row.split] = row
    return [
        _summary(of[data, method], of.get((data, OURS[data in CLASSES]), {}))
        for data in DATA_SETS
        for method in METHODS
        if (data, method) in of
    ]


def ratio_of_seconds(found: Iterable[Summary], ours: str, theirs: str) -> Seconds:
    """By how much a fit of the one takes longer, first and again: medians over the sets that both have."""
    fit = {(one.data, one.method): one.fit for one in found}
    both = [
        np.divide(fit[data, ours], fit[data, theirs])
        for data in DATA_SETS
        if fit.keys() >= {(data, ours), (data, theirs)}
    ]
    return Seconds(*np.median(both, axis=0)) if both else Seconds(math.nan, math.nan)


def _summary(rows: dict[int, Row], ours: dict[int, Row]) -> Summary:
    common = sorted(rows.keys() & ours.keys())
    first = next(iter(rows.values()))
    share = OF_CLASSES if first.data in CLASSES else TEST_FRACTION
    names = [name for name in first.scores if not common or name in ours[common[0]].scores]
    return Summary(
        data=first.data,
        method=first.method,
        scores={name: _estimate([row.scores[name] for row in rows.values()], share) for name in first.scores},
        differences={
            name: _estimate([rows[i].scores[name] - ours[i].scores[name] for i in common], share)
            for name in names
        },
        fit=Seconds.of(rows.values(), "fit_seconds"),
        predict=Seconds.of(rows.values(), "predict_seconds"),
        num_splits=len(rows),
        num_common=len(common),
    )


def _estimate(values: Sequence[float], share: float) -> Estimate:
    if not values:
        return Estimate(math.nan, math.nan)
    if len(values) == 1 or not np.isfinite(values).all():
        return Estimate(float(np.mean(values)), math.nan)
    value, error = Measure.over_splits(values, share)
    return Estimate(value, error or 0.0)
