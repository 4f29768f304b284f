"""Gaussian-process regression: what a network's posterior becomes in the limit of infinite width."""

import functools
import math

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float, Key

from widebnn._arrays import Inputs, NewInputs, Observations, Tabular, column, floating, observed
from widebnn._check import Number, at_least, brief, finite, is_known_to_be, non_negative, positive
from widebnn._pytree import Record, as_pytree
from widebnn.nngp.kernels import Kernel

__all__ = ["GaussianProcess", "gaussian_process"]

ROWS_AT_ONCE = 256
"""Whose variances are computed side by side."""

_product = functools.partial(jnp.matmul, precision="highest")  # differences of large numbers come next


class GaussianProcess(Record):
    """$f_j ~ GP(0, K)$ for each output $j$, observed as $y = f(x) + σε$; see `gaussian_process`.

    It is a pytree: ``jax.vmap`` over $σ$ or over data sets makes many at once.

    Attributes
    ----------
    kernel, x, y, noise_std
        As given to `gaussian_process`.
    prior
        $K$ of the observed inputs.
    factor
        $L$ lower triangular, $LLᵀ = K_σ² = K + σ²I$.
    """

    kernel: Kernel
    x: Float[Array, "n ..."]
    y: Float[Array, "n d_out"]
    noise_std: Number
    prior: Float[Array, "n n"]
    factor: Float[Array, "n n"]

    def mean(self, x: NewInputs | Tabular) -> Float[Array, "m d_out"]:
        """$E[f(x) | D] = K*ᵀ K_σ²⁻¹ y$, with $K*$ the kernel of observed and new inputs."""
        return _mean(self.factor, self.y, self.kernel(self.x, self._new_inputs(x)))

    def covariance(self, x: NewInputs | Tabular) -> Float[Array, "m m"]:
        """$Cov[f_j(x) | D] = K** − K*ᵀ K_σ²⁻¹ K*$, the same for each output; the noise is not in it.

        Where less than rounding error would remain, variances are 0 and never negative.
        """
        x = self._new_inputs(x)
        return _covariance(self.factor, self.kernel(self.x, x), self.kernel(x))

    def variance(self, x: NewInputs | Tabular) -> Float[Array, " m"]:
        """$Var[f_j(x) | D]$, the diagonal of `covariance` in memory for $n × m$ numbers."""
        x = self._new_inputs(x)
        return _variance(self.factor, self.kernel(self.x, x), _own(self.kernel, x))

    def sample(
        self, rng_key: Key[Array, ""], x: NewInputs | Tabular, num_samples: int = 1
    ) -> Float[Array, "sample m d_out"]:
        """Draws of $f(x) | D$: $f* + K*ᵀ K_σ²⁻¹ (y − f − σε)$, $(f, f*)$ from the prior (Matheron's rule).

        The prior is factorised by eigenvalues, so that equal inputs do no harm; the posterior covariance,
        a small difference of large numbers, is never formed.
        """
        at_least(1, num_samples=num_samples)
        x = self._new_inputs(x)
        cross, new = self.kernel(self.x, x), self.kernel(x)
        return _sample(rng_key, self.prior, self.factor, self.y, self.noise_std, cross, new, num_samples)

    def log_marginal_likelihood(self) -> Float[Array, ""]:
        """$log p(y) = −½ ∑_j y_:jᵀ K_σ²⁻¹ y_:j − (d_out/2) (log det K_σ² + n log 2π)$."""
        return _log_marginal_likelihood(self.factor, self.y)

    def kl_from_prior(self) -> Float[Array, ""]:
        """KL from the prior process to the posterior one, $KL(GP ‖ GP | D)$, in nats.

        $(d_out/2) Tr(σ⁻²K) − (d_out/2) log det(σ⁻²K_σ²) + ½ ∑_j y_:jᵀ(σ⁻²I − K_σ²⁻¹)y_:j$: it is also
        the limit of $KL(N(0, I) ‖ P(θ | D))$ for a network (Hron et al. 2022, Proposition 2.3).
        """
        return _kl_from_prior(self.prior, self.factor, self.y, positive(noise_std=self.noise_std))

    def _new_inputs(self, x: NewInputs | Tabular) -> Array:
        x = floating(x=x)
        x = x if x.dtype == self.x.dtype else x.astype(self.x.dtype)
        if x.shape[1:] != self.x.shape[1:] or x.size == 0:
            raise ValueError(f"x must have shape (m, {str(self.x.shape[1:])[1:]} with m ≥ 1; got {x.shape}")
        return x


