"""The readout integrated out: chains over the inner parameters alone, the readout drawn exactly."""

import functools

from jaxtyping import Array, Float, Key

from widebnn._arrays import Inputs, Observations, floating
from widebnn.models import BNN, Parameters
from widebnn.models.embedding import Inner
from widebnn.samplers._unitwise import Units
from widebnn.targets._network import NetworkTarget, required
from widebnn.targets._units import units_of
from widebnn.tree import normal_like

__all__ = ["marginal"]


class Marginal(NetworkTarget):
    """θ^{≤L}; U = ½ Σ_j y_:jᵀ K̂_σ²⁻¹ y_:j + (d_out/2) log det K̂_σ²."""

    @property
    def template(self):
        return self.bnn.template(self.x).inner

    def potential(self, position: Inner) -> Float[Array, ""]:
        return self.readout_posterior(position).potential()

    def inner(self, position: Inner) -> Inner:
        return position

    def readout(self, position: Inner, rng_key: Key[Array, ""] | None = None) -> Float[Array, "p d_out"]:
        rng_key = required(rng_key, "the readout")
        phi = normal_like(rng_key, self.bnn.template(self.x).readout)
        return self.readout_posterior(position).transform(phi)

    def from_parameters(self, parameters: Parameters) -> Inner:
        return parameters.inner

    @functools.cached_property
    def units(self) -> Units:
        """What `widebnn.samplers.unitwise` needs to know of it."""
        return units_of(self.bnn, self.x, self.y)


def marginal(
    bnn: BNN, x: Inputs, y: Observations, space: str = "auto", block_size: int | None = None
) -> Marginal:
    """The posterior of the inner parameters θ^{≤L}, with the readout integrated out.

    Under repriorisation the readout's φ_W is exactly N(0, I) and independent of the rest, so that nothing
    is lost: sample θ^{≤L}, draw the readout when it is wanted (Pezzetti et al. 2025, §3, where it is called
    marginal–conditional).

    Parameters
    ----------
    bnn
        The network.
    x, y
        Inputs (n, ...) and observations (n, d_out).
    space
        "data" factorises K̂_σ² (n × n), "feature" σ²I + ΨᵀΨ (p × p), "auto" the smaller.
    block_size
        Observations that go through the network at a time where feature space is taken: beside the data, the
        potential and its gradient then need memory for one block and for p × p numbers, whatever n is. A
        gradient passes over the data twice in place of once and takes about 1.3 times as long, a potential
        alone twice. None takes all n at once, which is the fastest where it fits.

    Raises
    ------
    TypeError, ValueError
        If x or y is empty, not finite or of the wrong shape, `space` is unknown, or `block_size` is no
        integer of at least 1 or does not go with `space`.
    """
    return Marginal(bnn, floating(x=x), floating(y=y), space, block_size)
