"""A measured number with its standard error, and what differences and ratios make of it."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Measure"]


class Measure(NamedTuple):
    """A value and its standard error; `error` is None where none is known.

    Differences and ratios take the measures as independent. A ratio has its error to first order, and is NaN
    where the denominator is not positive. A plain number counts as exact.

    Examples
    --------
    >>> from widebnn.tables import Measure
    >>> print(Measure(3.0, 0.3) - Measure(1.0, 0.4))
    2.00 ± 0.50
    >>> print(Measure(3.0, 0.3) / 2)
    1.50 ± 0.15
    """

    value: float
    error: float | None = None

    @classmethod
    def mean(cls, values: Sequence[float] | np.ndarray) -> "Measure":
        """The mean of independent values, two or more, and its standard error from their scatter."""
        return cls(float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values))))

    @classmethod
    def over_splits(cls, values: Sequence[float] | np.ndarray, test_share: float = 0.1) -> "Measure":
        """The mean over random splits into data to fit and to test, two or more, and its standard error.

        Training sets of different splits overlap, so that their scatter alone makes too small an error. With
        a share q to test on, the variance of a mean over n splits is 1/n + q/(1 − q) times that of one
        (Nadeau & Bengio 2003, *Inference for the generalization error*).
        """
        spread = float(np.std(values, ddof=1))
        return cls(
            float(np.mean(values)), spread * math.sqrt(1 / len(values) + test_share / (1 - test_share))
        )

    @classmethod
    def of(cls, row: Mapping[str, Any], name: str) -> "Measure":
        """The measure in the columns ``<name>`` and ``<name>_error`` of a row."""
        return cls(row[name], row[f"{name}_error"])

    def columns(self, name: str) -> dict[str, float | None]:
        """The columns that `of` reads."""
        return {name: self.value, f"{name}_error": self.error}

    def __sub__(self, other: "Measure | float | int") -> "Measure":
        other = measured(other)
        return Measure(self.value - other.value, _both(self.error, other.error))

    def __truediv__(self, other: "Measure | float | int") -> "Measure":
        other = measured(other)
        if not other.value > 0:
            return Measure(math.nan)
        value = self.value / other.value
        relative = _both(*(m.error and (m.error / m.value if m.value else 0.0) for m in (self, other)))
        return Measure(value, None if relative is None else abs(value) * relative)

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "not resolved"
        if not self.error:
            return f"{self.value:.3g}"
        decimals = 1 - math.floor(math.log10(self.error))
        if decimals > 8:
            return f"{self.value:.3g} ± {self.error:.1g}"
        shown = f",.{max(0, decimals)}f"
        value, error = round(float(self.value), decimals) + 0.0, round(float(self.error), decimals)
        return f"{value:{shown}} ± {error:{shown}}"


def measured(number: Measure | float | int) -> Measure:
    """The number as a measure; exact if it is none."""
    return number if isinstance(number, Measure) else Measure(float(number))


def _both(*errors: float | None) -> float | None:
    known = [error for error in errors if error is not None]
    return math.hypot(*known) if known else None
