"""Bayesian linear regression against dense formulas; repriorisation is exact there."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import multivariate_normal

import widebnn as wb


def regression(n=4, d_in=3, d_out=2, noise_std=0.7):
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(n, d_in)), rng.normal(size=(n, d_out))
    return wb.targets.linear(jnp.asarray(x), jnp.asarray(y), noise_std)


def positions(target, num=4):
    return [target.draw_prior(jax.random.key(i)) for i in range(num)]


@pytest.mark.parametrize("n", [2, 6])
def test_posterior_is_the_dense_one(n):
    target = regression(n)
    sigma = jnp.linalg.inv(jnp.eye(3) + target.x.T @ target.x / 0.49)
    mu = sigma @ target.x.T @ target.y / 0.49
    u, v, *_ = positions(target)

    def log_density(theta):
        return sum(multivariate_normal.logpdf(theta[:, j], mu[:, j], sigma) for j in range(2))

    found = target.logdensity(u) - target.logdensity(v)
    assert jnp.allclose(found, log_density(u) - log_density(v), rtol=1e-10)
    assert jnp.allclose(target.posterior.mean(), mu, atol=1e-12)
    assert jnp.allclose(target.posterior.covariance(jnp.eye(3)), sigma, atol=1e-12)


@pytest.mark.parametrize("n", [2, 6])
def test_repriorised_potential_is_constant(n):
    target = regression(n)
    values = [target.repriorised().potential(phi) for phi in positions(target)]
    assert jnp.ptp(jnp.stack(values)) < 1e-11
    assert jnp.ptp(jnp.stack([target.potential(phi) for phi in positions(target)])) > 1


@pytest.mark.parametrize("reg", [0.05, 0.49, 3.0])
def test_other_regularisers_by_brute_force(reg):
    target = regression()
    mapped, t = target.repriorised(reg), wb.targets.readout_posterior(target.x, target.y, reg)

    def log_density(phi):
        theta = t.transform(phi)
        jacobian = jax.jacobian(t.transform)(phi).reshape(phi.size, phi.size)
        return target.logdensity(theta) + jnp.linalg.slogdet(jacobian)[1]

    u, v, *_ = positions(target)
    found = mapped.logdensity(u) - mapped.logdensity(v)
    assert jnp.allclose(found, log_density(u) - log_density(v), rtol=1e-9)


def test_constant_of_the_repriorised_potential_is_the_evidence():
    """U = −log p(y) up to the likelihood's constant, at any φ."""
    target = regression()
    k = target.x @ target.x.T + 0.49 * jnp.eye(4)
    log_evidence = sum(multivariate_normal.logpdf(y, jnp.zeros(4), k) for y in target.y.T)
    constant = target.y.size * jnp.log(2 * jnp.pi * 0.49) / 2
    (phi,) = positions(target, 1)
    assert jnp.allclose(target.repriorised().potential(phi), -log_evidence - constant, rtol=1e-10)
