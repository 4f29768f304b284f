"""Closed moments of a two-layer network under q, against draws and quadrature."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from scipy.integrate import quad
from scipy.stats import norm

import widebnn as wb
from widebnn.vi import MeanField

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 3))
Y = RNG.normal(size=(5, 2))


def two_layer(scaling="mean-field", width=4):
    """A network and a q whose means and deviations are of order one."""
    net = wb.vi.network(wb.vi.TwoLayer(3, width, 2, scaling=scaling, rngs=nnx.Rngs(0)), jnp.asarray(X), KEY)
    filled = jax.tree.map(lambda w: jnp.asarray(RNG.normal(size=w.shape)), net.weights)
    return net, MeanField(filled, jax.tree.map(lambda w: jnp.asarray(RNG.normal(size=w.shape)), filled))


KEY = jax.random.key(0)


@pytest.mark.parametrize(("mean", "std"), [(-1.5, 0.8), (2.0, 1e-3)])
def test_rectified_moments_agree_with_quadrature(mean, std):
    found = wb.vi.relu_moments(jnp.array([mean]), jnp.array([std**2]))
    for power, value in zip((1, 2), found):
        wanted, _ = quad(
            lambda z, power=power: max(mean + std * z, 0) ** power * norm.pdf(z),
            *(-12, 12),
            points=[np.clip(-mean / std, -12, 12)],
        )
        np.testing.assert_allclose(value[0], wanted, rtol=1e-7)


@pytest.mark.parametrize("scaling", ["mean-field", "ntk"])
def test_moments_of_outputs_agree_with_draws(scaling):
    net, q = two_layer(scaling)
    draws = jax.jit(jax.vmap(lambda key: net(q.draw(key), jnp.asarray(X))))(jax.random.split(KEY, 40_000))
    draws = np.asarray(draws)
    moments = wb.vi.output_moments(q, X, scaling=scaling)
    mean_error = draws.std(axis=0) / np.sqrt(len(draws))
    centred = (draws - draws.mean(axis=0)) ** 2
    variance_error = centred.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - moments.mean) < 5 * mean_error).all()
    assert (np.abs(centred.mean(axis=0) - moments.variance) < 5 * variance_error).all()
    assert (5 * variance_error < 0.2 * moments.variance).all()  # the check is a sharp one


@pytest.mark.slow
def test_exact_elbo_agrees_with_its_estimate():
    net, q = two_layer()
    exact = wb.vi.square_elbo(q, X, Y, temperature=0.3)
    log_likelihood = net.log_likelihood(jnp.asarray(X), jnp.asarray(Y), wb.vi.square)
    value = jax.vmap(lambda key: wb.vi.elbo(key, q, log_likelihood, temperature=0.3).value)
    values = np.asarray(jax.jit(value)(jax.random.split(KEY, 40_000)))
    error = values.std() / np.sqrt(len(values))
    assert abs(values.mean() - exact.value) < 5 * error
    assert 5 * error < 0.05 * abs(exact.value)
