"""The way from N(0, I) to a posterior."""

from jaxtyping import Array, Float

from widebnn._check import Number
from widebnn.targets._base import Target
from widebnn.tree import Position


class Tempered(Target):
    """A density proportional to exp(−½‖u‖² − βU(u)): the prior stays as it is."""

    inside: Target
    beta: Number

    @property
    def template(self):
        return self.inside.template

    @property
    def num_observations(self) -> int | None:
        return self.inside.num_observations

    def potential(self, position: Position) -> Float[Array, ""]:
        return self.beta * self.inside.potential(position)
