"""What predictions need of a draw, and what they make of it."""

import math
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
    "moments",
    "network_output",
    "noise",
    "output",
    "quantile",
    "softmax_probabilities",
]


MAX_STEPS = 60
"""Of Newton's method, of which some five are needed; halving alone ends within it too."""
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
        if hasattr(target, "predictive_probabilities"):
            return position, None
        if not isinstance(target, targets.NetworkTarget):  # θ, whose readout takes a factorisation
            return position, target.to_parameters(position.network)
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


def output(posterior: Any, position: Any, predictor: Any, inputs: Any, key: Any) -> Any:
    return collectors.output(inputs)(posterior, position, key)


def network_output(posterior: Any, position: Any, parameters: Any, inputs: Any, key: Any) -> Any:
    """f of the network's one output where its θ are kept, and σ, or 1 where there is none."""
    f = posterior.at(position).bnn(parameters, inputs)[:, 0]
    return f, jnp.asarray(posterior.scales(position).get("noise_std", 1.0), f.dtype)


def noise(posterior: Any, position: Any, predictor: Any, inputs: Any, key: Any) -> Any:
    """λ of rows that are divided by a σ of their own, and the factor of these."""
    factor = posterior.scales(position).get("noise_std", 1.0)
    return jnp.asarray(predictor.noise), jnp.asarray(factor)


def softmax_probabilities(posterior: Any, position: Any, predictor: None, inputs: Any, key: Any) -> Any:
    return collectors.predictive_probabilities(inputs)(posterior, position, key)


def quantile(q: float, means: np.ndarray, stds: np.ndarray) -> np.ndarray:
    """Quantile of a mixture of Gaussians over the first axis, by Newton's steps between brackets."""
    edges = means + norm.ppf(q) * stds
    low, high = edges.min(axis=0), edges.max(axis=0)
    found = edges.mean(axis=0)
    for _ in range(MAX_STEPS):
        score = (found - means) / stds
        excess = ndtr(score).mean(axis=0) - q
        low, high = np.where(excess < 0, found, low), np.where(excess < 0, high, found)
        density = (np.exp(-(score**2) / 2) / stds).mean(axis=0) / math.sqrt(2 * math.pi)
        step = np.divide(excess, density, out=np.full_like(excess, np.inf), where=density > 0)
        last, found = found, found - step
        found = np.where((low <= found) & (found <= high), found, (low + high) / 2)
        if (np.abs(found - last) <= 1e-12 * stds.max(axis=0)).all():
            break
    return found
