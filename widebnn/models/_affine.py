"""What `Dense` and `Conv` have in common: scales, where parameters start, and the map."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array

from widebnn._check import Number, brief, is_known_to_be, non_negative, positive, positive_each

__all__ = ["WEIGHT_STD", "Affine", "Linear", "real", "stretched"]

Linear = Callable[[Array, Array], Array]
"""A map of inputs and a kernel that is linear in either."""

WEIGHT_STD = 2**0.5
"""The papers' σ_W."""


class Affine(nnx.Module):
    """σ_W, σ_b, kernel and bias of a layer f = (σ_W/√fan-in) h ∗ W + σ_b b.

    Scales are data of the module: leaves, and no part of its graph, so that one program serves all values of
    them. Where σ_b is 0 there is no bias, and no leaf for it.

    Parameters
    ----------
    shape
        Shape of W, output features last; the product of the rest is the fan-in.
    weight_std, bias_std, scale, initial_std, rngs
        As in `widebnn.models.Dense`.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        weight_std: Number | Array | np.ndarray,
        bias_std: Number,
        scale: Number | None,
        initial_std: Number | None,
        rngs: nnx.Rngs,
    ):
        self.fan_in = int(math.prod(shape[:-1]))
        checked: Any = positive_each(shape[-2], weight_std=weight_std)
        if scale is not None:
            if np.ndim(checked) or not is_known_to_be(WEIGHT_STD, checked):
                raise ValueError(
                    f"weight_std must be left out where scale is given; got {weight_std} and {scale}"
                )
            checked = positive_each(shape[-2], scale=scale) * math.sqrt(self.fan_in)
        self.weight_std = nnx.data(checked)
        bias_std = non_negative(bias_std=bias_std)
        if not isinstance(rngs, nnx.Rngs):
            raise TypeError(f"rngs must be a flax.nnx.Rngs, such as nnx.Rngs(0); got {brief(rngs)}")
        std = 1.0 if initial_std is None else positive(initial_std=initial_std)
        self.kernel = nnx.Param(_normal(rngs, std, shape))
        if is_known_to_be(0, bias_std):
            self.bias, self.bias_std = None, 0.0
        else:
            self.bias_std = nnx.data(real(bias_std))
            self.bias = nnx.Param(_normal(rngs, 1.0 if initial_std is None else 0.0, shape[-1:]))

    def _affine(self, linear: Linear, h: Array | np.ndarray) -> Array:
        """Outputs at h, where `linear` is the map of h and W."""
        factor: Any = self.weight_std / math.sqrt(self.fan_in)
        if jnp.ndim(factor):
            f = linear(stretched(factor, jnp.asarray(h)), self.kernel[...])
        else:
            f = factor * linear(jnp.asarray(h), self.kernel[...])
        if self.bias is None:
            return f
        return f + self.bias_std * jnp.expand_dims(self.bias[...], tuple(range(f.ndim - 1)))


def stretched(weight_std: Any, h: Array) -> Array:
    """σ_W h, where σ_W may be one number per input."""
    scales = jnp.asarray(weight_std, h.dtype)
    if scales.ndim == 0:
        return scales * h
    if scales.shape != h.shape[-1:]:
        raise ValueError(
            f"weight_std must be a number, or an array with one for each of {h.shape[-1]} inputs; got the "
            f"shape {scales.shape}"
        )
    return jnp.expand_dims(scales, tuple(range(h.ndim - 1))) * h


def real(scale: Number) -> Number:
    """A known number as Python has it, which takes the dtype of what it meets."""
    return scale if isinstance(scale, jax.core.Tracer) else float(scale)


def _normal(rngs: nnx.Rngs, std: Number, shape: tuple[int, ...]) -> Array:
    """Draws from N(0, std²), by NumPy where the key is known.

    `jax.random` would compile a program for each shape, and one for the next key of the stream. Most of these
    numbers are never used: a target takes shapes alone from a module.
    """
    stream = rngs.params
    key, count = stream.key[...], stream.count[...]
    if any(isinstance(given, jax.core.Tracer) for given in (key, count, std)):
        return std * jax.random.normal(stream(), shape)
    stream.count[...] = jax.device_put(np.array(int(count) + 1, np.uint32))
    generator = np.random.default_rng([*np.asarray(jax.random.key_data(key)), int(count)])
    values, dtype = float(std) * generator.standard_normal(shape), jnp.result_type(float)
    return jnp.asarray(values.astype(dtype), dtype)  # without a conversion in JAX it compiles nothing
