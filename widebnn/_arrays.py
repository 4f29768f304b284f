"""What a user may hand over as data: whatever holds real numbers in rows."""

import numbers
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Real

from widebnn._check import finite

__all__ = ["Inputs", "NewInputs", "Observations", "Tabular", "column", "floating"]

Inputs = Real[Array | np.ndarray, "n ..."] | Bool[Array | np.ndarray, "n ..."]
"""x, one row per observation."""

NewInputs = Real[Array | np.ndarray, "m ..."] | Bool[Array | np.ndarray, "m ..."]
"""x*, one row per prediction."""

Observations = Real[Array | np.ndarray, "n ..."] | Bool[Array | np.ndarray, "n ..."]
"""y, (n, d_out); (n,) where there is one output."""


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

    Raises
    ------
    TypeError
        If there are entries that are not real numbers, or the array is sparse.
    ValueError
        If one of the numbers is NaN, infinite or masked, or rows have different lengths.
    """
    ((name, value),) = named.items()
    array = value if isinstance(value, jax.Array) else _numbers(name, value)
    if jnp.issubdtype(array.dtype, jnp.complexfloating):
        raise TypeError(f"{name} must hold real numbers; got {array.dtype}")
    is_floating, widest = jnp.issubdtype(array.dtype, jnp.floating), jnp.result_type(float)
    dtype = array.dtype if is_floating and array.dtype.itemsize <= widest.itemsize else widest
    if isinstance(array, jax.core.Tracer):
        return array.astype(dtype)
    if not (is_floating and isinstance(array, jax.Array)):
        array = _at_hand(np.asarray(array, dtype))
    return finite(**{name: array})


def column(**named: Any) -> Float[Array, "n ..."]:
    """`floating`, with (n,) as (n, 1): what a table's column is.

    Raises
    ------
    TypeError, ValueError
        As `floating`.
    """
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


def _numbers(name: str, value: Any) -> np.ndarray:
    """Numbers of any kind as an array of NumPy."""
    if hasattr(value, "toarray"):
        raise TypeError(f"{name} must be dense; got a sparse {type(value).__name__}: pass {name}.toarray()")
    if np.ma.is_masked(value):
        raise ValueError(f"{name} must have no masked entries; got {np.ma.count_masked(value)}")
    try:
        array = np.asarray(value.to_numpy() if isinstance(value, Frame) else value)
    except ValueError:
        raise ValueError(f"{name} must be an array; got a {type(value).__name__} of uneven rows") from None
    if array.dtype == object and all(isinstance(x, numbers.Real) for x in array.flat):
        array = array.astype(float)  # columns of booleans beside columns of numbers
    if not any(jnp.issubdtype(array.dtype, kind) for kind in (np.number, np.bool_)):
        wrong = next((x for x in array.ravel().tolist() if not isinstance(x, numbers.Real)), None)
        raise TypeError(
            f"{name} must hold real numbers; got {wrong!r} in {array.dtype} of shape {array.shape}"
        )
    return array
