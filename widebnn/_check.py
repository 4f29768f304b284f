"""Checks of arguments; each names the argument, what was given and what is wanted, and returns the value.

Arguments are passed by keyword so that the name in the message is the caller's own:
`positive(noise_std=noise_std)`. Traced values cannot be looked at and pass.
"""

import math
import numbers
import operator
from collections.abc import Iterable
from typing import Any, SupportsIndex

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Key, Real

__all__ = [
    "Number",
    "at_least",
    "brief",
    "finite",
    "fraction",
    "is_known_to_be",
    "non_negative",
    "one_key",
    "one_of",
    "positive",
    "positive_each",
    "proper_fraction",
    "quarter_turn",
    "share",
]


LINE = 200
"""Characters that an error shows of a value."""

Number = float | int | Real[Array, ""]
"""A real number; a 0-d array where it may be traced."""


def brief(value: Any) -> str:
    """What an error shows of a value: arrays by type and shape, and of anything else a line."""
    if isinstance(value, jax.Array | np.ndarray) and value.ndim > 0:
        return f"{value.dtype}{list(value.shape)}"
    text = repr(value)
    return text if len(text) <= LINE else f"{text[:LINE]}…"


def _only[T](named: dict[str, T]) -> tuple[str, T]:
    ((name, value),) = named.items()
    return name, value


def at_least(least: int, **named: SupportsIndex) -> int:
    """An integer no smaller than `least`."""
    name, value = _only(named)
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer; got {brief(value)}") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}; got {value}")
    return number


def _number(low: Number, strict: bool, high: Number, wanted: str, named: dict[str, Number]) -> Number:
    name, value = _only(named)
    if not _is_number(value):
        raise TypeError(f"{name} must be {wanted}; got {brief(value)}")
    if isinstance(value, jax.core.Tracer):
        return value
    number = float(value)  # a comparison of arrays would be traced under jit
    if not math.isfinite(number) or number < low or (strict and number == low) or number > high:
        raise ValueError(f"{name} must be {wanted}; got {value}")
    return value


def _is_number(value: object) -> bool:
    """Whether it is one real number; True and False are none."""
    if isinstance(value, jax.Array | np.ndarray | np.generic):
        kinds = (np.integer, np.floating)
        return value.ndim == 0 and any(jnp.issubdtype(value.dtype, kind) for kind in kinds)
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_known_to_be(number: Number, value: Number | Bool[Array, ""]) -> bool:
    """Whether `value`, of which True is 1, equals `number`; a traced value is not known."""
    return not isinstance(value, jax.core.Tracer) and float(value) == number


def positive(**named: Number) -> Number:
    """A finite number above 0."""
    return _number(0, True, math.inf, "a finite number above 0", named)


def positive_each(size: int | None, **named: Any) -> Any:
    """A finite number above 0, or an array of `size` of them, of any number unless given, which is copied.

    Known numbers come as Python has them, to take the dtype of what they meet.
    """
    name, value = _only(named)
    if _is_number(value) or not isinstance(value, jax.Array | np.ndarray):
        number = positive(**named)
        return number if isinstance(number, jax.core.Tracer) else float(number)
    if value.ndim != 1 or (size is not None and len(value) != size):
        wanted = "one axis" if size is None else f"shape ({size},)"
        raise ValueError(f"{name} must be a number or an array with {wanted}; got the shape {value.shape}")
    if isinstance(value, jax.core.Tracer):
        return value
    for entry in (values := np.array(value)):
        positive(**{name: entry})
    return values


def non_negative(**named: Number) -> Number:
    """A finite number, 0 or above."""
    return _number(0, False, math.inf, "a finite number, 0 or above", named)


def fraction(**named: Number) -> Number:
    """A number in (0, 1]."""
    return _number(0, True, 1, "a number in (0, 1]", named)


def share(**named: Number) -> Number:
    """A number in [0, 1]."""
    return _number(0, False, 1, "a number in [0, 1]", named)


def proper_fraction(**named: Number) -> Number:
    """A number in (0, 1)."""
    return _number(0, True, math.nextafter(1, 0), "a number in (0, 1)", named)


def quarter_turn(**named: Number) -> Number:
    """An angle in (0, π/2], as float32 rounds it."""
    return _number(0, True, float(np.float32(math.pi / 2)), "an angle in (0, π/2]", named)


def one_of(known: Iterable[str], **named: str) -> str:
    """One of `known`."""
    name, value = _only(named)
    if value not in (names := sorted(known)):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, names))}; got {brief(value)}")
    return value


def one_key(**named: Any) -> Key[Array, ""]:
    """A key of `jax.random`, and not an array of them."""
    name, value = _only(named)
    if not isinstance(value, jax.Array) or not jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        raise TypeError(f"{name} must be a key such as jax.random.key(0); got {brief(value)}")
    if value.shape != ():
        raise ValueError(f"{name} must be one key; got an array of them, of shape {value.shape}")
    return value


def finite[T: jax.Array | np.ndarray](**named: T) -> T:
    """An array without NaN or infinity."""
    name, value = _only(named)
    # by NumPy, which looks at the numbers even while something else is being traced
    if not isinstance(value, jax.core.Tracer) and not np.isfinite(value).all():
        raise ValueError(f"{name} must be finite; it has NaN or infinite entries")
    return value
