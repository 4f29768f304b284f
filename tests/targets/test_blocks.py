"""Targets with the data in blocks against the same targets with all rows at once, and what they take."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import widebnn as wb
from widebnn.driver._chains import Chains
from widebnn.targets._blocks import BlockedFeatureSpace

from ..exact.networks import problem

TARGETS = {
    "marginal": wb.targets.marginal,
    "repriorised at another λ": lambda *args, **options: wb.targets.repriorised(*args, reg=0.5, **options),
    "rotated": lambda *args, **options: wb.targets.rotated(wb.targets.marginal(*args, **options)),
}
BLOCK_SIZES = (4, 5, 100)
"""One divides the 12 rows, one does not, one exceeds them."""


@pytest.fixture(params=TARGETS)
def make(request):
    return TARGETS[request.param]


@pytest.fixture
def tiny():
    return problem(widths=(5, 4), out_features=2, n=12)


def in_feature_space(make, tiny, block_size=None):
    return make(tiny.bnn, tiny.x, tiny.y, space="feature", block_size=block_size)


def values_and_gradients(make, tiny, block_sizes):
    """Of all rows at once, and of blocks of each size, at one position, in one program."""
    targets = [in_feature_space(make, tiny, size) for size in (None, *block_sizes)]
    position = targets[0].draw_prior(jax.random.key(0))
    assert isinstance(targets[1].readout_posterior(position), BlockedFeatureSpace)
    return jax.jit(lambda u: [jax.value_and_grad(target.potential)(u) for target in targets])(position)


def assert_close(one, other):
    one, other = (np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)]) for tree in (one, other))
    assert np.linalg.norm(one - other) <= 1e-10 * np.linalg.norm(other)


@pytest.mark.slow
def test_value_and_gradient_are_those_of_all_rows(tiny, make):
    whole, *blocked = values_and_gradients(make, tiny, BLOCK_SIZES if make is wb.targets.marginal else (5,))
    for found in blocked:
        assert_close(found, whole)


@pytest.mark.slow
def test_constants_of_a_network_may_be_integers(tiny):
    """The gradient passes over all arrays of the network at once, and these have none."""

    def features(constants, inner, x):
        return jnp.tanh(constants["scale"] * x[:, constants["columns"]] @ inner)

    constants = {"scale": jnp.asarray(2.0), "columns": jnp.array([1, 0])}
    apply = jax.tree_util.Partial(features, constants)
    bnn = wb.BNN(wb.models.from_function(apply, jnp.zeros((2, 5))), 2, noise_std=0.1)
    targets = [wb.targets.marginal(bnn, tiny.x, tiny.y, "feature", size) for size in (None, 5)]
    position = targets[0].draw_prior(jax.random.key(0))
    both = jax.jit(lambda u: [jax.value_and_grad(target.potential)(u) for target in targets])
    assert_close(*both(position))


@pytest.mark.slow
def test_everything_a_target_offers_is_the_same(tiny):
    def answers(target, position, key):
        names = ("predictive_mean", "predictive_covariance", "output", "predictive_draw")
        found = [getattr(wb, name)(tiny.x_new)(target, position, key) for name in names]
        found += [target.readout(position, key), target.to_parameters(position, key)]
        return [*found, target.from_parameters(tiny.draw_parameters())]

    whole, blocked = (in_feature_space(TARGETS["rotated"], tiny, size) for size in (None, 5))
    position = whole.draw_prior(jax.random.key(0))
    both = jax.jit(lambda u, key: [answers(target, u, key) for target in (blocked, whole)])
    for one, other in zip(*both(position, jax.random.key(1)), strict=True):
        assert_close(one, other)


@pytest.mark.slow
def test_derivatives_beyond_the_gradient(tiny):
    """Of a prediction, through ΨᵀΨ and Ψᵀy, and of the gradient: μ and S are then not constant."""
    whole, blocked = (in_feature_space(wb.targets.marginal, tiny, size) for size in (None, 5))

    def derivatives(target, u, direction):
        of_prediction = jax.grad(lambda u: jnp.sum(jnp.sin(wb.predictive_mean(tiny.x_new)(target, u))))(u)
        return of_prediction, jax.jvp(jax.grad(target.potential), (u,), (direction,))[1]

    both = jax.jit(lambda *at: [derivatives(target, *at) for target in (blocked, whole)])
    for one, other in zip(*both(*(whole.draw_prior(jax.random.key(i)) for i in range(2))), strict=True):
        assert_close(one, other)


def test_data_space_takes_all_rows():
    """Where n ≤ p there is nothing to save."""
    few = problem(widths=(6,), n=3)
    target = wb.targets.marginal(few.bnn, few.x, few.y, block_size=2)
    assert isinstance(target.readout_posterior(few.draw_parameters().inner), wb.targets.DataSpace)


def compiled_gradient(n, d_in, width, depth, block_size):
    """The compiled potential and gradient in float32, from shapes alone: no number is computed."""
    features = wb.models.from_nnx(wb.models.FCN(d_in, width, depth, rngs=nnx.Rngs(0)))
    bnn = wb.BNN(features, 10, noise_std=0.1)

    def value_and_gradient(x, y, position):
        target = wb.targets.marginal(bnn, x, y, block_size=block_size)
        return jax.value_and_grad(target.potential)(position)

    x, y = (jax.ShapeDtypeStruct((n, columns), jnp.float32) for columns in (d_in, 10))
    return jax.jit(value_and_gradient).lower(x, y, bnn.features.template).compile()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_data(float32):
    few, many, whole = (
        compiled_gradient(n, 64, 128, 2, block_size).memory_analysis().temp_size_in_bytes
        for n, block_size in [(2_048, 256), (8_192, 256), (8_192, None)]
    )
    assert many <= 1.01 * few
    assert whole > 8 * many, "what is saved"


@pytest.mark.slow
def test_compilation_embeds_no_data(float32, monkeypatch):
    """None of the driver's programs holds an array of the size of the data; such arrays are arguments."""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((1_000, columns), dtype=np.float32) for columns in (16, 10))
    bnn = wb.BNN(wb.models.FCN(16, 8, rngs=nnx.Rngs(0)), 10, noise_std=0.1)
    target = wb.targets.marginal(bnn, x, y, "feature", 100)
    texts, chunk = [], Chains.chunk

    def noted(*args, **options):
        texts.append(chunk.lower(*args, **options).as_text())
        return chunk(*args, **options)

    monkeypatch.setattr(Chains, "chunk", noted)
    wb.sample(jax.random.key(0), target, wb.samplers.pcnl(0.1), num_samples=2)
    assert "tensor<1000x16xf32>" in texts[0], "the data are arguments"
    assert max(map(len, re.findall("dense<(.*?)>", texts[0])), default=0) < 1_000
