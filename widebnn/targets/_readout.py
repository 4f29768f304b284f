"""The readout's exact posterior given the embedding Ψ, in feature space and in data space.

Given Ψ, the readout W is Bayesian linear regression with prior N(0, I): each column has the posterior
N(μ_j, Σ), Σ = (I + λ⁻¹ΨᵀΨ)⁻¹, μ = λ⁻¹ΣΨᵀy, at λ = σ². Repriorisation writes W = μ + Σ^½φ_W
(Hron et al. 2022, eqs. 3–4). Both classes below hold one factorisation and answer the same questions;
`readout_posterior` picks the one with the smaller matrix. They take different roots Σ^½, so that the
same φ_W gives different readouts of the same distribution.

K̂_λ stands for ΨΨᵀ + λI throughout; p is the number of columns of Ψ.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from widebnn._check import Number, one_of, positive
from widebnn._pytree import STATIC, pytree

Readout = Float[Array, "p d_out"]

ROUNDING = 4
"""Least σ² of a network in units of ε tr ΨΨᵀ, with ε the rounding error, where K̂_σ² has a Cholesky factor.

Cholesky factors in float32 of networks with one to three layers, 12 to 4,000 rows and scales from their
priors end at .03 to .6 of that unit; at 3 to 6 where weights are so small that Ψ is nearly constant, and sums
over many rows round one way. There the potential is not a number, and samplers reject.
"""

ROWS_AT_ONCE = 256
"""Rows that are left out side by side in feature space, which takes memory for as many times n numbers."""


@pytree
@dataclass(frozen=True, eq=False)
class Predictor:
    """What predictions need of a readout's posterior at λ = σ², and no factorisation."""

    mean: Readout  # μ
    root: Float[Array, "p k"]  # R, Σ = RRᵀ, or Σ = I − RRᵀ where `is_rest`: the one with fewer columns
    noise: Number  # σ²
    is_rest: bool = field(metadata=STATIC)

    def moments(self, psi: Float[Array, "m p"]) -> tuple[Float[Array, "m d_out"], Float[Array, " m"]]:
        """Mean and variance of observations where the embedding is Ψ*."""
        variance = jnp.sum((psi @ self.root) ** 2, axis=1)
        if self.is_rest:  # where the data leave less than rounding error, 0 and never below
            variance = jnp.maximum(jnp.sum(psi**2, axis=1) - variance, 0)
        return psi @ self.mean, variance + self.noise


@runtime_checkable
class ReadoutPosterior(Protocol):
    """The posterior $N(μ, Σ)$ of the readout given $Ψ$, $y$ and $λ$: $Σ = (I + λ⁻¹ΨᵀΨ)⁻¹$ and $μ = λ⁻¹ΣΨᵀy$.

    $K̂_λ$ stands for $ΨΨᵀ + λI$.
    """

    y: Float[Array, "n d_out"]
    reg: Any  # a number, or one per output as a row

    def quadratic(self) -> Float[Array, ""]:
        """$∑_j y_:jᵀ K̂_λ⁻¹ y_:j$."""
        ...

    def log_det(self) -> Float[Array, ""]:
        """$log det K̂_λ$."""
        ...

    def mean(self) -> Readout:
        """$μ$."""
        ...

    def transform(self, phi: Readout) -> Readout:
        """$W = μ + Σ^½ φ_W$."""
        ...

    def inverse(self, readout: Readout) -> Readout:
        """$φ_W = Σ^−½ (W − μ)$."""
        ...

    def log_jacobian(self) -> Float[Array, ""]:
        """$log |∂W/∂φ_W| = (d_out/2) log det Σ$."""
        ...

    def covariance(self, psi: Float[Array, "m p"]) -> Float[Array, "m m"]:
        """$Ψ* Σ Ψ*ᵀ$, the covariance of one column of $Ψ* W$."""
        ...

    def variance(self, psi: Float[Array, "m p"]) -> Float[Array, " m"]:
        """The diagonal of $Ψ* Σ Ψ*ᵀ$."""
        ...

    def predictor(self) -> Predictor:
        """What predictions need, without the data."""
        ...

    def left_out(self, psi: Float[Array, "n p"]) -> tuple[Float[Array, "n d_out"], Float[Array, " n"]]:
        """$y_i − E[y_i | y_−i]$ and $Var[y_ij | y_−i]$, given $Ψ$ and $λ = σ²$: row $i$ from the others.

        They are $[K̂_λ⁻¹y]_i/[K̂_λ⁻¹]_ii$ and $1/[K̂_λ⁻¹]_ii$.
        """
        ...

    def potential(self, ratio: Number = 1) -> Float[Array, ""]:
        """$½ ρ ∑_j y_:jᵀ K̂_λ⁻¹ y_:j + (d_out/2) log det K̂_λ$, with $ρ$ = `ratio`.

        At $ρ = 1$ it is minus the log evidence of $Ψ$, up to a constant.
        """
        return (ratio * self.quadratic() + self.y.shape[1] * self.log_det()) / 2


