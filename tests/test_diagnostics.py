"""Diagnostics against direct sums in float64, closed forms, and ArviZ."""

from functools import partial

import arviz
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from widebnn.diagnostics import (
    LEAST_RESOLVED,
    convergence,
    effective_sample_size,
    random_projections,
    rhat,
    rhat_squared,
)
from widebnn.tree import normal_like

from .exact.streams import autoregressive


def ar1(rho, shape, seed=0):
    """A stationary AR(1) process over the draws of (chain, draw, *event), variance 1."""
    return autoregressive(np.random.default_rng(seed), rho, shape, axis=1)


def direct_ess(chain, cut=True, unbiased=True):
    """The ESS of one chain by the formula itself, a lag at a time; the switches plant the two likely bugs."""
    n = len(chain)
    z = chain - chain.mean()
    time = 1.0
    for k in range(1, n):
        rho = (z[: n - k] @ z[k:]) / (n - k if unbiased else n) / (z @ z / n)
        if cut and rho < 0:
            break
        time += 2 * (1 - k / n) * rho
    return n / time


def test_ess_is_the_direct_sum():
    x = ar1(0.7, (3, 60, 2, 4))
    by_hand = np.array([[[direct_ess(x[c, :, i, j]) for j in range(4)] for i in range(2)] for c in range(3)])
    np.testing.assert_allclose(effective_sample_size(x), by_hand.sum(axis=0), rtol=1e-10)


@pytest.mark.parametrize("bug", [{"cut": False}, {"unbiased": False}], ids=["no cut", "divided by N"])
def test_ess_test_would_see_the_bug(bug):
    x = ar1(0.7, (1, 60))
    assert abs(direct_ess(x[0], **bug) / effective_sample_size(x) - 1) > 0.02  # 10⁸ times the tolerance above


def test_ess_stops_at_the_first_negative_lag():
    """A series with ρ₁ > 0 > ρ₂ and positive terms later, which must not count."""
    x = np.array([[1.0, 0.0, -1.0, 0.0, 1.0, 1.0, 0.0, -1.0, 0.0, 1.0, 0.0, -1.0, -1.0]])
    z = x[0] - x.mean()
    lags = [z[: 13 - k] @ z[k:] for k in range(13)]
    assert lags[1] > 0 > lags[2] and max(lags[3:]) > 0
    np.testing.assert_allclose(effective_sample_size(x), 13 / (1 + 2 * lags[1] / lags[0]), rtol=1e-12)


@pytest.mark.parametrize("statistic", [effective_sample_size, rhat_squared])
def test_many_series_have_what_each_has_alone(statistic):
    x = np.moveaxis(ar1(0.5, (600, 2, 40)), 0, 2)  # in blocks of 256, and what is left
    some = [0, 255, 256, 511, 512, 599]
    np.testing.assert_array_equal(statistic(x)[some], [statistic(x[:, :, i]) for i in some])
    assert statistic(x.reshape(2, 40, 20, 30)).shape == (20, 30)
    assert statistic(x[:, :, :0]).shape == (0,)


def test_nothing_is_compiled(caplog):
    draws = jnp.asarray(ar1(0.5, (2, 37, 3)))
    with jax.log_compiles():
        for statistic in (effective_sample_size, rhat, convergence):
            statistic(draws)
        assert not caplog.records
        jax.jit(lambda x: x + 37)(draws)
        assert caplog.records  # where something is, it is seen


def test_a_chain_that_never_moves_has_no_ess_or_rhat():
    stuck = np.full((2, 50), 1e4 + 0.3)
    assert np.isnan(effective_sample_size(stuck)) and np.isnan(rhat(stuck))
    assert np.isnan(effective_sample_size(np.stack([stuck[0], np.arange(50.0)])))
    assert rhat(stuck + np.array([[0.0], [0.1]])) == np.inf


def test_rhat_squared_is_brooks_and_gelmans_ratio():
    x = ar1(0.9, (3, 40, 5))
    m, n = 3, 40
    within = x.var(axis=1, ddof=1).mean(axis=0)
    between = n * x.mean(axis=1).var(axis=0, ddof=1)
    pooled = (n - 1) / n * within + between / n
    tfp = (m + 1) / m * pooled / within - (n - 1) / (m * n)  # the expression in their order
    np.testing.assert_allclose(rhat_squared(x), tfp, rtol=1e-12)
    np.testing.assert_allclose(rhat(x), np.sqrt(tfp), rtol=1e-12)


