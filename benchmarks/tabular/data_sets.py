"""Tables that come with scikit-learn, statsmodels and this package, or are made: numbers, and classes."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets

from widebnn import data

__all__ = ["CLASSES", "DATA_SETS", "NUMBERS", "OF_CLASSES", "TEST_FRACTION", "Split", "Table", "split"]

TEST_FRACTION, OF_CLASSES = 0.1, 0.25
"""Of the rows; of classes more, since a calibration error takes many."""
NUM_MADE = 300
"""Rows of a table that is made."""


class Table(NamedTuple):
    """Inputs (n, d) and targets (n,): numbers, or classes as integers from 0."""

    x: np.ndarray
    y: np.ndarray


class Split(NamedTuple):
    """Rows to learn from, and rows to be predicted."""

    train: Table
    test: Table


def split(table: Table, seed: int) -> Split:
    """A tenth of the rows, chosen at random, is held out, or a quarter where targets are classes."""
    order = np.random.default_rng(seed).permutation(len(table.y))
    num_test = round((OF_CLASSES if table.y.dtype.kind == "i" else TEST_FRACTION) * len(table.y))
    test, train = order[:num_test], order[num_test:]
    return Split(Table(table.x[train], table.y[train]), Table(table.x[test], table.y[test]))


def diabetes() -> Table:
    """442 × 10: progression of diabetes in a year, from age, sex, body mass index, pressure and six sera."""
    return Table(*_of_sklearn("load_diabetes"))


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
    x, _ = _of_sklearn("load_wine")
    return Table(x[:, 1:], x[:, 0])


def boston() -> Table:
    """506 × 13: prices of houses, in deviations, by census tract."""
    rows = data.boston(505, 1)
    x, y = (np.concatenate(parts) for parts in ((rows.x_train, rows.x_test), (rows.y_train, rows.y_test)))
    return Table(_numbers(x), _numbers(y[:, 0]))


def friedman(number: int, noise: float) -> Table:
    """300 rows of one of Friedman's three functions (1991), of 10, 4 and 4 columns, with noise."""
    return Table(*_of_sklearn(f"make_friedman{number}", NUM_MADE, noise=noise, random_state=0))


def cultivar() -> Table:
    """178 × 13: which of three cultivars a wine is made of."""
    return Table(*_of_sklearn("load_wine"))


def cancer() -> Table:
    """569 × 30: whether a tumour of the breast is benign, from shapes of its cells."""
    return Table(*_of_sklearn("load_breast_cancer"))


def digits() -> Table:
    """1,797 × 64: which of ten digits was written, from 8 × 8 grey pixels."""
    return Table(*_of_sklearn("load_digits"))


def _of_sklearn(name: str, *arguments: Any, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    if name.startswith("load"):
        options = {"return_X_y": True}
    return getattr(datasets, name)(*arguments, **options)


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


NUMBERS: dict[str, Callable[[], Table]] = {
    make.__name__: make for make in (diabetes, star98, engel, grunfeld, sunspots, wine, boston)
} | {
    f"friedman{number}": partial(friedman, number, noise)
    for number, noise in ((1, 1.0), (2, 100.0), (3, 0.1))
}
CLASSES: dict[str, Callable[[], Table]] = {make.__name__: make for make in (cultivar, cancer, digits)}
DATA_SETS = NUMBERS | CLASSES
