"""Targets whose scales are part of the position."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial

import widebnn as wb
from widebnn import targets

from ..exact import scales


@pytest.fixture
def observed():
    return scales.data(n=5)


def test_density_of_weights_and_scales(observed):
    scales.assert_density(scales.target_of(observed.x, observed.y))


@pytest.mark.slow
def test_predictions_are_those_of_the_target_at_the_scales(observed):
    target = scales.target_of(observed.x, observed.y)
    position, key = target.draw_prior(jax.random.key(0)), jax.random.key(1)
    names = ("output", "predictive_mean", "predictive_covariance", "predictive_draw")

    @jax.jit
    def both(position, key):
        here = target.at(position)
        whole = [getattr(wb, name)(observed.x_new)(target, position, key) for name in names]
        return whole, [getattr(wb, name)(observed.x_new)(here, position.network, key) for name in names]

    for found, wanted in zip(*both(position, key), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert jax.eval_shape(target.to_parameters, position, key).readout.shape == (4, 1)


@pytest.mark.slow
def test_limit_has_the_curvature_of_the_evidence(observed):
    """The covariance is the inverse of the Hessian at the mode, and nowhere wider than the prior."""
    target = scales.target_of(observed.x, observed.y)
    found = target.limiting_scales()

    def loss(u):
        position = targets.ScaledPosition(None, unravel(u))
        bnn = target.base.bnn.at_scales(**target.scales(position))
        process = wb.nngp.gaussian_process(wb.nngp.nngp_kernel(bnn), observed.x, observed.y, bnn.noise_std)
        return jnp.sum(u**2) / 2 - process.log_marginal_likelihood()

    mode, unravel = ravel_pytree(found.mean)
    slope, curvature = jax.jit(lambda u: (jax.grad(loss)(u), jax.hessian(loss)(u)))(mode)
    assert np.abs(slope).max() < 1e-3
    values, vectors = np.linalg.eigh(curvature)
    wanted = vectors / np.maximum(values, 1.0) @ vectors.T
    covariance = np.asarray(found.factor) @ np.asarray(found.factor).T
    np.testing.assert_allclose(covariance, wanted, rtol=0.02, atol=0.01)
    assert np.linalg.eigvalsh(covariance).max() < 1 + 1e-6


@pytest.mark.slow
def test_the_limit_is_found_in_float64_whatever_the_target_computes_in(observed, float32):
    """Where some rows are equal and the noise is small, so that float32 would have no factor."""
    x, y = (np.concatenate([part, part]).astype(np.float32) for part in (observed.x, observed.y))
    priors = {"noise_std": targets.LogNormal(1e-3, 0.1), "readout_std": targets.LogNormal(3.0, 0.1)}
    priors |= {"weight_std": targets.LogNormal(1.0, 0.1)}
    found = scales.target_of(x, y, priors).limiting_scales()
    assert all(np.isfinite(leaf).all() and leaf.dtype == np.float32 for leaf in jax.tree.leaves(found))


@pytest.mark.slow
@pytest.mark.parametrize("width", [3, 40], ids=["feature space", "data space"])
def test_noise_has_a_floor(width, float32):
    """Below 4ε tr ΨΨᵀ the noise counts as that: in potential and predictions alike."""
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(20, k)).astype(np.float32) for k in (2, 1))

    features = wb.models.FCN(2, width, rngs=nnx.Rngs(0))
    base = targets.marginal(wb.BNN(features, 1, 1.0, bias_std=0.0), x, y)
    priors = {"noise_std": targets.LogNormal(1e-6, 3.0), "readout_std": targets.LogNormal(1.0, 1.0)}
    target = targets.scaled(base, **priors)
    start = target.draw_prior(jax.random.key(1))

    @jax.jit
    def found(noise, readout):
        here = start._replace(scales={"noise_std": noise, "readout_std": readout})
        at = target.at(here)
        least = 4 * jnp.finfo(jnp.float32).eps * jnp.sum(at.embedding(here.network) ** 2)
        floored = replace(base, bnn=at.bnn.at_scales(noise_std=jnp.sqrt(least)))
        return {
            "noise": (at.readout_posterior(here.network).reg, least),
            "potential": (target.potential(here), floored.potential(here.network) + floored.log_normaliser()),
            "variance": (wb.predictive_moments(x[:3])(at, here.network)[1], jnp.zeros(3)),
        }

    one, other = found(jnp.float32(-1), jnp.float32(0)), found(jnp.float32(-3), jnp.float32(1))
    for at in (one, other):
        for name in ("noise", "potential"):
            np.testing.assert_allclose(*at[name], rtol=1e-4)
        assert (at["variance"][0] >= at["noise"][1]).all()
    above = found(jnp.float32(3), jnp.float32(0))  # σ is then 8 · 10⁻³
    np.testing.assert_allclose(above["noise"][0], (1e-6 * np.exp(9)) ** 2, rtol=1e-5)


@pytest.mark.slow
def test_evidence_of_many_rows_takes_some_of_them(observed, monkeypatch):
    monkeypatch.setattr("widebnn.targets._scaled.FIRST_ROWS", 3)
    monkeypatch.setattr("widebnn.targets._scaled.MAX_ROWS", 4)
    found = scales.target_of(observed.x, observed.y).limiting_scales().mean
    assert found.keys() == scales.PRIORS.keys()


@pytest.mark.slow
def test_exact_answers(observed):
    """In the coordinates that are chosen, where weights and scales move together."""
    exact = scales.reference(observed)
    assert exact.effective_draws > 10_000
    target = wb.auto(scales.target_of(observed.x, observed.y)).target
    scales.assert_exact(target, observed, exact.moments)


class Stretched(nnx.Module):
    """A layer with a scale of its own, one row of which is a layer of the package."""

    def __init__(self, d_in, width, rngs):
        self.inside = wb.models.Dense(d_in, width, rngs=rngs)
        self.outside = wb.models.Dense(width, width, bias_std=0, rngs=rngs)
        self.stretch = nnx.data(1.0)

    def __call__(self, x):
        return jnp.tanh(self.outside(jnp.sin(self.stretch * self.inside(x))))


@pytest.mark.parametrize(
    "reduced",
    [
        targets.standard,
        lambda *at: targets.rotated(targets.repriorised(*at)),
        lambda *at: targets.whitened(targets.marginal(*at)),
    ],
    ids=["standard", "rotated", "whitened"],
)
def test_any_target_at_scales_is_the_target_of_a_network_that_was_built_with_them(observed, reduced):
    """Scales by name of a kind, of one layer, and of a layer of the user's own."""
    x, y = observed.x[:3], observed.y[:3]

    def network(s):
        module = Stretched(2, 7, nnx.Rngs(0))
        module.inside.weight_std = s["weight_std"]
        module.outside.weight_std = s["outside.weight_std"]
        module.inside.bias_std, module.stretch = s["bias_std"], s["stretch"]
        readout = {"weight_std": s["readout_std"], "bias_std": 0.1 * s["readout_std"]}
        return reduced(wb.BNN(module, 1, s["noise_std"], **readout), x, y)

    names = ("noise_std", "readout_std", "weight_std", "outside.weight_std", "bias_std", "stretch")
    known = dict.fromkeys(names, 1.0)
    target = targets.scaled(network(known), **dict.fromkeys(names, targets.LogNormal(0.7, 0.5)))
    position = target.draw_prior(jax.random.key(0))
    found = {name: float(s) for name, s in target.scales(position).items()}
    assert len(set(found.values())) == len(names)
    wanted = network(found)
    np.testing.assert_allclose(
        target.potential(position), wanted.potential(position.network) + wanted.log_normaliser(), rtol=1e-5
    )


def test_scales_of_a_function_are_the_arguments_that_it_has_bound(observed):
    apply = Partial(lambda s, w, x: jnp.tanh(s["steepness"] * x @ w), {"steepness": 1.0})
    bnn = wb.BNN(wb.models.from_function(apply, jnp.zeros((2, 4))), 1, 0.3)
    target = targets.scaled(
        targets.marginal(bnn, observed.x, observed.y), steepness=targets.LogNormal(2.0, 1.0)
    )
    at = target.draw_prior(jax.random.key(0))
    psi = target.at(at).embedding(at.network)
    h = np.tanh(np.asarray(target.scales(at)["steepness"] * (observed.x @ at.network))) / 2
    np.testing.assert_allclose(psi[:, :4], h, rtol=1e-6)