def test_statistics_take_arrays_of_both_kinds_and_booleans_and_return_numpys():
    """Of a value near 10⁴ that moves by 0.1, which float32 stores in steps of 0.001."""
    x = (1e4 + 0.1 * ar1(0.5, (2, 100, 3))).astype(np.float32)
    for statistic in (effective_sample_size, rhat_squared, rhat):
        found = statistic(jnp.asarray(x))
        assert isinstance(found, np.ndarray) and found.shape == (3,) and found.dtype == np.float64
        assert isinstance(alone := statistic(x[..., 0]), np.ndarray) and alone.shape == ()
        np.testing.assert_array_equal(found, statistic(x.astype(float)))
        np.testing.assert_array_equal(statistic(jnp.asarray(x > 1e4)), statistic((x > 1e4).astype(float)))


def test_convergence_is_arvizs():
    x = ar1(0.9, (4, 200, 2, 3))
    found = convergence(x)
    tail = arviz.ess(x, method="tail", prob=(0.05, 0.95))
    np.testing.assert_array_equal(found.ess, np.minimum(arviz.ess(x, method="bulk"), tail))
    np.testing.assert_array_equal(found.rhat, arviz.rhat(x, method="rank"))
    assert found.ess.shape == (2, 3) and convergence(x[..., 0, 0]).ess.shape == ()


def test_convergence_where_nothing_moves_and_of_one_chain():
    x = ar1(0.5, (2, 100, 3))
    x[:, :, 1] = 7
    x[:, :, 2] = [[1], [2]]
    found = convergence(x)
    assert list(np.isnan(found.ess)) == [False, True, False] and np.isnan(found.rhat[1])
    assert found.rhat[2] > 1e6
    drifting = ar1(0.5, (1, 400, 2)) + np.linspace(0, 1, 400)[None, :, None] * np.array([0, 4])
    steady, moving = convergence(drifting).rhat
    assert steady < 1.1 and moving > 1.5
    assert convergence(np.arange(16).reshape(2, 8) % 3).ess.shape == ()


TEMPLATE = {
    "weight": jax.ShapeDtypeStruct((30, 20), jnp.float32),
    "bias": jax.ShapeDtypeStruct((), jnp.float32),
}


def test_projections_are_inner_products_with_unit_vectors():
    """So those of the prior are standard normal: variances of 4,000 draws are within five errors of 1."""
    project = partial(random_projections(jax.random.key(1), TEMPLATE, num=7), None)
    keys = jax.random.split(jax.random.key(2), 4_000)
    positions = jax.jit(jax.vmap(lambda key: normal_like(key, TEMPLATE)))(keys)
    zero = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), TEMPLATE)
    found, jacobian = jax.jit(lambda u: (jax.vmap(project)(u), jax.jacobian(project)(zero)))(positions)
    directions = np.concatenate([np.reshape(leaf, (7, -1)) for leaf in jax.tree.leaves(jacobian)], axis=1)
    assert directions.shape == (7, 601)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1, rtol=1e-5)
    flat = np.concatenate([np.reshape(leaf, (4_000, -1)) for leaf in jax.tree.leaves(positions)], axis=1)
    np.testing.assert_allclose(found, flat @ directions.T, atol=1e-5)
    assert np.abs(np.mean(found, axis=0)).max() < 5 / np.sqrt(4_000)
    assert np.abs(np.var(found, axis=0) - 1).max() < 5 * np.sqrt(2 / 4_000)


LENGTHS = [(1, 320), (3, 200), (4, 2_000)]
"""Chains and kept draws of experiments at laptop scale."""


def ar1_with(true_ess, num_chains, num_draws, num=200, seed=0):
    """Chains (chain, draw, num) whose effective samples are known."""
    ratio = true_ess / (num_chains * num_draws)
    return ar1((1 - ratio) / (1 + ratio), (num_chains, num_draws, num), seed)


@pytest.mark.parametrize("shape", LENGTHS, ids=str)
def test_what_is_called_resolved_has_a_hundred_effective_samples(shape):
    """At most 5 % pass in error, by three binomial errors of 200 entries; a pass with 400 true ones is sure.

    The bulk estimate alone is checked, of which the rest is a minimum: results store means of it.
    """
    allowed = 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    for true in (25, 99):
        assert (arviz.ess(ar1_with(true, *shape), method="bulk") >= LEAST_RESOLVED).mean() <= allowed
