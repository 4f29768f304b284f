"""The regressor at infinite width: a Gaussian process at the most probable scales, in float64 on the host."""

from dataclasses import dataclass

import jax
import numpy as np
import scipy.linalg
from jaxtyping import Float64

from widebnn import targets
from widebnn.targets._limit import Conditioned, Evidence

__all__ = ["MAX_LIMIT_ROWS", "Process"]

MAX_LIMIT_ROWS = 10_000
"""Rows of an infinitely wide network, whose kernel takes memory for their square."""

MAX_ROWS = 256
"""Rows whose means and variances are computed at a time."""


@dataclass(frozen=True, eq=False)
class Process:
    """The process given all rows, in standardised units.

    Attributes
    ----------
    evidence
        Its kernel, and the rows.
    u
        Coordinates of its scales.
    given
        The factorisation.
    """

    evidence: Evidence
    u: Float64[np.ndarray, " scale"]
    given: Conditioned

    @classmethod
    def of(cls, posterior: targets.Scaled) -> tuple["Process", dict[str, float]]:
        """The process of a network's posterior, and its scales by name."""
        found, scales = np.zeros(0), {}
        if posterior.priors:
            mode = posterior.limiting_scales().mean
            found = np.asarray(jax.tree.leaves(mode), np.float64)
            scales = posterior.scales(targets.ScaledPosition(None, **mode))
        evidence = posterior._evidence()
        named = {name: float(scale) for name, scale in jax.device_get(scales).items()}
        return cls(evidence, found, evidence.given_rows(found)), named

    def moments(self, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means (1, m, d_out) and variances (1, m) of observations, by batches of rows."""
        batches = np.split(new, range(MAX_ROWS, len(new), MAX_ROWS))
        parts = [self._predicted(batch) for batch in batches]
        mean = np.concatenate([mean for mean, _ in parts])
        variance = np.concatenate([np.diag(covariance) for _, covariance in parts])
        return mean[None], variance[None] + self.given.noise

    def covariance(self, new: np.ndarray) -> np.ndarray:
        """(m, m), of observations."""
        return self._predicted(new)[1] + self.given.noise * np.eye(len(new))

    def draws(self, new: np.ndarray, num_samples: int, random: np.random.RandomState) -> np.ndarray:
        """Observations (sample, m, d_out), each jointly at all inputs."""
        mean, covariance = self._predicted(new)
        values, vectors = np.linalg.eigh(covariance + self.given.noise * np.eye(len(new)))
        root = vectors * np.sqrt(np.maximum(values, 0))
        return mean + root @ random.normal(size=(num_samples, *mean.shape))

    def _predicted(self, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means (m, d_out) and covariance (m, m) of the function, with no variance below 0."""
        cross, own = self.evidence.between(self.u, new)
        explained = scipy.linalg.solve_triangular(self.given.factor, cross, lower=True)
        covariance = own - explained.T @ explained
        np.fill_diagonal(covariance, np.maximum(np.diag(covariance), 0))
        return cross.T @ self.given.weights, covariance
