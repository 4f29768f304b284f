"""The experiment on R̂ and traces: its rows, its summaries on chains whose answer is known, its claims."""

import math

import jax
import numpy as np
import pytest

import widebnn as wb
from book.experiments.chain_summaries import (
    behind,
    ess_with_error,
    jackknife,
    pooled_ess_per_draw,
    trace_summary,
)
from book.experiments.convergence import convergence
from widebnn.diagnostics import convergence_summary
from widebnn.tables import Measure

from ..exact.streams import autoregressive

TINY = convergence.settings(
    "smoke",
    num_train=8,
    num_test=2,
    widths=(4,),
    samplers=("pCN",),
    num_steps=(80,),
    thin=2,
    num_projections=3,
    repeats=(0,),
)


@pytest.mark.slow
def test_samplers_start_from_the_same_draws_of_the_prior(monkeypatch):
    keys = []

    def first(rng_key, target, sampler, **options):
        keys.append(jax.random.key_data(rng_key).tolist())
        assert "initial" not in options and options["burn_in"] == 0
        raise InterruptedError

    monkeypatch.setattr("book.experiments.convergence.sample", first)
    for name in ("pCN", "Langevin"):
        with pytest.raises(InterruptedError):
            list(convergence(**TINY | {"samplers": (name,)}))
    assert len(keys) > 1 and keys == len(keys) * keys[:1]
    with pytest.raises(InterruptedError):
        list(convergence(**TINY | {"repeats": (1,)}))
    assert keys[-1] != keys[0]


def test_agreement_sees_what_each_statistic_sees():
    noise = np.random.default_rng(0).normal(size=(3, 400, 5))
    well = convergence_summary(noise)
    assert well["rhat_squared"] < 1.02 and well["rhat"] < 1.02 and well["share_below"] == 1
    assert 600 < well["ess_bulk"] < 1_800 and well["ess_tail"] > 400

    apart = noise + np.array([-1.0, 0.0, 1.0])[:, None, None] * np.array([0, 0, 0, 0, 1.0])[None, None, :]
    found = convergence_summary(apart)
    np.testing.assert_allclose(found["rhat_squared_high"], wb.rhat_squared(apart).max(), rtol=1e-6)
    assert found["share_below"] == 0.8 and found["rhat_squared_median"] < 1.02 < 1.3 < found["rhat_high"]

    spread = convergence_summary(noise * np.array([1, 1, 4])[:, None, None])
    assert spread["rhat_squared"] < 1.02 and spread["rhat"] > 1.1

    together = noise.copy()
    together[:, :200] += 5  # all chains, all at once
    found = convergence_summary(together)
    assert found["rhat_squared"] < 1.02 and found["rhat"] > 1.5 and found["rhat_late"] < 1.03


def test_chains_that_do_not_move_have_no_number():
    found = convergence_summary(np.repeat(np.arange(3.0)[:, None], 20, axis=1))
    assert found["rhat_squared"] is found["ess_bulk"] is None and found["share_below"] == 0
    still = trace_summary(np.zeros((2, 20, 3)))
    assert still["pc_drift"] is still["pc_time"] is None


@pytest.mark.slow
def test_steadiness_of_noise_and_of_a_trend():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(3, 1_000, 4))
    trend = noise + 10 * np.linspace(-1, 1, 1_000)[None, :, None] * np.array([[1], [2], [3]])[:, :, None]
    steady, drifting = trace_summary(noise, thin=5), trace_summary(trend, thin=5)
    assert steady["pc_drift"] < 0.2 and steady["pc_between"] < 0.01
    assert 4 < steady["pc_time"] < 7  # a draw, five steps
    first = trace_summary(trend[:, :, :1] * np.ones(2))["pc_explained"]
    assert first[0] > 0.99
    assert drifting["pc_drift"] > 0.6 and drifting["pc_time"] > 20 * steady["pc_time"]
    apart = trace_summary(noise + 9 * np.arange(3)[:, None, None])
    assert apart["pc_between"] > 0.4  # of the first component nearly 1, of the second nearly 0
    assert np.shape(steady["pc_traces"]) == (2, 3, 200) and steady["pc_thin"] == 25


@pytest.mark.parametrize(
    ("ess", "rhat", "known"),
    [
        ((500.0, 300.0), (1.01, 1.2), (300.0, 1.2)),
        ((500.0, None), (1.01, 1.2), (None, 1.2)),
        ((500.0, math.nan), (1.01, None), (None, None)),
        ((500.0,), (None,), (500.0, None)),
    ],
)
def test_of_the_chains_behind_a_number_the_worst_is_known_where_all_are(ess, rhat, known):
    assert behind(ess, rhat) == behind(iter(ess), iter(rhat)) == known


@pytest.mark.slow
@pytest.mark.parametrize("true", [100, 400])
def test_estimates_of_effective_samples_scatter_by_as_much_as_is_said(true):
    num_chains, num_draws, num, repeats = 4, 1_000, 100, 40
    ratio = true / num_draws
    a = (1 - ratio) / (1 + ratio)
    rng, alone, least = np.random.default_rng(0), [], []
    for _ in range(repeats):
        chains = autoregressive(rng, a, (num_chains, num_draws, num), axis=1)
        ess = sum(np.asarray(wb.effective_sample_size(chain[None])) for chain in chains)
        alone.append(ess)
        least.append(ess.min())
    assert ess_with_error(None).error is None and math.isnan(ess_with_error(None).value)
    said = ess_with_error(float(num_chains * true)).error
    assert 0.6 * said < np.std(alone) < 1.2 * said
    # An error of forty is known to a tenth, and its law is a limit.
    said = ess_with_error(float(np.mean(least)), least_of=num).error
    assert abs(np.std(least) / said - 1) < 0.5


def test_the_jackknife_of_a_mean_is_its_standard_error():
    chains = np.random.default_rng(0).normal(size=(7, 50))
    wanted = Measure.mean(chains.mean(axis=1))
    assert jackknife(np.mean, chains) == pytest.approx(wanted)
    assert jackknife(lambda draws: np.mean(draws["weights"]), {"weights": chains}) == pytest.approx(wanted)


def test_the_jackknife_of_effective_samples_is_their_scatter_over_repeats():
    """AR(1) chains as `gradient_gain` has them: twenty effective samples each, ten chains."""
    num_repeats, rho = 40, 0.87
    every = autoregressive(np.random.default_rng(0), rho, (num_repeats, 10, 300, 4), axis=2)
    found = [pooled_ess_per_draw(draws) for draws in every]
    values = [one.value for one in found]
    error = np.std(values) / np.sqrt(num_repeats)
    assert abs(np.mean(values) - (1 - rho) / (1 + rho)) < 3 * error
    # The scatter of forty is known to a ninth.
    assert abs(np.mean([one.error for one in found]) / np.std(values) - 1) < 1 / 3
