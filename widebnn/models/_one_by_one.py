"""What a user's features do at a draw of their prior: rows must not see each other, and be of order one."""

import warnings
from pathlib import Path
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from widebnn.models.bnn import BNN
from widebnn.models.cnn import CNN
from widebnn.models.embedding import Embedding, FeaturesError
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
    """Compare the features of two inputs in one batch with those of each alone.

    Networks of this package pass, those whose parameters belong to given inputs too, and nothing is compared
    where something is being traced.

    Warns
    -----
    UserWarning
        If features are large at a draw of the prior.
    """
    leaves, structure = jax.tree.flatten(x)
    if (
        any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
        or type(bnn.features.module) in KNOWN
        or bnn.features.num_rows is not None
    ):
        return
    leaves = [np.asarray(leaf) for leaf in leaves]
    differs = sum((leaf != leaf[:1]).reshape(len(leaf), -1).any(axis=1) for leaf in leaves)
    pair = structure.unflatten([leaf[np.array([0, np.argmax(differs)])] for leaf in leaves])

    found = _features(bnn.features, jax.random.key(0), pair)
    if isinstance(found[0], jax.core.Tracer):
        return
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
