"""A fully connected layer in NTK parametrisation."""

import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float

from widebnn._arrays import Inputs
from widebnn._check import Number, at_least
from widebnn.models._affine import WEIGHT_STD, Affine

__all__ = ["Dense"]


class Dense(Affine):
    """$f = (σ_W/√d_in) h W + σ_b b$, every entry of $W$ and $b ~ N(0, 1)$ (Jacot et al. 2018).

    It maps $h$ of shape $(n, d_in)$ to $(n, d_out)$. The scaling is in the layer and not in the prior, so
    that all parameters of all layers have the same prior $N(0, 1)$ whatever the width.

    Parameters
    ----------
    in_features
        Number of inputs, $d_in$. The scaling $1/√d_in$ keeps this $d_in$ even when the layer is applied with
        a kernel of fewer rows, as `widebnn.targets.rotated` does.
    out_features
        Number of outputs, $d_out$.
    weight_std, bias_std
        $σ_W > 0$ and $σ_b ≥ 0$. With $σ_b = 0$ the layer has no bias. $σ_W$ may be an array, one number per
        input: automatic relevance determination (MacKay 1994; Neal 1996).
    scale
        $c > 0$ in $f = c h W + σ_b b$, in place of $σ_W/√d_in$: $σ_W$ is then $c √d_in$.
    initial_std
        Standard deviation of the initial kernel; the initial bias is then 0. By default both are draws from
        $N(0, 1)$.
    rngs
        Generator of the initial parameters.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        weight_std: Number | Array | np.ndarray = WEIGHT_STD,
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
        return self._affine(jnp.matmul, h)
