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

    factor: Float64[np.ndarray, "n n"]  # L, lower triangular, with LLᵀ = K + σ²I
    weights: Float64[np.ndarray, "n d_out"]  # (K + σ²I)⁻¹y
    noise: float  # σ²


class Evidence:
    """Minus the log evidence of rows x and y, up to a constant.

    `network_at` is a pytree that maps the coordinates u of the scales to the network; the unit of
    `least_noise`, the least σ², is tr K.
    """

    def __init__(self, network_at: Any, x: np.ndarray, y: np.ndarray, least_noise: float):
        self.network_at, self.least_noise = network_at, least_noise
        self.x, self.y = np.asarray(x, np.float64), np.asarray(y, np.float64)

    def __call__(self, u: Vector) -> tuple[float, Vector]:
        """The value at u, and its gradient.

        The gradient in K_σ² is ½ ∑_j [K_σ²⁻¹ − ααᵀ] with α = K_σ²⁻¹ y_:j, and is pulled back to all scales at
        once.
        """
        import scipy.linalg  # a fifth of a second at import, and a chain does without

        with _in_float64(), on_one_thread():
            at = self.network_at, jnp.asarray(u), jnp.asarray(self.x)
            kernel, noise = jax.device_get(_kernel(*at))
            n, d_out = self.y.shape
            least = self.least_noise * np.trace(kernel)
            factor = scipy.linalg.cholesky(kernel + max(noise, least) * np.eye(n), lower=True)
            alpha = scipy.linalg.cho_solve((factor, True), self.y)
            (potri,) = scipy.linalg.get_lapack_funcs(("potri",), (factor,))
            inverse = potri(factor, lower=True)[0]  # its lower triangle
            inverse = np.tril(inverse) + np.tril(inverse, -1).T
            value = np.sum(self.y * alpha) / 2 + d_out * np.sum(np.log(np.diag(factor)))
            outer, trace = (d_out * inverse - alpha @ alpha.T) / 2, 0.0
            if noise > least:
                trace = np.trace(outer)
            else:
                outer += self.least_noise * np.trace(outer) * np.eye(n)
            gradient = np.asarray(_pulled_back(*at, (jnp.asarray(outer), jnp.asarray(trace))))
        return float(value), gradient

    def given_rows(self, u: Vector) -> Conditioned:
        """The process at u, given the rows."""
        import scipy.linalg

        with _in_float64():
            kernel, noise = jax.device_get(_kernel(self.network_at, jnp.asarray(u), jnp.asarray(self.x)))
        noise = max(float(noise), float(self.least_noise * np.trace(kernel)))
        factor = scipy.linalg.cholesky(kernel + noise * np.eye(len(kernel)), lower=True)
        return Conditioned(factor, scipy.linalg.cho_solve((factor, True), self.y), noise)

    def between(self, u: Vector, new: np.ndarray) -> tuple[Any, Any]:
        """K of rows and new inputs, and the variance at each new input, at u."""
        with _in_float64():
            at = self.network_at, jnp.asarray(u)
            return jax.device_get(_between(*at, jnp.asarray(self.x), jnp.asarray(new, jnp.float64)))

    def within(self, u: Vector, new: np.ndarray) -> Any:
        """K of new inputs, at u."""
        with _in_float64():
            return jax.device_get(_kernel(self.network_at, jnp.asarray(u), jnp.asarray(new, jnp.float64)))[0]

    def information_root(self, u: Vector) -> Float64[np.ndarray, "scale pair"]:
        """R at u, of which RRᵀ is Fisher's information ½ tr (K_σ²⁻¹ ∂_iK_σ² K_σ²⁻¹ ∂_jK_σ²) of one output."""
        with _in_float64(), on_one_thread():
            x, points = jnp.asarray(self.x), np.vstack([u, u + SLOPE_STEP * np.eye(len(u))])
            pairs = [jax.device_get(_kernel(self.network_at, jnp.asarray(point), x)) for point in points]
            (kernel, *kernels), (noise, *noises) = zip(*pairs)
            slopes = (np.stack(kernels) - kernel) / SLOPE_STEP
            noise_slopes = (np.stack(noises) - noise) / SLOPE_STEP
            eye = np.eye(len(kernel))
            least = self.least_noise * np.trace(kernel)
            inverse = np.linalg.inv(np.linalg.cholesky(kernel + max(float(noise), least) * eye))
            whitened = inverse @ (slopes + noise_slopes[:, None, None] * eye) @ inverse.T
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
def _kernel(network_at: Any, u: Array, x: Array) -> tuple[Float[Array, "n n"], Float[Array, ""]]:
    """K and σ²."""
    bnn = network_at(u)
    return nngp_kernel(bnn)(x), jnp.asarray(bnn.noise_std, u.dtype) ** 2


@jax.jit
def _pulled_back(network_at: Any, u: Array, x: Array, cotangents: Any) -> Array:
    """The gradient in u of what has these gradients in K and σ²."""
    return jax.vjp(functools.partial(_kernel, network_at, x=x), u)[1](cotangents)[0]


@jax.jit
def _between(network_at: Any, u: Array, x: Array, new: Array) -> Any:
    kernel = nngp_kernel(network_at(u))
    return kernel(x, new), jax.vmap(lambda row: kernel(row[None])[0, 0])(new)
