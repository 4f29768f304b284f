"""Noise that varies: known for each row, or log-linear in the inputs, σ(x) = σ exp(aᵀx)."""

from typing import Any, NamedTuple

import numpy as np

from widebnn._arrays import real
from widebnn._check import finite, one_of

__all__ = ["NOISES", "REACH", "Noise", "known_noise"]

NOISES = ("constant", "per input")
REACH = 3.0
"""Largest |aᵀx|: far from the rows σ(x) stays within e^±3 σ."""


class Noise(NamedTuple):
    """Deviations of the noise of the rows, (n,), in units of σ, which is 1 where they are known.

    `coefficients` are a, (d,), or None where deviations are known.
    """

    units: np.ndarray
    coefficients: np.ndarray | None = None

    @classmethod
    def log_linear(cls, coefficients: np.ndarray, x: np.ndarray) -> "Noise":
        return cls(np.exp(np.clip(x @ coefficients, -REACH, REACH)), coefficients)

    def at(self, new: np.ndarray) -> np.ndarray:
        """Deviations at new inputs, (m,); 0 where those of the rows are known and others are not."""
        if self.coefficients is None:
            return np.zeros(len(new))
        return Noise.log_linear(self.coefficients, new).units


def known_noise(noise: str, scales: Any, noise_std: Any, y: np.ndarray) -> np.ndarray | None:
    """Given deviations of the noise, in the units of y and its shape (n, d_out), or None."""
    one_of(NOISES, noise=noise)
    if noise == "per input" and "noise_std" in (scales or {}) and not hasattr(scales["noise_std"], "at"):
        raise ValueError("scales must not hold noise_std where noise='per input', which is to find it")
    if noise_std is None:
        return None
    if noise != "constant" or "noise_std" in (scales or {}):
        raise ValueError(
            "noise_std must not be given to fit where noise='per input' or scales has a noise_std: one of "
            "them says what the noise is"
        )
    given = np.asarray(finite(noise_std=real(noise_std=noise_std)), np.float64)
    if given.shape not in ((len(y),), y.shape):
        raise ValueError(f"noise_std must have shape ({len(y)},), or that of y; got {given.shape}")
    if not (given > 0).all():
        raise ValueError(f"noise_std must be above 0; got {given.min():g}")
    return np.broadcast_to(given.reshape(len(y), -1), y.shape)
