"""Noise that differs from one output to the next: given the embedding, as many regressions as outputs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from scipy import stats

import widebnn as wb
from widebnn import targets
from widebnn.targets import LogNormal

from ..exact.networks import problem
from ..exact.units import assert_changes_of_potential

STD = np.array([0.2, 1.5])
TINY = problem(widths=(3,), out_features=2, n=5)
X_NEW = TINY.x[:3] + 0.1
KEY = jax.random.key(0)

MAKERS = {
    "standard": targets.standard,
    "standard, blocks": lambda *at: targets.standard(*at, block_size=2),
    "repriorised, data space": lambda *at: targets.repriorised(*at, space="data"),
    "repriorised, feature space": lambda *at: targets.repriorised(*at, space="feature"),
    "repriorised at λ": lambda *at: targets.repriorised(*at, reg=0.7),
    "marginal, data space": lambda *at: targets.marginal(*at, "data"),
    "marginal, blocks": lambda *at: targets.marginal(*at, "feature", block_size=2),
    "rotated": lambda *at: targets.rotated(targets.marginal(*at)),
    "whitened": lambda *at: targets.whitened(targets.marginal(*at)),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_it_is_one_target_for_each_output(make):
    """Potential and gradient, normaliser, the map and its inverse, log likelihoods, predictions."""
    features = TINY.bnn.features
    target = make(wb.BNN(features, 2, STD), TINY.x, TINY.y)
    alone = [make(wb.BNN(features, 1, s), TINY.x, y[:, None]) for s, y in zip(STD, TINY.y.T, strict=True)]
    position = jax.tree.map(lambda leaf: leaf.astype(float), target.draw_prior(KEY))
    has_readout = hasattr(position, "readout")

    def asked(target, position):
        found = {
            "potential": target.potential(position) + target.log_normaliser(),
            "left out": target.left_out_log_likelihood(position),
            "gradient": jax.grad(target.potential)(position),
        }
        for name in ("mean", "variance", "covariance", "moments"):
            found[name] = getattr(targets.NetworkTarget, f"predictive_{name}")(target, position, X_NEW, KEY)
        if has_readout:
            found["log likelihood"] = target.log_likelihood(position)
            theta = found["θ"] = target.to_parameters(position)
            found["again"] = target.from_parameters(theta)
        return found

    @jax.jit
    def of_all(target, position, alone):
        found = [asked(target, position)]
        for k, other in enumerate(alone):
            here = position._replace(readout=position.readout[:, k : k + 1]) if has_readout else position
            found.append(asked(other, here))
        return found

    found, first, second = of_all(target, position, alone)

    def equal(got, wanted):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10), got, wanted)

    def columns(a, b):
        return jax.tree.map(lambda a, b: jnp.concatenate([a, b], axis=1), a, b)

    for name in {"potential", "left out", "log likelihood"} & found.keys():
        equal(found[name], first[name] + second[name])
    equal(found["mean"], columns(first["mean"], second["mean"]))
    for name in ("variance", "covariance"):
        equal(found[name], np.stack([first[name], second[name]], axis=-1))
    equal(found["moments"][0], found["mean"])
    equal(found["moments"][1], np.stack([first["moments"][1], second["moments"][1]], axis=-1))
    equal(found["moments"][1], np.asarray(found["variance"]) + STD**2)
    if has_readout:
        equal(found["θ"].readout, columns(first["θ"].readout, second["θ"].readout))
        equal(found["again"], position)
        equal(found["gradient"].readout, columns(first["gradient"].readout, second["gradient"].readout))
        inner = (part["gradient"].inner for part in (found, first, second))
    else:
        inner = (part["gradient"] for part in (found, first, second))
    jax.tree.map(lambda both, a, b: equal(both, a + b), *inner)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "block_size"), [(4, 1), (9, 5)], ids=["data space", "feature space"])
def test_unitwise_accepts_by_the_potential(n, block_size):
    tiny = problem(widths=(5,), out_features=2, n=n)
    target = targets.marginal(wb.BNN(tiny.bnn.features, 2, STD), tiny.x, tiny.y)
    assert_changes_of_potential(target, block_size)


def test_scales_that_the_data_choose():
    """The conditional of both σ and the readout's scale is the potential, up to a constant; no limit."""
    bnn = wb.BNN(TINY.bnn.features, 2, 0.3)
    priors = {"noise_std": LogNormal(np.array([0.3, 1.0]), 0.5), "readout_std": LogNormal(1.0, 0.5)}
    target = targets.scaled(targets.marginal(bnn, TINY.x, TINY.y), **priors)
    position = jax.tree.map(lambda leaf: leaf.astype(float), target.draw_prior(KEY))
    assert position.readout_scales["noise_std"].shape == (2,)

    @jax.jit
    def gaps(us):
        conditional = target.readout_conditional(position)

        def gap(u):
            scales = {"readout_std": u[0], "noise_std": u[1:]}
            return conditional(scales) - target.potential(position._replace(readout_scales=scales))

        return jax.vmap(gap)(us)

    us = np.random.default_rng(0).normal(size=(4, 3))
    np.testing.assert_allclose(gaps(us), gaps(us)[0], rtol=1e-9)
    known = targets.marginal(
        bnn.at_scales(**target.scales(position)), TINY.x, TINY.y
    )  # σ as a row, beside (n, 2)
    np.testing.assert_allclose(
        target.potential(position), known.potential(position.network) + known.log_normaliser(), rtol=1e-12
    )
    with pytest.raises(ValueError, match="one noise_std for all of y's columns"):
        target.limiting_scales()
    with pytest.raises(ValueError, match="noise_std.median must be a number, or one per output, 2"):
        targets.scaled(targets.marginal(bnn, TINY.x, TINY.y), noise_std=LogNormal(np.ones(5), 0.5))


def test_a_run_and_its_predictions():
    """Without a hidden layer that learns, draws of y* have the noise of their output."""
    target = targets.marginal(wb.BNN(TINY.bnn.features, 2, STD), TINY.x, TINY.y)
    draws = wb.sample(
        KEY,
        target,
        num_samples=400,
        num_chains=2,
        collect={
            "noise": lambda t, u, rng_key: (
                wb.predictive_draw()(t, u, rng_key) - wb.output()(t, u, jax.random.split(rng_key)[0])
            )
        },
        num_positions=8,
        progress=False,
    )
    for k, std in enumerate(STD):
        found = draws["noise"][..., k].ravel() / std
        assert stats.kstest(found, "norm").pvalue > 1e-4
    assert draws.predict(X_NEW).std.shape == (3, 2)
    assert (draws.predict(X_NEW).std > STD).all()


@pytest.mark.slow
def test_a_convolutional_network_is_one_for_each_output():
    images = np.random.default_rng(0).normal(size=(4, 6, 6, 2))
    features = wb.models.from_nnx(wb.models.CNN(2, 3, rngs=nnx.Rngs(0)))
    both = targets.marginal(wb.BNN(features, 2, STD), images, TINY.y[:4])
    alone = [
        targets.marginal(wb.BNN(features, 1, s), images, TINY.y[:4, k : k + 1]) for k, s in enumerate(STD)
    ]
    position = jax.tree.map(lambda leaf: leaf.astype(float), both.draw_prior(KEY))

    @jax.jit
    def asked(position):
        return [(t.potential(position), t.predictive_variance(position, images)) for t in (both, *alone)]

    (potential, variance), *parts = asked(position)
    np.testing.assert_allclose(potential, sum(part[0] for part in parts), rtol=1e-9)
    np.testing.assert_allclose(variance, np.stack([part[1] for part in parts], axis=-1), rtol=1e-7)
