"""A mean-field Gaussian with random means, at which the ELBO and its limit are compared."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from widebnn import vi


def random_posterior(
    rng_key: Key[Array, ""], net: vi.Network, mean_std: float, prior_variance: float
) -> vi.MeanField:
    """Means from N(0, mean_std²), all deviations √v."""
    centred = vi.mean_field(jax.tree.map(jnp.zeros_like, net.weights), mean_std)
    return vi.mean_field(centred.draw(rng_key), prior_variance**0.5)
