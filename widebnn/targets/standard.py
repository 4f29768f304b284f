"""The posterior of θ as it stands: the potential is minus the log likelihood."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from widebnn._arrays import Inputs, Observations
from widebnn.models import BNN, Parameters
from widebnn.targets.network import NetworkTarget

__all__ = ["standard"]


class Standard(NetworkTarget):
    """θ itself; U(θ) = ‖y − f_θ(x)‖² / (2σ²)."""

    @property
    def template(self):
        return self.bnn.template(self.x)

    def potential(self, position: Parameters) -> Float[Array, ""]:
        return jnp.sum((self.y - self.bnn(position, self.x)) ** 2) / (2 * self.bnn.noise_std**2)

    def inner(self, position: Parameters):
        return position.inner

    def readout(self, position: Parameters, rng_key=None):
        return position.readout

    def from_parameters(self, parameters: Parameters) -> Parameters:
        return parameters


def standard(bnn: BNN, x: Inputs, y: Observations, space: str = "auto") -> Standard:
    """The posterior of a Bayesian neural network over θ, all weights as they are.

    Parameters
    ----------
    bnn
        The network.
    x, y
        Inputs (n, ...) and observations (n, d_out).
    space
        Where predictions factorise the readout's posterior: "data", "feature" or "auto".

    Raises
    ------
    TypeError, ValueError
        If x or y is empty, not finite or of the wrong shape.
    """
    return Standard(bnn, jnp.asarray(x), jnp.asarray(y), space)
