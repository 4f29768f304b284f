"""A residual network without normalisers, whose posterior is one of its parameters alone."""

from itertools import pairwise

from flax import nnx
from jaxtyping import Array, Float

from widebnn._check import Number, at_least
from widebnn.models.conv import Conv, Images
from widebnn.models.fcn import ACTIVATIONS

__all__ = ["WideResNet20"]

BLOCKS_PER_GROUP = 3
gelu = ACTIVATIONS["gelu"]


def residual_scales(k: int) -> tuple[float, float]:
    """√(k/(k + 1)) and √(1/(k + 1)), weights of skip and residual in block k (Shao et al. 2020).

    Their squares add up to 1, so that variances stay of order one without a normaliser.
    """
    return (k / (k + 1)) ** 0.5, (1 / (k + 1)) ** 0.5


class WideResNet20(nnx.Module):
    """The normaliser-free Wide ResNet-20 of Hron et al. (2022, §4.2.2), up to its readout.

    It maps images $(n, height, width, channels)$ to $(n, d_L)$: a stem of one convolution, three groups of
    three residual blocks, GELU, the mean over pixels. A block is GELU, convolution, GELU, convolution
    (Zagoruyko & Komodakis 2016), with $3 × 3$ kernels; the first block of the second and of the third group
    has stride 2. In place of normalisation the $k$-th block is
    $√(k/(k + 1)) · skip + √(1/(k + 1)) · residual$ (Shao et al. 2020). Where a block changes the shape,
    its skip is a $1 × 1$ convolution of the GELU with which its residual begins: the paper leaves
    this open, and in this way every kernel sees activations.

    Parameters
    ----------
    in_channels
        Channels of an input.
    channels
        Channels of the three groups from bottom to top; the last is $d_L$. 128, 256 and 512 in the paper.
    weight_std
        $σ_W$ of all convolutions, which have no biases; $√2.2$ in the paper.
    rngs
        Generator of the initial parameters.
    """

    def __init__(
        self,
        in_channels: int = 3,
        channels: tuple[int, int, int] = (128, 256, 512),
        *,
        weight_std: Number = 2.2**0.5,
        rngs: nnx.Rngs,
    ):
        if len(channels) != 3:
            raise ValueError(f"channels must be three numbers, one for each group; got {channels}")
        self.in_channels = at_least(1, in_channels=in_channels)
        self.channels = tuple(at_least(1, channels=number) for number in channels)
        self.stem = Conv(self.in_channels, channels[0], weight_std=weight_std, bias_std=0, rngs=rngs)
        of_blocks = [channels[0]] + [number for number in channels for _ in range(BLOCKS_PER_GROUP)]
        self.blocks = nnx.List(
            _Block(k, c_in, c_out, 2 if k in (4, 7) else 1, weight_std, rngs)
            for k, (c_in, c_out) in enumerate(pairwise(of_blocks), start=1)
        )

    def __call__(self, x: Images) -> Float[Array, "n d_L"]:
        """h^L, not yet scaled by the readout's σ_W/√d_L."""
        f = self.stem(x)
        for block in self.blocks:
            f = block(f)
        return gelu(f).mean(axis=(1, 2))


class _Block(nnx.Module):
    def __init__(
        self,
        k: int,
        c_in: int,
        c_out: int,
        stride: int,
        weight_std: Number,
        rngs: nnx.Rngs,
    ):
        scales = {"weight_std": weight_std, "bias_std": 0, "rngs": rngs}
        self.first = Conv(c_in, c_out, stride=stride, **scales)
        self.second = Conv(c_out, c_out, **scales)
        keeps_shape = stride == 1 and c_in == c_out
        self.projection = None if keeps_shape else Conv(c_in, c_out, 1, stride=stride, **scales)
        self.skip_scale, self.residual_scale = residual_scales(k)

    def __call__(self, f: Images) -> Images:
        h = gelu(f)
        skip = f if self.projection is None else self.projection(h)
        return self.skip_scale * skip + self.residual_scale * self.second(gelu(self.first(h)))
