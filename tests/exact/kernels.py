"""Infinite-width kernels against finite networks of the package's own, averaged over their prior.

With one hidden layer E[K̂] = K and E[JJᵀ] = Θ hold at every width, so that nothing but Monte Carlo error
separates the two sides.
"""

import jax
import numpy as np
from flax import nnx
from jax.flatten_util import ravel_pytree
from scipy import stats

import widebnn as wb
from widebnn.tree import normal_like

from .dkwm import FALSE_FAILURE

NUM_DRAWS = 20_000
DETECTABLE = 0.1
"""Error of an entry, relative to the largest, that is seen every second time."""


def network(width=8, depth=1, activation="gelu", in_features=3):
    """No scale is 1 or 0: a factor forgotten or squared is seen."""
    features = wb.models.FCN(
        in_features, width, depth, activation=activation, weight_std=1.3, bias_std=0.5, rngs=nnx.Rngs(0)
    )
    return wb.BNN(features, 1, 0.1, weight_std=0.8, bias_std=0.3)


def inputs(n=4, in_features=3):
    return np.random.default_rng(0).normal(size=(n, in_features))


def empirical_kernel(bnn, theta, x):
    """K̂ = ΨΨᵀ."""
    psi = bnn.embedding(theta.inner, x)
    return psi @ psi.T


def empirical_tangent(bnn, theta, x):
    """JJᵀ, J the Jacobian of the first output by all parameters."""
    flat, unravel = ravel_pytree(theta)
    jacobian = jax.jacrev(lambda flat: bnn(unravel(flat), x)[:, 0])(flat)
    return jacobian @ jacobian.T


def over_prior(empirical, bnn, x, num_draws=NUM_DRAWS, seed=0):
    """`empirical(bnn, θ, x)` of independent θ ~ N(0, I)."""
    template = bnn.template(x)
    keys = jax.random.split(jax.random.key(seed), num_draws)
    draw = jax.jit(lambda keys: jax.lax.map(lambda k: empirical(bnn, normal_like(k, template), x), keys))
    return np.asarray(draw(keys))


def assert_mean(draws, exact, false_failure=FALSE_FAILURE):
    """The mean of symmetric matrices is `exact`; over all entries, false failures at the declared rate."""
    entries = np.triu_indices(draws.shape[1])
    draws, exact = draws[:, *entries], np.asarray(exact)[entries]
    error = draws.std(axis=0) / np.sqrt(len(draws))
    limit = stats.norm.isf(false_failure / (2 * exact.size))
    blur = limit * error.max() / np.abs(draws.mean(axis=0)).max()
    assert blur < DETECTABLE, f"too few draws: an entry off by {blur:.0%} could pass"
    scores = np.abs(draws.mean(axis=0) - exact) / error
    assert scores.max() < limit, f"kernel off by {scores.max():.1f} standard errors"


def assert_kernel(activation):
    bnn, x = network(activation=activation), inputs()
    assert_mean(over_prior(empirical_kernel, bnn, x), wb.nngp.nngp_kernel(bnn)(x))


def assert_tangent_kernel(activation):
    bnn, x = network(activation=activation), inputs()
    assert_mean(over_prior(empirical_tangent, bnn, x), wb.nngp.ntk_kernel(bnn)(x))
