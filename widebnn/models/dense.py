"""A fully connected layer in NTK parametrisation."""

import math

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from widebnn._arrays import Inputs
from widebnn._check import Number, at_least, is_known_to_be, non_negative, positive

__all__ = ["Dense"]


class Dense(nnx.Module):
    """f = (σ_W/√d_in) h W + σ_b b, every entry of W and b ~ N(0, 1) (Jacot et al. 2018).

    The scaling stands in the layer and not in the prior, so that all parameters of all layers have the
    same prior N(0, 1) whatever the width.

    Parameters
    ----------
    in_features, out_features
        d_in and d_out. The scaling 1/√d_in keeps to this d_in even when the layer is applied with a
        kernel of fewer rows, as `widebnn.targets.rotated` does.
    weight_std, bias_std
        σ_W > 0 and σ_b ≥ 0. With σ_b = 0 the layer has no bias.
    rngs
        Where the first parameters are drawn from.

    Raises
    ------
    ValueError
        If a size is below 1, `weight_std` is not positive or `bias_std` is negative.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        weight_std: Number = 2**0.5,
        bias_std: Number = 0.1,
        rngs: nnx.Rngs,
    ):
        self.in_features = at_least(1, in_features=in_features)
        self.out_features = at_least(1, out_features=out_features)
        self.weight_std = positive(weight_std=weight_std)
        self.bias_std = non_negative(bias_std=bias_std)
        self.kernel = nnx.Param(jax.random.normal(rngs.params(), (in_features, out_features)))
        has_bias = not is_known_to_be(0, bias_std)
        self.bias = nnx.Param(jax.random.normal(rngs.params(), (out_features,))) if has_bias else None

    def __call__(self, h: Inputs) -> Float[Array, "n d_out"]:
        f = self.weight_std / math.sqrt(self.in_features) * (jnp.asarray(h) @ self.kernel[...])
        return f if self.bias is None else f + self.bias_std * self.bias[...][None, :]
