"""Predictions of three kinds, each with its scores."""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, ndtr
from scipy.stats import norm

from widebnn import metrics
from widebnn.estimators._draws import quantile

__all__ = ["LEVELS", "Mixture", "Probabilities", "Quantiles", "crps"]

MAX_COMPONENTS = 500
"""Of a mixture over draws, evenly spaced: the cost of the CRPS grows with their square."""
LEVELS = np.linspace(0.05, 0.95, 10)
"""Of quantiles: the middles of ten equal parts, whose first and last are the ends of the 90 % interval."""

Scores = dict[str, float]
"""Root mean squared error of the mean, NLL in nats, CRPS, and of the central 90 % interval the share of
observations inside and its mean width; or of classes NLL, share that is right and calibration error."""


class Mixture(NamedTuple):
    """Equally weighted Gaussians at each of m inputs: means and deviations (component, m), in units of y."""

    means: np.ndarray
    stds: np.ndarray

    def thinned(self) -> "Mixture":
        """At most 500 components, evenly spaced."""
        step = -(-len(self.means) // MAX_COMPONENTS)
        return Mixture(self.means[::step], self.stds[::step])

    def scores(self, y: np.ndarray) -> Scores:
        """In the units of y, in closed form."""
        lower, upper = (quantile(level, *self) for level in LEVELS[[0, -1]])
        return {
            "rmse": _rmse(self.means.mean(axis=0), y),
            "nll": -float((logsumexp(norm.logpdf(y, *self), axis=0) - np.log(len(self.means))).mean()),
            "crps": float(crps(self, y).mean()),
            "coverage": float(np.mean((lower <= y) & (y <= upper))),
            "width": float(np.mean(upper - lower)),
        }


class Quantiles(NamedTuple):
    """Means (m,), and quantiles at `LEVELS` (level, m): there is no density, and so no NLL."""

    means: np.ndarray
    values: np.ndarray

    def scores(self, y: np.ndarray) -> Scores:
        """The CRPS is twice the mean of quantile losses, as of ten equal atoms."""
        values = np.sort(self.values, axis=0)  # fitted one by one, they may cross
        error = y - values
        losses = np.maximum(LEVELS[:, None] * error, (LEVELS[:, None] - 1) * error)
        return {
            "rmse": _rmse(self.means, y),
            "crps": float(2 * losses.mean()),
            "coverage": float(np.mean((values[0] <= y) & (y <= values[-1]))),
            "width": float(np.mean(values[-1] - values[0])),
        }


class Probabilities(NamedTuple):
    """Of classes, (m, class)."""

    values: np.ndarray

    def scores(self, y: np.ndarray) -> Scores:
        """Those of classes; of a class that is held for impossible the NLL is infinite."""
        return {
            "nll": metrics.nll(self.values, y),
            "accuracy": metrics.accuracy(self.values, y),
            "ece": metrics.ece(self.values, y),
        }


def _rmse(means: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((means - y) ** 2)))


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
