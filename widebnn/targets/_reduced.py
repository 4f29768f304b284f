"""What `rotated` and `whitened` share: the same posterior on what the data see of the layers."""

from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Array, Float

from widebnn.models.embedding import Inner
from widebnn.targets._network import NetworkTarget
from widebnn.targets._units import Units
from widebnn.tree import Position


class IrreducibleError(ValueError):
    """The network, or its data, are none whose layers can be reduced to what the data see of them."""


@dataclass(frozen=True, eq=False, repr=False)
class Reduced(NetworkTarget):
    """A target on the position of `base`, whose network is that of the observed inputs alone."""

    base: NetworkTarget = field(kw_only=True)

    @property
    def template(self) -> Any:
        return self.base.template

    def potential(self, position: Position) -> Float[Array, ""]:
        return self.base.potential(position)

    def log_normaliser(self) -> Float[Array, ""]:
        return self.base.log_normaliser()

    def inner(self, position: Position) -> Inner:
        """The inner parameters as `base` has them, which go with the observed inputs."""
        return self.base.inner(position)

    def readout(self, position: Position, rng_key=None) -> Float[Array, "p d_out"]:
        return self.base.readout(position, rng_key)

    @property
    def units(self) -> Units:
        """The units of `base`, where it has them."""
        return self.base.units  # pyright: ignore[reportAttributeAccessIssue]
