"""Likelihoods of outputs F that are not Gaussian: softmax, Bernoulli, Student's t, and one's own.

Each also gives the Gaussian that stands for it near some F: −log p(y | F) ≈ ½ Σ_i ‖z_i − R_iᵀF_i‖² up to a
constant, R_i (d_out, d_out). Given Ψ, the readout's posterior is then Bayesian linear regression with unit
noise.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple, NoReturn

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float, Key, Shaped

from widebnn._check import Number
from widebnn._pytree import Record

Outputs = Float[Array, "n d_out"]
Observed = Shaped[Array, "n ..."]

LEAST_PRECISION = 1e-4
"""Of an output under the Gaussian that stands for a likelihood; its prior's precision is of order 1."""
NUM_FIRST_STEPS = 50
"""Steps of at most 1 in each output: as far as exp(±50)."""


class Regression(NamedTuple):
    """z_i = R_iᵀF_i + unit noise."""

    root: Float[Array, "n d_out d_out"]
    z: Outputs


class Likelihood(Record, ABC):
    """$p(y | F)$ of observations given the outputs $F$ of a network, a row of $F$ for each observation.

    A likelihood of your own is a subclass with four methods, for `non_gaussian`. It is a dataclass and a
    pytree: annotated attributes are its numbers or arrays, and may be traced.

    ``log_prob(y, f)``
        $log p(y_i | F_i)$, normalised in $y$, from arrays with a row for each observation: $(n,)$, or
        $(n, d_out)$ where outputs are independent of one another. It is differentiated twice in $F$, or three
        times by samplers that take gradients.
    ``mean(f)``, ``variance(f)``
        $E[y | F]$ and $Var[y | F]$, $(m, d_out)$.
    ``draw(rng_key, f)``
        Observations drawn from $p(y | F)$, $(m, ...)$.

    Examples
    --------
    Counts $y$ whose mean is $exp(f(x))$:

    >>> from flax import nnx
    >>> import jax
    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> import widebnn as wb
    >>> class Poisson(wb.targets.Likelihood):
    ...     def log_prob(self, y, f):
    ...         return jax.scipy.stats.poisson.logpmf(y, jnp.exp(f))
    ...
    ...     def mean(self, f):
    ...         return jnp.exp(f)
    ...
    ...     variance = mean
    ...
    ...     def draw(self, rng_key, f):
    ...         return jax.random.poisson(rng_key, jnp.exp(f))
    >>> bnn = wb.BNN(wb.models.FCN(1, 64, rngs=nnx.Rngs(0)), 1, noise_std=1.0)
    >>> x, y = np.linspace(-1, 1, 5)[:, None], np.array([0, 1, 3, 7, 20])
    >>> target = wb.targets.non_gaussian(bnn, x, y, Poisson())
    """

    @abstractmethod
    def log_prob(self, y: Observed, f: Outputs) -> Float[Array, "n ..."]:
        """$log p(y_i | F_i)$, of each row or of each output."""

    def mean(self, f: Float[Array, "m d_out"]) -> Float[Array, "m d_out"]:
        """$E[y | F]$; that of one-hot rows where $y$ is a class."""
        self._lacks("mean")

    def variance(self, f: Float[Array, "m d_out"]) -> Float[Array, "m d_out"]:
        """$Var[y | F]$, of each output."""
        self._lacks("variance")

    def draw(self, rng_key: Key[Array, ""], f: Float[Array, "m d_out"]) -> Shaped[Array, "m ..."]:
        """Observations drawn from $p(y | F)$."""
        self._lacks("draw")

    def _lacks(self, method: str) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__} has no method {method}, which this needs")

    def of_rows(self, y: Observed, f: Outputs) -> Float[Array, " n"]:
        """$log p(y_i | F_i)$ of each observation."""
        return jnp.sum(self.log_prob(y, f).reshape(len(f), -1), axis=1)

    def regression(self, y: Observed, f: Outputs) -> Regression:
        """The Gaussian that stands for the likelihood near $F$, for the map "laplace".

        $R_iR_iᵀ = H_i$ and $R_i z_i = H_i F_i + ∇log p(y_i | F_i)$, with $H_i = −∇²log p(y_i | F_i)$: a step
        of Newton's method. $H_i$ is positive where $log p$ is concave; that it always is, its diagonal is
        raised to the sum of the absolute values beside it, plus $10⁻⁴$. Override it where you know better,
        such as the expectation of $H_i$ or a step of EM.
        """

        def log_prob(y_i, f_i):
            return self.of_rows(y_i[None], f_i[None])[0]

        gradient = jax.vmap(jax.grad(log_prob, 1))(y, f)
        h = -jax.vmap(jax.hessian(log_prob, 1))(y, f)
        size = f.shape[1]
        diagonal = jnp.diagonal(h, axis1=1, axis2=2)
        beside = jnp.sum(jnp.abs(h), axis=2) - jnp.abs(diagonal)
        raised = jnp.maximum(diagonal, beside + LEAST_PRECISION) - diagonal
        h = h + raised[:, :, None] * jnp.eye(size, dtype=h.dtype)[None]
        root = jnp.sqrt(h) if size == 1 else jnp.linalg.cholesky(h)
        slope = jnp.einsum("iab,ib->ia", h, f) + gradient
        z = slope / root[:, 0] if size == 1 else solve_triangular(root, slope[:, :, None], lower=True)[..., 0]
        return Regression(root, z)

    def first(self, y: Observed, f: Outputs) -> Outputs:
        """F from which the map "laplace" steps, in the shape of the zeros `f`.

        It is the mode of each observation alone under the prior $N(0, 1)$: one step from zero would make
        $exp(y)$ of a count $y$.
        """

        def step(_, f):
            root, z = self.regression(y, f)
            precision = jnp.einsum("iab,icb->iac", root, root) + jnp.eye(f.shape[1], dtype=f.dtype)[None]
            mode = jnp.linalg.solve(precision, jnp.einsum("iab,ib->ia", root, z)[:, :, None])[..., 0]
            return f + jnp.clip(mode - f, -1, 1)

        return jax.lax.fori_loop(0, NUM_FIRST_STEPS, step, f)

    def centred(self, y: Observed) -> Outputs:
        """y as regression with Gaussian noise would take it, for the map "gaussian"."""
        return y


