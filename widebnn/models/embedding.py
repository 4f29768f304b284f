"""A user's module as what the core wants: a pure function of a pytree of N(0, 1) parameters."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import flax.errors
import flax.linen as nn
import jax
import jax.core
import jax.numpy as jnp
from flax import nnx
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from widebnn._check import brief
from widebnn._pytree import STATIC, Static, as_pytree, pytree

__all__ = ["Embedding", "FeaturesError", "from_function", "from_linen", "from_nnx"]

Inner = PyTree[Float[Array, "..."]]


@pytree
@dataclass(frozen=True, eq=False, repr=False)
class Embedding:
    """The layers below the readout.

    Attributes
    ----------
    apply
        From inner parameters and $x$ of shape $(n, ...)$ to $h^L$ of shape $(n, d_L)$. Of a
        `jax.tree_util.Partial` the arguments are arrays that programs take; any other function is known
        by itself alone.
    template
        Shapes and dtypes of the inner parameters, a pytree of `jax.ShapeDtypeStruct`.
    num_rows
        The number of inputs to which its parameters belong, as in `widebnn.targets.whitened`; None for a
        network of any inputs.
    """

    apply: Callable[[Inner, Any], Float[Array, "n d_L"]]
    template: PyTree[jax.ShapeDtypeStruct] = field(metadata=STATIC)
    num_rows: int | None = field(metadata=STATIC, default=None)

    def __post_init__(self):
        if not callable(self.apply):
            raise TypeError(f"apply must be a function of inner parameters and inputs; got {self.apply!r}")
        object.__setattr__(self, "apply", as_pytree(self.apply))

    @property
    def module(self) -> nnx.Module | None:
        """The NNX module it was split from, with shapes in place of its parameters; None for any other.

        `widebnn.nngp` reads the architecture from it.
        """
        return None if self.graph is None else self.merged(self.template)

    @property
    def graph(self) -> nnx.GraphDef | None:
        """The graph of that module."""
        apply: Any = self.apply
        return apply.args[0].value if getattr(apply, "func", None) is _apply_nnx else None

    def merged(self, inner: PyTree) -> Any:
        """The module with these parameters."""
        apply: Any = self.apply
        return nnx.merge(apply.args[0].value, inner, apply.args[1])


class FeaturesError(ValueError):
    """Features are not a function of one input and the parameters: the posterior would not be defined."""


def from_function(apply: Callable[[Inner, Any], Float[Array, "n d_L"]], parameters: Inner) -> Embedding:
    """A function of parameters and inputs, of whatever library, as an embedding.

    Every entry of the parameters gets the prior $N(0, 1)$. A network of Equinox, which takes one input at a
    time, is split into its arrays and the rest::

        import equinox as eqx

        params, static = eqx.partition(network, eqx.is_inexact_array)

        def apply(params, x):
            return jax.vmap(eqx.combine(params, static))(x)

        features = wb.models.from_function(apply, params)

    Parameters
    ----------
    apply
        From parameters and $x$ to $h^L$ of shape $(n, d_L)$, each row from one input. $x$ is an array
        $(n, ...)$ in floating point, or a dict or another pytree of arrays with $n$ rows each, such as graphs
        or tokens; there integers stay integers.
    parameters
        A pytree of floating-point arrays, or of `jax.ShapeDtypeStruct`; only shapes and dtypes are used.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> import widebnn as wb
    >>> apply = lambda w, x: jax.nn.tanh(x @ w)
    >>> features = wb.models.from_function(apply, jnp.zeros((2, 16)))
    >>> bnn = wb.BNN(features, out_features=1, noise_std=0.1)

    Another prior is a map of $N(0, 1)$ inside the network, such as Laplace's distribution:

    >>> def laplace(w):
    ...     return -jnp.sign(w) * (jnp.log(2) + jax.scipy.stats.norm.logsf(jnp.abs(w)))
    >>> sparse = wb.models.from_function(lambda w, x: jnp.tanh(x @ laplace(w)), jnp.zeros((2, 16)))
    >>> upper_quartile = laplace(jax.scipy.stats.norm.ppf(0.75))
    >>> bool(jnp.isclose(upper_quartile, jnp.log(2)))
    True

    A network of tokens, which attend to one another:

    >>> def of_tokens(w, x):
    ...     h = w["embedding"][x["tokens"]]
    ...     query, key, value = (h @ w[name] / 8 for name in ("query", "key", "value"))
    ...     attention = jax.nn.softmax(query @ key.mT / 8)
    ...     return jax.nn.gelu(h + attention @ value).mean(axis=1)
    >>> square = jnp.zeros((64, 64))
    >>> w = {"embedding": jnp.zeros((20, 64)), "query": square, "key": square, "value": square}
    >>> rng = np.random.default_rng(0)
    >>> x = {"tokens": rng.integers(20, size=(9, 6))}
    >>> bnn = wb.BNN(wb.models.from_function(of_tokens, w), 2, noise_std=0.1)
    >>> target = wb.targets.categorical(bnn, x, rng.integers(2, size=9))
    """
    if not callable(apply):
        raise TypeError(f"apply must be a function of parameters and inputs; got {brief(apply)}")
    for path, leaf in jax.tree.leaves_with_path(parameters):
        if not hasattr(leaf, "dtype") or not jnp.issubdtype(leaf.dtype, jnp.floating):
            name = jax.tree_util.keystr(path, simple=True, separator="/")
            raise TypeError(f"parameters must be floating-point arrays; {name} is {brief(leaf)}")
    return Embedding(apply, jax.tree.map(_shape, parameters))


def from_nnx(module: nnx.Module) -> Embedding:
    """Split an NNX module once into its graph and its parameters.

    Every `nnx.Param` of the module gets the prior $N(0, 1)$, whatever the module's own initialiser is: scale
    inside the layers, as `Dense` does. All other arrays and variables are constants.

    Parameters
    ----------
    module
        Maps $(n, ...)$ to $(n, d_L)$.

    Raises
    ------
    TypeError
        If `module` is not an `nnx.Module`.
    ValueError
        If it holds BatchNorm or Dropout: its outputs would not be a function of one input and the parameters,
        and there would be no likelihood. Targets also refuse a module in which inputs of a batch meet, or
        draw noise of their own. If an attribute is traced and no data of the module.

    Examples
    --------
    >>> from flax import nnx
    >>> import widebnn as wb
    >>> embedding = wb.models.from_nnx(wb.models.FCN(2, 16, rngs=nnx.Rngs(0)))
    """
    if isinstance(module, nn.Module):
        raise TypeError(
            "features must be a flax.nnx.Module or an Embedding; wrap the Linen module "
            f"{type(module).__name__} by models.from_linen(module, x)"
        )
    if not isinstance(module, nnx.Module):
        got = module.__name__ if isinstance(module, type) else type(module).__name__
        raise TypeError(
            f"features must be a flax.nnx.Module or an Embedding; got {got}. models.from_function takes "
            "functions"
        )
    for path, part in nnx.iter_modules(module):
        if isinstance(part, nnx.BatchNorm | nnx.Dropout):
            _refuse(type(part).__name__, path, _REASONS[type(part).__name__])
    graph, params, rest = nnx.split(module, nnx.Param, ...)
    for name, held in graph.attributes:
        if isinstance(getattr(held, "value", None), jax.core.Tracer):
            raise ValueError(
                f"features must hold traced numbers as data; got the attribute {name}, which is part of the "
                f"module's structure: write self.{name} = nnx.data({name})"
            )
    template = jax.tree.map(_shape, nnx.to_pure_dict(params))
    return Embedding(Partial(_apply_nnx, Static(graph), nnx.to_pure_dict(rest)), template)


def _apply_nnx(graph: Static, constants: PyTree, inner: Inner, x: Any) -> Any:
    return nnx.merge(graph.value, inner, constants)(x)


def from_linen(module: nn.Module, x: Any) -> Embedding:
    """Wrap a Linen module, whose parameters get the prior $N(0, 1)$.

    Parameters
    ----------
    module
        Maps $(n, ...)$ to $(n, d_L)$.
    x
        Inputs, of which only the shape and dtype are used.

    Raises
    ------
    ValueError
        If it has any collection but "params", as BatchNorm has. Targets also refuse a module that draws noise
        of its own, as Dropout does.
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"module must be a flax.linen.Module; got {type(module).__name__}")

    variables = jax.eval_shape(module.init, jax.random.key(0), x)
    for collection in set(variables) - {"params"}:
        _refuse(
            "the collection",
            (collection,),
            "is state beside the parameters, as that of BatchNorm is (let constants be attributes)",
        )
    parameters = variables.get("params", {})
    return Embedding(Partial(_apply_linen, Static(module)), jax.tree.map(_shape, parameters))


def _apply_linen(module: Static, inner: Inner, x: Any) -> Any:
    try:
        return module.value.apply({"params": inner}, x)
    except flax.errors.InvalidRngError as error:
        raise FeaturesError(
            "features must be a function of one input and its parameters; these draw noise of their own: "
            f"{error}"
        ) from error


def _shape(leaf) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)


_REASONS = {"BatchNorm": "makes an output depend on the whole batch", "Dropout": "makes it depend on chance"}


def _refuse(what: str, path: tuple, reason: str) -> NoReturn:
    """Say what makes features no function of one input."""
    name = "/".join(map(str, path)) or "the module itself"
    raise FeaturesError(
        f"features must be a function of one input and its parameters; {what} at {name} {reason}, and the "
        "posterior would not be defined"
    )
