"""The convolutional networks of this package in neural-tangents, which knows their infinite-width kernels."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from widebnn.models import BNN, CNN, Conv, WideResNet20
from widebnn.nngp._neural_tangents import neural_tangents

__all__ = ["NETWORKS", "stax_kernel_fn"]

Layer = tuple[Callable, Callable, Callable]


def stax_kernel_fn(bnn: BNN) -> Callable:
    """The kernel function of `bnn`, whose features are one of `NETWORKS`, at infinite width."""
    stax = neural_tangents().stax
    features = bnn.features.module
    bias_std = bnn.bias_std if bnn.has_bias else None
    readout = stax.Dense(1, W_std=bnn.weight_std, b_std=bias_std, parameterization="ntk")
    return stax.serial(NETWORKS[type(features)](features, stax), stax.GlobalAvgPool(), readout)[2]


def _cnn(features: Any, stax: Any) -> Layer:
    activation = {"gelu": stax.Gelu, "erf": stax.Erf, "relu": stax.Relu}[features.activation]
    return stax.serial(*(part for layer in features.layers for part in (_conv(layer, stax), activation())))


def _wide_resnet(features: Any, stax: Any) -> Layer:
    blocks = [_block(block, stax) for block in features.blocks]
    return stax.serial(_conv(features.stem, stax), *blocks, stax.Gelu())


def _block(block: Any, stax: Any) -> Layer:
    first, second = _conv(block.first, stax), _conv(block.second, stax)
    residual = stax.serial(first, stax.Gelu(), second, _times(block.residual_scale))
    if block.projection is None:
        branches = [_times(block.skip_scale), stax.serial(stax.Gelu(), residual)]
        return stax.serial(stax.FanOut(2), stax.parallel(*branches), stax.FanInSum())
    branches = [stax.serial(_conv(block.projection, stax), _times(block.skip_scale)), residual]
    return stax.serial(stax.Gelu(), stax.FanOut(2), stax.parallel(*branches), stax.FanInSum())


def _conv(layer: Conv, stax: Any) -> Layer:
    if jnp.ndim(layer.weight_std):
        raise ValueError("bnn must have one weight_std for all channels of a layer, or no limit is known")
    return stax.Conv(
        1,
        2 * (layer.kernel_size,),
        2 * (layer.stride,),
        padding="SAME",
        W_std=layer.weight_std,
        b_std=None if layer.bias is None else layer.bias_std,
        parameterization="ntk",
    )


def _times(scale: float) -> Layer:
    """A layer that multiplies, which neural-tangents has for kernels alone."""
    return (
        lambda key, shape: (shape, ()),
        lambda params, x, **_: scale * x,
        lambda kernel, **_: scale * kernel,
    )


NETWORKS: dict[type, Callable[[Any, Any], Layer]] = {CNN: _cnn, WideResNet20: _wide_resnet}
"""How the features of each class are built."""
