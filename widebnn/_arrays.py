"""What a user may hand over as data: whatever holds real numbers or labels in rows."""

import datetime
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Real

from widebnn._check import brief, finite

Inputs = Real[Array | np.ndarray, "n ..."] | Bool[Array | np.ndarray, "n ..."]
"""x, one row per observation."""

NewInputs = Real[Array | np.ndarray, "m ..."] | Bool[Array | np.ndarray, "m ..."]
"""x*, one row per prediction."""

Observations = Real[Array | np.ndarray, "n ..."] | Bool[Array | np.ndarray, "n ..."]
"""y, (n, d_out); (n,) where there is one output."""

Labels = Int[Array | np.ndarray, " n"] | Bool[Array | np.ndarray, " n"]
"""Class numbers; booleans are 0 and 1."""

DATES = "date", "time", "duration", "period"
"""How the dtypes of dates begin in NumPy, pandas and polars."""
DATE = np.datetime64 | np.timedelta64 | datetime.date | datetime.timedelta


@runtime_checkable
class Frame(Protocol):
    """A table or a column of pandas or polars."""

    def to_numpy(self) -> np.ndarray:
        """Its entries."""
        ...


Tabular = Frame | Sequence[Any] | Mapping[str, Any]
"""Data that are not an array yet, or a pytree of arrays with one row per observation."""


def floating(**named: Any) -> Float[Array, "..."]:
    """Finite real numbers in floating point, a copy; integers and booleans take JAX's default precision.

    Were inputs left as integers, new inputs in their type would lose their fractions.
    """
    return _floating(real(**named), named)


def observed(**named: Any) -> Float[Array, "..."]:
    """`floating`, where each column keeps its differences: see `_check_differences`."""
    given = real(**named)
    array = _floating(given, named)
    if isinstance(given, np.ndarray):
        ((name, _),) = named.items()
        _check_differences(name, given, array.dtype)
    return array


def column(**named: Any) -> Float[Array, "n ..."]:
    """`observed`, with (n,) as (n, 1): what a table's column is."""
    array = observed(**named)
    if array.ndim != 1:
        return array
    return array[:, None] if isinstance(array, jax.core.Tracer) else _copied(np.asarray(array)[:, None])


def is_tree(x: Any) -> bool:
    """Whether it is a pytree of arrays, such as a dict or a named tuple; lists and tuples are rows."""
    return x is not None and type(x) not in (list, tuple) and not jax.tree_util.all_leaves([x])


def num_rows(x: Any) -> int:
    """Observations in an array or in a pytree of arrays."""
    return jax.tree.leaves(x)[0].shape[0]


def shapes(x: Any) -> Any:
    """Of the arrays of a pytree, for a message."""
    return jax.tree.map(lambda leaf: leaf.shape, x)


def inputs(check: Callable[..., Array], **named: Any) -> Any:
    """One array by `check`, or a pytree of arrays with one row per input, where integers stay integers."""
    ((name, x),) = named.items()
    if not is_tree(x):
        return check(**named)

    def of(path, leaf):
        leaf_name = name + jax.tree_util.keystr(path)
        array = real(**{leaf_name: leaf})
        if jnp.issubdtype(array.dtype, jnp.floating):
            return check(**{leaf_name: leaf})
        return array if isinstance(array, jax.core.Tracer) else _copied(_whole(leaf_name, array))

    x = jax.tree_util.tree_map_with_path(of, x)
    rows = {leaf.shape[:1] for leaf in jax.tree.leaves(x)}
    if len(rows) != 1 or rows & {(), (0,)}:
        raise ValueError(f"{name} must hold arrays with one row for each input; got the shapes {shapes(x)}")
    return x


def _whole(name: str, array: Array | np.ndarray) -> Array | np.ndarray:
    """Integers of JAX's default precision, or booleans as they are."""
    if array.dtype == bool or isinstance(array, jax.Array):
        return array
    known = np.iinfo(jnp.result_type(int))
    if array.size > 0 and not known.min <= array.min() <= array.max() <= known.max:
        raise ValueError(f"{name} must fit into {known.dtype}; got {array.min()} to {array.max()}")
    return array.astype(known.dtype)


def _floating(array: Array | np.ndarray, named: dict[str, Any]) -> Float[Array, "..."]:
    is_floating, widest = jnp.issubdtype(array.dtype, jnp.floating), jnp.result_type(float)
    dtype = array.dtype if is_floating and array.dtype.itemsize <= widest.itemsize else widest
    if isinstance(array, jax.core.Tracer):
        return array.astype(dtype)
    ((name, _),) = named.items()
    with np.errstate(over="ignore"):  # `finite` tells of it
        return finite(**{name: _copied(array if array.dtype == dtype else np.asarray(array, dtype))})


