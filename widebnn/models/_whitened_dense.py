"""A dense layer reduced, exactly, to what n inputs can see of it."""

import math

import jax
import jax.numpy as jnp
from flax import nnx
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float, Key

from widebnn._check import Number
from widebnn.models._affine import stretched
from widebnn.models.dense import Dense
from widebnn.tree import normal_like

__all__ = ["WhitenedDense"]

JITTER = 1.0
"""δ in units of n times the rounding error of the mean of diag K: what a Cholesky factorisation of n rows may
lose, so that equal inputs do not stop a chain."""


class WhitenedDense(nnx.Module):
    """f = L ε with LLᵀ = K + δI and K = (σ_W²/d_in) h hᵀ + σ_b².

    `Dense` is f = A V with A = [σ_W h/√d_in, σ_b 1], (n, d_in + 1), and V = [W; b] ~ N(0, I). Given h, the
    LQ factorisation A = L Q shows that f sees V through ε = Q V ~ N(0, I), (n, d_out), alone.

    Parameters
    ----------
    dense
        The layer, of which only sizes and scales are used.
    num_rows
        n.
    """

    def __init__(self, dense: Dense, num_rows: int):
        self.in_features, self.has_bias = dense.in_features, dense.bias is not None
        self.weight_std = nnx.data(dense.weight_std)
        self.bias_std = nnx.data(dense.bias_std) if self.has_bias else 0.0
        kernel = dense.kernel.get_value()  # only its shape may be known
        self.epsilon = nnx.Param(jax.ShapeDtypeStruct((num_rows, kernel.shape[1]), kernel.dtype))

    def __call__(self, h: Float[Array, "n d_in"]) -> Float[Array, "n d_out"]:
        """Outputs at the activations h of the n inputs."""
        return root(self._scaled(h), self.bias_std) @ self.epsilon[...]

    def _scaled(self, h: Float[Array, "n d_in"]) -> Float[Array, "n d_in"]:
        return stretched(self.weight_std, h) / math.sqrt(self.in_features)

    def whiten(self, h: Float[Array, "n d_in"], f: Float[Array, "n d_out"]) -> Float[Array, "n d_out"]:
        """ε = L⁻¹f of the outputs f of the layer at h."""
        scaled = self._scaled(h)
        return solve_triangular(root(scaled, self.bias_std), f, lower=True)

    def restore(self, h: Float[Array, "n d_in"], rng_key: Key[Array, ""]) -> dict[str, Array]:
        """Kernel and bias, V = Qᵀε + (I − QᵀQ)Z, Q = L⁻¹A, with Z ~ N(0, I) drawn by `rng_key`."""
        a = self._scaled(h)
        factor = root(a, self.bias_std)
        if self.has_bias:
            a = jnp.concatenate([a, jnp.full((len(a), 1), self.bias_std, a.dtype)], axis=1)
        epsilon = self.epsilon[...]
        q = solve_triangular(factor, a, lower=True)
        z = normal_like(rng_key, jax.ShapeDtypeStruct((a.shape[1], epsilon.shape[1]), epsilon.dtype))
        v = z + q.T @ (epsilon - q @ z)
        return {"kernel": v[:-1], "bias": v[-1]} if self.has_bias else {"kernel": v}


def root(scaled: Float[Array, "n d_in"], bias_std: Number) -> Float[Array, "n n"]:
    """L, the Cholesky factor of K + δI, K = (scaled)(scaled)ᵀ + σ_b²."""
    kernel = scaled @ scaled.T + jnp.asarray(bias_std, scaled.dtype) ** 2
    n = len(kernel)
    delta = JITTER * n * jnp.finfo(kernel.dtype).eps * jnp.trace(kernel) / n
    return jnp.linalg.cholesky(kernel + delta * jnp.eye(n, dtype=kernel.dtype))
