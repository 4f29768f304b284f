"""The posterior of θ as it stands: the potential is minus the log likelihood."""

from jaxtyping import Array, Float

from widebnn._arrays import Inputs, Observations, floating
from widebnn.models import BNN, Parameters
from widebnn.targets._blocks import Rows, misfit, sum_over_blocks
from widebnn.targets._network import NetworkTarget

__all__ = ["standard"]


class Standard(NetworkTarget):
    """θ itself; U(θ) = ‖y − f_θ(x)‖² / (2σ²)."""

    @property
    def template(self):
        return self.bnn.template(self.x)

    def potential(self, position: Parameters) -> Float[Array, ""]:
        if self.block_size is None:
            square = misfit(self.embedding(position), self.y, position.readout)
        else:
            rows = Rows(self.x, self.y, self.block_size)
            square = sum_over_blocks(misfit, self.bnn.embedding, position.inner, position.readout, rows)
        return square / (2 * self.bnn.noise_std**2)

    def inner(self, position: Parameters):
        return position.inner

    def readout(self, position: Parameters, rng_key=None):
        return position.readout

    def from_parameters(self, parameters: Parameters) -> Parameters:
        return parameters


def standard(
    bnn: BNN, x: Inputs, y: Observations, space: str = "auto", block_size: int | None = None
) -> Standard:
    """The posterior of a Bayesian neural network over θ, all weights as they are.

    Parameters
    ----------
    bnn
        The network.
    x, y
        Inputs (n, ...) and observations (n, d_out).
    space
        Where predictions factorise the readout's posterior: "data", "feature" or "auto".
    block_size
        Observations that go through the network at a time, in the potential and, as in `marginal`, in
        predictions; None for all n.

    Raises
    ------
    TypeError, ValueError
        If x or y is empty, not finite or of the wrong shape, `space` is unknown, or `block_size` is no
        integer of at least 1 or does not go with `space`.
    """
    return Standard(bnn, floating(x=x), floating(y=y), space, block_size)
