"""A fully connected layer in NTK parametrisation."""

import math

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from widebnn._arrays import Inputs
from widebnn._check import Number, at_least
from widebnn.models._affine import WEIGHT_STD, Affine

__all__ = ["Dense"]


class Dense(Affine):
    """f = (σ_W/√d_in) h W + σ_b b, every entry of W and b ~ N(0, 1) (Jacot et al. 2018).

    The scaling stands in the layer and not in the prior, so that all parameters of all layers have the
    same prior N(0, 1) whatever the width.

    Parameters
    ----------
    in_features
        Inputs, d_in. The scaling 1/√d_in keeps to this d_in even when the layer is applied with a
        kernel of fewer rows, as `widebnn.targets.rotated` does.
    out_features
        Outputs, d_out.
    weight_std, bias_std
        σ_W > 0 and σ_b ≥ 0. With σ_b = 0 the layer has no bias.
    scale
        c > 0 of f = c h W + σ_b b, in place of σ_W/√d_in: σ_W is then c √d_in.
    initial_std
        Deviation of the first kernel; the first bias is then 0. By default both are draws from N(0, 1).
    rngs
        Where the first parameters are drawn from.

    Raises
    ------
    ValueError
        If a size is below 1, a scale is out of range, or both `weight_std` and `scale` are given.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        weight_std: Number = WEIGHT_STD,
        bias_std: Number = 0.1,
        scale: Number | None = None,
        initial_std: Number | None = None,
        rngs: nnx.Rngs,
    ):
        self.in_features = at_least(1, in_features=in_features)
        self.out_features = at_least(1, out_features=out_features)
        super().__init__((in_features, out_features), weight_std, bias_std, scale, initial_std, rngs)

    def __call__(self, h: Inputs) -> Float[Array, "n d_out"]:
        """Outputs at h, (n, in_features)."""
        f = self.weight_std / math.sqrt(self.in_features) * (jnp.asarray(h) @ self.kernel[...])
        return f if self.bias is None else f + self.bias_std * self.bias[...][None, :]
