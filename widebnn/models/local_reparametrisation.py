"""Kernels that are drawn after they are applied: fresh for each input, with outputs of the same law."""

from collections.abc import Callable
from dataclasses import dataclass
from types import EllipsisType

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

__all__ = ["Linear", "LocalReparametrisation", "apply_kernel"]

Linear = Callable[[Array, Array], Array]
"""A map of inputs and a kernel that is linear in either."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LocalReparametrisation:
    """A kernel $W ~ N(μ, σ²)$ that is drawn after inputs have been multiplied with it.

    Each row of $xW$ is Gaussian with mean $xμ$ and variances $x²σ²$. Drawing that in place of $W$ gives every
    row a kernel of its own: an expected log likelihood, a sum over rows, stays what it was, and its estimate
    varies less (Kingma, Salimans & Welling 2015). Layers that read a parameter as ``kernel[...]`` and compute
    ``x @ kernel`` need no change; others call `through`.
    """

    rng_key: Key[Array, ""]
    mean: Float[Array, "..."]
    std: Float[Array, "..."]
    sign: Int[Array, ""]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of $W$."""
        return self.mean.shape

    def through(self, linear: Linear, x: Float[Array, "n ..."]) -> Float[Array, "n ..."]:
        """A draw of ``linear(x, W)``, for a map that is linear in either argument.

        Outputs are drawn independently. That is exact where each entry of $W$ reaches one output per row, as
        in a product with a matrix. In a convolution the pixels of an image share $W$: each output then has
        the right law, but the correlation between pixels is left out.
        """
        mean, variance = linear(x, self.mean), linear(x**2, self.std**2)
        # at x = 0 the root has no derivative
        std = jnp.sqrt(jnp.maximum(variance, jnp.finfo(variance.dtype).tiny))
        return mean + self.sign.astype(mean.dtype) * std * jax.random.normal(
            self.rng_key, mean.shape, mean.dtype
        )

    def __rmatmul__(self, x: Float[Array, "n d_in"]) -> Float[Array, "n d_out"]:
        return self.through(jnp.matmul, x)

    def __getitem__(self, index: EllipsisType) -> "LocalReparametrisation":
        if index is not Ellipsis:
            raise TypeError(f"a kernel that is not drawn yet can be read as kernel[...] alone; got {index!r}")
        return self


def apply_kernel(
    linear: Linear, x: Float[Array, "n ..."], kernel: Array | LocalReparametrisation
) -> Float[Array, "n ..."]:
    """`linear(x, kernel)`, or a draw of it where the kernel is not drawn yet."""
    if isinstance(kernel, LocalReparametrisation):
        return kernel.through(linear, x)
    return linear(x, kernel)
