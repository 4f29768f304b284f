"""Scales that are arrays: one σ_W per input of a layer."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from scipy import optimize

import widebnn as wb
from widebnn import targets
from widebnn.targets import LogNormal

RNG = np.random.default_rng(0)
X, Y, X_NEW = RNG.normal(size=(6, 3)), RNG.normal(size=(6, 1)), RNG.normal(size=(2, 3))
S = np.array([0.3, 1.0, 2.5])
"""One number per input."""
KEY = jax.random.key(0)
FIRST = "layers.0.weight_std"
PRIORS = {
    FIRST: LogNormal(np.full(3, 1.2), np.array([0.5, 0.7, 0.9])),
    "noise_std": LogNormal(0.4, 0.5),
    "weight_std": LogNormal(1.3, 0.4),
}


def network(weight_std=1.0, widths=(5, 9)):
    above = [1.3] * (len(widths) - 1)
    features = wb.models.FCN(3, widths, weight_std=[weight_std, *above], bias_std=0.4, rngs=nnx.Rngs(0))
    return wb.BNN(features, 1, 0.3)


@pytest.mark.parametrize("make", [targets.standard, targets.repriorised], ids=["standard", "repriorised"])
def test_one_scale_per_input_is_that_input_multiplied(make):
    """The potential, and predictions at new inputs."""
    target, wanted = make(network(S), X, Y), make(network(), S * X, Y)
    position = target.draw_prior(KEY)
    np.testing.assert_allclose(target.potential(position), wanted.potential(position), rtol=1e-6)
    found, expected = (wb.predictive_mean(x)(t, position) for t, x in ((target, X_NEW), (wanted, S * X_NEW)))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_whitening_leaves_such_a_layer_as_it_is():
    target = targets.whitened(targets.marginal(network(S, widths=(9, 7)), X, Y))
    assert target.layers == (("layers", 1),)
    position = target.draw_prior(KEY)
    theta = target.to_parameters(position, KEY)
    wanted = targets.marginal(network(widths=(9, 7)), S * X, Y).potential(theta.inner)
    np.testing.assert_allclose(target.potential(position), wanted, rtol=1e-4)


def test_convolution_with_one_scale_per_channel():
    layer = wb.models.Conv(3, 2, weight_std=S, rngs=nnx.Rngs(0))
    plain = wb.models.Conv(3, 2, weight_std=1.0, rngs=nnx.Rngs(0))
    images = jnp.asarray(RNG.normal(size=(2, 4, 4, 3)))
    np.testing.assert_allclose(layer(images), plain(S[None, None, None] * images), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kernel", [wb.nngp.nngp_kernel, wb.nngp.ntk_kernel])
def test_limit_of_such_a_network(kernel):
    found, wanted = kernel(network(S)), kernel(network())
    np.testing.assert_allclose(found(X, X_NEW), wanted(S * X, S * X_NEW), rtol=1e-12)
    np.testing.assert_allclose(found(X), wanted(S * X), rtol=1e-12)


def test_posterior_of_scales_is_that_of_the_network_at_them():
    target = targets.scaled(targets.marginal(network(), X, Y), **PRIORS)
    assert target.template.scales[FIRST].shape == (3,)
    position = target.draw_prior(KEY)
    found = target.scales(position)
    u = np.asarray(position.scales[FIRST])
    np.testing.assert_allclose(found[FIRST], 1.2 * np.exp([0.5, 0.7, 0.9] * u), rtol=1e-6)
    s, sigma = np.asarray(found[FIRST]), float(found["noise_std"])
    bnn = network().at_scales(noise_std=sigma, weight_std=float(found["weight_std"]))
    bnn = bnn.at_scales(**{FIRST: 1.0})
    wanted = targets.marginal(bnn, s * X, Y)
    np.testing.assert_allclose(
        target.potential(position), wanted.potential(position.network) + wanted.log_normaliser(), rtol=1e-5
    )


@pytest.mark.slow
def test_limiting_scales_find_the_mode_of_all():
    """Against an optimiser of its own on the same evidence, written with `gaussian_process`."""
    target = targets.scaled(targets.marginal(network(), X, Y), **PRIORS)
    limit = target.limiting_scales()
    assert limit.mean[FIRST].shape == (3,) and limit.factor.shape == (5, 5)

    @jax.jit
    @jax.value_and_grad
    def loss(u):
        first = 1.2 * jnp.exp(jnp.asarray([0.5, 0.7, 0.9]) * u[:3])
        above, sigma = 1.3 * jnp.exp(0.4 * u[3]), 0.4 * jnp.exp(0.5 * u[4])
        features = wb.models.FCN(3, (5, 9), weight_std=[first, above], bias_std=0.4, rngs=nnx.Rngs(0))
        process = wb.nngp.gaussian_process(wb.nngp.nngp_kernel(wb.BNN(features, 1, sigma)), X, Y, sigma)
        return jnp.sum(u**2) / 2 - process.log_marginal_likelihood()

    best = optimize.minimize(lambda u: tuple(map(np.asarray, loss(u))), np.zeros(5), jac=True).x
    found = [*limit.mean[FIRST], limit.mean["weight_std"], limit.mean["noise_std"]]
    np.testing.assert_allclose(found, best, atol=1e-3)
    about = target.about(limit)
    assert math.isfinite(about.potential(about.draw_prior(KEY)))
