"""Streaming: the same answers as from stored values, in memory that does not know the length."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import widebnn as wb
from widebnn.driver._chains import Chains
from widebnn.samplers import pcn

from .exact import streams
from .exact.streams import summarised

TARGET = wb.targets.from_potential(lambda u: jnp.sum(jnp.cosh(u)), jnp.zeros(3))
FUNCTIONS = {"u": lambda _, u: u, "norm": lambda _, u: jnp.sum(u**2)}


def run(**options):
    options = {
        "num_samples": 200,
        "burn_in": 0,
        "num_chains": 2,
        "collect": {},
        "stream": FUNCTIONS,
    } | options
    return wb.sample(jax.random.key(0), TARGET, pcn(0.5), progress=False, **options)


@pytest.mark.parametrize("num", [1, 2, 1_000])
def test_moments_are_those_of_the_stored_values(num):
    values = 1e6 + np.random.default_rng(0).normal(size=(num, 3, 2))
    found = summarised(values)
    assert found.count == num
    assert np.allclose(found.chain_mean, values.mean(axis=0), rtol=1e-14)
    assert np.allclose(found.mean, values.mean(axis=(0, 1)), rtol=1e-14)
    assert np.allclose(found.variance, values.var(axis=(0, 1), ddof=1), rtol=1e-8)
    assert np.allclose(found.std, values.std(axis=(0, 1), ddof=1), rtol=1e-8)


@pytest.mark.slow
def test_float32_counts_beyond_its_own_digits(float32):
    streams.assert_moments_of_long_float32_stream()


@pytest.mark.parametrize("num", [2, 63, 64, 129, 1_000])
def test_batches_are_equally_long_and_at_most_64(num):
    values = np.random.default_rng(0).normal(size=(num, 2))
    batches = summarised(values).summary.batches
    length, whole = int(batches.length), int(batches.num)
    assert whole == num // length and whole < 64 and (num < 64 or whole >= 32)
    means = (values - values[:1])[: whole * length].reshape(whole, length, 2).mean(axis=1)
    assert np.allclose(batches.means[:whole], means, atol=1e-12)


@pytest.mark.slow
def test_effective_sample_size_by_batch_means():
    streams.assert_effective_sample_size()


def test_rhat_is_that_of_the_halves():
    streams.assert_split_rhat()


def test_chains_that_never_move_have_no_effective_samples():
    found = summarised(np.ones((100, 2)))
    assert np.isnan(found.effective_sample_size) and np.isnan(found.rhat) and found.mcse == 0


@pytest.mark.slow
def test_integers_and_truth_values_may_be_streamed():
    found = run(stream={"is_left": lambda _, u: u < 0, "rounded": lambda _, u: jnp.round(u).astype(int)})
    shares, rounded = found.streamed["is_left"].mean, found.streamed["rounded"]
    assert np.all((shares > 0) & (shares < 1))
    assert rounded.summary.origin.dtype.kind == "f" and np.all(rounded.variance > 0)


@pytest.mark.slow
def test_what_is_streamed_is_what_would_have_been_kept():
    options = {"thin": 3, "burn_in": 7, "num_chains": 3}
    kept, streamed = run(collect=FUNCTIONS, stream=None, **options), run(**options)
    assert not streamed.collected and not kept.streamed
    for name, values in kept.collected.items():
        found, values = streamed.streamed[name], values.astype(np.float64)
        assert found.count == 200
        assert np.allclose(found.chain_mean, values.mean(axis=1), rtol=1e-6)
        assert np.allclose(found.variance, values.var(axis=(0, 1), ddof=1), rtol=1e-6)
    assert streamed.stats["acceptance_rate"].shape == (3, 1)
    assert np.allclose(streamed.acceptance_rate, kept.acceptance_rate, rtol=1e-6)
    assert np.array_equal(streamed.position, kept.position)


class Compiled(Exception):
    """Raised in place of the run."""


@pytest.mark.slow
def test_ten_million_parameters_need_their_state_and_what_is_asked_for(float32, monkeypatch):
    """The chain is updated in place."""
    size = 10**7
    target = wb.targets.from_potential(lambda u: jnp.sum(u**2) / 1e4, jnp.zeros(size))
    chunk, options = Chains.chunk, {"num_samples": size, "num_chains": 1, "num_positions": 0}

    def stop(*args, **kwargs):
        raise Compiled(chunk.lower(*args, **kwargs).compile().memory_analysis())

    monkeypatch.setattr(Chains, "chunk", stop)
    with pytest.raises(Compiled) as stopped:
        wb.sample(
            jax.random.key(0), target, pcn(0.1), collect={}, stream={"potential": wb.potential}, **options
        )
    (memory,), of_state = stopped.value.args, 4 * size
    assert memory.argument_size_in_bytes < 1.01 * of_state
    assert memory.alias_size_in_bytes > 0.99 * memory.output_size_in_bytes
    assert memory.temp_size_in_bytes < 6.1 * of_state  # of a pCN step, whatever is streamed


def test_positions_that_were_given_are_not_used_up():
    start = jnp.ones((2, 3))
    run(initial=start, num_samples=20)
    assert np.array_equal(start, np.ones((2, 3)))
