"""Observations that are not Gaussian: Student's t for outliers, Poisson for counts."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from widebnn import targets
from widebnn._check import Number, one_of
from widebnn.models import BNN
from widebnn.targets import Likelihood

__all__ = ["LIKELIHOODS", "centre", "check_likelihood", "law", "target"]

LIKELIHOODS = ("gaussian", "student_t", "poisson")
DEGREES = 4.0
"""ν of Student's t."""
QUARTILE = 0.6745
"""Of N(0, 1)."""


class Poisson(Likelihood):
    """y ~ Poisson(exp(b + f))."""

    log_rate: Number  # b

    def log_prob(self, y, f):
        return jax.scipy.stats.poisson.logpmf(y.astype(f.dtype), self.mean(f))

    def mean(self, f):
        return jnp.exp(self.log_rate + f)

    variance = mean

    def draw(self, rng_key, f):
        return jax.random.poisson(rng_key, self.mean(f))


def check_likelihood(likelihood: str, width: Any, noise: str, noise_std: Any, y: np.ndarray) -> None:
    one_of(LIKELIHOODS, likelihood=likelihood)
    if likelihood == "gaussian":
        return
    if isinstance(width, list) or width == np.inf:
        raise ValueError(
            f"width must be finite, and no list, where likelihood={likelihood!r}, of unknown evidence; "
            f"got {width}"
        )
    if noise != "constant" or noise_std is not None:
        raise ValueError(f"likelihood must be 'gaussian' where noise is said to vary; got {likelihood!r}")
    if likelihood == "poisson" and len(wrong := y[(y < 0) | (y != np.round(y))]):
        raise ValueError(f"y must hold counts, 0, 1, 2, …, where likelihood='poisson'; got {wrong[0]:g}")
    if likelihood == "poisson" and not y.any():
        raise ValueError("y must hold a count above 0 where likelihood='poisson'; got zeros alone")


def centre(likelihood: str, scaler: Any, y: np.ndarray) -> None:
    """Units of y that outliers do not set; counts stay as they are."""
    if likelihood == "student_t":
        low, middle, high = np.quantile(y, [0.25, 0.5, 0.75], axis=0)
        scaler.mean_ = middle
        scaler.scale_ = np.where(high > low, (high - low) / (2 * QUARTILE), scaler.scale_)
    elif likelihood == "poisson":
        scaler.mean_, scaler.scale_ = np.zeros(1), np.ones(1)


def target(likelihood: str, bnn: BNN, x: np.ndarray, y: np.ndarray) -> Any:
    """Of standardised observations, or of counts."""
    if likelihood == "student_t":
        return targets.student_t(bnn, x, y, DEGREES)
    return targets.non_gaussian(bnn, x, y.astype(int), Poisson(np.log(y.mean())))


def law(likelihood: str, f: np.ndarray, noise_std: np.ndarray, y: np.ndarray) -> Any:
    """Of standardised observations, from f of each draw and input (draw, m), σ (draw,) and the rows' y."""
    if likelihood == "student_t":
        return stats.t(DEGREES, f, noise_std[:, None])
    return stats.poisson(np.exp(np.log(y.mean()) + f))
