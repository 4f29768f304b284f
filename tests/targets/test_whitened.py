"""Whitened layers: the same posterior on what the data see of every dense layer."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.flatten_util import ravel_pytree
from numpy.testing import assert_allclose

import widebnn as wb
from widebnn.models import Dense

from ..exact.networks import problem
from ..exact.whitening import (
    assert_batches_share_a_draw,
    assert_new_inputs_see_the_prior_of_the_complement,
    assert_orthogonal_change_of_variables,
)

BASES = {
    "marginal": lambda bnn, x, y: wb.targets.marginal(bnn, x, y),
    "repriorised": lambda bnn, x, y: wb.targets.repriorised(bnn, x, y, reg=0.5),
}


@pytest.fixture(params=BASES)
def pair(request):
    """A problem with three layers, its target whitened, and as it was."""
    tiny = problem(widths=(6, 5, 4), out_features=2, n=4)
    base = BASES[request.param](tiny.bnn, tiny.x, tiny.y)
    return tiny, wb.targets.whitened(base), base


def potentials(target, base):
    """At three positions, by one program: whitened and of the weights, whose readout is drawn or kept."""

    def at(key):
        position = target.draw_prior(key)
        theta = target.to_parameters(position, jax.random.fold_in(key, 1))
        again = target.from_parameters(theta)
        back = ravel_pytree(again)[0], ravel_pytree(position)[0]
        return (target.potential(position), base.potential(base.from_parameters(theta))), back

    return jax.device_get(jax.jit(jax.vmap(at))(jax.random.split(jax.random.key(0), 3)))


@pytest.mark.slow
def test_layers_hold_a_row_per_input_and_the_posterior_is_that_of_the_weights(pair):
    """Predictions too, given what a key draws; with one key, two batches see one network."""
    tiny, target, base = pair
    inner = jax.eval_shape(target.inner, target.template)["layers"]
    assert jax.tree.map(lambda leaf: leaf.shape, inner) == {
        0: {"kernel": (2, 6), "bias": (6,)},
        1: {"epsilon": (4, 5)},
        2: {"epsilon": (4, 4)},
    }
    for found, wanted in potentials(target, base):
        assert_allclose(found, wanted, rtol=1e-5, atol=1e-9)

    @jax.jit
    def embeddings(position, key):
        theta = target.to_parameters(position, key)
        new, observed = (wb.embedding(x)(target, position, key) for x in (tiny.x_new, tiny.x))
        exact, whole = (tiny.bnn.embedding(theta.inner, x) for x in (tiny.x_new, tiny.x))
        return (new, exact), (observed, whole), (observed, target.embedding(position))

    for found, exact in embeddings(target.draw_prior(jax.random.key(0)), jax.random.key(1)):
        assert_allclose(found, exact, rtol=1e-5, atol=1e-8)
    assert_batches_share_a_draw(target, np.concatenate([tiny.x[:1], tiny.x_new]))


@pytest.mark.slow
@pytest.mark.parametrize("bias_std", [0.5, 0.0])
def test_change_of_variables_by_brute_force(bias_std):
    assert_orthogonal_change_of_variables(bias_std)


@pytest.mark.slow
def test_new_inputs_see_the_prior_of_the_complement():
    assert_new_inputs_see_the_prior_of_the_complement()


@pytest.mark.slow
def test_equal_inputs_do_not_stop_a_chain(float32):
    """256 inputs, of which 56 are repeated, some to within rounding: potential and gradient stay finite."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 12)).astype(np.float32)
    near = x[:28] + 1e-6 * rng.normal(size=(28, 12)).astype(np.float32)
    x = np.concatenate([x, x[:28], near])
    y = np.sin(x[:, :1])
    bnn = wb.BNN(wb.models.FCN(12, (512, 300), rngs=nnx.Rngs(0)), 1, 0.1)
    target = wb.targets.whitened(wb.targets.marginal(bnn, x, y))
    assert len(target.layers) == 2 - 1
    keys = jax.random.split(jax.random.key(0), 20)

    @jax.jit
    @jax.vmap
    def found(key):
        position = target.draw_prior(key)
        return jax.value_and_grad(target.potential)(position), target.embedding(position)

    derivatives, (psi, *_) = found(keys)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(derivatives))
    psi = np.asarray(psi)
    assert np.abs(psi[200:228] - psi[:28]).max() < 0.05 * np.abs(psi).max()


class Skipping(nnx.Module):
    """Two inputs' worth of ways: a dense layer of the inputs, two above it, their sum."""

    def __init__(self, twice=False):
        rngs = nnx.Rngs(0)
        self.first = Dense(3, 8, rngs=rngs)
        self.ways = nnx.List(Dense(8, 7, bias_std=0.0, rngs=rngs) for _ in range(2))
        self.twice = twice

    def __call__(self, x):
        h = jnp.tanh(self.first(x))
        if self.twice:
            return jnp.tanh(self.ways[0](h) + self.ways[0](-h))
        return jnp.tanh(self.ways[0](h) + self.ways[1](h**2))


class Tied(Skipping):
    def __call__(self, x):
        return super().__call__(x) + 0.1 * self.ways[0].kernel[...].sum()


class Circular(Skipping):
    def __init__(self):
        super().__init__()
        self.first.owner = self


@pytest.mark.slow
def test_modules_of_ones_own():
    tiny = problem()
    bnn = wb.BNN(Skipping(), 1, 0.4)
    base = wb.targets.marginal(bnn, tiny.x, tiny.y)
    target = wb.targets.whitened(base)
    assert target.layers == (("ways", 0), ("ways", 1))
    assert target.weights.basis.shape == (3, 2)
    for found, wanted in potentials(target, base):
        assert_allclose(found, wanted, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: Skipping(twice=True),
            ValueError,
            r"layer ways/0 once, .* of its 5 inputs; .*\(5, 8\), \(5, 8\)",
        ),
        (Circular, ValueError, "a network whose modules make no circle"),
        (Tied, ValueError, "see the weights of the layers ways/0, ways/1 through their outputs alone"),
    ],
)
def test_layers_that_cannot_be_whitened_are_named(make, error, message):
    tiny = problem()
    with pytest.raises(error, match=message):
        wb.targets.whitened(wb.targets.marginal(wb.BNN(make(), 1, 0.4), tiny.x, tiny.y))


@pytest.mark.slow
def test_nothing_is_whitened_where_inputs_are_many():
    tiny = problem(widths=(3, 4), n=6)
    base = wb.targets.marginal(tiny.bnn, tiny.x, tiny.y)
    target = wb.targets.whitened(base)
    assert target.layers == ()
    for found, wanted in potentials(target, base):
        assert_allclose(found, wanted, rtol=1e-5, atol=1e-9)