class Softmax(Likelihood):
    """p(y_i = j | F_i) = softmax(F_i)_j, of one-hot rows y_i.

    Minus the log likelihood has the gradient p_i − y_i and the Hessian H_i = diag p_i − p_i p_iᵀ = R_iR_iᵀ,
    R_i = diag √p_i − p_i √p_iᵀ. With z_i = R_iᵀF_i + y_i/√p_{i,c}, c the class, a Newton step is a
    regression, for R_i z_i = H_iF_i + y_i − p_i.
    """

    def log_prob(self, y, f):
        return jnp.sum(y * jax.nn.log_softmax(f), axis=1)

    def mean(self, f):
        return jax.nn.softmax(f)

    def variance(self, f):
        return (p := jax.nn.softmax(f)) * (1 - p)

    def draw(self, rng_key, f):
        return jax.random.categorical(rng_key, f)

    def regression(self, y, f):
        log_p = jax.nn.log_softmax(f)
        p, root_p = jnp.exp(log_p), jnp.exp(log_p / 2)
        root = root_p[:, :, None] * jnp.eye(f.shape[1], dtype=f.dtype)[None] - p[:, :, None] * root_p[:, None]
        # 1/√p of the true class alone: it meets the factor √p of that class in R, and rounding stays small
        of_true_class = jnp.exp(-jnp.sum(y * log_p, axis=1) / 2)
        return Regression(root, jnp.einsum("iba,ib->ia", root, f) + y * of_true_class[:, None])

    def centred(self, y):
        return y - 1 / y.shape[1]


class Bernoulli(Likelihood):
    """p(y_ij = 1 | F) = 1/(1 + e^{−F_ij}), independent.

    With the sign s = 2y − 1 and R² = p(1 − p), a Newton step is the regression of z = RF + s e^{−sF/2}, for
    (y − p)/R = s e^{−sF/2}.
    """

    def log_prob(self, y, f):
        return jax.nn.log_sigmoid((2 * y - 1) * f)

    def mean(self, f):
        return jax.nn.sigmoid(f)

    def variance(self, f):
        return jax.nn.sigmoid(f) * jax.nn.sigmoid(-f)

    def draw(self, rng_key, f):
        return jax.random.bernoulli(rng_key, jax.nn.sigmoid(f)).astype(jnp.int32)

    def regression(self, y, f):
        root, sign = jnp.exp((jax.nn.log_sigmoid(f) + jax.nn.log_sigmoid(-f)) / 2), 2 * y - 1
        return _independent(root, root * f + sign * jnp.exp(-sign * f / 2))

    def centred(self, y):
        return y - 1 / 2


class StudentT(Likelihood):
    """y_ij = F_ij + σ t, t from Student's distribution with ν degrees of freedom, independent.

    A Gaussian of precision g ~ Gamma(ν/2, νσ²/2), whose mean given F and y is w = (ν + 1)/(νσ² + (y − F)²): a
    regression of √w y on √w F is a step of EM, which never lowers the likelihood.
    """

    degrees: Number
    scale: Number

    def log_prob(self, y, f):
        return jax.scipy.stats.t.logpdf(y, self.degrees, f, self.scale)

    def mean(self, f):
        return f

    def variance(self, f):
        """νσ²/(ν − 2); infinite for ν ≤ 2."""
        above = jnp.maximum(jnp.asarray(self.degrees, f.dtype) - 2, 0)
        return jnp.full_like(f, self.scale**2 * jnp.where(above > 0, 1 + 2 / above, jnp.inf))

    def draw(self, rng_key, f):
        return f + self.scale * jax.random.t(rng_key, self.degrees, f.shape, f.dtype)

    def regression(self, y, f):
        root = jnp.sqrt((self.degrees + 1) / (self.degrees * self.scale**2 + (y - f) ** 2))
        return _independent(root, root * y)


def _independent(root: Outputs, z: Outputs) -> Regression:
    """Outputs that know nothing of one another: R_i is diagonal."""
    return Regression(root[:, :, None] * jnp.eye(root.shape[1], dtype=root.dtype)[None], z)
