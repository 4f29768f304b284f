"""Noise that is known to differ from one observation to the next."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import stats

import widebnn as wb
from widebnn import targets

from ..exact.networks import problem
from ..exact.units import assert_changes_of_potential

N, D_OUT = 5, 2
STD = np.array([0.2, 1.5, 0.7, 0.3, 2.0])
TINY = problem(widths=(3,), out_features=D_OUT, n=N)
BNN = wb.BNN(TINY.bnn.features, D_OUT, STD)
AT = BNN, TINY.x, TINY.y
KEY = jax.random.key(0)


def dense(position, x_new=None):
    """Log evidence of y, and moments of f at new inputs, by conditioning Gaussians."""
    psi = np.asarray(BNN.embedding(position, TINY.x))
    k = psi @ psi.T + np.diag(STD**2)
    evidence = sum(stats.multivariate_normal(np.zeros(N), k).logpdf(y) for y in np.asarray(TINY.y).T)
    if x_new is None:
        return evidence
    new = np.asarray(BNN.embedding(position, x_new))
    gain = new @ psi.T @ np.linalg.inv(k)
    return evidence, gain @ np.asarray(TINY.y), new @ new.T - gain @ psi @ new.T


@pytest.mark.parametrize("space", ["data", "feature"])
def test_marginal_is_the_dense_gaussian(space):
    target = targets.marginal(*AT, space)
    u = jax.tree.map(lambda leaf: leaf.astype(float), target.draw_prior(KEY))
    x_new = TINY.x[:3] + 0.1
    evidence, mean, covariance = dense(u, x_new)
    np.testing.assert_allclose(target.potential(u) + target.log_normaliser(), -evidence, rtol=1e-10)
    np.testing.assert_allclose(wb.predictive_mean(x_new)(target, u), mean, rtol=1e-9)
    np.testing.assert_allclose(wb.predictive_covariance(x_new)(target, u), covariance, rtol=1e-8)
    mean, variance = wb.predictive_moments()(target, u)  # of observations at the observed inputs
    _, wanted, covariance = dense(u, TINY.x)
    np.testing.assert_allclose(mean, wanted, rtol=1e-9)
    np.testing.assert_allclose(variance, np.diag(covariance) + STD**2, rtol=1e-8)


@pytest.mark.slow
def test_potential_is_the_posterior_under_the_change_of_variables():
    target = targets.repriorised(*AT, reg=0.7)
    phi = TINY.draw_parameters()

    @jax.jit
    def both(phi):
        theta = target.to_parameters(phi)
        residual = TINY.y - BNN(theta, TINY.x)
        std = jnp.asarray(STD)[:, None]
        likelihood = jnp.sum(jax.scipy.stats.norm.logpdf(residual / std) - jnp.log(std))
        squares = [jnp.sum(ravel_pytree(u)[0] ** 2) for u in (theta, phi)]
        flat, unravel = ravel_pytree(phi)
        jacobian = jax.jacfwd(lambda u: ravel_pytree(target.to_parameters(unravel(u)))[0])(flat)
        change = jnp.linalg.slogdet(jacobian)[1]
        wanted = -likelihood + (squares[0] - squares[1]) / 2 - change
        return target.potential(phi) + target.log_normaliser(), wanted, target.from_parameters(theta)

    found, wanted, again = both(phi)
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    np.testing.assert_allclose(ravel_pytree(again)[0], ravel_pytree(phi)[0], rtol=1e-7)


def test_log_likelihoods():
    """Of each row given the readout, and given the other rows."""
    target = targets.marginal(*AT)
    u = jax.tree.map(lambda leaf: leaf.astype(float), target.draw_prior(KEY))
    theta = target.to_parameters(u, KEY)
    residual = np.asarray(TINY.y - BNN(theta, TINY.x))
    wanted = stats.norm(0, STD[:, None]).logpdf(residual).sum(axis=1)
    np.testing.assert_allclose(target.log_likelihood(u, KEY), wanted, rtol=1e-9)
    psi = np.asarray(BNN.embedding(u, TINY.x))
    inverse = np.linalg.inv(psi @ psi.T + np.diag(STD**2))
    variance = 1 / np.diag(inverse)
    left = (inverse @ np.asarray(TINY.y)) * variance[:, None]
    wanted = stats.norm(0, np.sqrt(variance)[:, None]).logpdf(left).sum(axis=1)
    np.testing.assert_allclose(target.left_out_log_likelihood(u), wanted, rtol=1e-8)


@pytest.mark.slow
def test_unitwise_accepts_by_the_potential():
    tiny = problem(widths=(5,), out_features=2, n=4)
    std = np.random.default_rng(0).uniform(0.2, 2.0, size=4)
    assert_changes_of_potential(targets.marginal(wb.BNN(tiny.bnn.features, 2, std), tiny.x, tiny.y), 1)


def test_reduced_and_scaled_targets_have_the_same_noise():
    known = targets.whitened(targets.marginal(*AT))
    u = jax.tree.map(lambda leaf: leaf.astype(float), known.draw_prior(KEY))
    inner = known.to_parameters(u, KEY).inner
    np.testing.assert_allclose(known.potential(u) + known.log_normaliser(), -dense(inner), rtol=1e-7)
    scale = targets.LogNormal(1.0, 0.5)  # of "noise_std": of the factor of all rows
    target = targets.scaled(targets.marginal(*AT), readout_std=scale, noise_std=scale)
    position = jax.tree.map(lambda leaf: leaf.astype(float), target.draw_prior(KEY))
    factor = target.scales(position)["noise_std"]
    np.testing.assert_allclose(np.ravel(target.at(position).bnn.noise_std), factor * STD)
