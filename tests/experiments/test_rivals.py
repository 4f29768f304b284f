"""Samplers of BlackJAX after their own adaptation."""

import arviz
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import widebnn as wb
from book.experiments.blackjax_samplers import BLACKJAX
from book.experiments.chain_summaries import resolved_sample_size


@pytest.fixture(autouse=True)
def as_users_run_it():
    """BlackJAX broadcasts freely and mixes types."""
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


@pytest.mark.nightly
@pytest.mark.parametrize("name", BLACKJAX)
def test_an_adapted_sampler_finds_the_exact_posterior(name):
    """Unadjusted MCLMC too, whose bias in three dimensions is small."""
    target = wb.targets.linear(jnp.eye(3), jnp.ones((3, 1)), noise_std=1.0)
    keys = jax.random.split(jax.random.key(0), 3)
    sampler = BLACKJAX[name](target, target.draw_prior(keys[0]), keys[1])
    collect = {"sum": lambda _, u: jnp.sum(u)}
    options = {"num_samples": 4_000, "burn_in": 200, "num_chains": 4, "progress": False}
    draws = wb.sample(keys[2], target, sampler, collect=collect, **options)
    mean, error = wb.estimates.mean_and_mcse(draws["sum"])
    assert abs(mean - 1.5) < 5 * error < 0.5
    np.testing.assert_allclose(draws["sum"].var(), 1.5, rtol=0.15)


def test_chains_that_swing_are_judged_by_their_square():
    """Rotations by one radian whose radius forgets in a hundred draws: x is antithetic, and x² slow."""
    rng, keep = np.random.default_rng(0), 0.995
    turn = keep * np.exp(1j)
    noise = (rng.normal(size=(4, 1_000, 50)) + 1j * rng.normal(size=(4, 1_000, 50))) * np.sqrt(1 - keep**2)
    z = np.empty_like(noise)
    z[:, 0] = noise[:, 0] / np.sqrt(1 - keep**2)
    for i in range(1, 1_000):
        z[:, i] = turn * z[:, i - 1] + noise[:, i]
    assert np.median(arviz.ess(z.real, method="bulk")) > 1_000
    assert 4_000 * (1 - keep**2) / (1 + keep**2) < 100  # of the square
    assert np.isfinite(resolved_sample_size(z.real)).mean() < 0.05
