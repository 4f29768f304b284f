"""Repriorisation: the map T that turns the posterior into nearly its prior (Hron et al. 2022)."""

from dataclasses import dataclass, field

import jax.numpy as jnp
from jaxtyping import Array, Float

from widebnn._arrays import Inputs, Observations, floating
from widebnn._check import Number, positive
from widebnn.models import BNN, Parameters
from widebnn.targets._network import NetworkTarget

__all__ = ["repriorised"]


@dataclass(frozen=True, eq=False)
class Repriorised(NetworkTarget):
    """φ = T⁻¹(θ): the inner parameters as they are, and φ_W in place of the readout W = μ + Σ^{1/2}φ_W."""

    reg: Number = field(kw_only=True)

    @property
    def template(self):
        return self.bnn.template(self.x)

    def potential(self, position: Parameters) -> Float[Array, ""]:
        # −log p(y | T(φ)) + ½‖W‖² − ½‖φ_W‖² − log|∂W/∂φ_W| with the square completed: at λ = σ² the readout
        # drops out, else only ‖W‖² − ‖φ_W‖² remains of it.
        ratio = self.reg / self.bnn.noise_std**2
        readout = self.readout_posterior(position, self.reg)
        marginal = readout.potential(ratio)
        if ratio == 1:
            return marginal
        phi = position.readout
        w = readout.transform(phi)
        return marginal + (1 - ratio) / 2 * jnp.sum((w - phi) * (w + phi))

    def log_jacobian(self, position: Parameters) -> Float[Array, ""]:
        """log |∂θ/∂φ|, which depends on the inner parameters alone."""
        return self.readout_posterior(position, self.reg).log_jacobian()

    def inner(self, position: Parameters):
        return position.inner

    def readout(self, position: Parameters, rng_key=None) -> Float[Array, "p d_out"]:
        return self.readout_posterior(position, self.reg).transform(position.readout)

    def from_parameters(self, parameters: Parameters) -> Parameters:
        phi = self.readout_posterior(parameters, self.reg).inverse(parameters.readout)
        return Parameters(parameters.inner, phi)


def repriorised(
    bnn: BNN,
    x: Inputs,
    y: Observations,
    reg: Number | None = None,
    space: str = "auto",
    block_size: int | None = None,
) -> Repriorised:
    """The posterior of φ = T⁻¹(θ), which tends to N(0, I) as the network grows wide.

    `to_parameters` is T, `from_parameters` its inverse.

    Parameters
    ----------
    bnn
        The network.
    x, y
        Inputs (n, ...) and observations (n, d_out).
    reg
        λ > 0, the regulariser of T; σ² unless given. λ → ∞ gives back the standard parametrisation.
    space
        "data" factorises K̂_λ (n × n), "feature" λI + ΨᵀΨ (p × p), "auto" the smaller. The two take
        different roots Σ^{1/2}: the same φ_W stands for different readouts, of the same distribution.
    block_size
        Observations that go through the network at a time where feature space is taken, as in `marginal`;
        None for all n.

    Raises
    ------
    TypeError, ValueError
        If x or y is empty, not finite or of the wrong shape, `reg` is not positive, `space` is unknown, or
        `block_size` is no integer of at least 1 or does not go with `space`.
    """
    reg = positive(noise_std=bnn.noise_std) ** 2 if reg is None else positive(reg=reg)
    return Repriorised(bnn, floating(x=x), floating(y=y), space, block_size, reg=reg)