def _copied(array: Array | np.ndarray) -> Array:
    """The array of JAX, of known numbers even while something else is traced, such as a scale.

    On a CPU `jax.device_put` takes over the memory of an array of NumPy where it lies on a boundary of 64
    bytes, as a memory map does. What the caller wrote there later would change a posterior.
    """
    with jax.ensure_compile_time_eval():
        if isinstance(array, np.ndarray):
            return jax.device_put(np.array(array))
        return jax.device_put(array, may_alias=False)


MAX_SHIFT = 1e-2
"""Of the span of a column, by which rounding may move an entry."""
CONSTANT = 2.0**-40
"""Span of floating-point numbers relative to the largest, below which they differ by rounding alone."""


def _check_differences(name: str, array: np.ndarray, dtype: np.dtype) -> None:
    """Raise where a conversion to `dtype` takes from a column what distinguishes its entries.

    That is where rounding moves an entry by more than a hundredth of the column's span; standardised columns
    are moved by a ten-millionth.
    """
    if array.dtype == dtype or array.dtype.kind not in "iuf" or array.size == 0 or array.ndim == 0:
        return
    array = array.reshape(len(array), -1)
    low, high = array.min(axis=0), array.max(axis=0)
    largest = np.maximum(np.abs(low.astype(float)), np.abs(high.astype(float)))
    span = high.astype(np.longdouble) - low
    step = np.spacing(largest.astype(dtype)).astype(float)
    rounding = CONSTANT * largest if array.dtype.kind == "f" else 0
    for i in np.flatnonzero((span > rounding) & (step > MAX_SHIFT * span)):
        shift = np.abs(array[:, i].astype(dtype).astype(np.longdouble) - array[:, i]).max()
        if shift > MAX_SHIFT * span[i]:
            of_column = f"column {i} of {name}" if array.shape[1] > 1 else name
            raise ValueError(
                f"{name} must keep its differences in {dtype}, which does not hold those of {of_column}, "
                f"from {low[i]} to {high[i]}: subtract the mean and divide by the standard deviation, or "
                "enable jax_enable_x64 and pass float64"
            )


def real(**named: Any) -> Array | np.ndarray:
    """Real numbers or booleans in an array: one of JAX as it is, anything else as one of NumPy."""
    ((name, value),) = named.items()
    array = value if isinstance(value, jax.Array) else as_array(**named)
    if _all_are(numbers.Real, array):
        array = array.astype(float)  # columns of booleans beside columns of numbers
    if not any(jnp.issubdtype(array.dtype, kind) for kind in (np.integer, np.floating, np.bool_)):
        raise TypeError(f"{name} must hold real numbers; got {_odd(array, numbers.Real)}")
    return array


def _all_are(kind: type, array: Array | np.ndarray) -> bool:
    """Whether these are objects, all of one kind."""
    return array.dtype == object and all(isinstance(x, kind) for x in np.ravel(array))


def _odd(array: Array | np.ndarray, kind: type) -> str:
    """An entry that is not of this kind, and the array's type and shape."""
    entries = array.ravel().tolist() if isinstance(array, np.ndarray) else ()
    odd = next((f"{brief(x)} in " for x in entries if not isinstance(x, kind)), "")
    return f"{odd}{array.dtype} of shape {array.shape}"


def labels(n: int, num_classes: int, **named: Any) -> Int[Array | np.ndarray, " n"]:
    """Class numbers as integers, one for each row; booleans are 0 and 1. Traced ones cannot be looked at."""
    ((name, value),) = named.items()
    array = value if isinstance(value, jax.core.Tracer) else as_array(**named)
    wanted = f"{name} must be labels 0 to {num_classes - 1}, integers or booleans"
    if array.dtype.kind not in "biu" and not _all_are(numbers.Integral, array):
        raise TypeError(f"{wanted}; got {_odd(array, numbers.Integral)}")
    if array.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), one label for each row; got {array.shape}")
    array = array.astype(int)
    if isinstance(array, np.ndarray) and n > 0 and not 0 <= array.min() <= array.max() < num_classes:
        raise ValueError(f"{wanted}; got {array.min()} to {array.max()}")
    return array


def as_array(**named: Any) -> np.ndarray:
    """One of NumPy without masked entries, dates or durations, whose numbers would depend on their unit."""
    ((name, value),) = named.items()
    if np.ma.is_masked(value):
        raise ValueError(f"{name} must have no masked entries")
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must be an array; got a {type(value).__name__} of uneven rows") from None
    # polars makes numbers of dates that stand beside numbers
    is_table = isinstance(value, Frame) and hasattr(value, "columns")
    dtypes = value.dtypes if is_table else [array.dtype]  # pyright: ignore[reportAttributeAccessIssue]
    has_dates = any(str(dtype).lower().startswith(DATES) for dtype in dtypes)
    objects = array.flat if array.dtype == object else ()
    if has_dates or any(isinstance(x, DATE) for x in objects):
        raise TypeError(
            f"{name} must hold real numbers; got dates or durations: pass numbers, such as days "
            "since the first"
        )
    return array
