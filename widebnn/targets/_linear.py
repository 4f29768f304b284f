"""Bayesian linear regression, where repriorisation is exact and everything can be checked by hand."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from widebnn._arrays import Inputs, Observations, Tabular, column, observed
from widebnn._check import Number, positive
from widebnn._compile import jitted
from widebnn.targets._base import Target, from_potential
from widebnn.targets._readout import ReadoutPosterior, readout_posterior
from widebnn.tree import half_square_difference


class Linear(Target):
    """θ of y = Xθ + σε, θ ~ N(0, I): U(θ) = ‖y − Xθ‖²/(2σ²), θ of shape (d_in, d_out).

    `posterior` answers for the exact posterior N(μ, Σ) and for the map: `posterior.transform` is
    T(φ) = μ + Σ^½φ, `posterior.inverse` its inverse (Hron et al. 2022, §2.1).
    """

    x: Float[Array, "n d_in"]
    y: Float[Array, "n d_out"]
    noise_std: Number

    @property
    def template(self):
        return jax.ShapeDtypeStruct((self.x.shape[1], self.y.shape[1]), self.x.dtype)

    @property
    def num_observations(self) -> int:
        return len(self.x)

    @jitted
    def potential(self, position: Float[Array, "d_in d_out"]) -> Float[Array, ""]:
        return jnp.sum((self.y - self.x @ position) ** 2) / (2 * self.noise_std**2)

    def log_normaliser(self) -> Float[Array, ""]:
        """n d_out log(σ√(2π)): with it U, in θ as in φ, is minus the log likelihood, normalised."""
        return self.y.size * (jnp.log(self.noise_std) + math.log(2 * math.pi) / 2)

    @property
    def posterior(self) -> ReadoutPosterior:
        """N(μ, Σ), factorised in the smaller of data and feature space."""
        return readout_posterior(self.x, self.y, self.noise_std**2)

    def repriorised(self, reg: Number | None = None) -> Target:
        """The posterior of φ = T⁻¹(θ) by the change of variables; at λ = σ² its potential is constant.

        Parameters
        ----------
        reg
            λ > 0, the regulariser of T; σ² unless given.
        """
        reg = self.noise_std**2 if reg is None else positive(reg=reg)
        t = readout_posterior(self.x, self.y, reg)

        def potential(phi):
            theta = t.transform(phi)
            return self.potential(theta) + half_square_difference(theta, phi) - t.log_jacobian()

        return from_potential(potential, self.template)


def linear(x: Inputs | Tabular, y: Observations | Tabular, noise_std: Number) -> Linear:
    """Bayesian linear regression with prior $N(0, I)$ and noise $N(0, σ²)$.

    Parameters
    ----------
    x, y
        Inputs $(n, d_in)$ and observations $(n, d_out)$, or $(n,)$ where there is one output.
    noise_std
        $σ > 0$.

    Returns
    -------
    A `Target` whose property ``posterior`` is the exact posterior, a `ReadoutPosterior`, and whose method
    ``repriorised(reg)`` returns the target of $φ = T⁻¹(θ)$.
    """
    x, y = observed(x=x), column(y=y)
    if x.ndim != 2 or x.size == 0:
        raise ValueError(f"x must have shape (n, d_in) with n, d_in ≥ 1; got {x.shape}")
    if y.ndim != 2 or len(y) != len(x) or y.size == 0:
        raise ValueError(f"y must have shape (n, d_out) = ({len(x)}, d_out); got {y.shape}")
    return Linear(x, y, positive(noise_std=noise_std))
