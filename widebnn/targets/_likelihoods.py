"""Likelihoods of outputs F that are not Gaussian: softmax, Bernoulli, Student's t.

Each also gives the Gaussian that stands for it near some F: −log p(y | F) ≈ ½ Σ_i ‖z_i − R_iᵀF_i‖² up to a
constant, R_i (d_out, d_out). Given Ψ, the readout's posterior is then Bayesian linear regression with unit
noise.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, Shaped

from widebnn._check import Number
from widebnn._pytree import pytree

Outputs = Float[Array, "n d_out"]


class Regression(NamedTuple):
    """z_i = R_iᵀF_i + unit noise."""

    root: Float[Array, "n d_out d_out"]
    z: Outputs


@pytree
@dataclass(frozen=True)
class Softmax:
    """p(y_i = j | F_i) = softmax(F_i)_j.

    Minus the log likelihood has the gradient p_i − t_i, t_i the one-hot label, and the Hessian
    H_i = diag p_i − p_i p_iᵀ = R_iR_iᵀ, R_i = diag √p_i − p_i √p_iᵀ. With z_i = R_iᵀF_i + t_i/√p_{i,y_i} a
    Newton step is a regression, for R_i z_i = H_iF_i + t_i − p_i.
    """

    onehot: Outputs

    @property
    def centred(self) -> Outputs:
        """y as regression with Gaussian noise would take it."""
        return self.onehot - 1 / self.onehot.shape[1]

    def log_prob(self, f: Outputs) -> Float[Array, " n"]:
        return jnp.sum(self.onehot * jax.nn.log_softmax(f), axis=1)

    def regression(self, f: Outputs) -> Regression:
        log_p = jax.nn.log_softmax(f)
        p, root_p = jnp.exp(log_p), jnp.exp(log_p / 2)
        root = root_p[:, :, None] * jnp.eye(f.shape[1], dtype=f.dtype)[None] - p[:, :, None] * root_p[:, None]
        # 1/√p of the true class alone: it meets the factor √p of that class in R, and rounding stays small
        of_true_class = jnp.exp(-jnp.sum(self.onehot * log_p, axis=1) / 2)
        return Regression(root, jnp.einsum("iba,ib->ia", root, f) + self.onehot * of_true_class[:, None])

    def mean(self, f: Float[Array, "m d_out"]) -> Float[Array, "m d_out"]:
        return jax.nn.softmax(f)

    def draw(self, rng_key: Key[Array, ""], f: Float[Array, "m d_out"]) -> Shaped[Array, "m ..."]:
        return jax.random.categorical(rng_key, f)


@pytree
@dataclass(frozen=True)
class Bernoulli:
    """p(y_ij = 1 | F) = 1/(1 + e^{−F_ij}), independent.

    With the sign s = 2y − 1 and R² = p(1 − p), a Newton step is the regression of z = RF + s e^{−sF/2}, for
    (y − p)/R = s e^{−sF/2}.
    """

    y: Outputs

    @property
    def centred(self) -> Outputs:
        return self.y - 1 / 2

    @property
    def _sign(self) -> Outputs:
        return 2 * self.y - 1

    def log_prob(self, f: Outputs) -> Float[Array, " n"]:
        return jnp.sum(jax.nn.log_sigmoid(self._sign * f), axis=1)

    def regression(self, f: Outputs) -> Regression:
        root = jnp.exp((jax.nn.log_sigmoid(f) + jax.nn.log_sigmoid(-f)) / 2)
        return _independent(root, root * f + self._sign * jnp.exp(-self._sign * f / 2))

    def mean(self, f: Float[Array, "m d_out"]) -> Float[Array, "m d_out"]:
        return jax.nn.sigmoid(f)

    def draw(self, rng_key: Key[Array, ""], f: Float[Array, "m d_out"]) -> Shaped[Array, "m ..."]:
        return jax.random.bernoulli(rng_key, jax.nn.sigmoid(f)).astype(jnp.int32)


@pytree
@dataclass(frozen=True)
class StudentT:
    """y_ij = F_ij + σ t, t from Student's distribution with ν degrees of freedom, independent.

    A Gaussian of precision g ~ Gamma(ν/2, νσ²/2), whose mean given F and y is w = (ν + 1)/(νσ² + (y − F)²): a
    regression of √w y on √w F is a step of EM, which never lowers the likelihood.
    """

    y: Outputs
    degrees: Number
    scale: Number

    @property
    def centred(self) -> Outputs:
        return self.y

    def log_prob(self, f: Outputs) -> Float[Array, " n"]:
        return jnp.sum(jax.scipy.stats.t.logpdf(self.y, self.degrees, f, self.scale), axis=1)

    def regression(self, f: Outputs) -> Regression:
        root = jnp.sqrt((self.degrees + 1) / (self.degrees * self.scale**2 + (self.y - f) ** 2))
        return _independent(root, root * self.y)

    def mean(self, f: Float[Array, "m d_out"]) -> Float[Array, "m d_out"]:
        return f

    def draw(self, rng_key: Key[Array, ""], f: Float[Array, "m d_out"]) -> Shaped[Array, "m ..."]:
        return f + self.scale * jax.random.t(rng_key, self.degrees, f.shape, f.dtype)


Likelihood = Softmax | Bernoulli | StudentT
"""p(y | F), normalised in y; the mean of y is that of one-hot rows where y is a class."""


def _independent(root: Outputs, z: Outputs) -> Regression:
    """Outputs that know nothing of one another: R_i is diagonal."""
    return Regression(root[:, :, None] * jnp.eye(root.shape[1], dtype=root.dtype)[None], z)
