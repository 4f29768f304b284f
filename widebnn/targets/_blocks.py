"""Data in blocks: the readout's posterior in feature space without Ψ of all observations at once.

ΨᵀΨ, Ψᵀy and ‖y − ΨW‖² are sums over observations. Formed block after block, and their gradients too, with Ψ
of a block computed anew, they take memory O(block · width + p²) beside the data, however many rows there are.
Gradients are in reverse mode and with respect to parameters, λ, and scales of the network that are traced; x
and y are data and get none.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float, PyTree

from widebnn._check import Number
from widebnn.models.embedding import Inner
from widebnn.targets._readout import FeatureSpace, Readout, least_noise

Embedding = Callable[[Inner, Float[Array, "b ..."]], Float[Array, "b p"]]

Term = Callable[[Float[Array, "b p"], Float[Array, "b d_out"], Any], PyTree]
"""A function of Ψ_b, y_b and arguments of its own; rows of zeros add nothing to it."""


class Rows(NamedTuple):
    """Observations, and how many of them make a block."""

    x: Float[Array, "n ..."]
    y: Float[Array, "n d_out"]
    block_size: int

    def sum(self, of_block: Callable[[Callable[..., Any]], PyTree]) -> PyTree:
        """Σ_b of_block(rows), with `rows(embedding, inner)` = Ψ_b, y_b.

        Where the blocks do not divide n, the last one reaches back, and its rows that were counted are zero.
        """
        n = len(self.x)
        size = min(self.block_size, n)

        def block(i):
            start = jnp.minimum(i * size, n - size)
            x, y = (jax.lax.dynamic_slice_in_dim(a, start, size) for a in (self.x, self.y))
            is_new = (start + jnp.arange(size) >= i * size)[:, None]
            return lambda embedding, inner: (
                jnp.where(is_new, embedding(inner, x), 0),
                jnp.where(is_new, y, 0),
            )

        shapes = jax.eval_shape(lambda: of_block(block(0)))
        zero = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
        return jax.lax.fori_loop(
            0, -(-n // size), lambda i, total: jax.tree.map(jnp.add, total, of_block(block(i))), zero
        )


def sum_over_blocks(term: Term, embedding: Embedding, inner: Inner, arguments: PyTree, data: Rows) -> PyTree:
    """Σ_b term(Ψ_b, y_b, arguments), differentiable in inner parameters, traced scales and the arguments."""
    embedding, inner = _with_scales(embedding, inner, data)
    x, y, block_size = data
    return _sum(term, embedding, block_size, inner, arguments, x, y)


def _with_scales(embedding: Embedding, inner: Inner, data: Rows) -> tuple[Embedding, Any]:
    """The embedding as a function of what it closes over too.

    A custom derivative knows arguments alone; a scale that is traced, as in a derivative in σ_W, is none.
    """
    block = jax.ShapeDtypeStruct((min(data.block_size, len(data.x)), *data.x.shape[1:]), data.x.dtype)
    pure, scales = jax.closure_convert(embedding, inner, block)
    return lambda both, x: pure(both[0], x, *both[1]), (inner, scales)


def _plain_sum(term, embedding, block_size, inner, arguments, x, y):
    return Rows(x, y, block_size).sum(lambda rows: term(*rows(embedding, inner), arguments))


_sum = jax.custom_vjp(_plain_sum, nondiff_argnums=(0, 1, 2))


def _sum_forward(term, embedding, block_size, *operands):
    # not by _sum: a derivative of the gradient goes through here in forward mode
    return _plain_sum(term, embedding, block_size, *operands), operands


def _sum_backward(term, embedding, block_size, operands, cotangent):
    inner, arguments, x, y = operands

    def gradient(rows):
        _, pullback = jax.vjp(lambda inner, args: term(*rows(embedding, inner), args), inner, arguments)
        return pullback(cotangent)

    return *Rows(x, y, block_size).sum(gradient), None, None


_sum.defvjp(_sum_forward, _sum_backward)


def misfit(psi: Float[Array, "b p"], y: Float[Array, "b d_out"], readout: Readout) -> Float[Array, ""]:
    """‖y − ΨW‖²."""
    return jnp.sum((y - psi @ readout) ** 2)


def _moments(psi, y, _):
    """ΨᵀΨ and Ψᵀy."""
    return psi.T @ psi, psi.T @ y


class BlockedFeatureSpace(FeatureSpace):
    """`FeatureSpace` by sums over blocks: one pass over the data for ΨᵀΨ and Ψᵀy, one for the misfit."""

    def __init__(
        self, embedding: Embedding, inner: Inner, data: Rows, reg: Number | None, noise_std: Number = 0
    ):
        embedding, inner = _with_scales(embedding, inner, data)
        self.embedding, self.inner, self.data, self.y = embedding, inner, data, data.y
        gram, cross = sum_over_blocks(_moments, embedding, inner, None, data)
        if reg is None:  # a derivative of the least noise would take another pass over the data
            reg = jnp.maximum(noise_std**2, least_noise(jax.lax.stop_gradient(jnp.trace(gram))))
        self._factorise(gram, cross, reg)

    def _misfit(self, readout):
        return sum_over_blocks(misfit, self.embedding, self.inner, readout, self.data)

    def potential(self, ratio: Number = 1) -> Float[Array, ""]:
        """As in `FeatureSpace`, with the gradient formed in the pass that forms the misfit.

        μ minimises the quadratic, and d log det = 2⟨ΨS, dΨ⟩ with S = (ΨᵀΨ + λI)⁻¹: given μ and S, the
        gradient ∂U/∂Ψ = d_out ΨS − (ρ/λ)(y − Ψμ)μᵀ needs only the rows at hand. For the same reason
        ∂U/∂λ = d_out (tr S + (n − p)/λ)/2 − ρ‖y − Ψμ‖²/(2λ²).
        """
        mean = self.mean()
        root = solve_triangular(self.factor, jnp.eye(len(self.factor), dtype=self.factor.dtype))
        reg, ratio = (jnp.asarray(number, mean.dtype) for number in (self.reg, ratio))
        x, y, block_size = self.data
        solved = mean, root @ root.T, self.log_det()
        return _potential(self.embedding, block_size, (self.inner, reg, ratio), solved, x, y)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _potential(embedding, block_size, variables, solved, x, y):
    """U of (inner, λ, ρ), given μ, S and log det K̂_λ; its gradient goes through all of them at once."""
    (inner, reg, ratio), (mean, _, log_det) = variables, solved
    square = _sum(misfit, embedding, block_size, inner, mean, x, y)
    return (ratio * (square / reg + jnp.sum(mean**2)) + mean.shape[1] * log_det) / 2


def _potential_forward(embedding, block_size, variables, solved, x, y):
    (inner, reg, ratio), (mean, inverse, log_det) = variables, solved
    (p, d_out), n = mean.shape, len(y)

    def square_and_gradient(rows):
        psi, pullback, y_b = jax.vjp(lambda inner: rows(embedding, inner), inner, has_aux=True)
        residual = y_b - psi @ mean
        (gradient,) = pullback(d_out * (psi @ inverse) - ratio / reg * residual @ mean.T)
        return jnp.sum(residual**2), gradient

    square, of_inner = Rows(x, y, block_size).sum(square_and_gradient)
    quadratic = square / reg + jnp.sum(mean**2)
    of_reg = (d_out * (jnp.trace(inverse) + (n - p) / reg) - ratio * square / reg**2) / 2
    return (ratio * quadratic + d_out * log_det) / 2, (of_inner, of_reg, quadratic / 2)


def _potential_backward(embedding, block_size, gradient, cotangent):
    return jax.tree.map(lambda leaf: cotangent * leaf, gradient), None, None, None


_potential.defvjp(_potential_forward, _potential_backward)
