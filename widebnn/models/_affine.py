"""What `Dense` and `Conv` have in common: scales, and where parameters start."""

import math

import jax
import jax.numpy as jnp
from flax import nnx

from widebnn._check import Number, is_known_to_be, non_negative, positive

__all__ = ["WEIGHT_STD", "Affine"]

WEIGHT_STD = 2**0.5
"""The papers' σ_W."""


class Affine(nnx.Module):
    """σ_W, σ_b, kernel and bias of a layer f = (σ_W/√fan-in) h ∗ W + σ_b b.

    Parameters
    ----------
    shape
        Shape of W, output features last; the product of the rest is the fan-in.
    weight_std, bias_std, scale, initial_std, rngs
        As in `widebnn.models.Dense`.

    Raises
    ------
    TypeError
        If `rngs` is not an `nnx.Rngs`.
    ValueError
        If a number is out of range, or `scale` comes with a `weight_std` of its own.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        weight_std: Number,
        bias_std: Number,
        scale: Number | None,
        initial_std: Number | None,
        rngs: nnx.Rngs,
    ):
        self.weight_std = positive(weight_std=weight_std)
        if scale is not None:
            if not is_known_to_be(WEIGHT_STD, weight_std):
                raise ValueError(
                    f"weight_std must be left out where scale is given; got {weight_std} and {scale}"
                )
            self.weight_std = positive(scale=scale) * math.sqrt(math.prod(shape[:-1]))
        self.bias_std = non_negative(bias_std=bias_std)
        if not isinstance(rngs, nnx.Rngs):
            raise TypeError(f"rngs must be a flax.nnx.Rngs, such as nnx.Rngs(0); got {rngs!r}")
        std = 1.0 if initial_std is None else positive(initial_std=initial_std)
        self.kernel = nnx.Param(std * jax.random.normal(rngs.params(), shape))
        if is_known_to_be(0, bias_std):
            self.bias = None
        elif initial_std is None:
            self.bias = nnx.Param(jax.random.normal(rngs.params(), shape[-1:]))
        else:
            self.bias = nnx.Param(jnp.zeros(shape[-1]))
