"""Networks of the papers: their sizes and their scalings."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import widebnn as wb
from widebnn.vi import models

from ..exact.variational import assert_scaling

pytestmark = pytest.mark.usefixtures("float32")

KEY = jax.random.key(0)
IMAGES = jnp.asarray(np.random.default_rng(0).normal(size=(4, 32, 32, 3)), jnp.float32)


def rngs():
    return nnx.Rngs(0)


def num_weights(module):
    """Those with a posterior."""
    taken = wb.vi.network(module, IMAGES, KEY)
    return sum(leaf.size for leaf in jax.tree.leaves(taken.weights))


def test_two_layer_network_is_a_mean_over_neurons():
    assert_scaling(models.TwoLayer(3, 50, 2, rngs=rngs()))


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
