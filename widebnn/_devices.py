"""Chains over devices and data over devices: where the arrays of a run lie on a mesh."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

__all__ = ["Devices"]

CHAIN, DATA = "chain", "data"


@dataclass(frozen=True)
class Devices:
    """The compiler splits a program as its arguments are split: nothing else in the package knows of devices.

    Parameters
    ----------
    mesh
        With an axis "chain", an axis "data" or both; None for the default device.
    num_chains, num_rows
        What the axes divide; `num_rows` is None for a target without observations.

    Raises
    ------
    TypeError
        If `mesh` is no `jax.sharding.Mesh`.
    ValueError
        If it has another axis, or one that does not divide what lies along it.
    """

    mesh: Mesh | None
    num_chains: int
    num_rows: int | None

    def __post_init__(self):
        if self.mesh is None:
            return
        if not isinstance(self.mesh, Mesh):
            raise TypeError(f"mesh must be a jax.sharding.Mesh; got {self.mesh!r}")
        if unknown := set(self.mesh.axis_names) - {CHAIN, DATA}:
            raise ValueError(f'mesh must have axes "chain" and "data" alone; got {sorted(unknown)}')
        for axis, what, size in ((CHAIN, "chains", self.num_chains), (DATA, "observations", self.num_rows)):
            parts = self.mesh.shape.get(axis, 1)
            if parts > 1 and (size is None or size % parts):
                raise ValueError(
                    f"mesh axis {axis!r} of {parts} devices must divide the number of {what}; got {size}"
                )

    def over_chains(self, tree: PyTree, axis: int = 0) -> PyTree:
        """Leaves whose `axis` counts the chains."""
        return self._put(tree, *[None] * axis, CHAIN)

    def over_data(self, constants: list[Any]) -> list[Any]:
        """Arrays of a program: those with a row an observation are split, the others lie everywhere."""
        return [
            self._put(x, DATA) if x.shape[:1] == (self.num_rows,) else self.everywhere(x) for x in constants
        ]

    def everywhere(self, tree: PyTree) -> PyTree:
        """A copy of all leaves on each device."""
        return self._put(tree)

    def shardings(self, tree: PyTree) -> PyTree:
        """Where the leaves lie; None where there is no mesh, and the compiler may choose."""
        return None if self.mesh is None else jax.tree.map(lambda leaf: leaf.sharding, tree)

    def agreed(self, number: int) -> int:
        """The first process's number, where the mesh spans several: all must make the same calls."""
        if self.mesh is None or not self.mesh.is_multi_process:
            return number
        return int(multihost_utils.broadcast_one_to_all(number))

    def _put(self, tree, *axes):
        if self.mesh is None:
            return tree
        names = self.mesh.axis_names
        mesh = Mesh(self.mesh.devices, names, axis_types=(AxisType.Auto,) * len(names))  # the compiler splits
        split = PartitionSpec(*[axis if axis in names else None for axis in axes])
        return jax.tree.map(lambda leaf: _put(leaf, NamedSharding(mesh, split)), tree)


def _put(leaf, sharding):
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):  # JAX puts numbers, not keys, on other hosts' devices
        numbers = jax.device_put(jax.random.key_data(leaf), sharding)
        return jax.random.wrap_key_data(numbers, impl=jax.random.key_impl(leaf))
    return jax.device_put(leaf, sharding)
