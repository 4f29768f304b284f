"""Repriorisation: the map T that turns the posterior into nearly its prior (Hron et al. 2022)."""

from dataclasses import field

import jax.numpy as jnp
from jaxtyping import Array, Float

from widebnn._arrays import Inputs, Observations, Tabular
from widebnn._check import Number, positive
from widebnn._compile import jitted
from widebnn.models import BNN, Parameters
from widebnn.targets._network import NetworkTarget, checked


class Repriorised(NetworkTarget):
    """φ = T⁻¹(θ): the inner parameters as they are, and φ_W in place of the readout W = μ + Σ^½φ_W."""

    reg: Number | None = field(kw_only=True, default=None)  # λ; None for σ²

    @jitted
    def potential(self, position: Parameters) -> Float[Array, ""]:
        # −log p(y | T(φ)) + ½‖W‖² − ½‖φ_W‖² − log|∂W/∂φ_W| with the square completed: at λ = σ² the readout
        # drops out, else only ‖W‖² − ‖φ_W‖² remains of it.
        readout = self.readout_posterior(position, self.reg)
        if self.reg is None:
            return readout.potential()
        ratio = self.reg / self._noise
        phi = position.readout
        w = readout.transform(phi)
        return readout.potential(ratio) + jnp.sum((1 - ratio) * (w - phi) * (w + phi)) / 2

    @jitted
    def log_normaliser(self) -> Float[Array, ""]:
        # the change of variables brings (d_out/2) log det Σ, of which U leaves out (n d_out/2) log λ
        reg = self._noise if self.reg is None else self.reg
        return super().log_normaliser() - self.y.size / 2 * jnp.log(jnp.asarray(reg, self.y.dtype)).mean()

    @property
    def _noise(self) -> Number | Float[Array, "1 d_out"]:
        """σ², in units of which λ is given where each observation has its own."""
        return 1.0 if self._is_per_row else jnp.asarray(self.bnn.noise_std, self.y.dtype) ** 2

    @jitted
    def log_jacobian(self, position: Parameters) -> Float[Array, ""]:
        """log |∂θ/∂φ|, which depends on the inner parameters alone."""
        return self.readout_posterior(position, self.reg).log_jacobian()

    @jitted
    def readout(self, position: Parameters, rng_key=None) -> Float[Array, "p d_out"]:
        return self.readout_posterior(position, self.reg).transform(position.readout)

    @jitted
    def from_parameters(self, parameters: Parameters) -> Parameters:
        phi = self.readout_posterior(parameters, self.reg).inverse(parameters.readout)
        return Parameters(parameters.inner, phi)


def repriorised(
    bnn: BNN,
    x: Inputs | Tabular,
    y: Observations | Tabular,
    reg: Number | None = None,
    space: str = "auto",
    block_size: int | None = None,
) -> Repriorised:
    """The posterior of $φ = T⁻¹(θ)$, which tends to $N(0, I)$ as the network grows wide.

    $T$ leaves the inner parameters as they are and maps the readout by $W = μ + Σ^½φ_W$, with $N(μ, Σ)$ its
    posterior given the inner parameters. The target is a `NetworkTarget`, whose method ``to_parameters`` is
    $T$, and ``from_parameters`` its inverse.

    Parameters
    ----------
    bnn, x, y, block_size
        As in `NetworkTarget`.
    reg
        $λ > 0$, the regulariser of $T$; $σ²$ unless given. $λ → ∞$ gives back the standard parametrisation.
    space
        "data" factorises $K̂_λ$ $(n × n)$, "feature" $λI + ΨᵀΨ$ $(p × p)$, "auto" the smaller. The two take
        different roots $Σ^½$: the same $φ_W$ stands for different readouts, of the same distribution.
    """
    if reg is not None:
        positive(reg=reg)
    return Repriorised(*checked(bnn, x, y, space, block_size), reg=reg)
