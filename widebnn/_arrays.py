"""What a user may hand over as data: real arrays of JAX or of NumPy."""

import contextlib

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Real

from widebnn._check import finite

__all__ = ["Inputs", "NewInputs", "Observations", "floating"]

Inputs = Real[Array | np.ndarray, "n ..."] | Bool[Array | np.ndarray, "n ..."]
"""x, one row per observation."""

NewInputs = Real[Array | np.ndarray, "m ..."] | Bool[Array | np.ndarray, "m ..."]
"""x*, one row per prediction."""

Observations = Real[Array | np.ndarray, "n d_out"] | Bool[Array | np.ndarray, "n d_out"]
"""y."""


def floating(**named: jax.Array | np.ndarray) -> Float[Array, "..."]:
    """Finite real numbers in floating point: integers and booleans take JAX's default precision.

    Were inputs left as integers, new inputs in their type would lose their fractions.

    Raises
    ------
    TypeError
        If the numbers are complex.
    ValueError
        If one of them is NaN or infinite.
    """
    ((name, value),) = named.items()
    is_traced = isinstance(value, jax.core.Tracer)
    # Data at hand stay at hand while something else is traced, such as a scale.
    with contextlib.nullcontext() if is_traced else jax.ensure_compile_time_eval():
        array = jnp.asarray(value)
        if jnp.issubdtype(array.dtype, jnp.complexfloating):
            raise TypeError(f"{name} must hold real numbers; got {array.dtype}")
        if not jnp.issubdtype(array.dtype, jnp.floating):
            array = array.astype(jnp.result_type(float))
    return finite(**{name: array})
