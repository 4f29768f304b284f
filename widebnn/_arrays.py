"""What a user may hand over as data: whatever holds real numbers or labels in rows."""

import datetime
import numbers
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Real

from widebnn._check import finite

Inputs = Real[Array | np.ndarray, "n ..."] | Bool[Array | np.ndarray, "n ..."]
"""x, one row per observation."""

NewInputs = Real[Array | np.ndarray, "m ..."] | Bool[Array | np.ndarray, "m ..."]
"""x*, one row per prediction."""

Observations = Real[Array | np.ndarray, "n ..."] | Bool[Array | np.ndarray, "n ..."]
"""y, (n, d_out); (n,) where there is one output."""

Labels = Int[Array | np.ndarray, " n"] | Bool[Array | np.ndarray, " n"]
"""Class numbers; booleans are 0 and 1."""

DATES = datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64
"""Those of pandas are among them."""


@runtime_checkable
class Frame(Protocol):
    """A table or a column of pandas or polars."""

    def to_numpy(self) -> np.ndarray:
        """Its entries."""
        ...


Tabular = Frame | Sequence[Any]
"""Data that are not an array yet."""


def floating(**named: Any) -> Float[Array, "..."]:
    """Finite real numbers in floating point: integers and booleans take JAX's default precision.

    Were inputs left as integers, new inputs in their type would lose their fractions.
    """
    ((name, _),) = named.items()
    array = real(**named)
    is_floating, widest = jnp.issubdtype(array.dtype, jnp.floating), jnp.result_type(float)
    dtype = array.dtype if is_floating and array.dtype.itemsize <= widest.itemsize else widest
    if isinstance(array, jax.core.Tracer):
        return array.astype(dtype)
    if not (is_floating and isinstance(array, jax.Array)):
        array = _at_hand(np.asarray(array, dtype))
    return finite(**{name: array})


def column(**named: Any) -> Float[Array, "n ..."]:
    """`floating`, with (n,) as (n, 1): what a table's column is."""
    array = floating(**named)
    if array.ndim != 1:
        return array
    return array[:, None] if isinstance(array, jax.core.Tracer) else _at_hand(np.asarray(array)[:, None])


def _at_hand(array: np.ndarray) -> Array:
    """The array of JAX, of known numbers even while something else is traced, such as a scale.

    Conversions come before: NumPy's compile nothing.
    """
    with jax.ensure_compile_time_eval():
        return jax.device_put(array)


def real(**named: Any) -> Array | np.ndarray:
    """Real numbers or booleans in an array: one of JAX as it is, anything else as one of NumPy."""
    ((name, value),) = named.items()
    array = value if isinstance(value, jax.Array) else _array(name, value)
    if isinstance(array, np.ndarray):
        _refuse_dates(name, value)
        if array.dtype == object and all(isinstance(x, numbers.Real) for x in array.flat):
            array = array.astype(float)  # columns of booleans beside columns of numbers
    if not any(jnp.issubdtype(array.dtype, kind) for kind in (np.integer, np.floating, np.bool_)):
        entries = array.ravel().tolist() if isinstance(array, np.ndarray) else ()
        wrong = next((f"{x!r} in " for x in entries if not isinstance(x, numbers.Real)), "")
        raise TypeError(f"{name} must hold real numbers; got {wrong}{array.dtype} of shape {array.shape}")
    return array


def labels(n: int, num_classes: int, **named: Any) -> Int[Array | np.ndarray, " n"]:
    """Class numbers as integers, one for each row; booleans are 0 and 1. Traced ones cannot be looked at."""
    ((name, value),) = named.items()
    array = value if isinstance(value, jax.core.Tracer) else present(**named)
    wanted = f"{name} must be labels 0 to {num_classes - 1}, integers or booleans"
    if array.dtype.kind not in "biu":
        entries = array.ravel().tolist() if isinstance(array, np.ndarray) else []
        wrong = next((x for x in entries if not isinstance(x, numbers.Integral)), None)
        if array.dtype != object or wrong is not None:
            raise TypeError(f"{wanted}; got {'' if wrong is None else f'{wrong!r} in '}{array.dtype}")
    if array.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), one label for each row; got {array.shape}")
    array = array.astype(int)
    if isinstance(array, np.ndarray) and n > 0 and not 0 <= array.min() <= array.max() < num_classes:
        raise ValueError(f"{wanted}; got {array.min()} to {array.max()}")
    return array


def undated(**named: Any) -> np.ndarray:
    """`present`, of which no entry is a date or a duration, whose numbers would depend on their unit."""
    ((name, value),) = named.items()
    _refuse_dates(name, value)
    return present(**named)


def present(**named: Any) -> np.ndarray:
    """Numbers or labels in an array of NumPy, none of them missing; NaN among numbers is left to `finite`."""
    ((name, value),) = named.items()
    array = _array(name, value)
    if array.ndim > 0 and array.dtype.kind in "OMm":
        import pandas  # a second, which only those pay who hand over objects

        if (is_missing := pandas.isna(array)).any():
            raise ValueError(
                f"{name} must have no missing entries; got {is_missing.sum()} of {array.size}, "
                f"such as {array[is_missing][0]!r}"
            )
    return array


def _array(name: str, value: Any) -> np.ndarray:
    """Whatever it holds."""
    if hasattr(value, "toarray"):
        raise TypeError(f"{name} must be dense; got a sparse {type(value).__name__}: pass {name}.toarray()")
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(f"{name} must have no masked entries; got {np.ma.count_masked(value)}")
    if hasattr(value, "isna") and not isinstance(getattr(value, "dtype", np.dtype(object)), np.dtype):
        value = np.asarray(value, object)  # nullable columns of pandas, whose NA may turn into NaN else
    try:
        return np.asarray(value.to_numpy() if isinstance(value, Frame) else value)
    except ValueError:
        raise ValueError(f"{name} must be an array; got a {type(value).__name__} of uneven rows") from None


def _refuse_dates(name: str, value: Any) -> None:
    # polars makes numbers of dates that stand beside numbers
    for column in value.get_columns() if hasattr(value, "get_columns") else [value]:
        array = _array(name, column)
        # a period of pandas, which need not be installed, has `asfreq`
        dates = (x for x in array.flat if isinstance(x, DATES) or hasattr(x, "asfreq"))
        if array.dtype.kind in "OMm" and (date := next(dates, None)) is not None:
            raise TypeError(
                f"{name} must hold real numbers; got dates, durations or periods such as {date!r}: "
                "pass numbers, such as days since the first"
            )
