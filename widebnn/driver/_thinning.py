"""Positions of a run of unknown length, evenly spaced and in bounded memory.

Every draw is kept until all places are taken. Then every other one is dropped, and from there on every other
draw is kept, and so on.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree


class Thinned(NamedTuple):
    """At least half of the places are taken once that many draws are made."""

    positions: PyTree  # leaves (place, chain, ...)
    num: Int[Array, ""]  # of draws so far
    spacing: Int[Array, ""]  # draws from one that is kept to the next


def start(position: PyTree, num_places: int) -> Thinned:
    """No draws yet, of positions with leaves (chain, ...); `num_places` is even."""
    positions = jax.tree.map(lambda leaf: jnp.zeros((num_places, *leaf.shape), leaf.dtype), position)
    return Thinned(positions, jnp.int32(0), jnp.int32(1))


def put(thinned: Thinned, position: PyTree) -> Thinned:
    """The same after one more draw."""
    num_places = len(jax.tree.leaves(thinned.positions)[0])

    def halved(thinned):
        positions = jax.tree.map(lambda x: x.at[: num_places // 2].set(x[::2]), thinned.positions)
        return Thinned(positions, thinned.num, 2 * thinned.spacing)

    def kept(thinned):
        place = thinned.num // thinned.spacing
        positions = jax.tree.map(lambda x, new: x.at[place].set(new), thinned.positions, position)
        return thinned._replace(positions=positions)

    is_full = thinned.num == num_places * thinned.spacing
    thinned = jax.lax.cond(is_full, halved, lambda thinned: thinned, thinned)
    is_due = thinned.num % thinned.spacing == 0
    thinned = jax.lax.cond(is_due, kept, lambda thinned: thinned, thinned)
    return thinned._replace(num=thinned.num + 1)


def on_host(thinned: Thinned) -> PyTree:
    """The positions that are kept, leaves (chain, kept, ...) of NumPy."""
    num_kept = -(-int(thinned.num) // int(thinned.spacing))
    return jax.tree.map(lambda x: np.moveaxis(x[:num_kept], 0, 1), jax.device_get(thinned.positions))
