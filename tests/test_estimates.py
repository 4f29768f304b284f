"""Estimates of the wide limit against closed forms; errors by their coverage over repetitions."""

import math

import jax
import numpy as np
import pytest
from scipy import stats

import widebnn as wb
from widebnn import estimates

from .exact.dkwm import FALSE_FAILURE
from .exact.estimates import (
    LIMIT,
    REPETITIONS,
    assert_covers,
    assert_distance_of_mixture,
    assert_kl_of_linear_potential,
    assert_kl_of_quadratic_potential,
)
from .exact.networks import problem
from .exact.streams import autoregressive


def test_kl_of_a_linear_potential():
    assert_kl_of_linear_potential(estimates.kl_from_prior, 0.7)


def test_kl_of_a_quadratic_potential():
    assert_kl_of_quadratic_potential(estimates.kl_from_prior)


def test_few_heavy_weights_give_no_estimate():
    u = 6 * np.random.default_rng(0).normal(size=2_000)  # as for ten outputs at width 32
    kl = estimates.kl_from_prior(u)
    assert kl.effective_draws < estimates.MIN_EFFECTIVE_DRAWS
    assert np.isnan(kl.value) and np.isnan(kl.error) and np.isnan(kl.bias)
    alone = estimates.kl_from_prior(np.array([0.0] + 200 * [1e4]))
    assert np.isnan(alone.value) and alone.effective_draws == 1


def test_chain_rule_adds_the_conditional_divergence():
    """θ = (u, v), U = a u + b v: all of it at once, or v's b²/2 given u."""
    rng = np.random.default_rng(0)
    u, v = 0.5 * rng.normal(size=(2, REPETITIONS, 1_000))
    assert_covers(estimates.kl_from_prior(u, np.full_like(u, 0.125) + v - v.mean()), 0.25)
    whole = estimates.kl_from_prior(u + v)
    assert abs(whole.value.mean() - 0.25) < LIMIT * whole.value.std() / math.sqrt(REPETITIONS)


def test_prior_draws_are_functions_of_draws_from_the_prior():
    tiny = problem()
    target = wb.targets.marginal(tiny.bnn, tiny.x, tiny.y)
    draws = estimates.prior_draws(
        jax.random.key(0),
        target,
        {"U": wb.potential, "bias": lambda _, u: u["layers"][0]["bias"]},
        num_draws=1_000,
        batch_size=300,
    )
    assert draws["U"].shape == (1_000,) and draws["bias"].shape == (1_000, 4)
    assert len(np.unique(draws["U"])) == 1_000
    assert stats.kstest(draws["bias"].ravel(), "norm").pvalue > FALSE_FAILURE


def test_kolmogorov_distance_of_equal_normals_is_the_exact_one():
    """Every draw N(½, 1) against N(0, 1): 2Φ(¼) − 1, without noise."""
    found = estimates.kolmogorov_distance(np.full(10, 0.5), np.ones(10), np.zeros(()), np.ones(()))
    assert abs(found.value - (2 * stats.norm.cdf(0.25) - 1)) < 1e-3 and found.error == 0


@pytest.mark.slow
def test_kolmogorov_distance_of_a_mixture():
    assert_distance_of_mixture(estimates.kolmogorov_distance)


def test_groups_know_the_error_of_a_mean():
    x = np.random.default_rng(0).normal(size=(400, 1_000))
    found = [estimates.by_groups(np.mean, row) for row in x]
    assert [f.value for f in found] == pytest.approx(x.mean(axis=1))
    error = np.array([f.error for f in found])
    exact = 1 / math.sqrt(1_000)
    assert abs(np.sqrt(np.mean(error**2)) / exact - 1) < LIMIT / math.sqrt(2 * 19 * 400)


def test_chain_mean_knows_autocorrelation():
    """AR(1) with ρ = ½ has variance (1 + ρ)/(1 − ρ) = 3 times that of independent draws."""
    x = autoregressive(np.random.default_rng(0), 0.5, (4, 10_000), axis=1)
    found = estimates.mean_and_mcse(x)
    assert found.error == pytest.approx(math.sqrt(3 / x.size), rel=0.1)
    assert abs(found.value) < LIMIT * found.error


def test_chains_that_disagree_are_worth_little():
    """Each is stuck about a place of its own: the error is that of a mean of so many places."""
    rng = np.random.default_rng(0)
    places = rng.normal(size=(200, 8, 1))
    found = [estimates.mean_and_mcse(x) for x in places + 0.1 * rng.normal(size=(200, 8, 1_000))]
    assert_covers(estimates.Estimate(*np.array(found).T), 0.0)
    assert np.isnan(estimates.mean_and_mcse(np.ones((2, 10))).error)


def test_power_law_recovers_exponent_and_its_error(correction=True):
    rng = np.random.default_rng(0)
    width = np.array([16, 64, 128, 512, 2_048])
    exact = 3.0 * width**-0.5 * np.exp(5 * correction / width)
    fits = [
        estimates.power_law(width, exact * (1 + 0.02 * rng.normal(size=5)), 0.02 * exact, correction)
        for _ in range(2_000)
    ]
    exponents = estimates.Estimate(*np.array([fit.exponent for fit in fits]).T)
    assert_covers(exponents, -0.5)
    chi2 = np.array([fit.chi2 for fit in fits])
    degrees = fits[0].degrees
    assert degrees == 3 - correction
    # 2 %: errors in the logarithm are those of the value to first order only
    assert abs(chi2.mean() / degrees - 1) < LIMIT * math.sqrt(2 / degrees / len(fits)) + 0.02
    noiseless = estimates.power_law(width, exact, 0.02 * exact, correction)
    np.testing.assert_allclose(noiseless(width), exact, rtol=1e-10)
    np.testing.assert_allclose(noiseless.amplitude, 3.0, rtol=1e-10)
