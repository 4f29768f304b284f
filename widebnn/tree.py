"""Algebra of positions, which are pytrees of arrays."""

import itertools
import math
import operator

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PyTree

__all__ = ["Position", "half_square_difference", "inner_product", "normal_like"]

Position = PyTree[Float[Array, "..."]]
"""A point of the space that a chain explores: a pytree of arrays."""


def normal_like(rng_key: Key[Array, ""], position: PyTree) -> Position:
    """Draw $N(0, I)$ in the shapes and dtypes of `position`, whose leaves may be `jax.ShapeDtypeStruct`s."""
    leaves, treedef = jax.tree.flatten(position)
    if not leaves:
        return position
    # One draw for all leaves: XLA compiles every generator of random numbers anew, about a second each.
    *cuts, size = itertools.accumulate(math.prod(leaf.shape) for leaf in leaves)
    normals = jax.random.normal(rng_key, (size,), jnp.result_type(*(leaf.dtype for leaf in leaves)))
    parts = jnp.split(normals, cuts)
    return treedef.unflatten(
        [part.reshape(leaf.shape).astype(leaf.dtype) for part, leaf in zip(parts, leaves, strict=True)]
    )


def inner_product(u: Position, v: Position) -> Float[Array, ""]:
    """$⟨u, v⟩$ over all leaves.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import widebnn as wb
    >>> u = {"kernel": jnp.ones((2, 3)), "bias": jnp.ones(3)}
    >>> float(wb.tree.inner_product(u, u))
    9.0
    """
    return jax.tree.reduce(operator.add, jax.tree.map(lambda a, b: jnp.sum(a * b), u, v))


def half_square_difference(v: Position, u: Position) -> Float[Array, ""]:
    """$½‖v‖² − ½‖u‖²$, formed as $½⟨v − u, v + u⟩$.

    Each square is about as large as the number of parameters, and float32 would lose their difference.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import widebnn as wb
    >>> v, u = {"bias": jnp.array([3.0])}, {"bias": jnp.array([1.0])}
    >>> float(wb.tree.half_square_difference(v, u))
    4.0
    """
    return jax.tree.reduce(operator.add, jax.tree.map(lambda a, b: jnp.sum((a - b) * (a + b)) / 2, v, u))
