"""A convolution in NTK parametrisation."""

import numpy as np
from flax import nnx
from jaxtyping import Array, Float

from widebnn._check import Number, at_least, one_of
from widebnn.models._affine import WEIGHT_STD, Affine
from widebnn.models.convolution import PADDINGS, convolve

__all__ = ["Conv"]

Images = Float[Array, "n _height _width _channel"]


class Conv(Affine):
    """$f = (σ_W/√(k² c_in)) h ∗ W + σ_b b$, every entry of $W$ and $b ~ N(0, 1)$ (Novak et al. 2019).

    It maps images $(n, height, width, channels)$ to images of `out_channels`. Borders are padded with zeros;
    a side of $s$ pixels has $⌈s/stride⌉$ afterwards, where $k$ is odd or `padding` is "same".

    Parameters
    ----------
    in_channels
        Channels of an input, $c_in$.
    out_channels
        Channels of an output, $c_out$.
    kernel_size
        $k$, height and width of the kernel.
    stride
        Pixels from one output to the next.
    padding
        "centred" for $⌊(k − 1)/2⌋$ pixels on every side, as in PyTorch; "same" for as many as $⌈s/stride⌉$
        outputs need, as in TensorFlow and Flax. They can differ at strides above 1, and do where $k$ is even.
    weight_std, bias_std
        $σ_W > 0$ and $σ_b ≥ 0$. With $σ_b = 0$ the layer has no bias. $σ_W$ may be an array, one number per
        channel of an input: automatic relevance determination (MacKay 1994; Neal 1996).
    scale, initial_std
        As in `Dense`, with $k² c_in$ in place of $d_in$.
    rngs
        Generator of the initial parameters.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int = 3,
        *,
        stride: int = 1,
        padding: str = "same",
        weight_std: Number | Array | np.ndarray = WEIGHT_STD,
        bias_std: Number = 0.1,
        scale: Number | None = None,
        initial_std: Number | None = None,
        rngs: nnx.Rngs,
    ):
        self.kernel_size = at_least(1, kernel_size=kernel_size)
        channels = at_least(1, in_channels=in_channels), at_least(1, out_channels=out_channels)
        self.stride = at_least(1, stride=stride)
        self.padding = one_of(PADDINGS, padding=padding)
        shape = (kernel_size, kernel_size, *channels)
        super().__init__(shape, weight_std, bias_std, scale, initial_std, rngs)

    def __call__(self, h: Images) -> Images:
        """Outputs (n, height, width, out_channels) at images h, which a stride makes smaller."""
        return self._affine(lambda h, kernel: convolve(h, kernel, self.stride, self.padding), h)
