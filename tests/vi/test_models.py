"""Networks of the papers: their sizes, their scalings, and that each can be fitted and undrawn."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

import widebnn as wb
from widebnn.tree import normal_like
from widebnn.vi import models

from ..exact.variational import assert_scaling

pytestmark = pytest.mark.usefixtures("float32")

KEY = jax.random.key(0)
IMAGES = jnp.asarray(np.random.default_rng(0).normal(size=(4, 32, 32, 3)), jnp.float32)
LABELS = np.array([0, 1, 2, 3])


def rngs():
    return nnx.Rngs(0)


def num_weights(module):
    """Those with a posterior."""
    taken = wb.vi.network(module, IMAGES, KEY)
    return sum(leaf.size for leaf in jax.tree.leaves(taken.weights))


def test_two_layer_network_is_a_mean_over_neurons():
    assert_scaling(models.TwoLayer(3, 50, 2, rngs=rngs()))


def test_readout_has_either_scaling():
    over_n, over_root = (models.TwoLayer(3, 100, 2, scaling=s, rngs=rngs()) for s in ("mean-field", "ntk"))
    x = jnp.ones((2, 3))
    np.testing.assert_allclose(10 * over_n(x), over_root(x), rtol=1e-5)


def test_convolution_is_its_definition():
    conv = wb.models.Conv(2, 3, stride=2, padding="centred", scale=0.3, bias_std=0, rngs=rngs())
    x = IMAGES[:1, :6, :6, :2]
    padded = np.pad(x[0], ((1, 1), (1, 1), (0, 0)))
    patches = [[padded[i : i + 3, j : j + 3] for j in range(0, 6, 2)] for i in range(0, 6, 2)]
    wanted = np.einsum("ijhwc,hwcd->ijd", np.array(patches), conv.kernel[...])
    np.testing.assert_allclose(conv(x)[0], 0.3 * wanted, rtol=1e-4, atol=1e-6)


def only_kernel(draw):
    (kernel,) = jax.tree.leaves(draw, is_leaf=lambda leaf: isinstance(leaf, wb.vi.LocalReparametrisation))
    return kernel


@pytest.mark.slow
def test_undrawn_convolution_has_its_moments():
    conv = wb.models.Conv(3, 2, scale=1, bias_std=0, initial_std=0.01, rngs=rngs())
    taken = wb.vi.network(nnx.Sequential(conv, lambda h: h.mean(axis=(1, 2))), IMAGES, KEY)
    q = wb.vi.mean_field(taken.weights, 0.3)
    (kernel,) = jax.tree.leaves(q.mean)
    x = IMAGES[:1, :4, :4]
    graph, _ = nnx.split(conv)

    def outputs(key):
        return nnx.merge(graph, {"kernel": only_kernel(q.local_draw(key))})(x)

    f = np.asarray(jax.jit(jax.vmap(outputs))(jax.random.split(KEY, 4_000)))
    mean = nnx.merge(graph, {"kernel": kernel})(x)
    std = jnp.sqrt(nnx.merge(graph, {"kernel": jnp.full(kernel.shape, 0.09)})(x**2))
    np.testing.assert_allclose(f.mean(axis=0), mean, atol=0.15)
    np.testing.assert_allclose(f.std(axis=0), std, rtol=0.1)


@pytest.mark.slow
def test_local_and_global_draws_of_the_convolution_of_the_networks_have_one_law():
    """`widebnn.models.Conv`, with its scales and its bias: mean and variance of each output."""
    layer = wb.models.Conv(3, 2, stride=2, bias_std=0.7, rngs=rngs())
    graph, params = nnx.split(layer)
    q = wb.vi.mean_field(nnx.to_pure_dict(params), 0.3)
    x, num = IMAGES[:1, :4, :4], 20_000

    def moments(draw):
        keys = jax.random.split(KEY, num)
        f = np.asarray(jax.jit(jax.vmap(lambda key: nnx.merge(graph, draw(key))(x)))(keys))
        return f.mean(axis=0), f.var(axis=0)

    (mean, variance), (exact_mean, exact_variance) = moments(q.local_draw), moments(q.draw)
    assert np.ptp(exact_variance) > 0.05  # at the border fewer pixels enter
    np.testing.assert_allclose(mean, exact_mean, atol=6 * (exact_variance.max() * 2 / num) ** 0.5)
    np.testing.assert_allclose(variance / exact_variance, 1, atol=6 * (4 / num) ** 0.5)


@pytest.mark.slow
def test_resnet_has_the_papers_weights_and_leaves_batchnorm_without_a_posterior():
    """He et al. count 0.27 million parameters."""
    module = models.ResNet20(rngs=rngs())
    convolutions = 9 * (3 * 16 + 6 * 16**2 + 16 * 32 + 5 * 32**2 + 32 * 64 + 5 * 64**2)
    assert num_weights(module) == convolutions + 16 * 32 + 32 * 64 + 64 * 10 + 10
    taken = wb.vi.network(module, IMAGES, KEY)
    num_channels = 7 * 16 + 7 * 32 + 7 * 64
    assert sum(leaf.size for leaf in jax.tree.leaves(taken.point)) == 2 * num_channels
    assert not jax.tree.leaves(wb.vi.network(models.ResNet20(norm="none", rngs=rngs()), IMAGES, KEY).point)


@pytest.mark.slow
def test_batchnorm_is_refused_by_mcmc():
    with pytest.raises(ValueError, match="features must be a function of one input.*BatchNorm at blocks"):
        wb.BNN(models.ResNet20(rngs=rngs()), 1, 0.1)


@pytest.mark.slow
def test_signals_of_the_normaliser_free_resnet_stay_of_order_one():
    taken = wb.vi.network(models.ResNet20(norm="none", scaling="ntk", rngs=rngs()), IMAGES, KEY)
    draws = jax.vmap(lambda key: taken(normal_like(key, taken.weights), IMAGES))
    assert 0.1 < np.std(jax.jit(draws)(jax.random.split(KEY, 5))) < 10


def cnn():
    return nnx.Sequential(wb.models.CNN(3, 4, rngs=rngs()), wb.models.Dense(4, 10, rngs=rngs()))


def resnet():
    return models.ResNet20(rngs=rngs())


@pytest.mark.slow
@pytest.mark.parametrize(("make", "local"), [(cnn, True), (resnet, False)])
def test_network_can_be_fitted(make, local):
    images = IMAGES[:, :8, :8]
    fitted = wb.vi.fit(
        KEY,
        make(),
        images,
        LABELS,
        wb.vi.cross_entropy,
        optax.adam(1e-2),
        num_epochs=2,
        batch_size=2,
        temperature=1e-3,
        local=local,
    )
    assert math.isfinite(fitted.elbo.value[-1])
    assert not np.array_equal(
        *(jax.tree.leaves(q)[-1] for q in (fitted.posterior.mean, fitted.network.weights))
    )
    p = wb.vi.predict(KEY, fitted, images, num_samples=2)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)
