"""Affine maps W = μ + Σ^½φ_W of the readout, for likelihoods that are not Gaussian."""

from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float

from widebnn._check import Number, at_least, one_of, positive
from widebnn._pytree import Static
from widebnn.targets._likelihoods import Likelihood, Observed, Outputs
from widebnn.targets._readout import Readout, ReadoutPosterior, readout_posterior


class Identity:
    """W = φ_W, whatever Ψ is."""

    def __init__(self, psi: Float[Array, "n p"], y: Observed, likelihood: Likelihood):
        pass

    def transform(self, phi: Readout) -> Readout:
        return phi

    def inverse(self, readout: Readout) -> Readout:
        return readout

    def log_jacobian(self) -> Float[Array, ""]:
        return jnp.zeros(())


class Laplace:
    """The Gaussian that repeated regression for the readout's posterior mode arrives at, given Ψ.

    Every step replaces the likelihood by the Gaussian that stands for it at the outputs so far, and takes the
    exact posterior of `readout_posterior`: Newton's method under a softmax, EM under Student's t.
    The steps start at outputs F that are the same for all Ψ, and their number is fixed, so that Ψ ↦ (μ, Σ) is
    smooth; converged or not, the map is affine and invertible, and the change of variables exact.
    """

    def __init__(
        self, psi: Float[Array, "n p"], y: Observed, likelihood: Likelihood, first: Outputs, num_steps: int
    ):
        self.shape = (psi.shape[1], first.shape[1])
        f = first
        for _ in range(num_steps):
            self.posterior = regression_step(psi, y, likelihood, f)
            f = psi @ self.posterior.mean().reshape(self.shape)

    def transform(self, phi: Readout) -> Readout:
        return self.posterior.transform(phi.reshape(-1, 1)).reshape(self.shape)

    def inverse(self, readout: Readout) -> Readout:
        return self.posterior.inverse(readout.reshape(-1, 1)).reshape(self.shape)

    def log_jacobian(self) -> Float[Array, ""]:
        return self.posterior.log_jacobian()


AffineMap = ReadoutPosterior | Identity | Laplace
"""W = μ + Σ^½φ_W, its inverse, and log |∂W/∂φ_W|."""


def _laplace(first: Outputs, num_steps: Static, psi, y, likelihood) -> Laplace:
    return Laplace(psi, y, likelihood, first, num_steps.value)


def _gaussian(reg: Number, psi, y, likelihood) -> ReadoutPosterior:
    return readout_posterior(psi, likelihood.centred(y), reg)


def regression_step(
    psi: Float[Array, "n p"], y: Observed, likelihood: Likelihood, f: Outputs
) -> ReadoutPosterior:
    """The readout's posterior under the Gaussian that stands for the likelihood at F; W row after row."""
    root, z = likelihood.regression(y, f)
    design = jnp.einsum("iq,iba->iaqb", psi, root)
    return readout_posterior(design.reshape(f.size, -1), z.reshape(-1, 1), 1.0)


def affine_map(
    map: str, first: Outputs, reg: Number | None, noise_std: Any, num_steps: int
) -> Callable[[Float[Array, "n p"], Observed, Likelihood], AffineMap]:
    """(Ψ, y, likelihood) ↦ the map of this name; λ of the map "gaussian" is σ² unless given."""
    if reg is not None and map != "gaussian":
        raise ValueError(f"reg must be left out unless map is 'gaussian'; got reg={reg} and map={map!r}")
    if map == "gaussian":
        reg = positive(reg=positive(noise_std=noise_std) ** 2 if reg is None else reg)
    at_least(1, num_steps=num_steps)
    maps: Mapping[str, Callable[..., AffineMap]] = {
        "identity": Partial(Identity),
        "gaussian": Partial(_gaussian, reg),
        "laplace": Partial(_laplace, first, Static(num_steps)),
    }
    return maps[one_of(maps, map=map)]
