"""The evidence of a readout's scale and of σ through the eigenvalues of ΨΨᵀ."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from widebnn._check import Number
from widebnn.targets._readout import smaller_space


class Spectrum(NamedTuple):
    """Eigenvalues of $ΨΨᵀ$ and $y$ along its eigenvectors; the evidence of scale and $σ$ needs no more.

    Attributes
    ----------
    values
        Eigenvalues $λ_i$ of $ΨΨᵀ$, those that may differ from 0.
    squares
        $(q_iᵀ y_:j)²$, with $q_i$ the eigenvectors.
    rest
        The part of $‖y_:j‖²$ outside the span of the $q_i$.
    num_observations
        Number of observations, $n$.
    """

    values: Float[Array, " k"]
    squares: Float[Array, "k d_out"]
    rest: Float[Array, " d_out"]
    num_observations: int

    def potential(self, scale: Number, noise_std: Number | Float[Array, "#d_out"]) -> Float[Array, ""]:
        """$½ ∑_j (y_:jᵀ K⁻¹ y_:j + log det K)$ with $K = s²ΨΨᵀ + σ²I$.

        Parameters
        ----------
        scale, noise_std
            $s$ and $σ$, which may be one per output.
        """
        noise = jnp.asarray(noise_std, self.values.dtype).reshape(1, -1) ** 2
        values = jnp.asarray(scale, self.values.dtype) ** 2 * self.values[:, None] + noise
        quadratic = jnp.sum(self.squares / values) + jnp.sum(self.rest[None, :] / noise)
        rest = (self.num_observations - len(values)) * jnp.mean(jnp.log(noise))
        return (quadratic + len(self.rest) * (jnp.sum(jnp.mean(jnp.log(values), axis=1)) + rest)) / 2


def spectrum(psi: Float[Array, "n p"], y: Float[Array, "n d_out"], space: str = "auto") -> Spectrum:
    """The spectrum of $ΨΨᵀ$, from one eigendecomposition.

    Parameters
    ----------
    psi, y
        $Ψ$, $(n, p)$, and observations $(n, d_out)$.
    space
        What to decompose: "data" for $ΨΨᵀ$, "feature" for $ΨᵀΨ$, "auto" for the smaller matrix.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import widebnn as wb
    >>> found = wb.targets.spectrum(jnp.eye(3), jnp.ones((3, 2)))
    >>> found.values.tolist()
    [1.0, 1.0, 1.0]
    """
    n = len(psi)
    if smaller_space(psi.shape, space) == "data":
        values, vectors = jnp.linalg.eigh(psi @ psi.T)
        return Spectrum(jnp.maximum(values, 0), (vectors.T @ y) ** 2, jnp.zeros(y.shape[1:], y.dtype), n)
    values, vectors = jnp.linalg.eigh(psi.T @ psi)
    # Below rounding an eigenvalue is 0, and its direction part of the rest, which is formed as a residual: a
    # difference of squares would cancel.
    is_seen = values > 4 * jnp.finfo(values.dtype).eps * values[-1]
    inverse = jnp.where(is_seen, 1 / jnp.where(is_seen, values, 1), 0)[:, None]
    cross = vectors.T @ (psi.T @ y)
    rest = jnp.sum((y - psi @ (vectors @ (inverse * cross))) ** 2, axis=0)
    return Spectrum(jnp.where(is_seen, values, 0), inverse * cross**2, rest, n)
