"""The columns that an estimator is given: checked, and in units of the training data."""

from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from widebnn._arrays import present, undated

__all__ = ["checked", "random_of", "refuse_fill_values", "scaler_of", "standardised"]


FARTHEST = 1e12
"""Standard deviations from the training data, whose squares float32 holds in sums over any layer."""


def checked(estimator: Any, *arrays: Any, **options: Any) -> Any:
    """Finite numbers in float64, by scikit-learn's rules, which take dates for numbers."""
    check_y = undated if options.get("y_numeric") else present
    for name, check, array in zip("Xy", (undated, check_y), arrays):
        checked = check(**{name: array})
        if check is undated:
            _refuse_text(name, checked)
    return validate_data(estimator, *arrays, dtype=np.float64, **options)


def _refuse_text(name: str, array: np.ndarray) -> None:
    """Strings that are no numbers; scikit-learn takes those that are."""
    texts = (entry for entry in array.flat if isinstance(entry, str | bytes) and not _is_number(entry))
    if array.dtype.kind in "OSU" and (text := next(texts, None)) is not None:
        raise ValueError(
            f"{name} must hold real numbers; got the text {str(text)!r}: encode categories, and pass "
            "dates as numbers, such as days since the first"
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


def scaler_of(values: np.ndarray) -> Any:
    with np.errstate(over="ignore", invalid="ignore"):  # which `standardised` tells of
        return StandardScaler().fit(values)


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
