"""Data in blocks: the readout's posterior in feature space without Ψ of all observations at once.

ΨᵀΨ, Ψᵀy and ‖y − ΨW‖² are sums over observations. Formed block after block, and their gradients too, with Ψ
of a block computed anew, they take memory O(block · width + p²) beside the data, however many rows there are.
The gradient of a potential is in reverse mode, with respect to parameters, λ, and the arrays of the network,
such as its scales; x and y are data and get none.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float, PyTree

from widebnn._check import Number
from widebnn.models import BNN
from widebnn.models.embedding import Inner
from widebnn.targets._readout import FeatureSpace, Readout, least_noise


class Rows(NamedTuple):
    """Observations, and how many of them make a block."""

    x: Any  # an array (n, ...), or a pytree of arrays with n rows each
    y: Float[Array, "n d_out"]
    block_size: int

    def sum(self, of_block: Callable[[Callable[..., tuple[Array, Array]]], PyTree]) -> PyTree:
        """Σ_b of_block(rows), with `rows(bnn, inner)` = Ψ_b, y_b.

        Where the blocks do not divide n, the last one reaches back, and its rows that were counted are zero.
        """
        n = len(self.y)
        size = min(self.block_size, n)

        def block(i):
            start = jnp.minimum(i * size, n - size)
            x, y = jax.tree.map(lambda a: jax.lax.dynamic_slice_in_dim(a, start, size), (self.x, self.y))
            is_new = (start + jnp.arange(size) >= i * size)[:, None]
            return lambda bnn, inner: (
                jnp.where(is_new, bnn.embedding(inner, x), 0),
                jnp.where(is_new, y, 0),
            )

        @functools.partial(jax.checkpoint, prevent_cse=False)  # Ψ is computed anew where a gradient needs it
        def term(i):
            return of_block(block(i))

        def add(i, total):
            return jax.tree.map(jnp.add, total, term(i))

        zero = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(term, 0))
        return jax.lax.fori_loop(0, -(-n // size), add, zero)


def misfits(
    psi: Float[Array, "b p"], y: Float[Array, "b d_out"], readout: Readout
) -> Float[Array, "1 d_out"]:
    """‖y − ΨW‖² of each output."""
    return jnp.sum((y - psi @ readout) ** 2, axis=0, keepdims=True)


def _moments(psi, y):
    """ΨᵀΨ and Ψᵀy."""
    return psi.T @ psi, psi.T @ y


class BlockedFeatureSpace(FeatureSpace):
    """`FeatureSpace` by sums over blocks: one pass over the data for ΨᵀΨ and Ψᵀy, one for the misfit."""

    def __init__(
        self,
        bnn: BNN,
        inner: Inner,
        data: Rows,
        reg: Number | None,
        noise_std: Number = 0,
    ):
        self.network, self.data, self.y = (bnn, inner), data, data.y
        gram, cross = data.sum(lambda rows: _moments(*rows(*self.network)))
        if reg is None:  # a derivative of the least noise would take another pass over the data
            reg = jnp.maximum(noise_std**2, least_noise(jax.lax.stop_gradient(jnp.trace(gram))))
        self._factorise(gram, cross, reg)

    def _misfit(self, readout):
        return jnp.sum(self.data.sum(lambda rows: misfits(*rows(*self.network), readout)))

    def potential(self, ratio: Number = 1) -> Float[Array, ""]:
        """As in `FeatureSpace`, with the gradient formed in the pass that forms the misfit.

        μ minimises the quadratic, and d log det = 2⟨ΨS, dΨ⟩ with S = (ΨᵀΨ + λI)⁻¹: given μ and S, the
        gradient ∂U/∂Ψ = d_out ΨS − (ρ/λ)(y − Ψμ)μᵀ needs only the rows at hand. For the same reason
        ∂U/∂λ = d_out (tr S + (n − p)/λ)/2 − ρ‖y − Ψμ‖²/(2λ²).
        """
        mean = self.mean()
        root = solve_triangular(self.factor, jnp.eye(len(self.factor), dtype=self.factor.dtype))
        reg, ratio = (jnp.asarray(number, mean.dtype) for number in (self.reg, ratio))
        solved = mean, root @ root.T, self.log_det()
        return _potential(self.data.block_size, (self.network, reg, ratio), solved, self.data.x, self.y)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _potential(block_size, variables, solved, x, y):
    """U of (network, λ, ρ), given μ, S and log det K̂_λ; its gradient goes through all of them at once."""
    (network, reg, ratio), (mean, _, log_det) = variables, solved
    square = jnp.sum(Rows(x, y, block_size).sum(lambda rows: misfits(*rows(*network), mean)))
    return (ratio * (square / reg + jnp.sum(mean**2)) + mean.shape[1] * log_det) / 2


def _potential_forward(block_size, variables, solved, x, y):
    (network, reg, ratio), (mean, inverse, log_det) = variables, solved
    (p, d_out), n = mean.shape, len(y)

    def square_and_gradient(rows):
        psi, pullback, y_b = jax.vjp(lambda network: rows(*network), network, has_aux=True)
        residual = y_b - psi @ mean
        (gradient,) = pullback(d_out * (psi @ inverse) - ratio / reg * residual @ mean.T)
        return jnp.sum(residual**2), jax.tree.map(_unless_of_integers, gradient)

    square, of_network = Rows(x, y, block_size).sum(square_and_gradient)
    quadratic = square / reg + jnp.sum(mean**2)
    of_reg = (d_out * (jnp.trace(inverse) + (n - p) / reg) - ratio * square / reg**2) / 2
    return (ratio * quadratic + d_out * log_det) / 2, (of_network, of_reg, quadratic / 2)


def _unless_of_integers(gradient):
    """None, which stands for zero, of constants that have no derivative."""
    return None if gradient.dtype == jax.dtypes.float0 else gradient


def _potential_backward(block_size, gradient, cotangent):
    return jax.tree.map(lambda leaf: cotangent * leaf, gradient), None, None, None


_potential.defvjp(_potential_forward, _potential_backward)
