"""The posterior of θ as it stands: the potential is minus the log likelihood, its normaliser left out."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from widebnn._arrays import Inputs, Observations, Tabular
from widebnn._compile import jitted
from widebnn.models import BNN, Parameters
from widebnn.targets._blocks import Rows, misfits
from widebnn.targets._network import NetworkTarget, checked


class Standard(NetworkTarget):
    """θ itself; U(θ) = ‖y − f_θ(x)‖² / (2σ²), minus the log likelihood without `log_normaliser`."""

    @jitted
    def potential(self, position: Parameters) -> Float[Array, ""]:
        if self.block_size is None:
            psi, y, noise = self.divided(self.embedding(position))
            return jnp.sum(misfits(psi, y, position.readout) / noise) / 2
        rows = Rows(self.x, self.y, self.block_size)
        at = self.bnn, position.inner
        squares = rows.sum(lambda rows: misfits(*rows(*at), position.readout))
        return jnp.sum(squares / jnp.asarray(self.bnn.noise_std, squares.dtype) ** 2) / 2

    def from_parameters(self, parameters: Parameters) -> Parameters:
        return parameters


def standard(
    bnn: BNN,
    x: Inputs | Tabular,
    y: Observations | Tabular,
    space: str = "auto",
    block_size: int | None = None,
) -> Standard:
    """The posterior of a Bayesian neural network over $θ$, its weights as they are, a `NetworkTarget`.

    Parameters
    ----------
    bnn, x, y
        As in `NetworkTarget`.
    space
        As in `NetworkTarget`; the readout's posterior is factorised for predictions only.
    block_size
        As in `NetworkTarget`; the potential takes blocks of observations whatever `space` is.
    """
    return Standard(*checked(bnn, x, y, space, block_size))
