"""Summaries of a stream against the same statistics of the stored values."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy import signal

import widebnn as wb
from widebnn import streaming


def summarised(values) -> wb.Streamed:
    """The summary of `values` (draw, chain, *event), folded in one draw after another."""
    values, more = np.asarray(values), -len(values) % 1_024  # so that few lengths are compiled
    filled = np.concatenate([values, np.zeros((more, *values.shape[1:]), values.dtype)])
    return wb.Streamed(jax.device_get(fold(filled, len(values))))


@jax.jit
def fold(values, num):
    """The first `num` of the values."""

    def body(i, summary):
        return streaming.update(summary, values[i])

    return jax.lax.fori_loop(0, num, body, streaming.start(values[0]))


def autoregressive(rng, rho, shape, axis=0):
    """AR(1) with unit variance along an axis, started in its law."""
    noise = rng.normal(size=shape)
    np.moveaxis(noise, axis, 0)[1:] *= np.sqrt(1 - rho**2)
    return signal.lfilter([1.0], [1.0, -rho], noise, axis=axis)


def assert_moments_of_long_float32_stream(num=2**25):
    """Twice as many values as float32 can count, of mean 10⁴ and deviations that are small against it."""
    pattern = np.asarray([-3, 1, 2, 5, -4, 0, 2, 1]) / 16

    @jax.jit
    def run():
        values = jnp.asarray(1e4 + pattern, jnp.float32)[:, None]
        start = streaming.start(values[0])
        return jax.lax.fori_loop(0, num, lambda i, s: streaming.update(s, values[i % 8]), start)

    streamed = wb.Streamed(jax.device_get(run()))
    assert streamed.count == num
    assert abs(streamed.mean - 1e4 - pattern.mean()) < 1e-6, "mean of a long stream is off"
    assert abs(streamed.variance / pattern.var() - 1) < 1e-6, "variance of a long stream is off"


def assert_split_rhat():
    """Chains with trends and different means; the number of values makes the halves end with a batch."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(4_096, 3, 2)) + np.linspace(0, 1, 4_096)[:, None, None]
    values[:, 0] += 0.5
    halves = np.moveaxis(values.reshape(2, 2_048, 3, 2), 0, 1).reshape(2_048, 6, 2)
    stored = wb.rhat(np.moveaxis(halves, 0, 1))
    assert np.allclose(summarised(values).rhat, stored, rtol=1e-10), "R-hat of the halves is off"


def assert_effective_sample_size(rho=0.9, num=2**14, chains=4, entries=50):
    """Against the known integrated autocorrelation time of an AR(1), within the error that is stated."""
    values = autoregressive(np.random.default_rng(0), rho, (num, chains, entries))
    found = summarised(values)
    tau = (1 + rho) / (1 - rho)
    length = int(found.summary.batches.length)
    num_batches = int(found.summary.batches.num)
    exact = chains * num / tau
    error = np.sqrt(2 / (chains * (num_batches - 1)))
    ratio = found.effective_sample_size / exact
    bias = np.log(ratio).mean() - tau / (2 * length)
    assert abs(bias) < 6 * error / np.sqrt(entries), "effective sample size is biased"
    assert np.log(ratio).std() < 1.5 * error
    assert np.allclose(found.mcse, np.sqrt(found.variance / found.effective_sample_size), rtol=0.02)
