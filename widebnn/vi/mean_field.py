"""The mean-field Gaussian family over the weights of a network, and its divergence from the prior."""

import operator
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, Key, PyTree

from widebnn._check import Number, positive
from widebnn.models.local_reparametrisation import LocalReparametrisation

__all__ = ["MeanField", "kl_divergence", "kl_per_leaf", "mean_field"]

Weights = PyTree[Float[Array, "..."]]
Variances = Number | PyTree[Number]
"""One number for all weights, or a pytree with one for each leaf."""

Sign = int | Int[Array, ""]


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

    def draw(self, rng_key: Key[Array, ""], sign: Sign = 1) -> Weights:
        """$w = μ + σz$ with $z ~ N(0, I)$; where `sign` is −1, the antithetic $w = μ − σz$ of this $z$."""
        return _draw_all(self, rng_key, sign)

    def local_draw(self, rng_key: Key[Array, ""], sign: Sign = 1) -> PyTree:
        """A draw whose kernels, leaves of two or more dimensions, are drawn only when they are applied.

        Kernels are `LocalReparametrisation`s.
        """
        means, treedef = jax.tree.flatten(self.mean)
        keys, sign = jax.random.split(rng_key, len(means)), jnp.asarray(sign)
        return treedef.unflatten(
            LocalReparametrisation(key, mean, std, sign) if mean.ndim > 1 else _draw(key, mean, std, sign)
            for key, mean, std in zip(keys, means, jax.tree.leaves(self.std), strict=True)
        )


@jax.jit
def _std(rho: Weights) -> Weights:
    return jax.tree.map(jax.nn.softplus, rho)


@jax.jit
def _draw_all(q: MeanField, rng_key: Key[Array, ""], sign: Sign) -> Weights:
    # all of z at once: a generator for each leaf would make deep networks slow to compile
    flat, unravel = ravel_pytree(q.mean)
    z = unravel(jax.random.normal(rng_key, flat.shape, flat.dtype))
    return jax.tree.map(lambda mean, std, z: mean + jnp.asarray(sign, mean.dtype) * std * z, q.mean, q.std, z)


def _draw(rng_key: Key[Array, ""], mean: Array, std: Array, sign: Sign) -> Array:
    """μ ± σz."""
    return mean + jnp.asarray(sign, mean.dtype) * std * jax.random.normal(rng_key, mean.shape, mean.dtype)


def mean_field(weights: Weights, std: Number) -> MeanField:
    """The $q$ with means `weights` and all standard deviations $σ$ = `std`."""
    return MeanField(weights, _rho(weights, positive(std=std)))


@jax.jit
def _rho(weights: Weights, std: Number) -> Weights:
    # the inverse of softplus, ρ = log(e^σ − 1), without overflow
    rho = jnp.log(-jnp.expm1(-jnp.asarray(std, float))) + std
    return jax.tree.map(lambda w: jnp.full(w.shape, rho, w.dtype), weights)


def kl_per_leaf(posterior: MeanField, prior_variance: Variances = 0.2) -> PyTree[Float[Array, ""]]:
    """$KL(q ‖ N(0, v))$ of each leaf, $∑ ½ (σ²/v − 1 − log(σ²/v) + μ²/v)$, in closed form, in nats.

    Parameters
    ----------
    posterior
        The posterior $q$.
    prior_variance
        $v$ of a weight: one number for all, or one for each leaf. Huix et al. (2022) have 1/5 in the text,
        the default here; their published code has a standard deviation of 1/5, a variance of 1/25.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import widebnn as wb
    >>> weights = {"kernel": jnp.zeros((2, 3)), "bias": jnp.ones(3)}
    >>> q = wb.vi.mean_field(weights, std=1.0)
    >>> each = wb.vi.kl_per_leaf(q, prior_variance=1.0)
    >>> {name: round(float(kl), 3) for name, kl in each.items()}
    {'bias': 1.5, 'kernel': 0.0}
    """
    return _kl_per_leaf(posterior, prior_variances(posterior, prior_variance))


@jax.jit
def _kl_per_leaf(posterior: MeanField, prior_variance: PyTree[Number]) -> PyTree[Float[Array, ""]]:
    def divergence(mean, std, variance):
        ratio = std / jnp.sqrt(variance)
        # ratio² − 1 by its factors: exact where q is close to the prior and the rest cancels it
        return jnp.sum((ratio - 1) * (ratio + 1) - 2 * jnp.log(ratio) + mean**2 / variance) / 2

    return jax.tree.map(divergence, posterior.mean, posterior.std, prior_variance)


def kl_divergence(posterior: MeanField, prior_variance: Variances = 0.2) -> Float[Array, ""]:
    """$KL(q ‖ P₀) = ∑ KL$ over all leaves; parameters and errors are those of `kl_per_leaf`."""
    return _kl_divergence(posterior, prior_variances(posterior, prior_variance))


@jax.jit
def _kl_divergence(posterior: MeanField, prior_variance: PyTree[Number]) -> Float[Array, ""]:
    return jax.tree.reduce(operator.add, _kl_per_leaf(posterior, prior_variance))


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
