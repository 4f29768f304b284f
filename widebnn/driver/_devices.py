"""Chains over devices and data over devices: how the arrays of a run are sharded on a mesh."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

from widebnn.targets._base import Target

CHAIN, DATA = "chain", "data"
MAX_SIDE_BY_SIDE = 2**9
"""Numbers of a position up to which chains or particles go side by side on a CPU."""


@dataclass(frozen=True)
class Devices:
    """Shardings of the arguments of a program, by which the compiler splits the program itself."""

    mesh: Mesh | None  # with an axis "chain", an axis "data" or both; None for the default device
    num_chains: int
    num_observations: int | None  # None for a target without observations
    in_turn: bool = False  # chains one after another, not side by side

    @classmethod
    def of(cls, target: Target, mesh: Mesh | None, num_chains: int) -> "Devices":
        """On a CPU, products are fastest one after another, unless they are tiny.

        Gradients of four chains of 64 units at 5,000 rows take 19 ms so, and 27 side by side; of 128 units 44
        and 131.
        """
        size = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(target.template))
        on_cpu = mesh is None and jax.default_backend() == "cpu"
        return cls(mesh, num_chains, target.num_observations, on_cpu and size > MAX_SIDE_BY_SIDE)

    def over(self, function: Callable[[Any], Any], inputs: Any) -> Any:
        """The function at each chain or particle."""
        return jax.lax.map(function, inputs) if self.in_turn else jax.vmap(function)(inputs)

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

    def put(self, tree: PyTree, *axes: str | None) -> PyTree:
        """Split the first axes of each leaf along these axes of the mesh; devices have all of the others."""
        if self.mesh is None:
            return tree
        return jax.device_put(tree, self._sharding(*axes))

    def hold(self, tree: PyTree, *axes: str | None) -> PyTree:
        """The same within a program: leaves that stay split in this way."""
        if self.mesh is None:
            return tree
        return jax.tree.map(lambda leaf: jax.lax.with_sharding_constraint(leaf, self._sharding(*axes)), tree)

    def shard_data(self, tree: PyTree) -> PyTree:
        """Split the arrays that have one row per observation, and replicate the others."""

        def put(leaf):
            is_row = np.shape(leaf)[:1] == (self.num_observations,)
            return self.put(leaf, DATA) if is_row else self.put(leaf)

        return jax.tree.map(lambda leaf: put(leaf) if hasattr(leaf, "dtype") else leaf, tree)

    def _sharding(self, *axes) -> NamedSharding:
        mesh: Any = self.mesh
        names = mesh.axis_names
        mesh = Mesh(mesh.devices, names, axis_types=(AxisType.Auto,) * len(names))  # the compiler splits
        return NamedSharding(mesh, PartitionSpec(*[axis if axis in names else None for axis in axes]))


def free_bytes() -> float:
    """Memory that is left on the default device, or for the process; infinite where nobody can tell."""
    stats = jax.local_devices()[0].memory_stats() or {}
    if "bytes_limit" in stats:
        return stats["bytes_limit"] - stats["bytes_in_use"]
    table = Path("/proc/meminfo")
    lines = table.read_text().splitlines() if table.exists() else []
    return next(
        (1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable")), math.inf
    )
