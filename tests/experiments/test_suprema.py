"""The best ELBO against that of its limit: neurons, the ascent, and inequalities that hold at any width."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from book.experiments.ascent import curve, maximise
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


def test_ascent_finds_the_maximum_in_a_box(float64):
    found, value = maximise(
        lambda z: -jnp.sum((z["a"] - 2.0) ** 2) - (z["b"] + 1.0) ** 2,
        {"a": jnp.zeros(3), "b": jnp.asarray(0.0)},
        ({"a": np.zeros(3), "b": np.asarray(-5.0)}, {"a": np.ones(3), "b": np.asarray(5.0)}),
    )
    np.testing.assert_allclose(found["a"], 1.0)
    np.testing.assert_allclose(found["b"], -1.0, atol=1e-6)
    np.testing.assert_allclose(value, -3.0)
