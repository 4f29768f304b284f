"""Users' own modules as embeddings, and those that would leave no likelihood."""

from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import widebnn as wb
from widebnn.models import BNN, Embedding, from_function, from_linen, from_nnx

pytestmark = pytest.mark.usefixtures("float32")

X = jnp.linspace(-1.0, 1.0, 12, dtype=jnp.float32).reshape(4, 3)


class TwoPaths(nnx.Module):
    """A user's network with a skip connection, a nested module and a parameter of its own."""

    def __init__(self, rngs):
        self.inside = nnx.Linear(3, 5, rngs=rngs)
        self.shift = nnx.Param(jnp.zeros(5, jnp.float32))

    def __call__(self, x):
        h = self.inside(x)
        return jnp.tanh(h + self.shift[...][None, :]) + h


def test_nnx_module_becomes_a_pure_function():
    module = TwoPaths(nnx.Rngs(0))
    embedding = from_nnx(module)
    inner = nnx.to_pure_dict(nnx.state(module, nnx.Param))
    assert jax.tree.structure(embedding.template) == jax.tree.structure(inner)
    assert jnp.allclose(embedding.apply(inner, X), module(X), atol=1e-6)
    doubled = jax.tree.map(lambda leaf: 2 * leaf, inner)
    before = module(X)
    assert not jnp.allclose(embedding.apply(doubled, X), before, atol=1e-3)
    assert jnp.array_equal(module(X), before)


class LinenNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        return jnp.tanh(nn.Dense(5)(x))


def test_linen_module_becomes_a_pure_function():
    embedding = from_linen(LinenNet(), X)
    variables = LinenNet().init(jax.random.key(0), X)
    assert jnp.allclose(embedding.apply(variables["params"], X), LinenNet().apply(variables, X))
    assert embedding.template["Dense_0"]["kernel"].shape == (3, 5)


def test_plain_function_is_an_embedding():
    """No library at all: apply and the shapes of its parameters."""
    embedding = Embedding(lambda w, x: jnp.sin(x @ w), jax.ShapeDtypeStruct((3, 4), jnp.float32))
    psi = BNN(embedding, 1, 0.1, bias_std=0.5).embedding(jnp.ones((3, 4)), X)
    assert jnp.allclose(psi[:, :4], jnp.sin(X.sum(axis=1))[:, None] * jnp.ones((1, 4)) / 2)
    assert jnp.array_equal(psi[:, 4], jnp.full(4, 0.5))


class NNXWith(nnx.Module):
    def __init__(self, part):
        self.linear = nnx.Linear(3, 5, rngs=nnx.Rngs(0))
        self.part = part

    def __call__(self, x):
        return self.part(self.linear(x))


class Noise(nnx.Module):
    def __init__(self):
        self.rngs = nnx.Rngs(0)

    def __call__(self, h):
        return h + jax.random.normal(self.rngs.noise(), h.shape, h.dtype)


class Centring(nnx.Module):
    def __call__(self, h):
        return h - h.mean(axis=0, keepdims=True)


@pytest.mark.parametrize(
    "part, reason",
    [
        (nnx.BatchNorm(5, rngs=nnx.Rngs(0)), "BatchNorm at part makes an output depend on the whole batch"),
        (nnx.Dropout(0.5, rngs=nnx.Rngs(0)), "Dropout at part makes it depend on chance"),
        (Noise(), "those of an input change with the others of its batch"),
        (Centring(), "those of an input change with the others of its batch"),
    ],
    ids=["BatchNorm", "Dropout", "noise", "batch"],
)
def test_nnx_module_that_is_no_function_of_one_input_is_refused(part, reason):
    with pytest.raises(ValueError, match=f"^features must be a function of one input.*{reason}"):
        wb.targets.marginal(BNN(NNXWith(part), 1, 0.1), X, X[:, :1])


