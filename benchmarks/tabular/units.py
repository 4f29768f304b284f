"""Inputs and targets of mean 0 and standard deviation 1, and predictions back in the units of y."""

from typing import Any, NamedTuple

import numpy as np

from benchmarks.tabular.data_sets import Table
from benchmarks.tabular.scores import Mixture

__all__ = ["Units"]


class Units(NamedTuple):
    """Means and deviations of the inputs, (d,), and of the targets."""

    x_mean: np.ndarray
    x_std: np.ndarray
    y_mean: float
    y_std: float

    @classmethod
    def of(cls, table: Table) -> "Units":
        """Those of a table; a column that never changes is left as it is but for its mean."""
        x_std = table.x.std(axis=0)
        return cls(
            table.x.mean(axis=0), np.where(x_std > 0, x_std, 1.0), float(table.y.mean()), float(table.y.std())
        )

    def inputs(self, x: np.ndarray) -> np.ndarray:
        """Standardised, (m, d)."""
        return (x - self.x_mean) / self.x_std

    def table(self, table: Table) -> Table:
        """Standardised."""
        return Table(self.inputs(table.x), (table.y - self.y_mean) / self.y_std)

    def mixture(self, means: Any, stds: Any) -> Mixture:
        """In the units of y, from means and deviations (component, m) of standardised targets."""
        means, stds = (np.asarray(values, np.float64) for values in (means, stds))
        return Mixture(self.y_mean + self.y_std * means, self.y_std * stds)
