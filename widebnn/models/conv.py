"""A convolution in NTK parametrisation."""

import math

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from widebnn._check import Number, at_least, is_known_to_be, non_negative, positive
from widebnn.models.convolution import convolve
from widebnn.models.local_reparametrisation import apply_kernel

__all__ = ["Conv"]

Images = Float[Array, "n _height _width _channel"]


class Conv(nnx.Module):
    """f = (σ_W/√(k² c_in)) h ∗ W + σ_b b, every entry of W and b ~ N(0, 1) (Novak et al. 2019).

    Borders are padded with zeros; an image of s pixels has ⌈s/stride⌉ afterwards.

    Parameters
    ----------
    in_channels, out_channels
        c_in and c_out.
    kernel_size
        k, height and width of the kernel.
    stride
        Pixels from one output to the next.
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
        in_channels: int,
        out_channels: int,
        kernel_size: int = 3,
        *,
        stride: int = 1,
        weight_std: Number = 2**0.5,
        bias_std: Number = 0.1,
        rngs: nnx.Rngs,
    ):
        self.kernel_size = at_least(1, kernel_size=kernel_size)
        channels = at_least(1, in_channels=in_channels), at_least(1, out_channels=out_channels)
        self.stride = at_least(1, stride=stride)
        self.weight_std = positive(weight_std=weight_std)
        self.bias_std = non_negative(bias_std=bias_std)
        self.kernel = nnx.Param(jax.random.normal(rngs.params(), (kernel_size, kernel_size, *channels)))
        has_bias = not is_known_to_be(0, bias_std)
        self.bias = nnx.Param(jax.random.normal(rngs.params(), (out_channels,))) if has_bias else None

    def __call__(self, h: Images) -> Images:
        kernel = self.kernel[...]
        scale = self.weight_std / math.sqrt(math.prod(kernel.shape[:3]))
        f = scale * apply_kernel(
            lambda h, kernel: convolve(h, kernel, self.stride, "same"), jnp.asarray(h), kernel
        )
        return f if self.bias is None else f + self.bias_std * self.bias[...][None, None, None, :]
