"""Affine maps W = μ + Σ^½φ_W of the readout, for likelihoods that are not Gaussian."""

from collections.abc import Callable, Mapping

import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float

from widebnn._check import Number, at_least, one_of, positive
from widebnn._pytree import Static
from widebnn.targets._likelihoods import Likelihood
from widebnn.targets._readout import Readout, ReadoutPosterior, readout_posterior


class Identity:
    """W = φ_W, whatever Ψ is."""

    def __init__(self, psi: Float[Array, "n p"]):
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
    exact posterior of `readout_posterior`: Newton's method under softmax and Bernoulli, EM under Student's t.
    The steps start at W = 0 and their number is fixed, so that Ψ ↦ (μ, Σ) is smooth; converged or not, the
    map is affine and invertible, and the change of variables exact.
    """

    def __init__(self, psi: Float[Array, "n p"], likelihood: Likelihood, num_steps: int):
        self.shape = (psi.shape[1], likelihood.centred.shape[1])
        readout = jnp.zeros(self.shape, psi.dtype)
        for _ in range(num_steps):
            self.posterior = regression_step(psi, likelihood, psi @ readout)
            readout = self.posterior.mean().reshape(self.shape)

    def transform(self, phi: Readout) -> Readout:
        return self.posterior.transform(phi.reshape(-1, 1)).reshape(self.shape)

    def inverse(self, readout: Readout) -> Readout:
        return self.posterior.inverse(readout.reshape(-1, 1)).reshape(self.shape)

    def log_jacobian(self) -> Float[Array, ""]:
        return self.posterior.log_jacobian()


AffineMap = ReadoutPosterior | Identity | Laplace
"""W = μ + Σ^½φ_W, its inverse, and log |∂W/∂φ_W|."""


def _laplace(psi: Float[Array, "n p"], likelihood: Likelihood, num_steps: Static) -> Laplace:
    return Laplace(psi, likelihood, num_steps.value)


def regression_step(
    psi: Float[Array, "n p"], likelihood: Likelihood, f: Float[Array, "n d_out"]
) -> ReadoutPosterior:
    """The readout's posterior under the Gaussian that stands for the likelihood at F; W row after row."""
    root, z = likelihood.regression(f)
    design = jnp.einsum("iq,iba->iaqb", psi, root)
    return readout_posterior(design.reshape(f.size, -1), z.reshape(-1, 1), 1.0)


def affine_map(
    map: str, likelihood: Likelihood, reg: Number | None, noise_std: Number, num_steps: int
) -> Callable[[Float[Array, "n p"]], AffineMap]:
    """Ψ ↦ the map of this name; λ of the map "gaussian" is σ² unless given."""
    if reg is not None and map != "gaussian":
        raise ValueError(f"reg must be left out unless map is 'gaussian'; got reg={reg} and map={map!r}")
    reg = noise_std**2 if reg is None else positive(reg=reg)
    at_least(1, num_steps=num_steps)
    maps: Mapping[str, Callable[[Float[Array, "n p"]], AffineMap]] = {
        "identity": Partial(Identity),
        "gaussian": Partial(readout_posterior, y=likelihood.centred, reg=reg),
        "laplace": Partial(_laplace, likelihood=likelihood, num_steps=Static(num_steps)),
    }
    return maps[one_of(maps, map=map)]
