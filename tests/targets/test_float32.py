"""Acceptance in float32 against float64 at the size the papers report as hard: n = 256, width 1,024."""

import functools
import os
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import widebnn as wb
from widebnn.samplers import _pcn, _pcnl
from widebnn.tree import normal_like

NUM_PROPOSALS = 40
WANTED = 1e-3
"""0.1 percentage points."""


@functools.cache
def marginal(dtype, reduced, depth):
    """The marginal target, reduced, on real images: CIFAR-10 where it is at hand, else digits."""
    load = wb.data.cifar10 if os.environ.get("WIDEBNN_DATA") else wb.data.digits
    data = load(num_train=256, num_test=1)
    features = wb.models.FCN(data.x_train.shape[1], 1_024, depth, rngs=nnx.Rngs(0))
    graph, state = nnx.split(features)
    features = nnx.merge(graph, jax.tree.map(lambda leaf: leaf.astype(dtype), state))
    x, y = (jnp.asarray(a, dtype) for a in (data.x_train, data.y_train))
    target = reduced(wb.targets.marginal(wb.BNN(features, 10, noise_std=0.1), x, y))
    return target


def cast(tree, dtype):
    return jax.tree.map(lambda leaf: leaf.astype(dtype), tree)


def float32_noise(rng_key, position):
    """The same noise in both precisions."""
    noise = normal_like(rng_key, cast(position, jnp.float32))
    return jax.tree.map(lambda xi, u: xi.astype(u.dtype), noise, position)


@pytest.mark.slow
@pytest.mark.parametrize(
    "module, name, beta, reduced, depth",
    [
        pytest.param(_pcn, "pcn", 0.2, wb.targets.rotated, 1, id="pcn"),
        pytest.param(_pcnl, "pcnl", 0.2, wb.targets.rotated, 1, id="pcnl"),
        pytest.param(_pcn, "pcn", 0.05, wb.targets.whitened, 2, id="pcn, two whitened layers"),
    ],
)
def test_acceptance_agrees_with_float64(module, name, beta, reduced, depth):
    """Along a float32 chain: each proposal's acceptance rate, in both precisions, from the same position."""
    rates = {jnp.float32: [], jnp.float64: []}
    with mock.patch.object(module, "normal_like", float32_noise):
        targets = {dtype: marginal(dtype, reduced, depth) for dtype in rates}
        samplers = {dtype: getattr(module, name)(beta).bind(target) for dtype, target in targets.items()}
        init = {dtype: jax.jit(sampler.init) for dtype, sampler in samplers.items()}
        step = {dtype: jax.jit(sampler.step) for dtype, sampler in samplers.items()}
        state = init[jnp.float32](targets[jnp.float32].draw_prior(jax.random.key(0)))
        assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(state))
        for i in range(NUM_PROPOSALS):
            key = jax.random.key(i)
            exact = init[jnp.float64](cast(state.position, jnp.float64))
            rates[jnp.float64].append(step[jnp.float64](key, exact)[1].acceptance_rate)
            state, info = step[jnp.float32](key, state)
            rates[jnp.float32].append(info.acceptance_rate)
    single, double = (np.asarray(rate, np.float64) for rate in rates.values())
    assert np.ptp(double) > 0.05, "all proposals alike: nothing to compare"
    assert abs(single.mean() - double.mean()) < WANTED
    assert np.abs(single - double).mean() < WANTED
