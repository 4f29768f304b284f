"""Users' own modules as embeddings, and those that would leave no likelihood."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import pytest
from flax import nnx

import widebnn as wb
from widebnn.models import BNN, Embedding, from_linen, from_nnx

X = jnp.linspace(-1.0, 1.0, 12).reshape(4, 3)


class TwoPaths(nnx.Module):
    """A user's network with a skip connection, a nested module and a parameter of its own."""

    def __init__(self, rngs):
        self.inside = nnx.Linear(3, 5, rngs=rngs)
        self.shift = nnx.Param(jnp.zeros(5))

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


@pytest.mark.slow
@pytest.mark.parametrize("features", [TwoPaths(nnx.Rngs(0)), from_linen(LinenNet(), X)], ids=["nnx", "linen"])
def test_users_networks_are_sampled(features):
    bnn = BNN(features, 2, 0.3)
    target = wb.targets.marginal(bnn, X, jnp.ones((4, 2)))
    draws = wb.sample(
        jax.random.key(0), wb.samplers.pcn(target.potential, 0.3), target, num_samples=5, progress=False
    )
    assert draws["potential"].shape == (1, 5) and len(set(draws["potential"][0])) > 1


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


class Counter(nnx.Module):
    def __init__(self):
        self.calls = nnx.Variable(jnp.zeros(()))

    def __call__(self, h):
        self.calls[...] += 1
        return h


@pytest.mark.parametrize(
    "part, named",
    [
        (nnx.BatchNorm(5, rngs=nnx.Rngs(0)), "BatchNorm at part"),
        (nnx.Dropout(0.5, rngs=nnx.Rngs(0)), "Dropout at part"),
        (Counter(), "Variable at part/calls"),
    ],
    ids=["BatchNorm", "Dropout", "state"],
)
def test_nnx_module_with_other_state_is_refused(part, named):
    with pytest.raises(ValueError, match=f"features must be a function of one input.*{named}"):
        BNN(NNXWith(part), 1, 0.1)


class LinenWith(nn.Module):
    kind: str

    @nn.compact
    def __call__(self, x):
        h = nn.Dense(5)(x)
        if self.kind == "BatchNorm":
            return nn.BatchNorm(use_running_average=False)(h)
        if self.kind == "Dropout":
            return nn.Dropout(0.5, deterministic=True)(h)
        calls = self.variable("counts", "calls", jnp.zeros, ())
        return h + calls.value


@pytest.mark.parametrize("kind, named", [("BatchNorm", "BatchNorm"), ("Dropout", "Dropout"), ("", "counts")])
def test_linen_module_with_other_state_is_refused(kind, named):
    with pytest.raises(ValueError, match=f"features must be a function of one input.*{named}"):
        from_linen(LinenWith(kind), X)
