"""Noise that differs from one output to the next: given the embedding, as many regressions as outputs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import widebnn as wb
from widebnn import targets
from widebnn.targets import LogNormal

from ..exact.networks import problem

STD = np.array([0.2, 1.5])
TINY = problem(widths=(3,), out_features=2, n=5)
X_NEW = TINY.x[:3] + 0.1
KEY = jax.random.key(0)

MAKERS = {
    "standard, blocks": lambda *at: targets.standard(*at, block_size=2),
    "repriorised at λ": lambda *at: targets.repriorised(*at, reg=0.7),
    "marginal, data space": lambda *at: targets.marginal(*at, "data"),
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


def test_scales_that_the_data_choose():
    """The potential is that of a network with both σ; there is no limit."""
    bnn = wb.BNN(TINY.bnn.features, 2, 0.3)
    priors = {"noise_std": LogNormal(np.array([0.3, 1.0]), 0.5), "readout_std": LogNormal(1.0, 0.5)}
    target = targets.scaled(targets.marginal(bnn, TINY.x, TINY.y), **priors)
    position = jax.tree.map(lambda leaf: leaf.astype(float), target.draw_prior(KEY))
    assert position.scales["noise_std"].shape == (2,)
    known = targets.marginal(bnn.at_scales(**target.scales(position)), TINY.x, TINY.y)  # σ as a row
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
