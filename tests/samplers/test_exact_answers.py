"""Every target and every sampler on tiny networks, against importance sampling from the prior."""

import pytest

import widebnn as wb
from widebnn.samplers import (
    alternate,
    elliptical_slice,
    function_space_hmc,
    hmc,
    langevin,
    mala,
    pcn,
    pcnl,
    rwm,
    unitwise,
)

from ..exact.importance import assert_exact, solved


def standard(tiny):
    return wb.targets.standard(tiny.bnn, tiny.x, tiny.y)


def repriorised(tiny, reg=None, space="auto"):
    return wb.targets.repriorised(tiny.bnn, tiny.x, tiny.y, reg, space)


def marginal(tiny, space="auto"):
    return wb.targets.marginal(tiny.bnn, tiny.x, tiny.y, space)


rotated, whitened = wb.targets.rotated, wb.targets.whitened

CASES = {
    "one layer, standard, pcn": (standard, lambda u: pcn(u, 0.3)),
    "one layer, standard, rwm": (standard, lambda u: rwm(u, 0.2)),
    "one layer, repriorised in data space, pcn": (
        lambda tiny: repriorised(tiny, space="data"),
        lambda u: pcn(u, 0.6),
    ),
    "one layer, repriorised in feature space, pcnl": (
        lambda tiny: repriorised(tiny, space="feature"),
        lambda u: pcnl(u, 0.6),
    ),
    "one layer, other λ in data space, mala": (
        lambda tiny: repriorised(tiny, 0.5, "data"),
        lambda u: mala(u, 0.5),
    ),
    "one layer, other λ in feature space, langevin": (
        lambda tiny: repriorised(tiny, 0.5, "feature"),
        lambda u: langevin(u, 0.4, 0.3),
    ),
    "one layer, marginal in data space, pcnl": (lambda tiny: marginal(tiny, "data"), lambda u: pcnl(u, 0.6)),
    "one layer, marginal in feature space, langevin": (
        lambda tiny: marginal(tiny, "feature"),
        lambda u: langevin(u, 0.8, 0.3),
    ),
    "one layer, rotated standard, rwm": (lambda tiny: rotated(standard(tiny)), lambda u: rwm(u, 0.2)),
    "one layer, rotated other λ, hmc": (
        lambda tiny: rotated(repriorised(tiny, 0.5)),
        lambda u: hmc(u, 0.3, 4),
    ),
    "one layer, rotated marginal, pcn": (lambda tiny: rotated(marginal(tiny)), lambda u: pcn(u, 0.6)),
    "one layer, rotated marginal, function-space hmc": (
        lambda tiny: rotated(marginal(tiny)),
        lambda u: function_space_hmc(u, 0.9, 2, jitter=0.5),
    ),
    "two layers, repriorised, function-space hmc": (
        repriorised,
        lambda u: function_space_hmc(u, 0.25, 4, damping=0.4),
    ),
    "two layers, marginal, hmc": (marginal, lambda u: hmc(u, 0.25, 5)),
    "two layers, other λ, pcn": (lambda tiny: repriorised(tiny, 0.5), lambda u: pcn(u, 0.3)),
    "two layers, rotated standard, pcn": (lambda tiny: rotated(standard(tiny)), lambda u: pcn(u, 0.2)),
    "two layers, rotated repriorised, rwm": (lambda tiny: rotated(repriorised(tiny)), lambda u: rwm(u, 0.3)),
    "two layers, rotated marginal, mala": (lambda tiny: rotated(marginal(tiny)), lambda u: mala(u, 0.25)),
    "two layers, whitened standard, pcn": (lambda tiny: whitened(standard(tiny)), lambda u: pcn(u, 0.2)),
    "two layers, whitened marginal, function-space hmc": (
        lambda tiny: whitened(marginal(tiny)),
        lambda u: function_space_hmc(u, 0.25, 4, damping=0.4),
    ),
    "three layers, whitened repriorised, hmc": (
        lambda tiny: whitened(repriorised(tiny, 0.5)),
        lambda u: hmc(u, 0.25, 5),
    ),
    "three layers, whitened marginal, function-space hmc": (
        lambda tiny: whitened(marginal(tiny)),
        lambda u: function_space_hmc(u, 0.5, 4, jitter=0.5),
    ),
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
    make_target, make_sampler = CASES[case]
    tiny, exact = solved(case.partition(",")[0])
    target = make_target(tiny)
    length = SHORT if "function-space" in case else {}
    draws, _ = assert_exact(target, make_sampler(target.potential), tiny, exact.moments, **length)
    assert 0.1 < draws.acceptance_rate < 0.95


@pytest.mark.slow
def test_elliptical_slice_has_exact_moments():
    tiny, exact = solved("two layers")
    target = rotated(marginal(tiny))
    draws, _ = assert_exact(target, elliptical_slice(target.potential), tiny, exact.moments, **SHORT)
    assert draws.acceptance_rate == 1
    assert draws.stats["n_steps"].mean() > 1.2  # the bracket had to shrink


@pytest.mark.slow
def test_unitwise_alternated_with_a_sampler_of_the_layers_below_has_exact_moments():
    tiny, exact = solved("two layers")
    target = whitened(marginal(tiny))
    below = function_space_hmc(target.potential, 0.25, 4)
    assert_exact(target, alternate(below, unitwise(target)), tiny, exact.moments, **SHORT)
