"""What the target of a saved run is recognised by: its arrays, and its potential at a position of the run."""

from collections.abc import Set
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from widebnn.targets._base import Target

OF_ARRAYS, OF_POTENTIALS = 1e-5, 1e-3
"""Relative differences up to which two are the same: other processors round differently."""


def fingerprint(target: Target, position: PyTree) -> dict[str, Any]:
    """A dict of shape, norm and projection of each array of a target, and $U$ at the position.

    The projection is on one fixed direction, so that a permutation changes it. The potential tells what is no
    array, such as the activation.
    """
    arrays = {
        jax.tree_util.keystr(path).lstrip("."): _of_array(leaf)
        for path, leaf in jax.tree.leaves_with_path(target)
    }
    return {"arrays": arrays, "potential": float(_potential(target, position))}


def names(target: Target) -> Set[str]:
    """Of the arrays of a target."""
    return {jax.tree_util.keystr(path).lstrip(".") for path, _ in jax.tree.leaves_with_path(target)}


def difference(saved: dict[str, Any], found: dict[str, Any]) -> str:
    """In words, what differs between two fingerprints; empty where they are of one target."""
    old, new = saved["arrays"], found["arrays"]
    if other := sorted(old.keys() ^ new.keys()):
        return f"{other[0]} is {'missing' if other[0] in old else 'new'}"
    for name, (shape, norm, projection) in old.items():
        new_shape, new_norm, new_projection = new[name]
        if new_shape != shape:
            return f"{name} has shape {tuple(new_shape)}, and had {tuple(shape)}"
        if abs(new_norm - norm) > OF_ARRAYS * norm or abs(new_projection - projection) > OF_ARRAYS * norm:
            numbers = "" if shape else f": {new_projection:g}, and was {projection:g}"
            return f"{name} has other values{numbers}"
    old, new = saved["potential"], found["potential"]
    if not np.isclose(old, new, rtol=OF_POTENTIALS, atol=OF_POTENTIALS, equal_nan=True):
        return f"its potential at the last position of the first chain is {new:g}, and was {old:g}"
    return ""


@jax.jit
def _potential(target: Target, position: PyTree) -> Float[Array, ""]:
    return target.potential(position)


def _of_array(leaf: Any) -> tuple[list[int], float, float]:
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    array = np.asarray(leaf)
    if not array.ndim:
        return [], abs(float(array)), float(array)
    rows = np.asarray(array, array.dtype if array.dtype.kind == "f" else float).reshape(len(array), -1)
    across = np.sin(1.0 + np.arange(rows.shape[1]))
    projection = np.sin(1.0 + np.arange(len(rows))) @ (rows @ across.astype(rows.dtype)).astype(float)
    return list(array.shape), float(np.linalg.norm(rows)), float(projection)
