"""Networks of the papers: their sizes, their scalings, and that each can be fitted and undrawn."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

import widebnn as wb
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


@pytest.mark.slow
def test_local_and_global_draws_of_the_convolution_of_the_networks_have_one_law():
    """`widebnn.models.Conv`, with its scales and its bias: mean and variance of each output."""
    layer = wb.models.Conv(3, 2, stride=2, bias_std=0.7, rngs=rngs())
    graph, params, scales = nnx.split(layer, nnx.Param, ...)
    q = wb.vi.mean_field(nnx.to_pure_dict(params), 0.3)
    x, num = IMAGES[:1, :4, :4], 20_000

    def moments(draw):
        keys = jax.random.split(KEY, num)
        f = np.asarray(jax.jit(jax.vmap(lambda key: nnx.merge(graph, draw(key), scales)(x)))(keys))
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
def test_resnet_can_be_fitted():
    images = IMAGES[:, :8, :8]
    fitted = wb.vi.fit(
        KEY,
        models.ResNet20(rngs=rngs()),
        images,
        LABELS,
        wb.vi.cross_entropy,
        optax.adam(1e-2),
        num_epochs=2,
        batch_size=2,
        temperature=1e-3,
    )
    assert math.isfinite(fitted.elbo.value[-1])
    assert not np.array_equal(
        *(jax.tree.leaves(q)[-1] for q in (fitted.posterior.mean, fitted.network.weights))
    )
    p = wb.vi.predict(KEY, fitted, images, num_samples=2)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)
