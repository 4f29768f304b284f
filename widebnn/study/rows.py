"""What summaries share: choosing rows, means over repeats, differences and ratios with their errors."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from widebnn import estimates
from widebnn.study.experiment import Finding
from widebnn.study.results import Results

__all__ = [
    "Measure",
    "chosen",
    "difference",
    "exponent",
    "identity",
    "mean",
    "ratio",
    "values",
    "vanishes",
    "vanishing",
]

TOLERANCE = 1e-9  # of an identity in float64


class Measure(NamedTuple):
    """A value and its standard error; None where there is none."""

    value: float
    error: float | None = None


def chosen(rows: Iterable[dict[str, Any]], **wanted: Any) -> list[dict[str, Any]]:
    """The rows that have these entries."""
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def values(rows: Iterable[dict[str, Any]], column: str) -> list[Any]:
    """The distinct entries of a column, in the order of the rows."""
    return list(dict.fromkeys(row[column] for row in rows))


def mean(rows: list[dict[str, Any]], column: str) -> Measure:
    """Over repeats, with the standard error of the mean where there are several."""
    found = np.array([row[column] for row in rows], float)
    return Measure(float(found.mean()), _deviation(found) if len(found) > 1 else None)


def _deviation(found: np.ndarray) -> float:
    return float(found.std(ddof=1) / math.sqrt(len(found)))


def difference(a: Measure, b: Measure) -> Measure:
    """a − b of independent measures."""
    return Measure(a.value - b.value, _both(a.error, b.error))


def ratio(a: Measure, b: Measure) -> Measure:
    """a/b of independent measures, its error to first order; NaN where b is not positive."""
    if not b.value > 0:
        return Measure(math.nan)
    value = a.value / b.value
    relative = _both(*(None if m.error is None else m.error / m.value if m.value else 0.0 for m in (a, b)))
    return Measure(value, None if relative is None else abs(value) * relative)


def _both(*errors: float | None) -> float | None:
    known = [error for error in errors if error is not None]
    return math.hypot(*known) if known else None


def exponent(over: Sequence[int], found: Sequence[Measure]) -> Measure:
    """p of A·xᵖ, by weighted least squares; where errors are unknown, by the residuals in logarithms."""
    x, value = np.array(over, float), np.array([m.value for m in found])
    errors = [m.error for m in found if m.error is not None]
    if len(errors) == len(found):
        p, error = estimates.power_law(x, value, np.array(errors)).exponent
        return Measure(float(p), float(error))
    (slope, _), residuals, *_ = np.polyfit(np.log(x), np.log(value), 1, full=True)
    if len(x) < 3:
        return Measure(float(slope))
    variance = np.sum(residuals) / (len(x) - 2) / np.sum((np.log(x) - np.log(x).mean()) ** 2)
    return Measure(float(slope), float(np.sqrt(variance)))


def vanishing(what: str, over: Sequence[int], found: Sequence[Measure]) -> list[Finding]:
    """What says that a positive quantity with known errors tends to 0 in width, in the order of `over`.

    It falls as a power of the width, with the first correction that a finite width makes where there are
    widths enough to know it, and to less than half from the narrowest to the widest.
    """
    p = Measure(math.nan)
    if all(m.value > 0 and m.error for m in found):  # a difference may be lost in its noise
        value, error = (np.array(column) for column in zip(*found, strict=True))
        law = estimates.power_law(np.array(over), value, error, correction=len(over) > 3)
        p = Measure(float(law.exponent.value), float(law.exponent.error))
    return [
        Finding(f"{what}: exponent in the width", *p, below=0),
        Finding(f"{what}: widest ÷ narrowest", *ratio(found[-1], found[0]), below=0.5),
    ]


def vanishes(*quantities: str) -> Callable[[Results], list[Finding]]:
    """A summary of `theorems`: that each of these quantities tends to 0."""

    def summarise(results: Results) -> list[Finding]:
        findings = []
        for name in quantities:
            rows = sorted(chosen(results.rows, quantity=name), key=lambda row: row["width"])
            found = [Measure(row["value"], row["error"]) for row in rows]
            findings += vanishing(name, [row["width"] for row in rows], found)
        return findings

    return summarise


def identity(name: str, what: str) -> Callable[[Results], list[Finding]]:
    """A summary of `identities`: the largest error of one of them, over all problems."""

    def summarise(results: Results) -> list[Finding]:
        errors = [row["error"] for row in chosen(results.rows, identity=name)]
        return [Finding(f"{what}, largest of {len(errors)} problems", max(errors), below=TOLERANCE)]

    return summarise
