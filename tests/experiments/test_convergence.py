"""The experiment on R̂ and traces: summaries of chains whose answer is known."""

import math

import numpy as np
import pytest

import widebnn as wb
from book.experiments.chain_summaries import ess_with_error, jackknife, trace_summary
from widebnn.tables import Measure

from ..exact.streams import autoregressive


def test_what_lies_between_chains_is_seen():
    noise = np.random.default_rng(0).normal(size=(3, 400, 4))
    steady, apart = trace_summary(noise, thin=5), trace_summary(noise + 9 * np.arange(3)[:, None, None])
    assert steady["pc_between"] < 0.01
    assert apart["pc_between"] > 0.4  # of the first component nearly 1, of the second nearly 0
    assert np.shape(steady["pc_traces"]) == (2, 3, 200) and steady["pc_thin"] == 10


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
