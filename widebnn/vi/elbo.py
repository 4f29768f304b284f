"""The tempered ELBO, E_q[log L] − η KL(q ‖ P₀), and its estimate by draws."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree

from widebnn._check import Number, at_least, non_negative
from widebnn.vi.mean_field import MeanField, Variances, kl_divergence

__all__ = ["Elbo", "elbo", "temperature"]


class Elbo(NamedTuple):
    """The two terms of the ELBO, and $η$, which weighs the second.

    Attributes
    ----------
    log_likelihood
        $E_q[log L]$, estimated by draws from $q$ (exact in `square_elbo`), in nats.
    kl_divergence
        $KL(q ‖ P₀)$, exact, in nats.
    temperature
        $η$.
    """

    log_likelihood: Float[Array | np.ndarray, "..."]
    kl_divergence: Float[Array | np.ndarray, "..."]
    temperature: Number

    @property
    def value(self) -> Float[Array | np.ndarray, "..."]:
        """$E_q[log L] − η KL(q ‖ P₀)$."""
        return self.log_likelihood - self.temperature * self.kl_divergence


def elbo(
    rng_key: Key[Array, ""],
    posterior: MeanField,
    log_likelihood: Callable[[PyTree], Float[Array, ""]],
    *,
    temperature: Number = 1.0,
    prior_variance: Variances = 0.2,
    num_samples: int = 1,
) -> Elbo:
    """$ELBO_η(q) = E_q[log L(w)] − η KL(q ‖ P₀)$ (Huix et al. 2022, equation 6).

    It can be differentiated in `posterior`: draws are $μ + σz$ (the reparametrisation trick), so that the
    mean of its gradient is the gradient of its mean.

    Parameters
    ----------
    rng_key
        Key of the draws.
    posterior
        The posterior $q$.
    log_likelihood
        $w ↦ log L(w)$, such as what `widebnn.vi.Network.log_likelihood` returns.
    temperature
        $η ≥ 0$: 1 for Bayes' rule, above 1 for a warm posterior, below 1 for a cold one.
        `widebnn.vi.temperature` gives the $η$ of a balance that does not depend on the width.
    prior_variance
        $v$ of the prior $N(0, v)$ of a weight, as in `kl_divergence`.
    num_samples
        Number of draws from $q$.
    """
    non_negative(temperature=temperature)
    expected = expectation(rng_key, posterior, log_likelihood, num_samples=num_samples)
    return Elbo(expected, kl_divergence(posterior, prior_variance), temperature)


def expectation(
    rng_key: Key[Array, ""],
    posterior: MeanField,
    function: Callable[[PyTree], PyTree],
    *,
    num_samples: int = 1,
) -> PyTree:
    """$E_q[g(w)]$ by the mean over draws, side by side; parameters and errors are those of `elbo`.

    Leaves of $g$ that are not floating-point numbers, such as counters or keys, are those of the first draw.
    """
    at_least(1, num_samples=num_samples)
    keys = jax.random.split(rng_key, num_samples)
    values = jax.vmap(lambda key: function(posterior.draw(key)))(keys)
    return jax.tree.map(
        lambda value: jnp.mean(value, axis=0) if jnp.issubdtype(value.dtype, jnp.floating) else value[0],
        values,
    )


def temperature(tau: Number, num_observations: int, num_neurons: int) -> Number:
    """$η = τ p/N$, which keeps both terms of the ELBO of one order at any width (Huix et al. 2022, §3).

    Parameters
    ----------
    tau
        $τ ≥ 0$.
    num_observations
        Number of observations, $p$.
    num_neurons
        $N$, the width of the last hidden layer; the published code takes the number of weights in its place.
    """
    at_least(1, num_observations=num_observations)
    return non_negative(tau=tau) * num_observations / at_least(1, num_neurons=num_neurons)