def least_noise(trace: Float[Array, ""]) -> Float[Array, ""]:
    """The least σ² at which ΨΨᵀ + σ²I, of which `trace` is tr ΨΨᵀ, has a Cholesky factor to be relied on."""
    return ROUNDING * jnp.finfo(trace.dtype).eps * trace


def readout_posterior(
    psi: Float[Array, "n p"],
    y: Float[Array, "n d_out"],
    reg: Number | Float[Array, "1 d_out"],
    space: str = "auto",
) -> ReadoutPosterior:
    """The readout's posterior given $Ψ$, from one factorisation, or from one per output.

    Parameters
    ----------
    psi, y
        $Ψ$, $(n, p)$, and observations $(n, d_out)$.
    reg
        $λ > 0$, a number, or one per output as a row.
    space
        Where to factorise: "feature" for $p × p$, "data" for $n × n$, "auto" for the smaller matrix.
    """
    kind = {"data": DataSpace, "feature": FeatureSpace}[smaller_space(psi.shape, space)]
    if isinstance(reg, jax.Array) and reg.ndim:
        return PerOutput(lambda y, reg: kind(psi, y, reg), y, reg)
    return kind(psi, y, reg)


def smaller_space(shape: tuple[int, ...], space: str = "auto") -> str:
    """Where Ψ of shape (n, p) is factorised: `space` itself, or the space of the smaller matrix."""
    one_of(("auto", "data", "feature"), space=space)
    if space != "auto":
        return space
    return "data" if shape[0] <= shape[1] else "feature"


# Outside of a program, an operation by itself would be compiled by itself.
@jax.jit
def _products(psi, y):
    return psi.T @ psi, psi.T @ y


@jax.jit
def _upper_factor(gram, reg):
    return jnp.linalg.cholesky(gram + reg * jnp.eye(len(gram), dtype=gram.dtype), upper=True)


@jax.jit
def _data_factors(psi, reg):
    eye = jnp.eye(len(psi), dtype=psi.dtype)
    factor = jnp.linalg.cholesky(psi @ psi.T + reg * eye)
    return factor, factor + jnp.sqrt(reg) * eye


