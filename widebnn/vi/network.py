"""Any network as variational inference wants it: a pure function of weights and of whatever else it has."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import nnx
from jax.tree_util import Partial
from jaxtyping import Array, Float, Key, PyTree

from widebnn._arrays import Inputs
from widebnn._check import one_key
from widebnn._pytree import Static, as_pytree
from widebnn.models import BNN, Embedding, from_linen
from widebnn.tree import normal_like
from widebnn.vi.losses import Loss

__all__ = ["Network", "network"]

Weights = PyTree[Any]


@dataclass(frozen=True, eq=False)
class Network:
    """A network split into the weights that have a posterior, point estimates, and state.

    Attributes
    ----------
    apply
        From weights, point, state, $x$ and training to outputs $(n, d_out)$, and the state after.
    weights
        Weights at which the means of $q$ start.
    point
        Scales and shifts of BatchNorm, trained without a prior or a posterior; empty for most networks.
    state
        Running statistics of BatchNorm and random-number streams of Dropout; empty for most networks.
    """

    apply: Callable[[Weights, PyTree, PyTree, Inputs, bool], tuple[Float[Array, "n d_out"], PyTree]]
    weights: Weights
    point: PyTree
    state: PyTree

    def __call__(self, weights: Weights, x: Inputs) -> Float[Array, "n d_out"]:
        """f_w(x), with everything but the weights as it was at the start and nothing in training."""
        return self.apply(weights, self.point, self.state, x, False)[0]

    def log_likelihood(self, x: Inputs, y: Array, loss: Loss) -> Callable[[Weights], Float[Array, ""]]:
        """$w ↦ ∑_i log L(y_i | x_i, w) = −∑_i ℓ(f_w(x_i), y_i)$."""
        return lambda weights: -jnp.sum(loss(self(weights, x), y))


def network(
    model: nnx.Module | nn.Module | BNN | Embedding | Network, x: Inputs, rng_key: Key[Array, ""]
) -> Network:
    """Split a model into weights, point estimates and state.

    Parameters
    ----------
    model
        An NNX module from $(n, ...)$ to $(n, d_out)$, at whose parameters the means of $q$ start; or a Linen
        module, a `widebnn.models.BNN` or a `widebnn.models.Embedding`, which are initialised here. An NNX
        module may hold BatchNorm and Dropout, though with them the outputs are not a function of one input
        and the weights: they also depend on the batch or on chance, there is no likelihood, and what is
        maximised is not a lower bound on any evidence. Huix et al. (2022) train in this way.
        `widebnn.targets` refuses such modules. What this function returned is returned as it is.
    x
        Inputs $(n, ...)$, of which only shape and dtype are used.
    rng_key
        Key of the initial parameters, where the model does not bring its own.
    """
    one_key(rng_key=rng_key)
    match model:
        case nnx.Module():
            taken = _from_nnx(model)
        case nn.Module():
            apply = from_linen(model, x).apply
            weights = jax.jit(lambda key: model.init(key, jnp.zeros(x.shape, x.dtype))["params"])(rng_key)
            taken = _pure(apply, weights)
        case BNN():
            taken = _pure(model, _drawn(rng_key, Static(model.template(x))))
        case Embedding():
            taken = _pure(model.apply, _drawn(rng_key, Static(model.template)))
        case Network():
            taken = model
        case _:
            raise TypeError(
                "model must be a flax.nnx.Module, a flax.linen.Module, a widebnn.BNN or an Embedding; "
                f"got {type(model).__name__}"
            )
    try:
        outputs = jax.eval_shape(taken, taken.weights, x)
    except (TypeError, ValueError) as error:
        raise ValueError(f"x must be inputs of model, which shape {x.shape} does not fit: {error}") from error
    if outputs.ndim != 2 or outputs.shape[0] != x.shape[0]:
        raise ValueError(
            f"model must map inputs of shape {x.shape} to ({x.shape[0]}, d_out); got {outputs.shape}"
        )
    return taken


@jax.jit
def _drawn(rng_key: Key[Array, ""], template: Static) -> Weights:
    return normal_like(rng_key, template.value)


def _pure(apply: Callable[..., Any], weights: Weights) -> Network:
    """The network of a function of weights and inputs alone."""
    return Network(Partial(_apply_pure, as_pytree(apply)), weights, {}, {})


def _apply_pure(apply, weights, point, state, x, training):
    return apply(weights, x), state


def _from_nnx(module: nnx.Module) -> Network:
    graph, *parts = nnx.split(module, _is_point(module), nnx.Param, ...)
    point, weights, state = map(nnx.to_pure_dict, parts)
    return Network(Partial(_apply_nnx, Static(graph)), weights, point, state)


def _apply_nnx(graph: Static, weights, point, state, x, training):
    module = nnx.merge(graph.value, point, weights, state)
    module.train() if training else module.eval()
    outputs = module(x)
    after = nnx.split(module, _is_point(module), nnx.Param, ...)[-1]
    return outputs, nnx.to_pure_dict(after)


def _is_point(module: nnx.Module) -> Callable[[Any, Any], bool]:
    """Whether a variable is a parameter of a BatchNorm."""
    norms = [path for path, part in nnx.iter_modules(module) if isinstance(part, nnx.BatchNorm)]

    def is_point(path, variable):
        return isinstance(variable, nnx.Param) and any(path[: len(norm)] == norm for norm in norms)

    return is_point
