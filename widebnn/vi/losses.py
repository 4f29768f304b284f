"""Losses ℓ(f, y) of one observation each; the likelihood is L(y | x, w) ∝ exp(−ℓ(f_w(x), y))."""

import inspect
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from widebnn import _arrays
from widebnn._arrays import Labels
from widebnn._check import Number, positive

__all__ = ["cross_entropy", "gaussian", "square"]

Outputs = Float[Array, "n d_out"]
Loss = Callable[[Outputs, Array], Float[Array, " n"]]


def cross_entropy(outputs: Outputs, labels: Labels) -> Float[Array, " n"]:
    """$−log softmax(f)_y$ of each observation, in nats; labels are 0 to $d_out − 1$, and booleans 0 and 1."""
    labels = jnp.asarray(_arrays.labels(*outputs.shape, labels=labels))
    return -jnp.take_along_axis(jax.nn.log_softmax(outputs), labels[:, None], axis=1)[:, 0]


def is_of_classes(loss: Loss) -> bool:
    """Whether it is `cross_entropy`, compiled or not."""
    return inspect.unwrap(loss) is inspect.unwrap(cross_entropy)


def square(outputs: Outputs, y: Float[Array, "n d_out"]) -> Float[Array, " n"]:
    """$‖f − y‖²$ of each observation, as in the code of Huix et al. (2022).

    It equals `gaussian` at $σ² = ½$ up to a constant.
    """
    if y.shape != outputs.shape:
        raise ValueError(f"y must have the outputs' shape {outputs.shape}; got {y.shape}")
    return jnp.sum((outputs - y) ** 2, axis=1)


def gaussian(noise_std: Number) -> Loss:
    """A loss $‖f − y‖²/(2σ²) + d_out log(σ√(2π))$: minus the log density of $y ~ N(f, σ²I)$.

    Parameters
    ----------
    noise_std
        $σ > 0$.

    Returns
    -------
    Function from outputs and $y$, both $(n, d_out)$, to the losses, $(n,)$.
    """
    positive(noise_std=noise_std)

    def loss(outputs: Outputs, y: Float[Array, "n d_out"]) -> Float[Array, " n"]:
        constant = outputs.shape[1] * (math.log(2 * math.pi) / 2 + jnp.log(noise_std))
        return square(outputs, y) / (2 * noise_std**2) + constant

    return loss
