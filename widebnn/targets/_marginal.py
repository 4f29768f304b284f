"""The readout integrated out: chains over the inner parameters alone, the readout drawn exactly."""

import functools
import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from widebnn._arrays import Inputs, Observations, Tabular
from widebnn._compile import jitted
from widebnn.models import BNN, Parameters
from widebnn.models.embedding import Inner
from widebnn.targets._network import NetworkTarget, checked, required
from widebnn.targets._units import Units, units_of
from widebnn.tree import normal_like


class Marginal(NetworkTarget):
    """θ^≤L; U = ½ ∑_j y_:jᵀ K̂_σ²⁻¹ y_:j + (d_out/2) log det K̂_σ²."""

    @property
    def template(self):
        return self.bnn.features.template

    @jitted
    def potential(self, position: Inner) -> Float[Array, ""]:
        return self.readout_posterior(position).potential()

    @jitted
    def log_normaliser(self) -> Float[Array, ""]:
        unit = self._noise_unit(None)
        return self.y.size * (jnp.log(unit).mean() + math.log(2 * math.pi) / 2)

    def inner(self, position: Inner) -> Inner:
        return position

    @jitted
    def readout(self, position: Inner, rng_key: Key[Array, ""] | None = None) -> Float[Array, "p d_out"]:
        rng_key = required(rng_key, "the readout")
        phi = normal_like(rng_key, self._theta.readout)
        return self.readout_posterior(position).transform(phi)

    def from_parameters(self, parameters: Parameters) -> Inner:
        return parameters.inner

    @functools.cached_property
    def units(self) -> Units:
        """Which numbers of a position belong to units, for `widebnn.samplers.unitwise`."""
        return units_of(self.bnn, self.x)


def marginal(
    bnn: BNN,
    x: Inputs | Tabular,
    y: Observations | Tabular,
    space: str = "auto",
    block_size: int | None = None,
) -> Marginal:
    """The posterior of the inner parameters $θ^≤L$, with the readout integrated out.

    Under repriorisation the readout's $φ_W$ is exactly $N(0, I)$ and independent of the other parameters, so
    that nothing is lost: sample $θ^≤L$, and draw the readout where it is needed (Pezzetti et al. 2025, §3,
    who call this marginal–conditional).

    Parameters
    ----------
    bnn, x, y, block_size
        As in `NetworkTarget`.
    space
        "data" factorises $K̂_σ²$ $(n × n)$, "feature" $σ²I + ΨᵀΨ$ $(p × p)$, "auto" the smaller of the two.

    Returns
    -------
    A `NetworkTarget`. Its $σ²$ counts as no less than $4ε tr ΨΨᵀ$, with $ε$ the rounding error: in float32,
    where $Ψ$ has rows of about unit length, $σ$ as no less than $7·10⁻⁴ √n$. Where noise is smaller, compute
    in float64.

    Raises
    ------
    ValueError
        If the network has no parameters below the readout.
    """
    target = Marginal(*checked(bnn, x, y, space, block_size))
    if not jax.tree.leaves(target.template):
        raise ValueError(
            "bnn must have parameters below the readout, or nothing is left to sample; a network without "
            "hidden layers is Bayesian linear regression: take targets.standard or targets.linear"
        )
    return target
