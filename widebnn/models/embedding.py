"""A user's module as what the core wants: a pure function of a pytree of N(0, 1) parameters."""

from collections.abc import Callable
from typing import Any, NamedTuple

import flax.linen as nn
import jax
from flax import nnx
from jaxtyping import Array, Float, PyTree

from widebnn._arrays import Inputs

__all__ = ["Embedding", "from_linen", "from_nnx"]

Inner = PyTree[Float[Array, "..."]]


class Embedding(NamedTuple):
    """The layers below the readout.

    Attributes
    ----------
    apply
        (inner parameters, x of shape (n, ...)) ↦ h^L of shape (n, d_L).
    template
        Shapes and dtypes of the inner parameters, a pytree of `jax.ShapeDtypeStruct`.
    module
        The NNX module it was split from, with shapes in place of its parameters: `widebnn.nngp` reads the
        architecture off it. None where there is none.
    """

    apply: Callable[[Inner, Inputs], Float[Array, "n d_L"]]
    template: PyTree[jax.ShapeDtypeStruct]
    module: nnx.Module | None = None


def from_nnx(module: nnx.Module) -> Embedding:
    """Split an NNX module once into its graph and its parameters.

    Every `nnx.Param` of the module gets the prior N(0, 1), whatever the module's own initialiser is:
    scale inside the layers, as `Dense` does.

    Raises
    ------
    TypeError
        If `module` is no `nnx.Module`.
    ValueError
        If it holds BatchNorm, Dropout or any state beside parameters: its outputs would then not be a
        function of one input and the parameters, and there would be no likelihood.
    """
    if not isinstance(module, nnx.Module):
        raise TypeError(f"features must be a flax.nnx.Module or an Embedding; got {type(module).__name__}")
    for path, part in nnx.iter_modules(module):
        if isinstance(part, nnx.BatchNorm | nnx.Dropout):
            _refuse(type(part).__name__, path)
    graph, params, rest = nnx.split(module, nnx.Param, ...)
    for path, variable in nnx.to_flat_state(rest):
        # an array that stands in no variable, such as a scale, is a constant
        if isinstance(variable, nnx.Variable) and not isinstance(variable, nnx.RngState):
            _refuse(type(variable).__name__, path)
    return Embedding(
        apply=lambda inner, x: nnx.merge(graph, inner, rest)(x),
        template=(template := jax.tree.map(_shape, nnx.to_pure_dict(params))),
        module=nnx.merge(graph, template, rest),
    )


def from_linen(module: nn.Module, x: Inputs) -> Embedding:
    """Wrap a Linen module, whose parameters get the prior N(0, 1).

    Parameters
    ----------
    module
        Maps (n, ...) to (n, d_L).
    x
        Inputs, of which only the shape and dtype are used.

    Raises
    ------
    TypeError
        If `module` is no `flax.linen.Module`.
    ValueError
        If it holds BatchNorm, Dropout or any collection beside "params".
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"module must be a flax.linen.Module; got {type(module).__name__}")

    def watch(call, args, kwargs, context):
        if isinstance(context.module, nn.BatchNorm | nn.Dropout):
            _refuse(type(context.module).__name__, context.module.path)
        return call(*args, **kwargs)

    with nn.intercept_methods(watch):
        variables = jax.eval_shape(module.init, jax.random.key(0), x)
    for collection in set(variables) - {"params"}:
        _refuse("collection", (collection,))

    def apply(inner: Inner, x: Inputs) -> Any:
        return module.apply({"params": inner}, x)

    return Embedding(
        apply=apply,
        template=jax.tree.map(_shape, variables["params"]),
    )


def _shape(leaf) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)


def _refuse(kind: str, path: tuple) -> None:
    name = "/".join(map(str, path)) or "the module itself"
    raise ValueError(
        f"features must be a function of one input and its parameters; {kind} at {name} makes the output "
        "depend on the batch, on chance or on other state, and the posterior would not be defined"
    )
