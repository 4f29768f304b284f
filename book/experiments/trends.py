"""Trends over a grid: powers of the width, and what says that a quantity vanishes."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from book.experiments.findings import Finding
from widebnn import estimates
from widebnn.tables import Measure, Results


def degrees_of_freedom(results: Results) -> float:
    """Of errors from the scatter of repeats; infinite for a single one, which gives no error."""
    return float(len(results.rows.values("repeat")) - 1) or math.inf


def exponent(over: Sequence[int], found: Sequence[Measure]) -> Measure:
    """The exponent p of a power law A·xᵖ, by least squares in logarithms.

    Where all measures have errors, these give the weights and the error of p. Otherwise the residuals give
    the error, or None where there are only two measures.

    Examples
    --------
    >>> from book.experiments.trends import exponent
    >>> from widebnn.tables import Measure
    >>> print(exponent([1, 2, 4], [Measure(8, 0.1), Measure(4, 0.1), Measure(2, 0.1)]))
    -1.000 ± 0.029
    """
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


def vanishing(what: str, over: Sequence[int], found: Sequence[Measure]) -> Iterator[Finding]:
    """Findings that say whether a positive quantity with known errors tends to 0 as the width grows.

    The quantity must fall as a power of the width, with a first correction for finite width where there are
    enough widths to fit one, and to less than half from the narrowest to the widest.
    """
    p = Measure(math.nan)
    if all(m.value > 0 and m.error for m in found):  # a difference may be lost in its noise
        value, error = (np.array(column) for column in zip(*found, strict=True))
        law = estimates.power_law(np.array(over), value, error, correction=len(over) > 3)
        p = Measure(float(law.exponent.value), float(law.exponent.error))
    yield Finding(f"{what}: exponent in the width", p, below=0)
    yield Finding(f"{what}: widest ÷ narrowest", found[-1] / found[0], below=0.5)
