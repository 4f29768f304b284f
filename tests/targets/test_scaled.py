"""Targets whose scales are part of the position."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from scipy import stats

import widebnn as wb
from widebnn import samplers, targets

from ..exact import scales


@pytest.fixture
def observed():
    return scales.data(n=5)


RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    "psi",
    [
        pytest.param(RNG.normal(size=(4, 9)), id="wide"),
        pytest.param(RNG.normal(size=(9, 4)), id="narrow"),
        # eigenvalues of 0, in either space: their directions are noise alone
        pytest.param(
            np.repeat(RNG.normal(size=(4, 2)), 2, axis=0) @ RNG.normal(size=(2, 6)), id="equal rows, columns"
        ),
    ],
)
def test_spectrum_gives_the_evidence_at_every_scale(psi):
    y = np.random.default_rng(1).normal(size=(len(psi), 2))

    @jax.jit
    def potentials(scale, noise_std):
        spectra = [targets.spectrum(jnp.asarray(psi), jnp.asarray(y), space) for space in ("data", "feature")]
        exact = targets.readout_posterior(scale * psi, jnp.asarray(y), noise_std**2, "data").potential()
        return exact, [eigen.potential(scale, noise_std) for eigen in spectra]

    for scale, noise_std in ((1.0, 0.3), (0.2, 1.5), (3.0, 0.05)):
        exact, found = potentials(scale, noise_std)
        np.testing.assert_allclose(found, [exact, exact], rtol=1e-8)


def test_potential_is_minus_the_log_evidence(observed):
    target = scales.target_of(observed.x, observed.y)
    position = target.draw_prior(jax.random.key(0))
    kernel, bias = (position.network["layers"][0][name] for name in ("kernel", "bias"))
    s = {
        name: prior.median * jnp.exp(prior.spread * u)
        for (name, prior), u in zip(
            scales.PRIORS.items(),
            [
                position.readout_scales["noise_std"],
                position.readout_scales["readout_std"],
                position.scales["weight_std"],
            ],
        )
    }
    assert target.scales(position).keys() == s.keys()
    psi = scales.embedding((kernel, bias, s), observed.x)
    psi = np.asarray(psi)
    law = stats.multivariate_normal(
        np.zeros(len(psi)), psi @ psi.T + float(s["noise_std"]) ** 2 * np.eye(len(psi))
    )
    exact = -law.logpdf(observed.y[:, 0])
    np.testing.assert_allclose(target.potential(position), exact, rtol=1e-10)


@pytest.mark.parametrize("space", ["data", "feature"])
def test_conditional_of_readout_scales_is_the_potential(observed, space):
    scales.assert_conditional(scales.target_of(observed.x, observed.y, space=space))


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
        position = targets.ScaledPosition(None, **unravel(u))
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
    """Below 4ε tr ΨΨᵀ the noise counts as that: in potential, conditional and predictions alike."""
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(20, k)).astype(np.float32) for k in (2, 1))

    features = wb.models.FCN(2, width, rngs=nnx.Rngs(0))
    base = targets.marginal(wb.BNN(features, 1, 1.0, bias_std=0.0), x, y)
    priors = {"noise_std": targets.LogNormal(1e-6, 3.0), "readout_std": targets.LogNormal(1.0, 1.0)}
    target = targets.scaled(base, **priors)
    start = target.draw_start(jax.random.key(1))

    @jax.jit
    def found(noise, readout):
        here = start._replace(readout_scales={"noise_std": noise, "readout_std": readout})
        at = target.at(here)
        least = 4 * jnp.finfo(jnp.float32).eps * jnp.sum(at.embedding(here.network) ** 2)
        floored = replace(base, bnn=at.bnn.at_scales(noise_std=jnp.sqrt(least)))
        return {
            "noise": (at.readout_posterior(here.network).reg, least),
            "potential": (target.potential(here), floored.potential(here.network) + floored.log_normaliser()),
            "variance": (wb.predictive_moments(x[:3])(at, here.network)[1], jnp.zeros(3)),
            "conditional": target.readout_conditional(start)(here.readout_scales),
        }

    one, other = found(jnp.float32(-1), jnp.float32(0)), found(jnp.float32(-3), jnp.float32(1))
    for at in (one, other):
        for name in ("noise", "potential"):
            np.testing.assert_allclose(*at[name], rtol=1e-4)
        assert (at["variance"][0] >= at["noise"][1]).all()
    change = other["conditional"] - one["conditional"]
    np.testing.assert_allclose(change, other["potential"][0] - one["potential"][0], rtol=0.05)
    above = found(jnp.float32(3), jnp.float32(0))  # σ is then 8 · 10⁻³
    np.testing.assert_allclose(above["noise"][0], (1e-6 * np.exp(9)) ** 2, rtol=1e-5)


@pytest.mark.slow
def test_scales_at_which_the_potential_fails_are_left_alone(observed):
    """Eigenvalues hold where a Cholesky factor does not: predictions there would not be numbers."""

    class Failing(targets.Scaled):
        def potential(self, position):
            return jnp.where(self.scales(position)["noise_std"] < 0.4, jnp.nan, super().potential(position))

    right = scales.target_of(observed.x, observed.y)
    target = Failing(right.base, right.priors)
    kernel = samplers.readout_scales().bind(target)
    start = right.draw_start(jax.random.key(0))
    start = start._replace(readout_scales=start.readout_scales | {"noise_std": jnp.asarray(0.1)})

    def step(state, key):
        state, _ = kernel.step(key, state)
        return state, target.scales(state.position)["noise_std"]

    @jax.jit
    def run(start, keys):
        return jax.lax.scan(step, kernel.init(start), keys)[1]

    found = run(start, jax.random.split(jax.random.key(1), 100))
    assert found.min() >= 0.4
    assert len(np.unique(found)) > 20


@pytest.mark.slow
def test_evidence_of_many_rows_takes_some_of_them(observed, monkeypatch):
    monkeypatch.setattr("widebnn.targets._scaled.FIRST_ROWS", 3)
    monkeypatch.setattr("widebnn.targets._scaled.MAX_ROWS", 4)
    found = scales.target_of(observed.x, observed.y).limiting_scales().mean
    assert {*found["scales"], *found["readout_scales"]} == set(scales.PRIORS)


@pytest.mark.slow
def test_exact_answers(observed):
    target = scales.target_of(observed.x, observed.y)
    exact = scales.reference(observed)
    assert exact.effective_draws > 10_000
    sampler = scales.sampler_of(target, limit=target.limiting_scales())
    scales.assert_exact(target, sampler, observed, exact.moments)


def test_scales_of_layers_move_with_the_network(observed):
    """Were they held, a proposal that is always refused at other scales would be accepted at these."""
    target = scales.target_of(*observed[:2])
    sampler = samplers.with_scales(samplers.pcn(0.5))
    start = target.draw_prior(jax.random.key(0))

    class OnlyHere(type(target)):
        def potential(self, position):
            is_here = position.scales["weight_std"] == start.scales["weight_std"]
            return jnp.where(is_here, 0.0, jnp.inf)

    kernel = sampler.bind(OnlyHere(target.base, target.priors))
    state, info = kernel.step(jax.random.key(1), kernel.init(start, jax.random.key(2)))
    assert not info.is_accepted
    before, after = (
        target.scales(u)["weight_std"] * u.network["layers"][0]["kernel"] for u in (start, state.position)
    )
    np.testing.assert_allclose(before, after, rtol=1e-6)  # the scale alone may have moved


@pytest.mark.nightly
def test_ranks_of_the_truth_are_uniform():
    found = scales.ranks(scales.target_of, scales.sampler_of)
    scales.assert_uniform(found)


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
    kernels = {"weight_std": [("inside", "kernel")], "outside.weight_std": [("outside", "kernel")]}
    if "whitened" in type(wanted).__name__.lower():
        del kernels["outside.weight_std"]
    assert target.multiplied == kernels | {"bias_std": [("inside", "bias")]}


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
    assert target.multiplied == {}