class Fourier(nnx.Module):
    """Random features, drawn once: in a variable, in an attribute, and a generator that is kept unused."""

    def __init__(self):
        self.rngs = nnx.Rngs(0)
        self.frequencies = nnx.Variable(jnp.arange(6.0).reshape(3, 2))
        self.shift = np.array([[0.1, 0.2]], np.float32)
        self.readin = wb.models.Dense(2, 4, rngs=self.rngs)

    def __call__(self, x):
        return jnp.tanh(self.readin(jnp.cos(x @ self.frequencies[...] + self.shift)))


@pytest.mark.slow
def test_constants_are_no_parameters():
    embedding = from_nnx(module := Fourier())
    assert set(embedding.template) == {"readin"}
    inner = nnx.to_pure_dict(nnx.state(module, nnx.Param))
    assert jnp.allclose(embedding.apply(inner, X), module(X), atol=1e-6)
    target = wb.targets.marginal(BNN(embedding, 1, 0.1), X, X[:, :1])
    assert jnp.isfinite(jax.jit(target.potential)(target.draw_prior(jax.random.key(0))))


def test_linen_module_that_draws_noise_is_refused():
    class Noisy(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(5)(x) + jax.random.normal(self.make_rng("noise"), (5,))[None]

    with pytest.raises(ValueError, match="^features must be a function of one input.*noise of their own"):
        wb.targets.marginal(BNN(from_linen(Noisy(), X), 1, 0.1), X, X[:, :1])


@pytest.mark.slow
def test_unscaled_layers_are_warned_of():
    class Wide(nnx.Module):
        def __init__(self, layer):
            self.layers = nnx.List([layer(3, 256, rngs=nnx.Rngs(0)), layer(256, 8, rngs=nnx.Rngs(0))])

        def __call__(self, x):
            return self.layers[1](jnp.tanh(self.layers[0](x)))

    with pytest.warns(UserWarning, match="features have the mean square .*widebnn.models.Dense does"):
        wb.targets.marginal(BNN(Wide(nnx.Linear), 1, 0.1), X, X[:, :1])
    wb.targets.marginal(BNN(Wide(wb.models.Dense), 1, 0.1), X, X[:, :1])  # without a word


class Layer(NamedTuple):
    kernel: jax.Array


def test_first_kernel_of_any_pytree_is_found_by_its_path():
    def apply(layers, x):
        return jnp.sin(jnp.tanh(x @ layers[0].kernel) @ layers[1].kernel)

    features = from_function(apply, [Layer(jnp.ones((3, 5))), Layer(jnp.ones((5, 4)))])
    target = wb.targets.marginal(BNN(features, 2, 0.3), X, jnp.ones((4, 2)))
    rotated = wb.targets.rotated(target, kernel=(0, "kernel"))
    assert rotated.template[0].kernel.shape == (2, 5)
    whole = rotated.to_parameters(rotated.draw_prior(jax.random.key(1)), jax.random.key(2))
    assert whole.inner[0].kernel.shape == (3, 5)


def test_network_of_equinox_is_an_embedding():
    """By the recipe in the docstring of `from_function`."""
    import equinox as eqx

    network = eqx.nn.MLP(3, 4, width_size=5, depth=2, activation=jnp.tanh, key=jax.random.key(0))
    params, static = eqx.partition(network, eqx.is_inexact_array)

    def apply(params, x):
        return jax.vmap(eqx.combine(params, static))(x)

    features = from_function(apply, params)
    assert jnp.allclose(features.apply(params, X), jnp.stack([network(row) for row in X]), atol=1e-6)
    target = wb.targets.marginal(BNN(features, 2, 0.3), X, jnp.ones((4, 2)))
    position = target.draw_prior(jax.random.key(1))
    drawn = eqx.combine(position, static)
    psi = jnp.stack([drawn(row) for row in X])
    assert jnp.allclose(target.embedding(position)[:, :-1], psi / 2, atol=1e-6)
    assert jax.tree.structure(jax.grad(target.potential)(position)) == jax.tree.structure(params)
    with pytest.raises(ValueError, match="kernel must be the path of the first layer's kernel"):
        wb.targets.rotated(target)  # Equinox keeps its weights the other way round
