"""Pairs of a target and a sampler on tiny networks, through the driver, against importance sampling.

Each target by itself is held to brute-force densities in `tests/targets`, each sampler to conservation.
"""

import pytest

import widebnn as wb
from widebnn.samplers import alternate, function_space_hmc, hmc, unitwise

from ..exact.importance import assert_exact, solved


def repriorised(tiny):
    """At another λ than σ²."""
    return wb.targets.repriorised(tiny.bnn, tiny.x, tiny.y, 0.5)


def marginal(tiny):
    return wb.targets.marginal(tiny.bnn, tiny.x, tiny.y)


rotated, whitened = wb.targets.rotated, wb.targets.whitened


@pytest.mark.slow
def test_predictions_have_exact_moments():
    tiny, exact = solved("three layers")
    assert exact.effective_draws > 10_000
    draws, _ = assert_exact(whitened(repriorised(tiny)), hmc(0.25, 5), tiny, exact.moments)
    assert 0.1 < draws.acceptance_rate < 0.95


@pytest.mark.slow
def test_unitwise_alternated_with_a_sampler_of_the_layers_below_has_exact_moments():
    tiny, exact = solved("two layers")
    assert exact.effective_draws > 10_000
    both = alternate(function_space_hmc(0.25, 4), unitwise())
    assert_exact(rotated(marginal(tiny)), both, tiny, exact.moments, thin=3, burn_in=200)
