"""The evidence of an infinitely wide network as a function of its scales, in float64 on the host.

JAX computes the kernel and its derivatives in the scales, entry by entry; LAPACK factorises.
"""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float64
from threadpoolctl import ThreadpoolController

from widebnn.nngp import nngp_kernel

Vector = Float64[np.ndarray, " scale"]

SLOPE_STEP = 1e-5
"""Of differences to one side, in float64: their error is as small as it, and they compile nothing."""


MAX_FACTORISED, MAX_EXACT = 512, 10_000
"""Rows up to which all are factorised, and up to which they are where few of them do not stand for all."""
MAX_CANDIDATES, MAX_INDUCING = 5_000, 2_000
"""Rows from which inducing rows are chosen, and how many they may be."""
BLOCK_ROWS, MULTIPLE = 4_096, 128
"""Rows that meet the inducing rows at a time, and by what their number is rounded up for compiled kernels."""


class Conditioned(NamedTuple):
    """The process given data, by all rows or by inducing rows z that stand for them (Titsias 2009).

    With D = diag σ_i², L is the factor of K_xx + D, or of K_zz, and then M that of I + AAᵀ with
    A = L⁻¹ K_zx D^(-½). Beside inducing rows K_xx is K_xz K_zz⁻¹ K_zx, and what that leaves of the prior's
    variance at new inputs stays in theirs.
    """

    x: Float64[np.ndarray, "r d_in"]  # all rows, or z
    factor: Float64[np.ndarray, "r r"]  # L, lower triangular
    inner: Float64[np.ndarray, "r r"] | None  # M, lower triangular, or None for all rows
    fitted: Float64[np.ndarray, "r d_out"]  # L⁻¹y, or M⁻¹A D^(-½) y
    least: float  # of σ_i²
    loss: float  # minus the log evidence up to a constant; of inducing rows, what is no less

    def given(self, cross: np.ndarray, *, jointly: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Means at new inputs, from K of x and them, and what data take off their variance or covariance."""
        import scipy.linalg

        product: Any = (lambda a: a.T @ a) if jointly else (lambda a: np.einsum("im,im->m", a, a))
        with on_one_thread():
            last = scipy.linalg.solve_triangular(self.factor, cross, lower=True, check_finite=False)
            less = product(last)
            if self.inner is not None:
                last = scipy.linalg.solve_triangular(self.inner, last, lower=True, check_finite=False)
                less -= product(last)
            return last.T @ self.fitted, less


class Evidence:
    """Minus the log evidence of rows x and y, up to a constant.

    `network_at` is a pytree that maps the coordinates u of the scales, and inputs, to the network, whose σ
    may be one number per input. The unit of σ is `units`, one number per row. That of `least_noise`, the
    least σ², is tr K.
    """

    def __init__(
        self,
        network_at: Any,
        x: np.ndarray,
        y: np.ndarray,
        least_noise: float,
        units: np.ndarray | None = None,
    ):
        self.network_at, self.least_noise = network_at, least_noise
        self.units = np.ones(len(x)) if units is None else np.asarray(units, np.float64)
        self.x, self.y = np.asarray(x, np.float64), np.asarray(y, np.float64)

    def __call__(self, u: Vector) -> tuple[float, Vector]:
        """The value at u, and its gradient.

        The gradient in K_σ² is ½ ∑_j [K_σ²⁻¹ − ααᵀ] with α = K_σ²⁻¹ y_:j, and is pulled back to all scales at
        once; that in σ_i² is its diagonal.
        """
        import scipy.linalg  # a fifth of a second at import, and a chain does without

        with _in_float64(), on_one_thread():
            at = self.network_at, jnp.asarray(u), jnp.asarray(self.x)
            kernel, noise = jax.device_get(_kernel(*at))
            n, d_out = self.y.shape
            noise, least = self._noise(np.trace(kernel), noise)
            factor = scipy.linalg.cholesky(kernel + np.diag(noise), lower=True)
            alpha = scipy.linalg.cho_solve((factor, True), self.y)
            (potri,) = scipy.linalg.get_lapack_funcs(("potri",), (factor,))
            inverse = potri(factor, lower=True)[0]  # its lower triangle
            inverse = np.tril(inverse) + np.tril(inverse, -1).T
            value = np.sum(self.y * alpha) / 2 + d_out * np.sum(np.log(np.diag(factor)))
            outer = (d_out * inverse - alpha @ alpha.T) / 2
            diagonal, is_free = np.diag(outer).copy(), noise > least
            outer += self.least_noise * diagonal[~is_free].sum() * np.eye(n)
            of_noise = np.where(is_free, diagonal * self.units**2, 0)
            gradient = np.asarray(_pulled_back(*at, (jnp.asarray(outer), jnp.asarray(of_noise))))
        return float(value), gradient

    def given_rows(self, u: Vector) -> Conditioned:
        """The process at u, given the rows: exactly, or by inducing rows where there are many."""
        if len(self.x) > MAX_FACTORISED:
            chosen, factor, noise, least = self._inducing(u)
            if len(chosen) < min(MAX_INDUCING, len(self.x) // 2) or len(self.x) > MAX_EXACT:
                return self._given_inducing(u, chosen, factor, noise, least)
        return self.given_all(u)

    def given_all(self, u: Vector) -> Conditioned:
        """The process at u, by all rows."""
        import scipy.linalg

        with _in_float64():
            kernel, noise = jax.device_get(_kernel(self.network_at, jnp.asarray(u), jnp.asarray(self.x)))
        noise, least = self._noise(np.trace(kernel), noise)
        factor = scipy.linalg.cholesky(kernel + np.diag(noise), lower=True)
        fitted = scipy.linalg.solve_triangular(factor, self.y, lower=True)
        loss = np.sum(fitted**2) / 2 + self.y.shape[1] * np.sum(np.log(np.diag(factor)))
        return Conditioned(self.x, factor, None, fitted, least, float(loss))

    def _inducing(self, u: Vector) -> Any:
        """Rows, the factor of their K, and σ_i² of all rows and its least value.

        Pivoting takes the row that the others explain least, until what is left of no row exceeds
        1/tr D⁻¹. Then tr D⁻¹(K_xx − K_xz K_zz⁻¹ K_zx), half of which is what the evidence loses, is at most
        about 1.
        """
        import scipy.linalg

        candidates = np.linspace(0, len(self.x) - 1, min(len(self.x), MAX_CANDIDATES)).astype(int)
        kernel, _ = self.within(u, self.x[candidates])
        with _in_float64():
            noise = np.asarray(_noise_at(self.network_at, jnp.asarray(u), jnp.asarray(self.x)))
        noise, least = self._noise(np.trace(kernel) * len(self.x) / len(candidates), noise)
        (pivoted,) = scipy.linalg.get_lapack_funcs(("pstrf",), (kernel,))
        tol = min(1 / np.sum(1 / noise), np.diag(kernel).max() / 2)  # one row at least
        with on_one_thread():
            factor, pivots, rank, _ = pivoted(kernel, tol=tol, lower=True)
        rank = min(rank, MAX_INDUCING)
        return candidates[pivots[:rank] - 1], np.tril(factor[:rank, :rank]), noise, least

    def _given_inducing(
        self, u: Vector, chosen: np.ndarray, factor: np.ndarray, noise: np.ndarray, least: float
    ) -> Conditioned:
        import scipy.linalg

        x, root = self.x[chosen], np.sqrt(noise)
        inner, fitted, left = np.eye(len(x)), np.zeros((len(x), self.y.shape[1])), 0.0
        for start in range(0, len(self.x), BLOCK_ROWS):
            here = np.arange(start, min(start + BLOCK_ROWS, len(self.x)))
            cross, own, _ = self.between(u, x, self.x[np.resize(here, min(BLOCK_ROWS, len(self.x)))])
            with on_one_thread():
                a = scipy.linalg.solve_triangular(factor, cross[:, : len(here)], lower=True) / root[here]
                inner += a @ a.T
                fitted += a @ (self.y[here] / root[here, None])
            left += float(np.sum(np.maximum(own[: len(here)] / noise[here] - np.sum(a**2, axis=0), 0)))
        with on_one_thread():
            inner = scipy.linalg.cholesky(inner, lower=True)
            fitted = scipy.linalg.solve_triangular(inner, fitted, lower=True)
        squares = np.sum(self.y**2 / noise[:, None]) - np.sum(fitted**2)
        log_det = np.sum(np.log(np.diag(inner))) + np.sum(np.log(root))
        loss = squares / 2 + self.y.shape[1] * (log_det + left / 2)
        return Conditioned(x, factor, inner, fitted, least, float(loss))

    def _noise(self, trace: float, noise: np.ndarray) -> tuple[np.ndarray, float]:
        """σ_i² of the rows, and the least that it is."""
        least = float(self.least_noise * trace)
        return np.maximum(noise * self.units**2, least), least

    def between(self, u: Vector, x: np.ndarray, new: np.ndarray) -> tuple[Any, Any, Any]:
        """K of x and new inputs, and at each of these the variance and σ² in its unit, at u."""
        some = x[np.arange(-(-len(x) // MULTIPLE) * MULTIPLE) % len(x)] if len(x) < len(self.x) else x
        with _in_float64():
            at = self.network_at, jnp.asarray(u)
            kernel, *others = _between(*at, jnp.asarray(some), jnp.asarray(new, jnp.float64))
            return np.asarray(kernel)[: len(x)], *jax.device_get(others)

    def within(self, u: Vector, new: np.ndarray) -> tuple[Any, Any]:
        """K of new inputs, and σ² of each in its unit, at u."""
        with _in_float64():
            return jax.device_get(_kernel(self.network_at, jnp.asarray(u), jnp.asarray(new, jnp.float64)))

    def information_root(self, u: Vector) -> Float64[np.ndarray, "scale pair"]:
        """R at u, of which RRᵀ is Fisher's information ½ tr (K_σ²⁻¹ ∂_iK_σ² K_σ²⁻¹ ∂_jK_σ²) of one output."""
        with _in_float64(), on_one_thread():
            x, points = jnp.asarray(self.x), np.vstack([u, u + SLOPE_STEP * np.eye(len(u))])
            pairs = [jax.device_get(_kernel(self.network_at, jnp.asarray(point), x)) for point in points]
            (kernel, *kernels), (noise, *noises) = zip(*pairs)
            slopes = (np.stack(kernels) - kernel) / SLOPE_STEP
            noise_slopes = (np.stack(noises) - noise) / SLOPE_STEP
            noise, _ = self._noise(np.trace(kernel), noise)
            inverse = np.linalg.inv(np.linalg.cholesky(kernel + np.diag(noise)))
            slopes = slopes + (noise_slopes * self.units**2)[:, :, None] * np.eye(len(kernel))
            whitened = inverse @ slopes @ inverse.T
        return whitened.reshape(len(whitened), -1) / np.sqrt(2)


@functools.cache
def _libraries() -> ThreadpoolController:
    """Those that are loaded, whose search takes milliseconds."""
    return ThreadpoolController()


def on_one_thread() -> contextlib.AbstractContextManager[Any]:
    """LAPACK on one thread, as others would wait for one another's small matrices."""
    return _libraries().limit(limits=1, user_api="blas")


@contextlib.contextmanager
def _in_float64() -> Iterator[None]:
    """Data of the target that are in float32 may meet scales in float64."""
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        yield


@jax.jit
def _kernel(network_at: Any, u: Array, x: Array) -> tuple[Float[Array, "n n"], Float[Array, " n"]]:
    """K, and σ² of each row in its unit."""
    bnn = network_at(u, x)
    return nngp_kernel(bnn)(x), _noise(bnn, u, x)


@jax.jit
def _noise_at(network_at: Any, u: Array, x: Array) -> Float[Array, " n"]:
    return _noise(network_at(u, x), u, x)


def _noise(bnn: Any, u: Array, x: Array) -> Float[Array, " n"]:
    return jnp.broadcast_to(jnp.ravel(jnp.asarray(bnn.noise_std, u.dtype)) ** 2, len(x))


@jax.jit
def _pulled_back(network_at: Any, u: Array, x: Array, cotangents: Any) -> Array:
    """The gradient in u of what has these gradients in K and σ²."""
    return jax.vjp(functools.partial(_kernel, network_at, x=x), u)[1](cotangents)[0]


@jax.jit
def _between(network_at: Any, u: Array, x: Array, new: Array) -> Any:
    bnn = network_at(u, new)
    kernel = nngp_kernel(bnn)
    return kernel(x, new), jax.vmap(lambda row: kernel(row[None])[0, 0])(new), _noise(bnn, u, new)
