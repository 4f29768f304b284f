"""float32 where it is hard: acceptance against float64 at n = 256 and width 1,024, and σ near rounding."""

import inspect
import os
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import widebnn as wb
from widebnn.samplers import pcn
from widebnn.tree import normal_like

NUM_PROPOSALS = 40
WANTED = 1e-3
"""0.1 percentage points."""


def whitened(dtype):
    """The marginal target of two layers on real images: CIFAR-10 where it is at hand, else digits."""
    load = wb.data.cifar10 if os.environ.get("WIDEBNN_DATA") else wb.data.digits
    data = load(num_train=256, num_test=1)
    features = wb.models.FCN(data.x_train.shape[1], 1_024, 2, rngs=nnx.Rngs(0))
    graph, state = nnx.split(features)
    features = nnx.merge(graph, jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), state))
    x, y = (jnp.asarray(a, dtype) for a in (data.x_train, data.y_train))
    return wb.targets.whitened(wb.targets.marginal(wb.BNN(features, 10, noise_std=0.1), x, y))


def cast(tree, dtype):
    return jax.tree.map(lambda leaf: leaf.astype(dtype), tree)


def float32_noise(rng_key, position):
    """The same noise in both precisions."""
    noise = normal_like(rng_key, cast(position, jnp.float32))
    return jax.tree.map(lambda xi, u: xi.astype(u.dtype), noise, position)


@jax.jit
def acceptance(sampler, single, double, keys):
    """Of each proposal along a float32 chain, in both precisions, from the same position."""

    def step(state, key):
        exact = sampler.init(double, cast(state.position, jnp.float64))
        _, wanted = sampler.step(double, key, exact)
        state, found = sampler.step(single, key, state)
        return state, (found.acceptance_rate, wanted.acceptance_rate)

    start = sampler.init(single, single.draw_prior(jax.random.key(0)))
    return jax.lax.scan(step, start, keys)[1]


@pytest.mark.slow
def test_acceptance_agrees_with_float64():
    sampler = pcn(0.05)
    targets = (whitened(dtype) for dtype in (jnp.float32, jnp.float64))
    with mock.patch.object(inspect.getmodule(type(sampler)), "normal_like", float32_noise):
        single, double = acceptance(sampler, *targets, jax.random.split(jax.random.key(0), NUM_PROPOSALS))
    assert single.dtype == jnp.float32 and double.dtype == jnp.float64
    single, double = (np.asarray(rate, np.float64) for rate in (single, double))
    assert np.ptp(double) > 0.05, "all proposals alike: nothing to compare"
    assert abs(single.mean() - double.mean()) < WANTED
    assert np.abs(single - double).mean() < WANTED
