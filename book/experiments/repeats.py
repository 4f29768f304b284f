"""What the scatter of repeats says of their mean."""

import math

from widebnn.tables import Results

__all__ = ["degrees_of_freedom"]


def degrees_of_freedom(results: Results) -> float:
    """Of errors from the scatter of repeats; infinite for a single one, which gives no error."""
    return float(len(results.rows.values("repeat")) - 1) or math.inf
