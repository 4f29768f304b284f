"""Layers and networks in NTK parametrisation: shapes, scales, kernels."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from widebnn.models import ACTIVATIONS, BNN, FCN, Dense, Parameters
from widebnn.tree import normal_like

X = jnp.asarray(np.random.default_rng(0).normal(size=(4, 3)))


def test_dense_scales_inside_the_layer():
    layer = Dense(3, 6, weight_std=1.5, bias_std=0.2, rngs=nnx.Rngs(0))
    exact = 1.5 / math.sqrt(3) * X @ layer.kernel[...] + 0.2 * layer.bias[...][None, :]
    assert jnp.allclose(layer(X), exact, atol=1e-6)
    assert jnp.allclose(layer(X[:1]), layer(X)[:1], atol=1e-6)


def test_first_parameters_are_draws_of_the_prior():
    layer = Dense(300, 300, rngs=nnx.Rngs(0))
    kernel = layer.kernel[...]
    assert abs(kernel.mean()) < 5 / 300 and abs(kernel.var() - 1) < 5 * math.sqrt(2) / 300


def test_layer_may_have_another_scale_and_start_elsewhere():
    layer = Dense(300, 300, scale=2, bias_std=0.5, initial_std=0.01, rngs=nnx.Rngs(0))
    kernel, h = layer.kernel[...], jnp.ones((1, 300))
    assert jnp.allclose(layer(h), 2 * h @ kernel, atol=1e-4)
    assert abs((100 * kernel).var() - 1) < 5 * math.sqrt(2) / 300
    assert jnp.all(layer.bias[...] == 0)
    layer.bias[...] = jnp.ones(300)
    assert jnp.allclose(layer(h) - 2 * h @ kernel, 0.5, atol=1e-4)


@pytest.mark.parametrize("depth, width, widths", [(None, 5, [5]), (2, 5, [5, 5]), (None, (4, 6), [4, 6])])
def test_fcn_shapes(depth, width, widths):
    net = FCN(3, width, depth, rngs=nnx.Rngs(0))
    assert [layer.kernel[...].shape for layer in net.layers] == list(zip([3, *widths[:-1]], widths))
    assert net(X).shape == (4, widths[-1]) and net.out_features == widths[-1]


def test_no_hidden_layer_is_linear_regression():
    net = FCN(3, 5, depth=0, rngs=nnx.Rngs(0))
    assert net.out_features == 3 and jnp.array_equal(net(X), X)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_fcn_is_its_formula(name):
    psi = {
        "gelu": lambda f: f * jax.scipy.stats.norm.cdf(f),
        "erf": jax.scipy.special.erf,
        "relu": lambda f: jnp.maximum(f, 0),
    }[name]
    net = FCN(3, (5, 4), activation=name, weight_std=1.1, bias_std=0.3, rngs=nnx.Rngs(1))
    h = X
    for layer in net.layers:
        f = 1.1 / math.sqrt(h.shape[1]) * h @ layer.kernel[...] + 0.3 * layer.bias[...][None, :]
        h = psi(f)
    assert jnp.allclose(net(X), h, atol=1e-6)


def test_bnn_output_is_embedding_times_readout():
    bnn = BNN(FCN(3, 6, rngs=nnx.Rngs(0)), 2, 0.1, weight_std=1.4, bias_std=0.3)
    template = bnn.template(X)
    assert template.readout.shape == (7, 2)
    theta = normal_like(jax.random.key(0), template)
    psi = bnn.embedding(theta.inner, X)
    h = bnn.features.apply(theta.inner, X)
    assert jnp.allclose(psi, jnp.concatenate([1.4 / math.sqrt(6) * h, jnp.full((4, 1), 0.3)], axis=1))
    assert jnp.allclose(bnn(theta, X), psi @ theta.readout)
    assert isinstance(theta, Parameters)
