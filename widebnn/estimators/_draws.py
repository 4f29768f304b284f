"""What predictions need of a draw, and what they make of it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy.special import ndtr
from scipy.stats import norm

from widebnn import collectors, targets

__all__ = [
    "Function",
    "at_draws",
    "covariance",
    "draw",
    "kept_of",
    "largest_probabilities",
    "moments",
    "quantile",
    "softmax_probabilities",
]


NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
"""Of Gauss–Hermite quadrature."""
Function = Callable[..., Any]
"""Function of a posterior, a position, what is kept of it, inputs and a key."""


@jax.jit
def kept_of(posterior: targets.Scaled, positions: Any) -> tuple[Any, Any]:
    """Of each draw its position, and where the readout is integrated out, what predictions need of it."""
    template = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), posterior.template)
    unravel = ravel_pytree(template)[1]

    def of_draw(flat):
        position = unravel(flat)
        target: Any = posterior.at(position)
        if not posterior.has_exact_scales:
            return position, None
        return position, target.readout_posterior(position.network).predictor()

    return jax.lax.map(of_draw, positions)


@partial(jax.jit, static_argnames="function")
def at_draws(
    function: Function, posterior: targets.Scaled, kept: Any, rng_key: Any, part: Any, inputs: Any
) -> Any:
    keys = jax.random.split(jax.random.fold_in(rng_key, part), len(jax.tree.leaves(kept)[0]))
    dtype = jax.tree.leaves(posterior.template)[0].dtype
    inputs = inputs.astype(dtype)
    return jax.lax.map(lambda one: function(posterior, *one[0], inputs, one[1]), (kept, keys))


def moments(posterior: Any, position: Any, predictor: Any, inputs: Any, key: Any) -> Any:
    psi = collectors.embedding(inputs)(posterior, position, key)
    return predictor.moments(psi)


def covariance(posterior: Any, position: Any, predictor: Any, inputs: Any, key: Any) -> Any:
    given = collectors.predictive_covariance(inputs)(posterior, position, key)
    return given + predictor.noise * jnp.eye(len(inputs), dtype=given.dtype)


def draw(posterior: Any, position: Any, predictor: Any, inputs: Any, key: Any) -> Any:
    output_key, noise_key = jax.random.split(key)
    f = collectors.output(inputs)(posterior, position, output_key)
    return f + jnp.sqrt(predictor.noise) * jax.random.normal(noise_key, f.shape, f.dtype)


def softmax_probabilities(posterior: Any, position: Any, predictor: None, inputs: Any, key: Any) -> Any:
    return collectors.predictive_probabilities(inputs)(posterior, position, key)


def largest_probabilities(posterior: Any, position: Any, predictor: Any, inputs: Any, key: Any) -> Any:
    mean, variance = moments(posterior, position, predictor, inputs, key)
    return largest(mean / jnp.sqrt(variance)[:, None])


def quantile(q: float, means: np.ndarray, stds: np.ndarray) -> np.ndarray:
    """Quantile of a mixture of Gaussians over the first axis, by bisection."""
    edges = means + norm.ppf(q) * stds
    low, high = edges.min(axis=0), edges.max(axis=0)
    for _ in range(50):
        middle = (low + high) / 2
        is_below = ndtr((middle - means) / stds).mean(axis=0) < q
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return (low + high) / 2


def largest(means: jax.Array) -> jax.Array:
    """P(z_c + ε_c is the largest) for independent ε ~ N(0, 1), (m, k), by Gauss–Hermite quadrature.

    ∫ φ(t) Π_{j ≠ c} Φ(z_c − z_j + t) dt.
    """
    gaps = means[:, :, None] - means[:, None, :]
    k = means.shape[1]
    is_other = 1 - jnp.eye(k, dtype=means.dtype)

    def at(node):
        log_p = jax.scipy.special.log_ndtr(gaps + node)
        return jnp.exp(jnp.sum(is_other[None] * log_p, axis=2))

    nodes, weights = (jnp.asarray(a, means.dtype) for a in (NODES, WEIGHTS / WEIGHTS.sum()))
    return jnp.tensordot(weights, jax.vmap(at)(nodes), axes=1)
