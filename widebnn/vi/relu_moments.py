"""Mean and variance of a two-layer ReLU network under a mean-field Gaussian, and its ELBO, in closed form.

The input ⟨b_j, x⟩ of a neuron is Gaussian under q, and the readout a_j is independent of it: two moments of
a rectified Gaussian are all that is needed.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from widebnn._arrays import floating
from widebnn._check import Number, non_negative, one_of
from widebnn.vi.elbo import Elbo
from widebnn.vi.losses import square
from widebnn.vi.mean_field import MeanField, Variances, kl_divergence
from widebnn.vi.models import SCALINGS

__all__ = ["Moments", "output_moments", "relu_moments", "square_elbo"]

Reals = Float[Array | np.ndarray, "*shape"]


class Moments(NamedTuple):
    """Moments of the outputs $f(x)$ under $q$.

    Attributes
    ----------
    mean
        $E_q f$, $(n, d_out)$.
    variance
        $Var_q f$, $(n, d_out)$.
    """

    mean: Float[Array, "n d_out"]
    variance: Float[Array, "n d_out"]


def relu_moments(mean: Reals, variance: Reals) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """$E relu(u) = mΦ(m/s) + sφ(m/s)$ and $E relu(u)² = (m² + s²)Φ(m/s) + msφ(m/s)$ for $u ~ N(m, s²)$.

    Parameters
    ----------
    mean, variance
        $m$ and $s²$, arrays of the same shape.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import widebnn as wb
    >>> mean, second = wb.vi.relu_moments(jnp.zeros(()), jnp.ones(()))
    >>> round(float(mean), 4), round(float(second), 4)
    (0.3989, 0.5)
    """
    mean, variance = floating(mean=mean), floating(variance=variance)
    if mean.shape != variance.shape:
        raise ValueError(f"variance must have the shape {mean.shape} of mean; got {variance.shape}")
    return _relu_moments(mean, variance)


@jax.jit
def _relu_moments(mean: Array, variance: Array) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    # at s = 0 the root has no derivative
    std = jnp.sqrt(jnp.maximum(variance, jnp.finfo(variance.dtype).tiny))
    cdf, pdf = norm.cdf(mean / std), norm.pdf(mean / std)
    return mean * cdf + std * pdf, (mean**2 + variance) * cdf + mean * std * pdf


def output_moments(
    posterior: MeanField, x: Float[Array | np.ndarray, "n d_in"], *, scaling: str = "mean-field"
) -> Moments:
    """$E_q f(x)$ and $Var_q f(x)$ of a `TwoLayer` network, exact.

    With $r₁$ and $r₂$ the moments of $relu(⟨b_j, x⟩)$, $α_j$ and $τ_j$ the mean and the standard deviation of
    $a_j$, and $c = 1/N$ or $1/√N$: $E f = c ∑_j α_j r₁$ and $Var f = c² ∑_j [(α_j² + τ_j²) r₂ − α_j² r₁²]$.

    Parameters
    ----------
    posterior
        $q$ over the weights of a `TwoLayer`.
    x
        Inputs $(n, d_in)$.
    scaling
        Scaling of the network, "mean-field" or "ntk".
    """
    one_of(SCALINGS, scaling=scaling)
    if not isinstance(posterior.mean, dict) or set(posterior.mean) != {"hidden", "readout"}:
        raise ValueError("posterior must be over the weights of a TwoLayer, with leaves hidden and readout")
    num_inputs, width = posterior.mean["hidden"]["kernel"].shape
    x = floating(x=x)
    if x.ndim != 2 or x.shape[1] != num_inputs:
        raise ValueError(f"x must have shape (n, {num_inputs}); got {x.shape}")
    return _output_moments(posterior, x, SCALINGS[scaling](width))


@jax.jit
def _output_moments(posterior: MeanField, x: Float[Array, "n d_in"], scale: Number) -> Moments:
    (beta, std), (alpha, tau) = (
        (posterior.mean[layer]["kernel"], posterior.std[layer]["kernel"]) for layer in ("hidden", "readout")
    )
    first, second = _relu_moments(x @ beta, x**2 @ std**2)
    variance = second @ tau**2 + (second - first**2) @ alpha**2
    return Moments(scale * first @ alpha, scale**2 * variance)


def square_elbo(
    posterior: MeanField,
    x: Float[Array | np.ndarray, "n d_in"],
    y: Float[Array | np.ndarray, "n d_out"],
    *,
    temperature: Number = 1.0,
    prior_variance: Variances = 0.2,
    scaling: str = "mean-field",
) -> Elbo:
    """The ELBO of a `TwoLayer` network under the loss `square`, exact: $E‖y − f‖² = ‖y − E f‖² + ∑ Var f$.

    Parameters
    ----------
    posterior, x, scaling
        As in `output_moments`.
    y
        Targets $(n, d_out)$.
    temperature, prior_variance
        $η$ and $v$, as in `widebnn.vi.elbo`.
    """
    non_negative(temperature=temperature)
    expected = _expected_log_likelihood(output_moments(posterior, x, scaling=scaling), floating(y=y))
    return Elbo(expected, kl_divergence(posterior, prior_variance), temperature)


@jax.jit
def _expected_log_likelihood(moments: Moments, y: Float[Array, "n d_out"]) -> Float[Array, ""]:
    return -jnp.sum(square(moments.mean, y)) - jnp.sum(moments.variance)
