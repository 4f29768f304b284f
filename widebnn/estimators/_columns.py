"""The columns that an estimator is given: checked, categories as indicators, in units of the rows of fit."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from widebnn._arrays import present, undated

__all__ = [
    "Categories",
    "checked",
    "names_of",
    "random_of",
    "refuse_fill_values",
    "scaler_of",
    "standardised",
]


FARTHEST = 1e12
"""Standard deviations from the training data, whose squares float32 holds in sums over any layer."""


MAX_ENTRIES = 10**8
"""Of a sparse matrix, which becomes an array."""


class Categories(dict[int, np.ndarray]):
    """The categories of those columns of a pandas frame whose dtype is "category", by the column's number."""

    @classmethod
    def of(cls, X: Any) -> "Categories":
        """All that the dtype names, also those that no row has."""
        if not hasattr(X, "isetitem"):
            return cls()
        dtypes = enumerate(X.dtypes)
        return cls(
            {j: np.asarray(dtype.categories, object) for j, dtype in dtypes if dtype.name == "category"}
        )

    def coded(self, X: Any) -> Any:
        """A frame with numbers in place of categories.

        Raises
        ------
        TypeError
            If there are such columns, and X is no frame of pandas.
        ValueError
            If an entry is missing, or none of the categories.
        """
        if not self:
            return X
        if not hasattr(X, "isetitem"):
            raise TypeError(f"X must be a pandas data frame, as it was in fit; got a {type(X).__name__}")
        X = X.copy()
        for j, categories in self.items():
            number = {category: k for k, category in enumerate(categories)}
            column = X.iloc[:, j]
            _refuse_missing(column.isna().to_numpy()[:, None], [str(X.columns[j])])
            unknown = [entry for entry in column if entry not in number]
            if unknown:
                raise ValueError(
                    f"X must hold categories of the fit in column {str(X.columns[j])!r}: "
                    f"{', '.join(map(repr, categories))}; got {unknown[0]!r}"
                )
            X.isetitem(j, np.array([number[entry] for entry in column], np.float64))
        return X

    def indicators(self, values: np.ndarray) -> np.ndarray:
        """Numbers (n, d), of which each column of categories becomes one of 0 and 1 for each of them."""
        if not self:
            return values
        return np.concatenate(
            [
                (values[:, [j]] == np.arange(len(self[j]))).astype(float) if j in self else values[:, [j]]
                for j in range(values.shape[1])
            ],
            axis=1,
        )

    def groups(self, num_columns: int) -> np.ndarray:
        """The column that each input comes from."""
        return np.repeat(np.arange(num_columns), [len(self.get(j, [0])) for j in range(num_columns)])


def names_of(estimator: Any) -> list[str]:
    """Of the columns, as scikit-learn has them."""
    default = [f"x{j}" for j in range(estimator.n_features_in_)]
    return [str(name) for name in getattr(estimator, "feature_names_in_", default)]


def checked(estimator: Any, *arrays: Any, **options: Any) -> Any:
    """Finite numbers in float64, by scikit-learn's rules, which take dates for numbers."""
    X, *rest = arrays
    if scipy.sparse.issparse(X):
        if X.ndim == 2 and np.prod(X.shape, dtype=float) > MAX_ENTRIES:
            raise ValueError(
                f"X must have at most {MAX_ENTRIES:,} entries where it is sparse, since it becomes an array; "
                f"got {X.shape}: drop columns, or take the leading directions of TruncatedSVD"
            )
        X = X.toarray()
    if options.get("reset", True):
        estimator._categories = Categories.of(X)
    elif estimator._categories and hasattr(X, "columns"):  # by names, a category is looked for where it was
        validate_data(estimator, X, reset=False, skip_check_array=True)
    arrays = estimator._categories.coded(X), *rest
    _refuse_missing(*_missing(arrays[0]))
    check_y = undated if options.get("y_numeric") else present
    for name, check, array in zip("Xy", (undated, check_y), arrays):
        checked = check(**{name: array})
        if check is undated:
            _refuse_text(name, checked)
    return validate_data(estimator, *arrays, dtype=np.float64, **options)


def _missing(X: Any) -> tuple[np.ndarray, Sequence[str]]:
    """Which entries are, and names of the columns; none where X is no table, of which others tell."""
    try:
        array: Any = np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X)
    except ValueError:
        array = np.zeros(0)
    if array.ndim != 2 or array.dtype.kind not in "fO":
        return np.zeros((0, 0), bool), []
    names = list(map(str, X.columns if hasattr(X, "columns") else range(array.shape[1])))
    if array.dtype.kind == "f":
        return np.isnan(array), names
    import pandas  # a second, which only those pay who hand over objects

    is_date = np.array([[entry is pandas.NaT for entry in row] for row in array], bool)
    return pandas.isna(array) & ~is_date, names


def _refuse_missing(is_missing: np.ndarray, names: Sequence[str]) -> None:
    if is_missing.any():
        j = int(is_missing.any(axis=0).argmax())
        raise ValueError(
            f"X must have no missing entries (NaN); got {is_missing.sum():,} of {is_missing.size:,}, "
            f"such as in column {names[j]}: "
            "put sklearn.impute.SimpleImputer before the estimator, make_pipeline(SimpleImputer(), ...), for "
            'categories with strategy="most_frequent", or drop these rows'
        )


def _refuse_text(name: str, array: np.ndarray) -> None:
    """Strings that are no numbers; scikit-learn takes those that are."""
    texts = (entry for entry in array.flat if isinstance(entry, str | bytes) and not _is_number(entry))
    if array.dtype.kind in "OSU" and (text := next(texts, None)) is not None:
        raise ValueError(
            f"{name} must hold real numbers; got the text {str(text)!r}: pass categories as a column of a "
            'pandas frame of dtype "category", and dates as numbers, such as days since the first'
        )


def _is_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def refuse_fill_values(**named: np.ndarray) -> None:
    """Values so far from all others of their column that these would be one number beside them."""
    ((name, values),) = named.items()
    with np.errstate(over="ignore", invalid="ignore"):
        distance = np.abs(values - np.median(values, axis=0))
        is_far = distance > distance.max(axis=0) / 2
        others = np.where(is_far, 0, distance).max(axis=0)
        (wrong,) = np.nonzero((others > 0) & (distance.max(axis=0) > FARTHEST * others))
    if len(wrong):
        j = wrong[0]
        raise ValueError(
            f"{name} must lie within {FARTHEST:g} times the reach of most of its column; in column {j} all "
            f"but {is_far[:, j].sum()} entries lie within {others[j]:g} of the median, and one is "
            f"{values[distance[:, j].argmax(), j]:g}: is it a fill value?"
        )


def scaler_of(values: np.ndarray, are_inputs: bool = True) -> Any:
    """Columns in units of their deviation; inputs of two values, such as indicators, of their distance.

    A rare category would else lie many units from the others.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # which `standardised` tells of
        scaler: Any = StandardScaler().fit(values)
        if not are_inputs:
            return scaler
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
