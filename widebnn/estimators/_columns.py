"""The columns that an estimator is given: checked, categories as indicators, in units of the rows of fit."""

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from widebnn._arrays import as_array, real
from widebnn._check import finite

__all__ = ["Categories", "checked", "random_of", "scaler_of", "standardised"]

FARTHEST = 1e12
"""Standard deviations from the training data, whose squares float32 holds in sums over any layer."""
MAX_ENTRIES = 10**8
"""Of a sparse matrix, which becomes an array."""


class Categories(dict[int, Any]):
    """The categories of those columns of a pandas frame whose dtype is "category", by the column's number."""

    @classmethod
    def of(cls, X: Any) -> "Categories":
        """All that the dtype names, also those that no row has."""
        dtypes = enumerate(X.dtypes if hasattr(X, "isetitem") else ())
        return cls({j: dtype.categories for j, dtype in dtypes if dtype == "category"})

    def coded(self, X: Any) -> Any:
        """A frame with numbers in place of categories."""
        if self and not hasattr(X, "isetitem"):
            raise TypeError(f"X must be a pandas data frame, as it was in fit; got a {type(X).__name__}")
        X = X.copy() if self else X
        for j, categories in self.items():
            column = X.iloc[:, j]
            codes = categories.get_indexer(column)
            if (codes < 0).any():
                raise ValueError(
                    f"X must hold categories of the fit in column {X.columns[j]!r}: "
                    f"{', '.join(map(repr, categories))}; got {column[codes < 0].iloc[0]!r}"
                )
            X.isetitem(j, codes.astype(float))
        return X

    def indicators(self, values: np.ndarray) -> np.ndarray:
        """Numbers (n, d), of which each column of categories becomes one of 0 and 1 for each of them."""
        columns = (values[:, [j]] for j in range(values.shape[1]))
        parts = [x == np.arange(len(self[j])) if j in self else x for j, x in enumerate(columns)]
        return np.concatenate(parts, axis=1, dtype=np.float64)

    def groups(self, num_columns: int) -> np.ndarray:
        """The column that each input comes from."""
        return np.repeat(np.arange(num_columns), [len(self.get(j, [0])) for j in range(num_columns)])


def checked(estimator: Any, *arrays: Any, **options: Any) -> Any:
    """Finite numbers in float64, by scikit-learn's rules, which take dates and masked entries for numbers."""
    X, *rest = arrays
    if scipy.sparse.issparse(X):
        if np.prod(X.shape, dtype=float) > MAX_ENTRIES:
            raise ValueError(
                f"X must have at most {MAX_ENTRIES:,} entries where it is sparse, since it becomes an array; "
                f"got {X.shape}: drop columns, or take the leading directions of TruncatedSVD"
            )
        X = X.toarray()
    if options.get("reset", True):
        estimator._categories = Categories.of(X)
    elif estimator._categories and hasattr(X, "columns"):  # a category is looked for where it was
        validate_data(estimator, X, reset=False, skip_check_array=True)
    arrays = estimator._categories.coded(X), *rest
    for name, array in zip("Xy", arrays):
        given = as_array(**{name: array})
        if name == "X" and given.dtype.kind in "OV" and given.ndim != 2:
            real(X=given)  # no table, and no row of one
    try:
        found = validate_data(estimator, *arrays, dtype=np.float64, **options)
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        raise ValueError(
            f"X and y must hold real numbers; {error}: pass categories as a column of pandas, of dtype "
            "category, and dates as numbers, such as days since the first"
        ) from error
    if options.get("y_numeric"):
        return found[0], finite(y=np.asarray(found[1], np.float64))  # None is NaN
    return found


def scaler_of(are_inputs: bool = True, **named: np.ndarray) -> Any:
    """Columns in units of their deviation; inputs of two values, such as indicators, of their distance.

    A rare category would else lie many units from the others. A value beside which all others of its column
    would be one number is refused.
    """
    ((name, values),) = named.items()
    with np.errstate(over="ignore", invalid="ignore"):  # which `standardised` tells of
        distance = np.abs(values - np.median(values, axis=0))
        farthest = distance.max(axis=0)
        others = np.where(distance > farthest / 2, 0, distance).max(axis=0)
        scaler: Any = StandardScaler().fit(values)
    if len(wrong := np.flatnonzero((others > 0) & (farthest > FARTHEST * others))):
        j = wrong[0]
        raise ValueError(
            f"{name} must lie within {FARTHEST:g} times the reach of most of its column; in column {j} most "
            f"entries lie within {others[j]:g} of the median, and one is "
            f"{values[distance[:, j].argmax(), j]:g}: is it a fill value?"
        )
    if are_inputs:
        low, high = values.min(axis=0), values.max(axis=0)
        is_two_valued = (low < high) & ((values == low) | (values == high)).all(axis=0)
        scaler.scale_ = np.where(is_two_valued, high - low, scaler.scale_)
    return scaler


def standardised(scaler: Any, **named: np.ndarray) -> np.ndarray:
    """In units of the training data, of which float32 holds what a network makes of them."""
    ((name, values),) = named.items()
    with np.errstate(over="ignore", invalid="ignore"):
        units = scaler.transform(values)
    if not np.isfinite(scaler.scale_).all() or not (np.abs(units) <= FARTHEST).all():
        raise ValueError(
            f"{name} must lie within {FARTHEST:g} standard deviations of the training data, since float32 is "
            f"to hold it; got entries from {values.min():g} to {values.max():g}: is one of them a fill value?"
        )
    return units


def random_of(random_state: Any) -> np.random.RandomState:
    """What scikit-learn makes of a seed, which takes no Generator."""
    if isinstance(random_state, np.random.Generator):
        random_state = np.random.RandomState(random_state.bit_generator)
    return check_random_state(random_state)
