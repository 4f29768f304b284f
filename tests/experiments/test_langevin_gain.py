"""The experiments on what repriorisation gains Langevin: their rows and an exact answer."""

import dataclasses

import jax
import numpy as np
import pytest
from scipy.optimize import brentq

import widebnn as wb
from book.experiments import langevin_gain as module
from book.experiments.langevin_gain import (
    MOST_RHAT,
    TENFOLD_RHAT,
    gain_over_width,
    langevin_gain,
    worth_where_flat,
)

TINY = gain_over_width.settings(
    "smoke",
    depth=1,
    widths=(2,),
    num_train=(3, 4),
    num_test=2,
    burn_in=1,
    num_steps=96,
    thin=2,
    num_projections=4,
)


@pytest.fixture
def calls(monkeypatch):
    """Puts independent noise in the place of a run."""
    made = []

    def noise(rng_key, target, sampler, *, collect=None, initial, num_samples, num_chains, **options):
        made.append((target, initial))
        start = jax.tree.map(lambda leaf: leaf[0], initial)
        values = {name: np.asarray(function(target, start)) for name, function in (collect or {}).items()}
        seed = jax.random.bits(rng_key, (2,)).tolist()

        def about(value):
            return value + np.random.default_rng(seed).normal(size=(num_chains, num_samples, *value.shape))

        return wb.Draws(
            collected={name: about(value) for name, value in values.items()},
            stats={"acceptance_rate": np.full((num_chains, num_samples), TINY["target_acceptance"])},
            streamed={},
            position=initial,
            step_size=0.1,
            thin=options["thin"],
            burn_in=options["burn_in"],
            seconds=1.0,
        )

    monkeypatch.setattr(module, "sample", noise)
    return made


@pytest.mark.slow
def test_both_parametrisations_start_at_the_same_parameters(calls):
    list(langevin_gain(**TINY | {"num_train": (4,)}))
    (_, theta), *_, (target, phi) = calls
    assert len({float(chain) for chain in phi.readout[:, 0, 0]}) == TINY["num_chains"]
    mapped = jax.jit(jax.vmap(target.to_parameters))(phi)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), mapped, theta)
    assert not np.allclose(phi.readout, theta.readout)


@pytest.mark.slow
def test_the_regulariser_grows_with_the_images_where_it_should(calls):
    for reg_grows in (False, True):
        one = {"num_train": (3,), "parametrisations": ("φ",), "reg_grows": reg_grows}
        list(langevin_gain(**TINY | one))
    regs = [float(target.reg) for target, _ in calls]
    np.testing.assert_allclose(regs, [0.01] * 2 + [0.03] * 2)


@pytest.mark.parametrize(
    ("rejected", "num_runs"),
    [
        (lambda step_size, num_draws: 15 * step_size**3, (1, 1)),
        (lambda step_size, num_draws: step_size**3, (3, 1)),  # too little: the step could be longer
        # The chain goes on to where U is steeper.
        (lambda step_size, num_draws: (15 if num_draws < 48 else 200) * step_size**3, (1, 3)),
    ],
    ids=["kept by the law", "too little", "too much at the end"],
)
def test_the_step_is_tuned_until_the_whole_run_has_the_acceptance(monkeypatch, calls, rejected, num_runs):
    noise, step_sizes, lengths = module.sample, [], []

    def run(rng_key, target, sampler, **options):
        is_tuned = isinstance(sampler, wb.samplers.tuned)
        step_sizes.append(0.1 if is_tuned else sampler.step_size)  # what `noise` says it was tuned to
        lengths.append(options["num_samples"])
        draws = noise(rng_key, target, sampler, **options)
        rates = np.full_like(draws.stats["acceptance_rate"], 1 - rejected(step_sizes[-1], lengths[-1]))
        return dataclasses.replace(draws, stats={"acceptance_rate": rates})

    monkeypatch.setattr(module, "sample", run)
    *_, row = langevin_gain(**TINY | {"num_train": (3,), "parametrisations": ("θ",)})
    short, long = num_runs
    assert lengths == [5] * short + [48] * long
    assert row["step_size"] == step_sizes[-1]
    assert 0.98 < row["acceptance"] < 0.99


def test_the_worth_of_two_steps_depends_on_the_damping():
    """With all terms a step is worth what Theorem 14.1 says; where γ > 4ε no term is negative."""
    for damping in (0.3, 1.0):
        kept = np.sqrt(1 - damping)
        worth = 0.05**2 / (4 - 0.05**2) * (1 + kept) / (1 - kept)
        assert worth_where_flat(0.05, damping) == pytest.approx(worth, rel=1e-3)


def test_a_tenfold_gain_of_stationary_chains_makes_this_much_of_rhat():
    """1 ÷ (1 − g) with g = 2(s − 1 + e⁻ˢ)/s², the variance of a mean over s autocorrelation times (OU)."""

    def squared(s):
        return 1 / (1 - 2 * (s - 1 + np.exp(-s)) / s**2)

    at_agreement = brentq(lambda s: squared(s) - MOST_RHAT, 1, 100)
    assert squared(at_agreement / 10) == pytest.approx(TENFOLD_RHAT, abs=0.1)
    assert squared(at_agreement / 34) == pytest.approx(10, abs=0.3)
