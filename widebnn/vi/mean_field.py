"""The mean-field Gaussian family over the weights of a network, and its divergence from the prior."""

import operator
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Key, PyTree

from widebnn._check import Number, positive

__all__ = ["MeanField", "kl_divergence", "mean_field"]

Weights = PyTree[Float[Array, "..."]]
Variances = Number | PyTree[Number]
"""One number for all weights, or a pytree with one for each leaf."""


class MeanField(NamedTuple):
    """$q = ∏ N(μ, σ²)$, a factor for each weight, with $σ = log(1 + exp(ρ))$ (Blundell et al. 2015, §3.2).

    Attributes
    ----------
    mean
        $μ$, a pytree in the shapes of the weights.
    rho
        $ρ$, a pytree in the shapes of the weights.
    """

    mean: Weights
    rho: Weights

    @property
    def std(self) -> Weights:
        """$σ$, a pytree in the shapes of the weights."""
        return _std(self.rho)

    def draw(self, rng_key: Key[Array, ""]) -> Weights:
        """$w = μ + σz$ with $z ~ N(0, I)$."""
        return _draw(self, rng_key)


@jax.jit
def _std(rho: Weights) -> Weights:
    return jax.tree.map(jax.nn.softplus, rho)


@jax.jit
def _draw(q: MeanField, rng_key: Key[Array, ""]) -> Weights:
    # all of z at once: a generator for each leaf would make deep networks slow to compile
    flat, unravel = ravel_pytree(q.mean)
    z = unravel(jax.random.normal(rng_key, flat.shape, flat.dtype))
    return jax.tree.map(lambda mean, std, z: mean + std * z, q.mean, q.std, z)


def mean_field(weights: Weights, std: Number) -> MeanField:
    """The $q$ with means `weights` and all standard deviations $σ$ = `std`."""
    return MeanField(weights, _rho(weights, positive(std=std)))


@jax.jit
def _rho(weights: Weights, std: Number) -> Weights:
    # the inverse of softplus, ρ = log(e^σ − 1), without overflow
    rho = jnp.log(-jnp.expm1(-jnp.asarray(std, float))) + std
    return jax.tree.map(lambda w: jnp.full(w.shape, rho, w.dtype), weights)


def kl_divergence(posterior: MeanField, prior_variance: Variances = 0.2) -> Float[Array, ""]:
    """$KL(q ‖ P₀) = ∑ ½ (σ²/v − 1 − log(σ²/v) + μ²/v)$ over all weights, in closed form, in nats.

    Parameters
    ----------
    posterior
        The posterior $q$.
    prior_variance
        $v$ of the prior $N(0, v)$ of a weight: one number for all, or one for each leaf. Huix et al. (2022)
        have 1/5 in the text, the default here; their published code has a standard deviation of 1/5, a
        variance of 1/25.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import widebnn as wb
    >>> q = wb.vi.mean_field({"kernel": jnp.zeros((2, 3)), "bias": jnp.ones(3)}, std=1.0)
    >>> float(wb.vi.kl_divergence(q, prior_variance=1.0))
    1.5
    """
    return _kl_divergence(posterior, prior_variances(posterior, prior_variance))


@jax.jit
def _kl_divergence(posterior: MeanField, prior_variance: PyTree[Number]) -> Float[Array, ""]:
    def divergence(mean, std, variance):
        ratio = std / jnp.sqrt(variance)
        # ratio² − 1 by its factors: exact where q is close to the prior and the rest cancels it
        return jnp.sum((ratio - 1) * (ratio + 1) - 2 * jnp.log(ratio) + mean**2 / variance) / 2

    each = jax.tree.map(divergence, posterior.mean, posterior.std, prior_variance)
    return jax.tree.reduce(operator.add, each)


def prior_variances(posterior: MeanField, prior_variance: Variances) -> PyTree[Number]:
    """One variance for each leaf."""
    of_weights = jax.tree.structure(posterior.mean)
    leaves, treedef = jax.tree.flatten(prior_variance)
    for v in leaves:
        positive(prior_variance=v)
    if treedef == of_weights:
        return prior_variance
    if len(leaves) != 1 or not jax.tree_util.treedef_is_leaf(treedef):
        raise ValueError(
            f"prior_variance must be a number, or one for each leaf of {of_weights}; got {treedef}"
        )
    return jax.tree.map(lambda _: prior_variance, posterior.mean)
