"""Convolutional and residual networks: formulas, shapes, and the limit of infinite width."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import widebnn as wb
from widebnn.models import ACTIVATIONS, CNN, Conv, WideResNet20
from widebnn.tree import normal_like

IMAGES = jnp.asarray(np.random.default_rng(0).normal(size=(3, 8, 8, 2)))
gelu = ACTIVATIONS["gelu"]


def test_convolution_scales_inside_the_layer():
    layer = Conv(2, 5, weight_std=1.5, bias_std=0.2, rngs=nnx.Rngs(0))
    windows, kernel = np.pad(IMAGES, ((0, 0), (1, 1), (1, 1), (0, 0))), np.asarray(layer.kernel[...])
    by_hand = sum(
        np.einsum("nhwc,cd->nhwd", windows[:, i : i + 8, j : j + 8], kernel[i, j])
        for i in range(3)
        for j in range(3)
    )
    exact = 1.5 / math.sqrt(18) * by_hand + 0.2 * np.asarray(layer.bias[...])
    np.testing.assert_allclose(layer(IMAGES), exact, atol=1e-5)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_cnn_is_its_formula(name):
    net = CNN(2, 4, 2, activation=name, rngs=nnx.Rngs(0))

    @jax.jit
    def both(x):
        h = x
        for layer in net.layers:
            h = ACTIVATIONS[name](layer(h))
        return net(x), h.mean(axis=(1, 2))

    np.testing.assert_allclose(*both(IMAGES), atol=1e-6)
    assert [layer.kernel[...].shape for layer in net.layers] == [(3, 3, 2, 4), (3, 3, 4, 4)]


@pytest.mark.slow
def test_wide_resnet_has_twenty_layers_with_the_readout():
    net = WideResNet20(2, (4, 5, 6), rngs=nnx.Rngs(0))
    kernels = [leaf for leaf in jax.tree.leaves(nnx.state(net, nnx.Param)) if leaf.shape[0] == 3]
    assert len(kernels) == 19  # with the readout, 20
    assert [block.projection is None for block in net.blocks] == 3 * [True] + 2 * [False, True, True]
    assert jax.eval_shape(lambda x: net(x), IMAGES).shape == (3, 6)
    shapes = jax.eval_shape(net.stem, jnp.zeros((1, 32, 32, 2)))
    for block in net.blocks:
        shapes = jax.eval_shape(block, shapes)
    assert shapes.shape == (1, 8, 8, 6)


def test_residual_branches_fade_with_depth():
    """c = 1: √(k/(k + 1)) skip + √(1/(k + 1)) residual, their squares sum to 1."""
    net = WideResNet20(2, (4, 4, 4), rngs=nnx.Rngs(0))
    for k, block in enumerate(net.blocks, start=1):
        assert block.skip_scale**2 == pytest.approx(k / (k + 1))
        assert block.skip_scale**2 + block.residual_scale**2 == pytest.approx(1)

    @jax.jit
    def both(x):
        block, f = net.blocks[1], net.stem(x)
        exact = math.sqrt(2 / 3) * f + math.sqrt(1 / 3) * block.second(gelu(block.first(gelu(f))))
        return block(f), exact

    np.testing.assert_allclose(*both(IMAGES), atol=1e-5)


@pytest.mark.slow
def test_kernel_of_stax_is_the_limit_of_finite_networks(num_draws=400):
    """K̂ has mean K + O(1/width): 5 standard errors, and for the bias 10 %."""
    bnn = wb.BNN(CNN(2, 64, 3, rngs=nnx.Rngs(0)), 1, 0.1)
    stax, options = wb.nngp.neural_tangents().stax, {"b_std": 0.1, "parameterization": "ntk"}
    layers = [stax.Conv(1, (3, 3), padding="SAME", W_std=math.sqrt(2), **options), stax.Gelu()] * 3
    limit = wb.nngp.stax_kernel(stax.serial(*layers, stax.GlobalAvgPool(), stax.Dense(1, 1.0, **options))[2])
    kernel = np.asarray(limit(IMAGES))

    def empirical(key):
        psi = bnn.embedding(normal_like(key, bnn.features.template), IMAGES)
        return psi @ psi.T

    keys = jax.random.split(jax.random.key(1), num_draws)
    draws = np.asarray(jax.jit(lambda keys: jax.lax.map(empirical, keys))(keys))
    error = draws.std(axis=0) / math.sqrt(num_draws)
    assert (np.abs(draws.mean(axis=0) - kernel) < 5 * error + 0.1 * kernel.max()).all()
    assert error.max() < 0.1 * kernel.max()
    np.testing.assert_allclose(limit(IMAGES[:1], IMAGES), kernel[:1], rtol=1e-4)
