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


class Conditioned(NamedTuple):
    """The process given data."""

    factor: Float64[np.ndarray, "n n"]  # L, lower triangular, with LLᵀ = K_σ² = K + diag σ_i²
    weights: Float64[np.ndarray, "n d_out"]  # K_σ²⁻¹y
    least: float  # of σ_i²


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
            noise, least = self._noise(kernel, noise)
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
        """The process at u, given the rows."""
        import scipy.linalg

        with _in_float64():
            kernel, noise = jax.device_get(_kernel(self.network_at, jnp.asarray(u), jnp.asarray(self.x)))
        noise, least = self._noise(kernel, noise)
        factor = scipy.linalg.cholesky(kernel + np.diag(noise), lower=True)
        return Conditioned(factor, scipy.linalg.cho_solve((factor, True), self.y), least)

    def _noise(self, kernel: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, float]:
        """σ_i² of the rows, and the least that it is."""
        least = float(self.least_noise * np.trace(kernel))
        return np.maximum(noise * self.units**2, least), least

    def between(self, u: Vector, new: np.ndarray) -> tuple[Any, Any, Any]:
        """K of rows and new inputs, and at each of these the variance and σ² in its unit, at u."""
        with _in_float64():
            at = self.network_at, jnp.asarray(u)
            return jax.device_get(_between(*at, jnp.asarray(self.x), jnp.asarray(new, jnp.float64)))

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
            noise, _ = self._noise(kernel, noise)
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
