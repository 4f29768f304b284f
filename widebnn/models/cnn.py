"""A plain convolutional embedding."""

from itertools import pairwise

from flax import nnx
from jaxtyping import Array, Float

from widebnn._check import Number, at_least, one_of
from widebnn.models.conv import Conv, Images
from widebnn.models.fcn import ACTIVATIONS

__all__ = ["CNN"]


class CNN(nnx.Module):
    """$h^ℓ = ψ(f^ℓ)$, $f^ℓ$ a $3 × 3$ convolution of $h^(ℓ−1)$, for $ℓ = 1, …, L$; then the mean over pixels.

    It maps images $(n, height, width, channels)$ to $(n, d_L)$.

    Parameters
    ----------
    in_channels
        Channels of an input.
    width
        Channels of every hidden layer, and $d_L$.
    depth
        Number of convolutions, $L ≥ 1$.
    activation
        $ψ$: "gelu", "erf" or "relu".
    weight_std, bias_std
        $σ_W$ and $σ_b$ of the convolutions, as in `Conv`.
    rngs
        Generator of the initial parameters.
    """

    def __init__(
        self,
        in_channels: int,
        width: int,
        depth: int = 1,
        *,
        activation: str = "gelu",
        weight_std: Number = 2**0.5,
        bias_std: Number = 0.1,
        rngs: nnx.Rngs,
    ):
        self.in_channels = at_least(1, in_channels=in_channels)
        self.width, self.depth = at_least(1, width=width), at_least(1, depth=depth)
        self.activation = one_of(ACTIVATIONS, activation=activation)
        channels = [self.in_channels] + self.depth * [self.width]
        self.layers = nnx.List(
            Conv(c_in, c_out, weight_std=weight_std, bias_std=bias_std, rngs=rngs)
            for c_in, c_out in pairwise(channels)
        )

    def __call__(self, x: Images) -> Float[Array, "n d_L"]:
        """h^L averaged over pixels, not yet scaled by the readout's σ_W/√d_L."""
        h = x
        for layer in self.layers:
            h = ACTIVATIONS[self.activation](layer(h))
        return h.mean(axis=(1, 2))
