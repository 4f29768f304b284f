"""The way from N(0, I) to a posterior, and coordinates in which it starts closer to its end."""

from typing import Any

import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from widebnn._check import Number
from widebnn.samplers._preconditioned import Gaussian
from widebnn.targets._base import Target
from widebnn.targets._scaled import Scaled, ScaledPosition
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


class Referenced(Target):
    """The posterior of weights and scales in coordinates v of the scales, u = m + Lv.

    N(0, I) in v is N(m, LLᵀ) in u. With the ratio of densities and the Jacobian in the potential,
    U(φ, u) + ½‖u‖² − ½‖v‖² − log det L, posterior and evidence are the same whatever m and L are.
    """

    inside: Scaled
    reference: Gaussian

    @property
    def template(self):
        return self.inside.template

    @property
    def num_observations(self) -> int | None:
        return self.inside.num_observations

    def prepared(self, x: Any) -> Any:
        return self.inside.prepared(x)

    @property
    def priors(self) -> Any:
        """Of the scales."""
        return self.inside.priors

    def scales(self, position: ScaledPosition) -> Any:
        """As of `inside`."""
        return self.inside.scales(self.back(position))

    def given_scales(self, position: ScaledPosition) -> Any:
        """As of `inside`."""
        return self.inside.given_scales(self.back(position))

    def back(self, position: ScaledPosition) -> ScaledPosition:
        """The position of `inside`."""
        return position._replace(**self.reference.at(self._coordinates(position)))

    def potential(self, position: ScaledPosition) -> Float[Array, ""]:
        v, there = self._coordinates(position), self.back(position)
        u = self._coordinates(there)
        log_det = jnp.sum(jnp.log(jnp.diag(self.reference.factor)))
        return self.inside.potential(there) + (u @ u - v @ v) / 2 - log_det

    def _coordinates(self, position: ScaledPosition) -> Float[Array, " k"]:
        return ravel_pytree({name: getattr(position, name) for name in self.reference.mean})[0]
