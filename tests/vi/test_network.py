"""Models taken apart, losses, and the posterior predictive."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from scipy.stats import multivariate_normal
from sklearn.metrics import log_loss

import widebnn as wb

from ..exact.variational import X

KEY = jax.random.key(0)
X32 = jnp.asarray(X, jnp.float32)


def test_models_of_every_kind_are_pure_functions(float32):
    bnn = wb.BNN(wb.models.FCN(3, 4, rngs=nnx.Rngs(0)), 2, 0.1)
    taken = wb.vi.network(bnn, X32, KEY)
    assert jnp.array_equal(taken(taken.weights, X32), bnn(taken.weights, X32))

    linen = wb.vi.network(nn.Dense(2), X32, KEY)
    assert jnp.array_equal(linen(linen.weights, X32), nn.Dense(2).apply({"params": linen.weights}, X32))

    module = nnx.Linear(3, 2, rngs=nnx.Rngs(0))
    own = wb.vi.network(module, X32, KEY)
    assert jnp.array_equal(own(own.weights, X32), module(X32)), "means start at the module's own parameters"

    embedding = wb.models.from_nnx(module)
    drawn = wb.vi.network(embedding, X32, KEY)
    assert jnp.array_equal(drawn(drawn.weights, X32), embedding.apply(drawn.weights, X32))


class Normed(nnx.Module):
    """BatchNorm below a layer."""

    def __init__(self, rngs):
        self.norm = nnx.BatchNorm(3, momentum=0.5, rngs=rngs)
        self.readout = nnx.Linear(3, 2, rngs=rngs)

    def __call__(self, x):
        return self.readout(self.norm(x))


def test_statistics_of_a_batch_are_used_in_training_alone(float32):
    taken = wb.vi.network(Normed(nnx.Rngs(0)), X32, KEY)
    parts = taken.weights, taken.point, taken.state
    outputs, state = taken.apply(*parts, X32, True)
    np.testing.assert_allclose(state["norm"]["mean"], X32.mean(axis=0) / 2, rtol=1e-4, atol=1e-6)
    standardised = (X32 - X32.mean(axis=0)[None]) / X32.std(axis=0)[None]
    readout = taken.weights["readout"]
    np.testing.assert_allclose(outputs, standardised @ readout["kernel"], rtol=1e-3, atol=1e-4)

    together, unchanged = taken.apply(*parts, X32, False)
    alone = jnp.concatenate([taken.apply(*parts, X32[i : i + 1], False)[0] for i in range(len(X32))])
    np.testing.assert_allclose(together, alone, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(unchanged["norm"]["mean"], taken.state["norm"]["mean"])


def test_losses_are_minus_log_likelihoods():
    f, y = X[:, :2], X[:, 1:]
    densities = [-multivariate_normal(m, 0.3**2).logpdf(v) for m, v in zip(f, y)]
    np.testing.assert_allclose(wb.vi.gaussian(0.3)(jnp.asarray(f), jnp.asarray(y)), densities)
    up_to_constant = wb.vi.gaussian(0.5**0.5)(jnp.asarray(f), jnp.asarray(y)) - wb.vi.square(
        jnp.asarray(f), jnp.asarray(y)
    )
    np.testing.assert_allclose(up_to_constant, up_to_constant[0], rtol=1e-8)
    labels = np.arange(len(X)) % 3
    losses = wb.vi.cross_entropy(jnp.asarray(X), jnp.asarray(labels))
    np.testing.assert_allclose(losses.mean(), log_loss(labels, jax.nn.softmax(jnp.asarray(X), axis=1)))
    both = [wb.vi.cross_entropy(jnp.asarray(f), y) for y in (X[:, 0] > 0, np.array(X[:, 0] > 0, int))]
    np.testing.assert_array_equal(*both)


def stayed(out_features, y, loss):
    """A fit with steps of length 0."""
    module = wb.vi.TwoLayer(3, 8, out_features, rngs=nnx.Rngs(0))
    options = {"num_epochs": 1, "batch_size": 40, "initial_std": 2.0}
    return wb.vi.fit(KEY, module, X32, y, loss, optax.set_to_zero(), **options)


@pytest.mark.slow
def test_predictive_of_classes_is_the_mean_of_probabilities_in_any_blocks(float32):
    fitted = stayed(2, X[:, 0] > 0, jax.jit(wb.vi.cross_entropy))
    found = wb.vi.predict(KEY, fitted, X32, num_samples=7, block_size=9)
    draws = [fitted.posterior.draw(key) for key in jax.random.split(KEY, 7)]
    wanted = sum(jax.nn.softmax(fitted.network(w, X32)) for w in draws) / 7
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_predictive_of_a_regression_is_the_mean_of_its_outputs_or_of_a_function(float32):
    fitted = stayed(1, X32[:, :1], wb.vi.square)
    outputs = [fitted.network(fitted.posterior.draw(key), X32) for key in jax.random.split(KEY, 7)]
    for function, of_draws in ((None, outputs), (jnp.square, [f**2 for f in outputs])):
        found = wb.vi.predict(KEY, fitted, X32, num_samples=7, function=function)
        np.testing.assert_allclose(found, sum(of_draws) / 7, rtol=1e-4, atol=1e-6)
