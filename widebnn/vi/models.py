"""Networks for mean-field variational inference, whose weights have a prior N(0, v) as they are.

The scaling stands in the readout: f = N⁻¹ ∑_j a_j h_j in the mean-field limit, (1/√N) ∑_j a_j h_j in that
of the tangent kernel. Means start at N(0, 0.01²), as in the published code of Huix et al. (2022).
"""

import functools
import math
from itertools import pairwise

import jax
from flax import nnx
from jaxtyping import Array, Float

from widebnn._arrays import Inputs
from widebnn._check import at_least, one_of
from widebnn.models import Conv, Dense
from widebnn.models.conv import Images
from widebnn.models.wide_resnet import residual_scales

__all__ = ["ResNet20", "TwoLayer"]

INITIAL_STD = 0.01

SCALINGS = {"mean-field": lambda width: 1 / width, "ntk": lambda width: 1 / math.sqrt(width)}
"""What outputs are multiplied by, of N."""


# f = h W without a scale, whose means start at N(0, 0.01²)
_dense = functools.partial(Dense, scale=1, bias_std=0, initial_std=INITIAL_STD)
_conv = functools.partial(Conv, scale=1, bias_std=0, initial_std=INITIAL_STD)


class TwoLayer(nnx.Module):
    """$f(x) = N⁻¹ ∑_j a_j relu(⟨b_j, x⟩)$, or $1/√N$ in place of $N⁻¹$ (Huix et al. 2022, equation 3).

    Parameters
    ----------
    in_features
        Number of inputs, $d_in$.
    width
        Number of neurons, $N$.
    out_features
        Number of outputs, $d_out$.
    scaling
        "mean-field" for $1/N$, "ntk" for $1/√N$.
    rngs
        Generator of the initial parameters.
    """

    def __init__(
        self, in_features: int, width: int, out_features: int, *, scaling: str = "mean-field", rngs: nnx.Rngs
    ):
        at_least(1, width=width)
        self.scale = SCALINGS[one_of(SCALINGS, scaling=scaling)](width)
        self.hidden = _dense(in_features, width, rngs=rngs)
        self.readout = _dense(width, out_features, rngs=rngs)

    def __call__(self, x: Inputs) -> Float[Array, "n d_out"]:
        """Outputs at x, (n, in_features)."""
        return self.scale * self.readout(jax.nn.relu(self.hidden(x)))


def _layer(
    in_channels: int, out_channels: int, size: int, norm: str, *, stride: int = 1, gain: float, rngs: nnx.Rngs
) -> nnx.Module:
    """A convolution and what keeps its outputs of order one."""
    options = {"stride": stride, "padding": "centred", "rngs": rngs}
    if norm == "none":
        return Conv(in_channels, out_channels, size, weight_std=gain, bias_std=0, **options)
    conv = _conv(in_channels, out_channels, size, **options)
    return nnx.Sequential(conv, nnx.BatchNorm(out_channels, momentum=0.9, rngs=rngs))


class _Block(nnx.Module):
    """relu(a·shortcut(x) + b·branch(x)): a = b = 1, or without a normaliser a² = k/(k + 1) = 1 − b²."""

    def __init__(self, k: int, in_channels: int, out_channels: int, norm: str, rngs: nnx.Rngs):
        is_first = in_channels != out_channels
        stride = 2 if is_first else 1
        root2 = math.sqrt(2)
        self.first = _layer(in_channels, out_channels, 3, norm, stride=stride, gain=root2, rngs=rngs)
        self.second = _layer(out_channels, out_channels, 3, norm, gain=root2, rngs=rngs)
        self.shortcut = (
            _layer(in_channels, out_channels, 1, norm, stride=stride, gain=1.0, rngs=rngs)
            if is_first
            else None
        )
        self.a, self.b = (1.0, 1.0) if norm == "batch" else residual_scales(k)

    def __call__(self, x: Images) -> Images:
        branch = self.second(jax.nn.relu(self.first(x)))
        shortcut = x if self.shortcut is None else self.shortcut(x)
        return jax.nn.relu(self.a * shortcut + self.b * branch)


class ResNet20(nnx.Module):
    """ResNet-20 for images of $32 × 32$ (He et al. 2016), outputs times $1/N$ or $1/√N$, $N = 64$ channels.

    Parameters
    ----------
    in_channels, out_features
        Number of channels of an image, and of outputs, $d_out$.
    norm
        "batch" for BatchNorm, as in Huix et al. (2022): not Bayesian, since an output then depends on the
        whole batch. "none" for convolutions scaled by $√(2/d)$, $d$ the fan-in, and the $k$-th residual
        branch weighted by $√(1/(k + 1))$, its shortcut by $√(k/(k + 1))$ (Hron et al. 2022, §4.2.2); weights
        then have the prior $N(0, 1)$, ``prior_variance=1``.
    scaling
        "mean-field" for $1/N$, "ntk" for $1/√N$.
    rngs
        Generator of the initial parameters.
    """

    def __init__(
        self,
        in_channels: int = 3,
        out_features: int = 10,
        *,
        norm: str = "batch",
        scaling: str = "mean-field",
        rngs: nnx.Rngs,
    ):
        one_of(("batch", "none"), norm=norm)
        self.scale = SCALINGS[one_of(SCALINGS, scaling=scaling)](64)
        self.stem = _layer(in_channels, 16, 3, norm, gain=math.sqrt(2), rngs=rngs)
        channels = [16, *3 * [16], *3 * [32], *3 * [64]]
        self.blocks = nnx.List(_Block(k + 1, a, b, norm, rngs) for k, (a, b) in enumerate(pairwise(channels)))
        std = INITIAL_STD if norm == "batch" else 1.0
        self.readout = _dense(64, out_features, bias_std=1, initial_std=std, rngs=rngs)

    def __call__(self, x: Images) -> Float[Array, "n d_out"]:
        """Logits of images x."""
        h = jax.nn.relu(self.stem(x))
        for block in self.blocks:
            h = block(h)
        return self.scale * self.readout(h.mean(axis=(1, 2)))
