"""Pairs of a target and a sampler on tiny networks, through the driver, against importance sampling.

Each target by itself is held to brute-force densities in `tests/targets`, each sampler to conservation.
"""

import pytest

import widebnn as wb
from widebnn.samplers import alternate, function_space_hmc, hmc, langevin, mala, unitwise

from ..exact.importance import assert_exact, solved


def repriorised(tiny, space="auto"):
    """At another λ than σ²."""
    return wb.targets.repriorised(tiny.bnn, tiny.x, tiny.y, 0.5, space)


def marginal(tiny):
    return wb.targets.marginal(tiny.bnn, tiny.x, tiny.y)


rotated, whitened = wb.targets.rotated, wb.targets.whitened

CASES = {
    "one layer, repriorised in feature space, langevin": (
        lambda tiny: repriorised(tiny, "feature"),
        langevin(0.4, 0.3),
    ),
    "two layers, rotated marginal, mala": (lambda tiny: rotated(marginal(tiny)), mala(0.25)),
    "three layers, whitened repriorised, hmc": (lambda tiny: whitened(repriorised(tiny)), hmc(0.25, 5)),
}


SHORT = {"thin": 3, "burn_in": 200}
"""Where one step goes as far as several of a random walk; the bound on the error holds all the same."""


@pytest.mark.slow
@pytest.mark.parametrize("which", ["one layer", "two layers", "three layers"])
def test_reference_rests_on_many_draws(which):
    assert solved(which)[1].effective_draws > 10_000


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_predictions_have_exact_moments(case):
    make_target, sampler = CASES[case]
    tiny, exact = solved(case.partition(",")[0])
    target = make_target(tiny)
    draws, _ = assert_exact(target, sampler, tiny, exact.moments)
    assert 0.1 < draws.acceptance_rate < 0.95


@pytest.mark.slow
def test_unitwise_alternated_with_a_sampler_of_the_layers_below_has_exact_moments():
    tiny, exact = solved("two layers")
    target = whitened(marginal(tiny))
    below = function_space_hmc(0.25, 4)
    assert_exact(target, alternate(below, unitwise()), tiny, exact.moments, **SHORT)
