"""The best ELBO against that of its limit: neurons are the network."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from book.experiments.ascent import curve
from book.experiments.suprema import neurons
from widebnn import vi


@pytest.mark.slow
def test_neurons_add_up_to_the_network(float64):
    x, _ = curve(5)
    theta = np.random.default_rng(0).normal(size=(7, 6))
    phi, variance, kl = neurons(jnp.asarray(theta), x, 0.3)
    weights = vi.network(vi.TwoLayer(2, 7, 1, rngs=nnx.Rngs(0)), x, jax.random.key(0)).weights
    columns = [theta[:, :2].T, theta[:, 4:5]], [theta[:, 2:4].T, theta[:, 5:]]
    q = vi.MeanField(*(jax.tree.unflatten(jax.tree.structure(weights), map(jnp.asarray, c)) for c in columns))
    mean, total = vi.output_moments(q, x)
    np.testing.assert_allclose(phi.mean(axis=1), mean[:, 0])
    np.testing.assert_allclose(variance.sum(axis=1) / 49, total[:, 0])
    np.testing.assert_allclose(kl.sum(), vi.kl_divergence(q, 0.3))
