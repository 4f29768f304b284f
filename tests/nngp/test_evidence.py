"""The slope of the evidence over width: by moments of a unit, and by the evidence of finite networks."""

import math

import jax
import numpy as np
import pytest
from scipy import stats

import widebnn as wb

from ..exact import evidence
from ..exact.networks import problem

FALSE_FAILURE = 1e-6


def found(tiny, seed=0, **options):
    return wb.nngp.evidence_slope(tiny.bnn, tiny.x, tiny.y, jax.random.key(seed), **options)


def test_limit_and_slope_are_the_dense_ones():
    """c₁ of two outputs by theory in G and Δ, from other draws of a unit."""
    tiny = problem(widths=(8,), out_features=2)
    x, y = np.asarray(tiny.x), np.asarray(tiny.y)
    slope = found(tiny, relative_error=0.02)
    kernel, n = np.asarray(wb.nngp.nngp_kernel(tiny.bnn)(tiny.x)), len(y)
    inverse = np.linalg.inv(kernel + tiny.bnn.noise_std**2 * np.eye(n))
    alpha = inverse @ y
    law = stats.multivariate_normal(np.zeros(n), np.linalg.inv(inverse))
    assert slope.log_evidence == pytest.approx(sum(law.logpdf(column) for column in y.T), rel=1e-10)

    random = np.random.default_rng(1)
    f = math.sqrt(2 / 3) * x @ random.normal(size=(3, 400_000)) + 0.5 * random.normal(size=400_000)
    p = f * stats.norm.cdf(f)
    mean = kernel - tiny.bnn.bias_std**2
    gradient = (2 * inverse - alpha @ alpha.T) / 2
    along = np.einsum("ik,ij,jk->k", p, gradient, p, optimize=True)
    square = np.sum(p * (inverse @ p), axis=0)
    misfit = np.sum((alpha.T @ p) ** 2, axis=0) * square - np.trace(alpha.T @ mean @ inverse @ mean @ alpha)
    volume = square**2 - np.trace(inverse @ mean @ inverse @ mean)
    values = ((along - np.trace(gradient @ mean)) ** 2 - misfit + volume) / 2  # volume/2, for each output
    error = math.hypot(values.std() / math.sqrt(values.size), slope.error)
    assert error < 0.05 * abs(slope.slope)
    assert abs(values.mean() - slope.slope) < stats.norm.isf(FALSE_FAILURE / 2) * error


@pytest.mark.slow
def test_finite_networks_follow_the_line():
    tiny = problem(widths=(64,))
    slope = found(tiny, relative_error=0.02)
    log_evidence, error = evidence.of_network(tiny, (64,), "gelu", num_draws=100_000)
    measured = 64 * (log_evidence - slope.log_evidence)
    limit = stats.norm.isf(FALSE_FAILURE / 2) * math.hypot(64 * error, slope.error)
    assert limit < 0.3 * abs(slope.slope), f"too wide: {limit:.3f} of {slope.slope:.3f}"
    assert abs(measured - slope.slope) < limit + 0.1 * abs(slope.slope)  # and the term of order d⁻²


def test_units_are_drawn_until_the_error_is_small_or_there_are_enough():
    tiny = problem()
    rough, fine = found(tiny, relative_error=10.0), found(tiny, relative_error=1e-9, max_units=20_000)
    assert rough.num_units == 16_384 and fine.num_units == 20_480
    assert np.isfinite(rough.error) and rough != found(tiny, 1, relative_error=10.0)
