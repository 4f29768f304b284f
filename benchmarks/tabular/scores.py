"""Predictive distributions, all of them mixtures of Gaussians, and their scores, all in closed form."""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from widebnn.metrics import gaussian_mixture_nll

__all__ = ["Mixture", "Scores", "coverage", "crps", "scores"]

MAX_COMPONENTS = 500
"""Of a mixture over draws, evenly spaced: the cost of the CRPS grows with their square."""


class Mixture(NamedTuple):
    """Equally weighted Gaussians at each of m inputs: means and deviations (component, m), in units of y."""

    means: np.ndarray
    stds: np.ndarray

    def thinned(self) -> "Mixture":
        """At most 500 components, evenly spaced."""
        step = -(-len(self.means) // MAX_COMPONENTS)
        return Mixture(self.means[::step], self.stds[::step])


class Scores(NamedTuple):
    """Of m predictions, in the units of y.

    Attributes
    ----------
    rmse
        Root mean squared error of the mean.
    nll
        Mean negative log predictive density, in nats.
    crps
        Mean continuous ranked probability score.
    coverage
        Share of observations in the central 90 % interval.
    """

    rmse: float
    nll: float
    crps: float
    coverage: float


def scores(mixture: Mixture, y: np.ndarray) -> Scores:
    """All of them."""
    return Scores(
        rmse=float(np.sqrt(np.mean((mixture.means.mean(axis=0) - y) ** 2))),
        nll=gaussian_mixture_nll(mixture.means, mixture.stds, y, axis=0),
        crps=float(crps(mixture, y).mean()),
        coverage=coverage(mixture, y),
    )


def coverage(mixture: Mixture, y: np.ndarray, level: float = 0.9) -> float:
    """Share of observations whose probability integral transform lies within `level` about one half."""
    transform = ndtr((y - mixture.means) / mixture.stds).mean(axis=0)
    return float(np.mean(np.abs(transform - 0.5) < level / 2))


def crps(mixture: Mixture, y: np.ndarray) -> np.ndarray:
    """E|Y − y| − ½ E|Y − Y′| of each observation, (m,) (Grimit et al. 2006, equation 5)."""
    near = _mean_absolute(y - mixture.means, mixture.stds).mean(axis=0)
    apart = [
        _mean_absolute(means[:, None] - means, np.hypot(stds[:, None], stds)).mean()
        for means, stds in zip(mixture.means.T, mixture.stds.T)
    ]
    return near - np.array(apart) / 2


def _mean_absolute(mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """E|Z| of Z ~ N(mean, std²)."""
    score = mean / std
    density = np.exp(-(score**2) / 2) / np.sqrt(2 * np.pi)
    return 2 * std * density + mean * (2 * ndtr(score) - 1)
