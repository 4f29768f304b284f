"""Chains over devices and data over devices: how the arrays of a run are sharded on a mesh."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

__all__ = ["Devices"]

CHAIN, DATA = "chain", "data"


@dataclass(frozen=True)
class Devices:
    """Shardings of the arguments of a program, by which the compiler splits the program itself.

    Parameters
    ----------
    mesh
        With an axis "chain", an axis "data" or both; None for the default device.
    num_chains, num_observations
        What the axes divide; `num_observations` is None for a target without observations.

    Raises
    ------
    TypeError
        If `mesh` is not a `jax.sharding.Mesh`.
    ValueError
        If it has another axis, or one that does not divide the number of chains or of observations.
    """

    mesh: Mesh | None
    num_chains: int
    num_observations: int | None

    def __post_init__(self):
        if self.mesh is None:
            return
        if not isinstance(self.mesh, Mesh):
            raise TypeError(f"mesh must be a jax.sharding.Mesh; got {self.mesh!r}")
        if unknown := set(self.mesh.axis_names) - {CHAIN, DATA}:
            raise ValueError(f'mesh must have axes "chain" and "data" alone; got {sorted(unknown)}')
        for axis, what, size in (
            (CHAIN, "chains", self.num_chains),
            (DATA, "observations", self.num_observations),
        ):
            parts = self.mesh.shape.get(axis, 1)
            if parts > 1 and (size is None or size % parts):
                raise ValueError(
                    f"mesh axis {axis!r} of {parts} devices must divide the number of {what}; got {size}"
                )

    def shard_chains(self, tree: PyTree, axis: int = 0) -> PyTree:
        """Split `axis` of each leaf, which counts the chains."""
        return self._put(tree, *[None] * axis, CHAIN)

    def shard_data(self, tree: PyTree) -> PyTree:
        """Split the arrays that have one row per observation, and replicate the others."""

        def put(leaf):
            is_row = np.shape(leaf)[:1] == (self.num_observations,)
            return self._put(leaf, DATA) if is_row else self._put(leaf)

        return jax.tree.map(lambda leaf: put(leaf) if hasattr(leaf, "dtype") else leaf, tree)

    def replicate(self, tree: PyTree) -> PyTree:
        """Copy all leaves to each device."""
        return self._put(tree)

    def keep_chains(self, tree: PyTree, axis: int = 0) -> PyTree:
        """Within a program: leaves that stay split along `axis`, which counts the chains."""
        return self._keep(tree, *[None] * axis, CHAIN)

    def keep_whole(self, tree: PyTree) -> PyTree:
        """Within a program: leaves of which each device has all."""
        return self._keep(tree)

    def agreed(self, number: int) -> int:
        """The first process's number, where the mesh spans several: all must make the same calls."""
        if self.mesh is None or not self.mesh.is_multi_process:
            return number
        return int(multihost_utils.broadcast_one_to_all(number))

    def _put(self, tree, *axes):
        if self.mesh is None:
            return tree
        return jax.tree.map(lambda leaf: _put(leaf, self._sharding(*axes)), tree)

    def _keep(self, tree, *axes):
        if self.mesh is None:
            return tree
        return jax.tree.map(lambda leaf: jax.lax.with_sharding_constraint(leaf, self._sharding(*axes)), tree)

    def _sharding(self, *axes) -> NamedSharding:
        mesh: Any = self.mesh
        names = mesh.axis_names
        mesh = Mesh(mesh.devices, names, axis_types=(AxisType.Auto,) * len(names))  # the compiler splits
        return NamedSharding(mesh, PartitionSpec(*[axis if axis in names else None for axis in axes]))


def _put(leaf, sharding):
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):  # JAX puts numbers, not keys, on other hosts' devices
        numbers = jax.device_put(jax.random.key_data(leaf), sharding)
        return jax.random.wrap_key_data(numbers, impl=jax.random.key_impl(leaf))
    return jax.device_put(leaf, sharding)
