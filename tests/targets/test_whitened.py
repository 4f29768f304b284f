"""Whitened layers: the same posterior on what the data see of every dense layer."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.flatten_util import ravel_pytree

import widebnn as wb
from widebnn.models import Dense, Parameters
from widebnn.tree import normal_like

from ..exact.networks import problem
from ..exact.whitening import (
    assert_batches_share_a_draw,
    assert_new_inputs_see_the_prior_of_the_complement,
    assert_orthogonal_change_of_variables,
)

BASES = {
    "standard": lambda bnn, x, y: wb.targets.standard(bnn, x, y),
    "marginal": lambda bnn, x, y: wb.targets.marginal(bnn, x, y),
    "repriorised": lambda bnn, x, y: wb.targets.repriorised(bnn, x, y, reg=0.5),
}


@pytest.fixture(params=BASES)
def pair(request):
    """A problem with three layers, its target whitened, and as it was."""
    tiny = problem(widths=(6, 5, 4), out_features=2, n=4)
    base = BASES[request.param](tiny.bnn, tiny.x, tiny.y)
    return tiny, wb.targets.whitened(base), base


def close(a, b, atol=1e-9):
    return jnp.allclose(ravel_pytree(a)[0], ravel_pytree(b)[0], atol=atol)


def test_layers_hold_a_row_per_input(pair):
    _, target, _ = pair
    inner = target.inner(target.draw_prior(jax.random.key(0)))["layers"]
    assert jax.tree.map(jnp.shape, inner) == {
        0: {"kernel": (2, 6), "bias": (6,)},
        1: {"epsilon": (4, 5)},
        2: {"epsilon": (4, 4)},
    }


def test_potential_and_positions_are_those_of_the_weights(pair):
    _, target, base = pair
    for i in range(3):
        position = target.draw_prior(jax.random.key(i))
        theta = target.to_parameters(position, jax.random.key(10 + i))
        assert jnp.allclose(target.potential(position), base.potential(base.from_parameters(theta)))
    theta = normal_like(jax.random.key(5), base.bnn.template(base.x))
    position = target.from_parameters(theta)
    assert jnp.allclose(target.potential(position), base.potential(base.from_parameters(theta)))
    if not isinstance(position, Parameters):  # the readout is drawn anew
        theta = theta._replace(readout=target.readout(position, jax.random.key(0)))
    again = target.from_parameters(target.to_parameters(position, jax.random.key(6)))
    assert close(again, position)


@pytest.mark.slow
@pytest.mark.parametrize("bias_std", [0.5, 0.0])
def test_change_of_variables_by_brute_force(bias_std):
    assert_orthogonal_change_of_variables(bias_std)


@pytest.mark.slow
def test_predictions_are_those_of_the_weights(pair):
    """Given what a key draws; with one key, two batches see one network."""
    tiny, target, _ = pair
    position, key = target.draw_prior(jax.random.key(0)), jax.random.key(1)
    theta = target.to_parameters(position, key)
    new = target.embedding_at(tiny.x_new)(position, key)
    assert jnp.allclose(new, tiny.bnn.embedding(theta.inner, tiny.x_new))
    observed = target.embedding_at(tiny.x)(position, key)
    for psi in (target.embedding(position), tiny.bnn.embedding(theta.inner, tiny.x)):
        assert jnp.allclose(observed, psi, atol=1e-9)
    assert_batches_share_a_draw(target, jnp.concatenate([tiny.x[:1], tiny.x_new]))


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
    value, gradient = jax.jit(jax.vmap(jax.value_and_grad(target.potential)))(
        jax.vmap(target.draw_prior)(keys)
    )
    assert jnp.isfinite(value).all() and all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
    psi = target.embedding(target.draw_prior(keys[0]))
    assert jnp.abs(psi[200:228] - psi[:28]).max() < 0.05 * jnp.abs(psi).max()


@pytest.mark.slow
def test_sweeps_move_the_top_layer_alone():
    tiny = problem(widths=(6, 8), n=4)
    target = wb.targets.whitened(wb.targets.marginal(tiny.bnn, tiny.x, tiny.y))
    sweep = wb.samplers.unitwise(target)
    state = sweep.init(target.draw_prior(jax.random.key(0)))
    moved, info = jax.jit(sweep.step)(jax.random.key(1), state)
    before, after = state.position["layers"], moved.position["layers"]
    assert close(before[0], after[0], atol=0) and not close(before[1], after[1], atol=0.1)
    assert 0 < info.acceptance_rate <= 1


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


@pytest.mark.slow
def test_modules_of_ones_own():
    tiny = problem()
    bnn = wb.BNN(Skipping(), 1, 0.4)
    base = wb.targets.marginal(bnn, tiny.x, tiny.y)
    target = wb.targets.whitened(base)
    assert target.layers == (("ways", 0), ("ways", 1))
    assert target.weights.basis.shape == (3, 2)
    position = target.draw_prior(jax.random.key(0))
    theta = target.to_parameters(position, jax.random.key(1))
    assert jnp.allclose(target.potential(position), base.potential(theta.inner))
    assert close(target.from_parameters(theta), position)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: Skipping(twice=True),
            ValueError,
            r"layer ways/0 once, .* of its 5 inputs; .*\(5, 8\), \(5, 8\)",
        ),
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
    position = target.draw_prior(jax.random.key(0))
    theta = target.to_parameters(position, jax.random.key(1))
    assert jnp.allclose(target.potential(position), base.potential(theta.inner))
