"""Gaussian-process regression against dense formulas, draws against moments, float32 against float64."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import widebnn as wb
from widebnn.nngp import gaussian_process, nngp_kernel

from ..exact.kernels import inputs, network

FALSE_FAILURE = 1e-6
NOISE = 0.3


def problem(n=6, m=4, noise_std=NOISE):
    """A process with two outputs, new inputs of which the first two are equal, and dense K, K*, K**."""
    rng = np.random.default_rng(3)
    x, x_new = (rng.normal(size=(k, 3)) for k in (n, m))
    x_new[1] = x_new[0]
    y = rng.normal(size=(n, 2))
    kernel = nngp_kernel(network(depth=2))
    dense = [np.asarray(kernel(*args)) for args in [(x,), (x, x_new), (x_new,)]]
    return gaussian_process(kernel, x, y, noise_std), x_new, *dense


def inverse_with_noise(k):
    return np.linalg.inv(k + NOISE**2 * np.eye(len(k)))


def test_moments_are_those_of_the_conditional_gaussian():
    gp, x_new, k, cross, new = problem()
    weights = cross.T @ inverse_with_noise(k)
    assert np.allclose(gp.mean(x_new), weights @ gp.y, rtol=0, atol=1e-12)
    assert np.allclose(gp.covariance(x_new), new - weights @ cross, rtol=0, atol=1e-12)
    assert np.allclose(gp.variance(x_new), np.diag(new - weights @ cross), rtol=0, atol=1e-12)


def test_log_marginal_likelihood_is_the_log_density_of_the_observations():
    gp, _, k, *_ = problem()
    law = stats.multivariate_normal(np.zeros(len(k)), k + NOISE**2 * np.eye(len(k)))
    assert np.allclose(gp.log_marginal_likelihood(), law.logpdf(np.asarray(gp.y).T).sum(), rtol=1e-12)


def test_noise_can_be_learnt_by_its_gradient():
    gp, *_ = problem()

    def log_likelihood(noise_std):
        other = gaussian_process(gp.kernel, gp.x, gp.y, noise_std)
        return other.log_marginal_likelihood(), other.kl_from_prior()

    compiled = jax.jit(jax.value_and_grad(log_likelihood, has_aux=True))
    h = 1e-5
    difference = (compiled(NOISE + h)[0][0] - compiled(NOISE - h)[0][0]) / (2 * h)
    (_, kl), gradient = compiled(NOISE)
    assert np.allclose(gradient, difference, rtol=1e-6)
    assert np.allclose(kl, gp.kl_from_prior(), rtol=1e-12)


def test_kl_from_prior_is_that_of_two_gaussians():
    """Over f(X) alone: given it, prior and posterior agree everywhere else."""
    gp, _, k, *_ = problem()
    mean, covariance = np.asarray(gp.mean(gp.x)), np.asarray(gp.covariance(gp.x))
    inverse = np.linalg.inv(covariance)
    log_ratio = np.linalg.slogdet(covariance)[1] - np.linalg.slogdet(k)[1]
    each = [(np.trace(inverse @ k) + m @ inverse @ m - len(k) + log_ratio) / 2 for m in mean.T]
    assert np.allclose(gp.kl_from_prior(), sum(each), rtol=1e-9)


def assert_moments(draws, mean, covariance):
    """Means and covariances of Gaussian draws (sample, m, d_out); d_out outputs are independent."""
    num, m, d_out = draws.shape
    draws, mean, covariance = (np.asarray(a, np.float64) for a in (draws, mean, covariance))
    std = np.sqrt(np.diag(covariance))
    limit = stats.norm.isf(FALSE_FAILURE / (2 * (m * d_out + m * m * d_out + m * m)))
    assert (np.abs(draws.mean(axis=0) - mean) < limit * std[:, None] / math.sqrt(num)).all()
    centred = draws - mean
    wick = np.sqrt((np.outer(std, std) ** 2 + covariance**2) / num)  # of a product of two Gaussians
    for j in range(d_out):
        found = centred[..., j].T @ centred[..., j] / num
        assert (np.abs(found - covariance) < limit * wick).all()
    between = centred[..., 0].T @ centred[..., 1] / num
    assert (np.abs(between) < limit * np.outer(std, std) / math.sqrt(num)).all()


@pytest.mark.slow
def test_draws_have_the_posterior_moments():
    gp, x_new, *_ = problem()
    draws = gp.sample(jax.random.key(0), x_new, 100_000)
    assert draws.shape == (100_000, 4, 2)
    assert_moments(draws, gp.mean(x_new), gp.covariance(x_new))


def test_without_noise_it_interpolates():
    gp, x_new, *_ = problem(noise_std=0.0)
    assert np.allclose(gp.mean(gp.x), gp.y, atol=1e-10)
    covariance = np.asarray(gp.covariance(gp.x))
    assert np.allclose(covariance, 0, atol=1e-12) and (np.diag(covariance) >= 0).all()
    assert np.allclose(gp.sample(jax.random.key(0), gp.x, 3), np.asarray(gp.y), atol=1e-6)
    assert np.diag(gp.covariance(x_new)).min() > 1e-4


@pytest.mark.parametrize("noise_std", [0.0, 1e-6])
def test_singular_kernel_is_refused_in_the_precision_at_hand(noise_std):
    x, y, kernel = inputs(5).astype(np.float32), np.ones((5, 1), np.float32), nngp_kernel(network())
    for rows in ([0, 1, 1, 2, 3], [0, 0, 0, 0, 0]):
        with pytest.raises(ValueError, match="noise_std must be larger, .* is singular in float32"):
            gaussian_process(kernel, x[rows], y, noise_std)
    assert np.isfinite(gaussian_process(kernel, x, y, noise_std).mean(x)).all()


@pytest.mark.slow
def test_float32_holds_the_posterior(float32, noise_std=0.1):
    """256 digits with near-duplicates among them, against float64; errors grow with the condition of K_σ²."""
    data = wb.data.digits(num_train=256, num_test=50)
    x, y, x_new = (np.asarray(a, np.float32) for a in (data.x_train, data.y_train, data.x_test))
    x[1], x[3] = x[0] * np.float32(1 + 1e-6), x[2]
    kernel = nngp_kernel(network(depth=2, in_features=64))

    def answers(dtype):
        gp = gaussian_process(kernel, *(jnp.asarray(a, dtype) for a in (x, y)), noise_std)
        new = jnp.asarray(x_new, dtype)
        values = {
            "mean": gp.mean(new),
            "covariance": gp.covariance(new),
            "variance": gp.variance(new),
            "log marginal likelihood": gp.log_marginal_likelihood(),
            "KL": gp.kl_from_prior(),
        }
        return gp, {name: np.asarray(value, np.float64) for name, value in values.items()}

    _, found = answers(jnp.float32)
    with jax.enable_x64(True):
        double, exact = answers(jnp.float64)
        spectrum = np.linalg.eigvalsh(double.prior)
    bound = np.finfo(np.float32).eps * (spectrum[-1] / noise_std**2 + 1)
    assert bound < 0.01
    for name, value in exact.items():
        error = np.abs(found[name] - value).max() / np.abs(value).max()
        assert error < bound, f"{name}: {error:.1e}, more than {bound:.1e}"