class FeatureSpace(ReadoutPosterior):
    """The readout's posterior by $U$, upper triangular with $UᵀU = ΨᵀΨ + λI$ (Hron et al. 2022, §3.2)."""

    def __init__(self, psi: Float[Array, "n p"], y: Float[Array, "n d_out"], reg: Number):
        self.psi, self.y = psi, y
        gram, cross = _products(psi, y)
        self._factorise(gram, cross, reg)

    def _factorise(self, gram, cross, reg):
        self.cross, self.reg = cross, positive(reg=reg)
        self.factor = _upper_factor(gram, reg)

    def _misfit(self, readout):
        return jnp.sum((self.y - self.psi @ readout) ** 2)

    def _forward(self, b):
        return solve_triangular(self.factor, b, trans="T")

    def _backward(self, b):
        return solve_triangular(self.factor, b)

    def mean(self) -> Readout:
        return self._backward(self._forward(self.cross))

    def transform(self, phi: Readout) -> Readout:
        return self._backward(self._forward(self.cross) + jnp.sqrt(self.reg) * phi)

    def inverse(self, readout: Readout) -> Readout:
        return (self.factor @ readout - self._forward(self.cross)) / jnp.sqrt(self.reg)

    def quadratic(self) -> Float[Array, ""]:
        # Two sums of squares, least at μ: a rounding error in μ enters squared, where yᵀy − ‖U⁻ᵀΨᵀy‖²
        # would cancel.
        mean = self.mean()
        return self._misfit(mean) / self.reg + jnp.sum(mean**2)

    def log_det(self) -> Float[Array, ""]:
        n, p = len(self.y), len(self.factor)
        return 2 * jnp.sum(jnp.log(jnp.diag(self.factor))) + (n - p) * jnp.log(self.reg)

    def log_jacobian(self) -> Float[Array, ""]:
        p, d_out = self.cross.shape
        return d_out * (p * jnp.log(self.reg) / 2 - jnp.sum(jnp.log(jnp.diag(self.factor))))

    def covariance(self, psi: Float[Array, "m p"]) -> Float[Array, "m m"]:
        root = self._forward(psi.T)
        return self.reg * root.T @ root

    def variance(self, psi: Float[Array, "m p"]) -> Float[Array, " m"]:
        return self.reg * jnp.sum(self._forward(psi.T) ** 2, axis=0)

    def predictor(self) -> Predictor:
        eye = jnp.eye(len(self.factor), dtype=self.factor.dtype)
        return Predictor(self.mean(), jnp.sqrt(self.reg) * self._backward(eye), self.reg, is_rest=False)

    def left_out(self, psi: Float[Array, "n p"]) -> tuple[Float[Array, "n d_out"], Float[Array, " n"]]:
        # λ[K̂_λ⁻¹]_ii = min_w ‖e_i − Ψw‖² + λ‖w‖², a sum of squares at its least, as in `quadratic`; so is
        # λ[K̂_λ⁻¹y]_i a scalar product of two residuals. 1 − ψ_iᵀw would cancel where it is small.
        mean = self.mean()
        residual = self.y - psi @ mean

        def of_row(row):
            i, w = row
            own = -(psi @ w).at[i].add(-1)
            return own @ residual + self.reg * w @ mean, own @ own + self.reg * w @ w

        slopes = self._backward(self._forward(psi.T)).T
        n = len(psi)
        found, unexplained = jax.lax.map(of_row, (jnp.arange(n), slopes), batch_size=min(n, ROWS_AT_ONCE))
        return found / unexplained[:, None], self.reg / unexplained


class DataSpace(ReadoutPosterior):
    """The readout's posterior by $L$, lower triangular with $LLᵀ = K̂_λ = ΨΨᵀ + λI$, and $C = L + √λ I$.

    $Σ^½ = I − ΨᵀL⁻ᵀC⁻¹Ψ$ has the inverse $I + ΨᵀC⁻ᵀΨ/√λ$: it is the square root of the Kalman update (Andrews
    1968). Hron et al. 2022, App. B, take an eigendecomposition of $K̂_λ$ for the symmetric root, which costs
    more and whose derivative fails where eigenvalues coincide.
    """

    def __init__(self, psi: Float[Array, "n p"], y: Float[Array, "n d_out"], reg: Number):
        self.psi, self.y, self.reg = psi, y, positive(reg=reg)
        self.factor, self.shifted = _data_factors(psi, reg)

    def _forward(self, b):
        return solve_triangular(self.factor, b, lower=True)

    def _backward(self, b):
        return solve_triangular(self.factor, b, lower=True, trans="T")

    def mean(self) -> Readout:
        return self.psi.T @ self._backward(self._forward(self.y))

    def transform(self, phi: Readout) -> Readout:
        inside = self._forward(self.y) - solve_triangular(self.shifted, self.psi @ phi, lower=True)
        return phi + self.psi.T @ self._backward(inside)

    def inverse(self, readout: Readout) -> Readout:
        centred = readout - self.mean()
        inside = solve_triangular(self.shifted, self.psi @ centred, lower=True, trans="T")
        return centred + self.psi.T @ inside / jnp.sqrt(self.reg)

    def quadratic(self) -> Float[Array, ""]:
        return jnp.sum(self._forward(self.y) ** 2)

    def log_det(self) -> Float[Array, ""]:
        return 2 * jnp.sum(jnp.log(jnp.diag(self.factor)))

    def log_jacobian(self) -> Float[Array, ""]:
        n, d_out = self.y.shape
        return d_out * (n * jnp.log(self.reg) - self.log_det()) / 2

    def covariance(self, psi: Float[Array, "m p"]) -> Float[Array, "m m"]:
        cross = self._forward(self.psi @ psi.T)
        return psi @ psi.T - cross.T @ cross

    def variance(self, psi: Float[Array, "m p"]) -> Float[Array, " m"]:
        # where the data leave less than rounding error, 0 and never below
        cross = self._forward(self.psi @ psi.T)
        return jnp.maximum(jnp.sum(psi**2, axis=1) - jnp.sum(cross**2, axis=0), 0)

    def predictor(self) -> Predictor:
        return Predictor(self.mean(), self._forward(self.psi).T, self.reg, is_rest=True)

    def left_out(self, psi: Float[Array, "n p"]) -> tuple[Float[Array, "n d_out"], Float[Array, " n"]]:
        precision = jnp.sum(self._forward(jnp.eye(len(psi), dtype=psi.dtype)) ** 2, axis=0)
        return self._backward(self._forward(self.y)) / precision[:, None], 1 / precision


