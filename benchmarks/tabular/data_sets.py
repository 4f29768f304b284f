"""Real regression tables that come with scikit-learn and statsmodels."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_diabetes, load_wine

__all__ = ["DATA_SETS", "Split", "Table", "split"]

TEST_FRACTION = 0.1


class Table(NamedTuple):
    """Inputs (n, d) and targets (n,)."""

    x: np.ndarray
    y: np.ndarray


class Split(NamedTuple):
    """Rows to learn from, and rows to be predicted."""

    train: Table
    test: Table


def split(table: Table, seed: int) -> Split:
    """A tenth of the rows, chosen at random, is held out."""
    order = np.random.default_rng(seed).permutation(len(table.y))
    num_test = round(TEST_FRACTION * len(table.y))
    test, train = order[:num_test], order[num_test:]
    return Split(Table(table.x[train], table.y[train]), Table(table.x[test], table.y[test]))


def diabetes() -> Table:
    """442 × 10: progression of diabetes in a year, from age, sex, body mass index, pressure and six sera."""
    data: Any = load_diabetes()
    return Table(data.data, data.target)


def star98() -> Table:
    """303 × 12: share of pupils above the national median in mathematics, by Californian school district.

    From incomes, minorities, teachers' experience and pay, spending, class sizes and kinds of schools; the
    products of these that the table also has are left out.
    """
    table = _statsmodels("star98")
    names = ["LOWINC", "PERASIAN", "PERBLACK", "PERHISP", "PERMINTE", "AVYRSEXP", "AVSALK", "PERSPENK"]
    names += ["PTRATIO", "PCTAF", "PCTCHRT", "PCTYRRND"]
    return Table(_numbers(table[names]), _numbers(table["NABOVE"] / (table["NABOVE"] + table["NBELOW"])))


def engel() -> Table:
    """235 × 1: what Belgian workers' households spent on food in 1857, from their income.

    The spread grows with the income.
    """
    table = _statsmodels("engel")
    return Table(_numbers(table[["income"]]), _numbers(table["foodexp"]))


def grunfeld() -> Table:
    """220 × 3: what eleven American firms invested from 1935 to 1954, from their value, capital and the year.

    Firms differ by three orders of magnitude: all but the year are logarithms.
    """
    table = _statsmodels("grunfeld")
    x = np.column_stack([np.log(table["value"]), np.log(table["capital"]), table["year"]])
    return Table(_numbers(x), _numbers(np.log(table["invest"])))


def sunspots() -> Table:
    """300 × 9: the number of sunspots of a year, 1709 to 2008, from those of the nine years before.

    Nine lags are the classical autoregression of this series.
    """
    activity = _numbers(_statsmodels("sunspots")["SUNACTIVITY"])
    windows = np.lib.stride_tricks.sliding_window_view(activity, 10)
    return Table(windows[:, :-1].copy(), windows[:, -1].copy())


def wine() -> Table:
    """178 × 12: alcohol of wines of one region, in per cent by volume, from twelve other measurements."""
    data: Any = load_wine()
    return Table(data.data[:, 1:], data.data[:, 0])


def _statsmodels(name: str) -> Any:
    """A data frame of statsmodels."""
    try:
        from statsmodels import datasets  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError(
            f"the data set {name!r} needs statsmodels: pip install statsmodels, or the extra 'bench'"
        ) from None
    return getattr(datasets, name).load_pandas().data


def _numbers(table: Any) -> np.ndarray:
    return np.array(table, np.float64)


DATA_SETS: dict[str, Callable[[], Table]] = {
    make.__name__: make for make in (diabetes, star98, engel, grunfeld, sunspots, wine)
}
