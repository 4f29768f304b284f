"""What a chain carries beside its position: values that its next step needs and its last step computed."""

from typing import NamedTuple

from jaxtyping import Array, Float

from widebnn.tree import Position


class PositionState(NamedTuple):
    """A position, from which every step computes what it needs."""

    position: Position


class PotentialState(NamedTuple):
    """A position $u$ and $U(u)$."""

    position: Position
    potential: Float[Array, ""]


class GradientState(NamedTuple):
    """A position $u$, $U(u)$ and $∇U(u)$."""

    position: Position
    potential: Float[Array, ""]
    gradient: Position


class MomentumState(NamedTuple):
    """A position $u$, $U(u)$, $∇U(u)$ and a momentum."""

    position: Position
    potential: Float[Array, ""]
    gradient: Position
    momentum: Position