def gaussian_process(
    kernel: Kernel, x: Inputs | Tabular, y: Observations | Tabular, noise_std: Number
) -> GaussianProcess:
    """The posterior of Gaussian-process regression with prior $GP(0, K)$ and noise $N(0, σ²)$.

    Parameters
    ----------
    kernel
        $K$, a `Kernel`, such as what `nngp_kernel` returns.
    x, y
        Inputs $(n, ...)$ and observations $(n, d_out)$, or $(n,)$ where there is one output.
    noise_std
        $σ ≥ 0$; 0 where $K$ is regular to the precision at hand.

    Examples
    --------
    Evidence over noise levels, by one program:

    >>> import jax
    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> from flax import nnx
    >>> import widebnn as wb
    >>> x = np.linspace(-1, 1, 8)[:, None]
    >>> bnn = wb.BNN(wb.models.FCN(1, 8, rngs=nnx.Rngs(0)), 1, noise_std=0.1)
    >>> kernel = wb.nngp.nngp_kernel(bnn)
    >>> @jax.jit
    ... @jax.vmap
    ... def process(noise_std):
    ...     return wb.nngp.gaussian_process(kernel, x, np.sin(3 * x), noise_std)
    >>> processes = process(jnp.array([0.1, 0.3, 1.0]))
    >>> processes.factor.shape
    (3, 8, 8)
    >>> jax.vmap(lambda process: process.log_marginal_likelihood())(processes).shape
    (3,)
    """
    if not callable(kernel):
        raise TypeError(f"kernel must be a function of (x1, x2=None); got {brief(kernel)}")
    x, y = observed(x=x), column(y=y)
    if x.ndim < 2 or x.size == 0:
        raise ValueError(f"x must have shape (n, ...) with n ≥ 1; got {x.shape}")
    if y.ndim != 2 or len(y) != len(x) or y.size == 0:
        raise ValueError(f"y must have shape (n, d_out) = ({len(x)}, d_out); got {y.shape}")
    noise_std = non_negative(noise_std=noise_std)
    prior = finite(kernel=kernel(x))
    if prior.shape != (len(x), len(x)):
        raise ValueError(f"kernel must map x to shape (n, n) = ({len(x)}, {len(x)}); got {prior.shape}")
    factor, is_regular = _factorised(prior, noise_std)
    if is_known_to_be(0, is_regular):
        raise ValueError(
            f"noise_std must be larger, or the inputs more distinct: K + σ²I with noise_std = {noise_std} "
            f"is singular in {prior.dtype}"
        )
    return GaussianProcess(as_pytree(kernel), x, y, noise_std, prior, factor)


@jax.jit
def _factorised(prior: Float[Array, "n n"], noise_std: Number) -> tuple[Float[Array, "n n"], Bool[Array, ""]]:
    """L, and whether it has all its pivots to the precision at hand."""
    factor = jnp.linalg.cholesky(prior + noise_std**2 * jnp.eye(len(prior), dtype=prior.dtype))
    tolerance = len(prior) * jnp.finfo(prior.dtype).eps * jnp.max(jnp.diag(prior))
    return factor, jnp.min(jnp.diag(factor) ** 2) > tolerance  # NaN is not


@jax.jit
def _mean(
    factor: Float[Array, "n n"], y: Float[Array, "n d_out"], cross: Float[Array, "n m"]
) -> Float[Array, "m d_out"]:
    return _product(_forward(factor, cross).T, _forward(factor, y))


@jax.jit
def _covariance(
    factor: Float[Array, "n n"], cross: Float[Array, "n m"], new: Float[Array, "m m"]
) -> Float[Array, "m m"]:
    whitened = _forward(factor, cross)
    covariance = new - _product(whitened.T, whitened)
    return jnp.fill_diagonal(covariance, jnp.maximum(jnp.diag(covariance), 0), inplace=False)


@jax.jit
def _own(kernel: Kernel, x: Float[Array, "m ..."]) -> Float[Array, " m"]:
    return jax.lax.map(lambda row: kernel(row[None])[0, 0], x, batch_size=min(len(x), ROWS_AT_ONCE))


@jax.jit
def _variance(
    factor: Float[Array, "n n"], cross: Float[Array, "n m"], own: Float[Array, " m"]
) -> Float[Array, " m"]:
    return jnp.maximum(own - jnp.sum(_forward(factor, cross) ** 2, axis=0), 0)


@functools.partial(jax.jit, static_argnames="num_samples")
def _sample(rng_key, prior, factor, y, noise_std, cross, new, num_samples) -> Float[Array, "sample m d_out"]:
    prior_key, noise_key = jax.random.split(rng_key)
    joint = jnp.block([[prior, cross], [cross.T, new]])
    values, vectors = jnp.linalg.eigh(joint)
    root = vectors * jnp.sqrt(jnp.maximum(values, 0))[None, :]
    n, d_out = y.shape
    f = _product(root[None], jax.random.normal(prior_key, (num_samples, len(joint), d_out), joint.dtype))
    noise = noise_std * jax.random.normal(noise_key, (num_samples, n, d_out), joint.dtype)
    gain = solve_triangular(factor, _forward(factor, cross), lower=True, trans="T").T
    return f[:, n:] + _product(gain[None], y[None] - f[:, :n] - noise)


@jax.jit
def _log_marginal_likelihood(factor: Float[Array, "n n"], y: Float[Array, "n d_out"]) -> Float[Array, ""]:
    n, d_out = y.shape
    quadratic = jnp.sum(_forward(factor, y) ** 2)
    return -(quadratic + d_out * (_log_det(factor) + n * math.log(2 * math.pi))) / 2


@jax.jit
def _kl_from_prior(
    prior: Float[Array, "n n"], factor: Float[Array, "n n"], y: Float[Array, "n d_out"], noise_std: Number
) -> Float[Array, ""]:
    n, d_out = y.shape
    noise = noise_std**2
    data = jnp.sum(y**2) / noise - jnp.sum(_forward(factor, y) ** 2)
    return (d_out * (jnp.trace(prior) / noise - _log_det(factor) + n * jnp.log(noise)) + data) / 2


def _log_det(factor):
    return 2 * jnp.sum(jnp.log(jnp.diag(factor)))


def _forward(factor, b):
    return solve_triangular(factor, b, lower=True)