class PerOutput(ReadoutPosterior):
    """The posterior of each column of the readout at a $λ$ of its own, given $Ψ$.

    The outputs have one eigendecomposition in common, and a Cholesky factor each: up to a few dozen of these
    cost less, and have derivatives where eigenvalues coincide. A program forms each once, whatever it asks.
    """

    def __init__(
        self,
        of: Callable[[Float[Array, "n 1"], Number], ReadoutPosterior],
        y: Float[Array, "n d_out"],
        reg: Float[Array, "1 d_out"],
    ):
        self.of, self.y, self._given = of, y, reg[0]
        self.reg = self._each(lambda given: given.reg)[None, :]

    def _each(self, question: Callable[..., Any], *given: Float[Array, "... d_out"]) -> Any:
        """The answers of all outputs, along the last axis."""

        def answer(y, reg, *given):
            return question(self.of(y[:, None], reg), *given)

        return jax.vmap(answer, in_axes=-1, out_axes=-1)(self.y, self._given, *given)

    def quadratic(self) -> Float[Array, ""]:
        return jnp.sum(self._each(lambda given: given.quadratic()))

    def log_det(self) -> Float[Array, " d_out"]:
        return self._each(lambda given: given.log_det())

    def mean(self) -> Readout:
        return self._each(lambda given: given.mean()[:, 0])

    def transform(self, phi: Readout) -> Readout:
        return self._each(lambda given, phi: given.transform(phi[:, None])[:, 0], phi)

    def inverse(self, readout: Readout) -> Readout:
        return self._each(lambda given, w: given.inverse(w[:, None])[:, 0], readout)

    def log_jacobian(self) -> Float[Array, ""]:
        return jnp.sum(self._each(lambda given: given.log_jacobian()))

    def covariance(self, psi: Float[Array, "m p"]) -> Float[Array, "m m d_out"]:
        return self._each(lambda given: given.covariance(psi))

    def variance(self, psi: Float[Array, "m p"]) -> Float[Array, "m d_out"]:
        return self._each(lambda given: given.variance(psi))

    def predictor(self) -> Predictor:
        raise TypeError("a predictor has one σ for all outputs; ask the posterior of each")

    def left_out(self, psi: Float[Array, "n p"]) -> tuple[Float[Array, "n d_out"], Float[Array, "n d_out"]]:
        residual, variance = self._each(lambda given: given.left_out(psi))
        return residual[:, 0], variance

    def potential(self, ratio: Number | Float[Array, "1 d_out"] = 1) -> Float[Array, ""]:
        ratios = jnp.broadcast_to(jnp.asarray(ratio, self.y.dtype), (1, self.y.shape[1]))
        return jnp.sum(self._each(lambda given, ratio: given.potential(ratio), ratios[0]))
