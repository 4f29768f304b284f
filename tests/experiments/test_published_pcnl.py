"""The law of the published pCNL: closed forms against brute force, chains against the law, rows."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import widebnn as wb
from book.experiments.published_pcnl import _shifts, published_potential

from ..exact.dkwm import FALSE_FAILURE
from ..exact.importance import _weighted, by_chains
from ..exact.networks import gp_prediction, problem
from ..exact.published import log_weight, misfit


@pytest.mark.parametrize("outputs", [1, 2])
def test_published_potential_is_minus_the_log_likelihood_of_the_map(float64, outputs):
    tiny = problem(out_features=outputs)
    target = wb.targets.repriorised(tiny.bnn, tiny.x, tiny.y)
    positions = [target.draw_prior(jax.random.key(i)) for i in range(4)]
    exact = jnp.array([misfit(tiny, target, phi) for phi in positions])
    found = jnp.array([published_potential(target)(phi) for phi in positions])
    assert jnp.ptp(exact) > 0.1
    assert jnp.allclose(found - found[0], exact - exact[0], atol=1e-10)


def weighted(half, whole, log_weights_of, num_draws=100_000):
    """Moments of f under prior draws with weights, the readout given them Gaussian at the noise of `half`."""

    def one(key):
        inner = wb.targets.marginal(whole.bnn, whole.x, whole.y).draw_prior(key)
        mean, covariance = gp_prediction(half, inner, half.x_new)
        return log_weights_of(inner), mean, mean**2 + jnp.diag(covariance)[:, None]

    return _weighted(one, num_draws).moments


def largest_score(found, exact):
    return max(
        np.abs((found.mean - exact.mean) / np.hypot(found.mean_error, exact.mean_error)).max(),
        np.abs((found.std - exact.std) / np.hypot(found.std_error, exact.std_error)).max(),
    )


@pytest.mark.slow
def test_the_published_chain_has_the_published_law_and_not_the_posterior(float64):
    whole = problem(widths=(3,))
    half = problem(widths=(3,), noise_std=whole.bnn.noise_std / math.sqrt(2))
    law = weighted(half, whole, lambda inner: log_weight(half, whole, inner))
    marginal = wb.targets.marginal(whole.bnn, whole.x, whole.y)
    posterior = weighted(whole, whole, lambda inner: -marginal.potential(inner))
    target = wb.targets.repriorised(whole.bnn, whole.x, whole.y)
    published = published_potential(target)
    draws = wb.sample(
        jax.random.key(0),
        wb.targets.from_potential(published, target.template),
        wb.samplers.pcnl(0.4),
        num_samples=60,
        thin=10,
        burn_in=300,
        num_chains=512,
        collect={"f": lambda _, phi: wb.output(whole.x_new)(target, phi)},
    )
    found = by_chains(draws["f"])
    limit = stats.norm.isf(FALSE_FAILURE / (2 * 2 * law.mean.size))
    assert largest_score(found, law) < limit
    assert largest_score(found, posterior) > 2 * limit


def made_up(rng, shift, scale, variance):
    means = (shift + scale * rng.standard_normal((2, 4_000, 2, 3))).astype(np.float32)
    return {"means": means, "variance": np.full((2, 4_000, 2), variance, np.float32)}


def test_summaries_of_a_known_shift():
    rng = np.random.default_rng(0)
    right, published = made_up(rng, 0.0, 0.6, 0.64), made_up(rng, 0.5, 0.3, 0.16)
    found = _shifts(right, published, slice(None))
    # posterior N(0, 0.36 + 0.64); published N(0.5, 0.09 + 0.16)
    assert abs(found["mean_shift"] - 0.5) < 5 * found["mean_shift_error"]
    assert abs(found["std_ratio"] - 0.5) < 5 * found["std_ratio_error"]
    assert found["mean_shift_error"] == pytest.approx(math.sqrt((0.36 + 0.09) / 8_000), rel=0.2)


def test_the_laws_part_in_the_limit_of_infinite_width(float64):
    """At a fixed kernel the variance of f shrinks by (k + σ²)/(2k + σ²) along an eigenvector."""
    psi = jnp.diag(jnp.array([0.01, 1.0, 100.0]))
    y = jnp.ones((3, 1))
    once, doubled = (wb.targets.readout_posterior(psi, y, s).covariance(psi) for s in (1.0, 0.5))
    k = jnp.diag(psi) ** 2
    assert jnp.allclose(jnp.diag(doubled) / jnp.diag(once), (k + 1) / (2 * k + 1))
