"""What a user's features do at a draw of their prior: rows must not see each other, and be of order one."""

import warnings
from pathlib import Path
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from flax import nnx
from flax.traverse_util import flatten_dict
from jaxtyping import Array, Key

from widebnn.models.bnn import BNN
from widebnn.models.cnn import CNN
from widebnn.models.embedding import Embedding, FeaturesError, refuse
from widebnn.models.fcn import FCN
from widebnn.models.wide_resnet import WideResNet20
from widebnn.tree import normal_like

__all__ = ["check_features"]

TOLERANCE = 1e-3
"""Of the largest feature: rounding may depend on the number of rows."""
MAX_MEAN_SQUARE = 30
"""Features in NTK parametrisation have 1 to 3, at inputs of order one."""
KNOWN = CNN, FCN, WideResNet20


def check_features(bnn: BNN, x: Any) -> None:
    """Compare the features of two inputs in one batch with those of each alone, and state with what it was.

    Networks of this package pass, those whose parameters belong to given inputs too, and nothing is compared
    where something is being traced.

    Warns
    -----
    UserWarning
        If features are large at a draw of the prior.
    """
    module = bnn.features.module
    leaves, structure = jax.tree.flatten(x)
    if (
        any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
        or type(module) in KNOWN
        or bnn.features.num_rows is not None
    ):
        return
    leaves = [np.asarray(leaf) for leaf in leaves]
    differs = sum((leaf != leaf[:1]).reshape(len(leaf), -1).any(axis=1) for leaf in leaves)
    pair = structure.unflatten([leaf[np.array([0, np.argmax(differs)])] for leaf in leaves])

    rng_key = jax.random.key(0)
    found = _features(bnn.features, rng_key, pair)
    if isinstance(found[0], jax.core.Tracer):
        return
    if module is not None:
        _check_state(module, rng_key, pair)
    together, alone = map(np.asarray, found)
    largest = np.abs(together).max()
    if np.isfinite(largest) and np.abs(together - alone).max() > TOLERANCE * largest:
        raise FeaturesError(
            "features must be a function of one input and its parameters; those of an input change with the "
            "others of its batch, as x - x.mean(axis=0) does, and the posterior would not be defined"
        )
    if (square := float(np.mean(together**2))) > MAX_MEAN_SQUARE:
        warnings.warn(
            f"features have the mean square {square:,.0f} at a draw of their prior N(0, 1), and not one of "
            "order 1: divide by the root of the number of inputs in each layer, as widebnn.models.Dense does "
            "and nnx.Linear does not, and standardise x",
            stacklevel=1,
            skip_file_prefixes=(str(Path(__file__).parents[1]),),
        )


@jax.jit
def _features(features: Embedding, rng_key: Key[Array, ""], pair: Any) -> tuple[Array, Array]:
    """Those of two inputs together, and of each alone, at a draw from the prior."""
    inner, apply = normal_like(rng_key, features.template), features.apply
    alone = [apply(inner, jax.tree.map(lambda leaf, i=i: leaf[i : i + 1], pair)) for i in (0, 1)]
    return apply(inner, pair), jnp.concatenate(alone)


def _check_state(module: nnx.Module, rng_key: Key[Array, ""], x: Any) -> None:
    """Compare the variables that are not parameters before a call and after it."""
    graph, params, rest = nnx.split(module, nnx.Param, ...)
    template = nnx.to_pure_dict(params)
    kinds = {path: type(variable) for path, variable in nnx.to_flat_state(rest)}
    if not any(issubclass(kind, nnx.Variable) for kind in kinds.values()):
        return

    def values(module):
        flat = flatten_dict(nnx.to_pure_dict(nnx.state(module)))
        return [_as_numbers(flat[path]) for path in kinds]

    @jax.jit
    def before_and_after(rng_key, x):
        inner = normal_like(rng_key, template)
        module = nnx.merge(graph, inner, nnx.to_pure_dict(rest))
        before = values(module)
        module(x)
        return before, values(module)

    for (path, kind), before, after in zip(kinds.items(), *before_and_after(rng_key, x), strict=True):
        if np.array_equal(before, after):
            continue
        if issubclass(kind, nnx.RngState):
            refuse("a generator of random numbers", path, "makes the output depend on chance")
        refuse(f"the {kind.__name__}", path, "is changed by a call")


def _as_numbers(value: Any) -> Array:
    is_key = isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(value) if is_key else jnp.asarray(value)
