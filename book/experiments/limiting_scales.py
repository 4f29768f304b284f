"""The limit of infinite width at its most probable scales."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64

from widebnn.estimators._network import SCALES, Architecture
from widebnn.estimators._process import Process
from widebnn.models import BNN
from widebnn.nngp import nngp_kernel

__all__ = ["at_most_probable_scales", "kernels"]


def at_most_probable_scales(
    x: Float[np.ndarray, "n d_in"], y: Float[np.ndarray, "n d_out"], per_column: bool = False
) -> Any:
    """A function from widths to networks with one hidden layer of that many GELU units.

    Their scales maximise the evidence of the limit times their prior, `widebnn.BNNRegressor`'s. A scale per
    column is among them where `per_column`, and Laplace's evidence wants it.
    """
    groups = np.arange(x.shape[1]) if per_column else None
    network = Architecture(None, 1, 1, "gelu", y.shape[1])
    process = Process.of(network, x, y, dict(SCALES), {}, groups)

    def of_width(width: int) -> BNN:
        bnn = network._replace(width=width).bnn(x.shape[1])
        return process.setting._replace(bnn=bnn)(jnp.asarray(process.mode), x)

    return of_width


def kernels(bnn: BNN, *inputs: Float[np.ndarray, "m d_in"]) -> Float64[np.ndarray, "m m"]:
    """K of all inputs in the limit, in float64."""
    x = np.concatenate(inputs).astype(np.float64)
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        return np.asarray(nngp_kernel(bnn)(jnp.asarray(x)))
