"""Small tables for regression: real ones that come with scikit-learn, Boston, and made ones."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32
from sklearn import datasets

from widebnn import data
from widebnn._check import one_of

__all__ = ["TABLES", "Split", "split"]

NUM_MADE = 200
"""Rows of a table that is made."""
BOSTON = 506

Table = Any  # inputs and outputs; what scikit-learn's loaders return has several types


class Split(NamedTuple):
    """Rows to observe and rows to predict, all columns standardised by those to observe."""

    x: Float32[np.ndarray, "n d_in"]
    y: Float32[np.ndarray, "n d_out"]
    x_test: Float32[np.ndarray, "m d_in"]
    y_test: Float32[np.ndarray, "m d_out"]


def split(name: str, num_train: int, num_test: int, seed: int) -> Split:
    """So many rows of a table, chosen at random, and so many others."""
    x, y = TABLES[one_of(TABLES, dataset=name)]()
    x, y = x.astype(float), y.astype(float).reshape(len(y), -1)
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:num_train], order[num_train : num_train + num_test]
    (x, x_test), (y, y_test) = (_standardised(values[train], values[test]) for values in (x, y))
    return Split(x, y, x_test, y_test)


def _standardised(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean, std = train.mean(axis=0), train.std(axis=0)
    std = np.where(std > 0, std, 1.0)  # a pixel that is never lit
    return ((train - mean) / std).astype(np.float32), ((test - mean) / std).astype(np.float32)


def _diabetes() -> Table:
    return datasets.load_diabetes(return_X_y=True)


def _alcohol() -> Table:
    """Alcohol of wines from twelve other measurements."""
    x, _ = datasets.load_wine(return_X_y=True)
    return x[:, 1:], x[:, 0]


def _vineyard() -> Table:
    """Whether a wine is the first grower's."""
    x, grower = datasets.load_wine(return_X_y=True)
    return x, grower == 0


def _tumour() -> Table:
    """Whether a tumour is malignant, from thirty measurements."""
    return datasets.load_breast_cancer(return_X_y=True)


def _symmetry() -> Table:
    """Mean symmetry of the cells of a tumour from the nine other means."""
    x, _ = datasets.load_breast_cancer(return_X_y=True)
    return np.delete(x[:, :10], 8, axis=1), x[:, 8]


def _digits() -> Table:
    """Whether a digit is odd, from 64 pixels."""
    x, label = datasets.load_digits(return_X_y=True)
    return x, label % 2


def _boston() -> Table:
    rows = data.boston(BOSTON - 1, 1)
    return np.concatenate([rows.x_train, rows.x_test]), np.concatenate([rows.y_train, rows.y_test])


def _friedman(make: Callable[..., Table], noise: float) -> Callable[[], Table]:
    return lambda: make(NUM_MADE, noise=noise, random_state=0)


def _made(function: Callable[[np.ndarray], np.ndarray], noise: float) -> Callable[[], Table]:
    """A function of five inputs from N(0, 1), and noise."""

    def table() -> Table:
        random = np.random.default_rng(0)
        x = random.normal(size=(NUM_MADE, 5))
        return x, function(x) + noise * random.normal(size=NUM_MADE)

    return table


TABLES: dict[str, Callable[[], Table]] = {
    "diabetes": _diabetes,
    "alcohol": _alcohol,
    "vineyard": _vineyard,
    "tumour": _tumour,
    "symmetry": _symmetry,
    "boston": _boston,
    "friedman1": _friedman(datasets.make_friedman1, 1.0),
    "friedman2": _friedman(datasets.make_friedman2, 100.0),
    "friedman3": _friedman(datasets.make_friedman3, 0.1),
    "line": _made(lambda x: x.sum(axis=1), 1.0),
    "step": _made(lambda x: np.sign(x[:, 0] + x[:, 1]), 0.3),
    "ridge": _made(lambda x: np.sin(x @ [1.0, 1.0, 1.0, 0.0, 0.0]), 0.3),
    "digits": _digits,
}
"""By name."""
