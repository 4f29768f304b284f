"""The unit-wise sampler: top-layer units redrawn from the prior, a few at a time, by rank-2m updates.

K̂_σ² = σ²I + Σ_k ψ_kψ_kᵀ is a sum over the units k of the top hidden layer, so that fresh incoming weights
for m of them change it by V S Vᵀ, V = [ψ', ψ] (n × 2m), S = diag(+1, …, −1, …). A unit's share of U is
O(1/width): the chance that a fresh prior draw is accepted tends to 1, and one sweep over all units tends to
an independent sample. There is no step size and no gradient.

Neighbours, neither of which integrates the readout out or redraws from the prior by rank updates: Gibbs
sampling over blocks of parameters (Papamarkou 2023) and with noise at every activation (Piccioli, Troiani &
Zdeborová 2024).
"""

from dataclasses import field, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve, solve_triangular
from jaxtyping import Array, Float

from widebnn._check import Number, at_least, is_known_to_be, non_negative
from widebnn._pytree import STATIC
from widebnn.samplers._base import Info, Sampler
from widebnn.tree import Position, normal_like

GROUP = 32
"""Units whose turns come before the inverse is updated: matrices large enough to be fast and small enough for
a cache."""

LEAST_NOISE = 1e-3
"""σ² in units of ‖ψ‖², down to which float32 holds ΔU to about .02 where there are fewer units than rows."""


class UnitwiseState(NamedTuple):
    position: Position
    embedding: Float[Array, "n p"]


class unitwise(Sampler):
    """A step is a sweep: one block of units after another is offered fresh weights from the prior.

    A block is accepted with probability $min(1, exp(−ΔU))$. In data space, $K̂_σ² = ΨΨᵀ + σ²I$ changes by
    $VSVᵀ$, where $V$ holds the new and the old columns of the block in $Ψ$, and $S = diag(+1, …, −1, …)$.
    With $P = K̂_σ²⁻¹$, $G = PV$, $M = S + VᵀG$ and $b = Gᵀy$,
    $ΔU = −½ ∑_j b_:jᵀM⁻¹b_:j + (d_out/2) log |det M|$, and an acceptance makes $P ← P − GM⁻¹Gᵀ$: $8n²d_L$
    operations per sweep, besides the product that makes all proposals. $P$ is computed anew for each sweep.
    Where $n > p$, the inverse of $σ²I + ΨᵀΨ$ takes its place in float64. In float32 it would lose $ΔU$, and
    there $σ²$ must be at least $10⁻³$ of the mean square length of the columns of $Ψ$.

    The target is `widebnn.targets.marginal`, or that target rotated or whitened. The weights into the top
    hidden layer move and nothing else: with several hidden layers, `alternate` it with a sampler that moves
    those below.

    Parameters
    ----------
    block_size
        $m$, the number of units that are accepted or rejected together. Larger blocks make fewer, larger
        updates and are accepted less often.
    units
        Which numbers of a position belong to units, as ``target.units`` says; taken from the target unless
        given.
    inverse_temperature
        $β ≥ 0$: a block is accepted with probability $min(1, exp(−βΔU))$, which samples
        $exp(−½‖u‖² − βU(u))$.

    Raises
    ------
    TypeError
        When it meets the target, if that has no units.
    ValueError
        When it meets the target, if `block_size` does not divide the number of units, or $n > p$ and $σ$ is
        too small for float32.
    """

    block_size: int = field(default=1, metadata=STATIC)
    units: Any = field(default=None, metadata=STATIC)
    inverse_temperature: Number = 1.0

    def __post_init__(self):
        at_least(1, block_size=self.block_size)
        non_negative(inverse_temperature=self.inverse_temperature)

    def prepare(self, target):
        units = getattr(target, "units", None)
        if units is None:
            raise TypeError(f"target must offer its units, as marginal does; got {type(target).__name__}")
        if units.num_units % self.block_size:
            raise ValueError(
                f"block_size must divide the number of units, {units.num_units}; got {self.block_size}"
            )
        if target.num_observations > units.num_units:
            _check_precision(target)
        return replace(self, units=units)

    def init(self, target, position, rng_key=None):
        return UnitwiseState(position, target.embedding(position))

    def step(self, target, rng_key, state):
        if self.units is None:
            raise TypeError("target is not known: call prepare(target) first")
        is_unit, num_units = self.units
        fresh_key, accept_key = jax.random.split(rng_key)
        noise = normal_like(fresh_key, state.position)
        fresh = jax.tree.map(lambda unit, u, xi: xi if unit else u, is_unit, state.position, noise)
        new = target.embedding(fresh)
        # Δ is as large as ΨᵀΨ, and meets rounding errors of Q as large as 1/σ²: in float32, at n = 256 and
        # σ = .5, a ΔU of −.96 where −.14 is right, and at the least noise −8·10⁶ where −358 is.
        is_narrow = len(target.y) > new.shape[1] and new.dtype == jnp.float64
        sweep = _in_feature_space if is_narrow else _in_data_space
        beta = jnp.asarray(self.inverse_temperature, new.dtype)
        # the noise of the potential where the sweep begins, and the rows of the regression that has it
        (old_rows, y, noise), (new_rows, *_) = target.regression(state.embedding), target.divided(new)
        if noise.ndim:  # one number per output, and each output has a regression of its own
            y, noise = y.T[:, :, None], noise[0]
        rows = accept_key, y, noise, num_units, old_rows, new_rows
        rates, is_accepted = sweep(*rows, self.block_size, beta)

        def moved(new, old):
            return jnp.where(is_accepted.reshape((1,) * (new.ndim - 1) + (-1,)), new, old)

        position = jax.tree.map(lambda unit, v, u: moved(v, u) if unit else u, is_unit, fresh, state.position)
        units = moved(new[:, :num_units], state.embedding[:, :num_units])
        embedding = jnp.concatenate([units, new[:, num_units:]], axis=1)
        return UnitwiseState(position, embedding), Info(rates.mean(), is_accepted.any())


def _in_data_space(rng_key, y, noise, num_units: int, old, new, m: int, beta):
    """The sweep with P = (σ²I + ΨΨᵀ)⁻¹: chance of each block, and which units moved.

    P is needed at the columns V of the blocks alone. So a group of blocks has VᵀPV and VᵀPy made at once,
    its blocks take their turns on that small table, and P itself moves once a group: the same chain as one
    block after another on P, with products of matrices where there were many of matrix and vector.
    """
    num_blocks = num_units // m
    per_group = min(max(1, GROUP // m), num_blocks)
    num_groups, q = -(-num_blocks // per_group), m * per_group
    sign = jnp.repeat(jnp.asarray([1, -1], old.dtype), m)
    each = jax.vmap if noise.ndim else _once

    def columns(psi):
        """Those of the units; zeros fill the last group: blocks that change nothing."""
        return jnp.pad(psi[:, :num_units], ((0, 0), (0, num_groups * q - num_units)))

    new, old_columns = columns(new), columns(old)
    uniforms = jax.random.uniform(rng_key, (num_groups, per_group), old.dtype)

    def both(matrix, block, axis=0):
        """Rows, or columns, of a table that belong to a block: the m new ones and the m old ones."""
        starts = (block * m, q + block * m)
        return jnp.concatenate([jax.lax.dynamic_slice_in_dim(matrix, i, m, axis) for i in starts], axis)

    def visit_block(table, inputs):
        block, uniform = inputs

        @each
        def offer(table):
            rows, across = both(table, block), both(table, block, axis=1)
            inverse, log_det = _inverse(jnp.diag(sign) + both(rows, block, axis=1))
            b = rows[:, 2 * q :]
            change = (b.shape[1] * log_det - jnp.sum(b * _small_product(inverse, b))) / 2
            return change, (table, across, inverse, rows)

        change, offered = offer(table)
        rate, is_accepted = _metropolis(beta * jnp.sum(change), uniform)

        @each
        def moved(offered):
            table, across, inverse, rows = offered
            return table - _small_product(across, _small_product(jnp.where(is_accepted, inverse, 0), rows))

        return moved(offered), (rate, is_accepted)

    def visit_group(precision, group):
        v = jnp.concatenate(
            [jax.lax.dynamic_slice_in_dim(psi, group * q, q, axis=1) for psi in (new, old_columns)], axis=1
        )

        @each
        def tabled(precision, y):
            g = precision @ v
            return g, jnp.concatenate([v.T @ g, g.T @ y], axis=1)

        g, table = tabled(precision, y)
        _, (rates, is_accepted) = jax.lax.scan(visit_block, table, (jnp.arange(per_group), uniforms[group]))
        is_in = jnp.tile(jnp.repeat(is_accepted, m), 2)  # as if the others had not been offered

        @each
        def moved(precision, g, table):
            among = jnp.where(is_in[:, None] & is_in[None, :], table[:, : 2 * q], 0)
            gained, lost = _exchange(jnp.where(is_in[:, None], g.T, 0), among, q)
            return precision - gained.T @ gained + lost.T @ lost

        return moved(precision, g, table), (rates, is_accepted)

    precision = each(lambda noise: _inverse_of_gram(old.T, noise))(noise)
    _, offered = jax.lax.scan(visit_group, precision, jnp.arange(num_groups))
    rates, is_accepted = (leaf.reshape(-1)[:num_blocks] for leaf in offered)
    return rates, jnp.repeat(is_accepted, m)


def _exchange(g: Float[Array, "r n"], among: Float[Array, "r r"], q: int):
    """B₊ and B₋ with P − B₊ᵀB₊ + B₋ᵀB₋ = (P⁻¹ + V₊V₊ᵀ − V₋V₋ᵀ)⁻¹, from (PV)ᵀ and VᵀPV, V = [V₊, V₋].

    First the new columns enter, then the old ones leave: a positive definite matrix each, where S + VᵀPV at
    once is indefinite and needs pivots.
    """
    identity = jnp.eye(q, dtype=g.dtype)
    root = jnp.linalg.cholesky(identity + among[:q, :q])
    gained = solve_triangular(root, g[:q], lower=True)
    cross = solve_triangular(root, among[:q, q:], lower=True)
    root = jnp.linalg.cholesky(identity - among[q:, q:] + cross.T @ cross)
    return gained, solve_triangular(root, g[q:] - cross.T @ gained, lower=True)


def _in_feature_space(rng_key, y, noise, num_units: int, old, new, m: int, beta):
    """The sweep with Q = (σ²I + ΨᵀΨ)⁻¹, of which a block changes m rows and columns.

    With E the block's columns of the identity, the change is EΔᵀ + ΔEᵀ: rank 2m again, V = [E, Δ] and
    S = [[0, I], [I, 0]]. The quadratic form is ‖y‖² − rᵀw with r = Ψᵀy and w = Qr, over σ².
    """
    each = jax.vmap if noise.ndim else _once
    precision = each(lambda noise: _inverse_of_gram(old, noise))(noise)
    gram_old, gram, gram_new = old.T @ old, old.T @ new, new.T @ new
    difference = each(lambda y: (new - old).T @ y)(y)
    swap = jnp.roll(jnp.eye(2 * m, dtype=old.dtype), m, axis=0)

    def rows(matrix, k):
        return jax.lax.dynamic_slice_in_dim(matrix, k * m, m)

    def columns(matrix, k):
        return jax.lax.dynamic_slice_in_dim(matrix, k * m, m, axis=1)

    def visit(carry, inputs):
        precision, w, moved = carry
        k, uniform = inputs
        to_new = jnp.where(moved[:, None], columns(gram_new, k), columns(gram, k))
        to_old = jnp.where(moved[:, None], rows(gram, k).T, columns(gram_old, k))
        among = rows(columns(gram_new, k) - columns(gram_old, k), k) / 2
        delta = jax.lax.dynamic_update_slice_in_dim(to_new - to_old, among, k * m, axis=0)

        @each
        def offer(precision, w, difference, noise):
            g = jnp.concatenate([columns(precision, k), precision @ delta], axis=1)
            inverse, log_det = _inverse(swap + jnp.concatenate([rows(g, k), delta.T @ g]))
            dr = rows(difference, k)
            vw = jnp.concatenate([rows(w, k), delta.T @ w])
            s = inverse @ (vw + rows(g, k).T @ dr)
            dw = g[:, :m] @ dr - g @ s
            quadratic = jnp.sum(dr * (rows(w + dw, k) + vw[:m])) - jnp.sum(vw * s)
            return (w.shape[1] * log_det - quadratic / noise) / 2, (precision, w, g, inverse, dw)

        change, offered = offer(precision, w, difference, noise)
        rate, is_accepted = _metropolis(beta * jnp.sum(change), uniform)

        @each
        def taken(offered):
            precision, w, g, inverse, dw = offered
            return precision - g @ jnp.where(is_accepted, inverse, 0) @ g.T, w + jnp.where(is_accepted, dw, 0)

        is_here = jnp.arange(len(moved)) // m == k
        return (*taken(offered), moved | (is_here & is_accepted)), (rate, is_accepted)

    num_blocks = num_units // m
    uniforms = jax.random.uniform(rng_key, (num_blocks,), old.dtype)
    w = each(lambda precision, y: precision @ (old.T @ y))(precision, y)
    start = precision, w, jnp.zeros(old.shape[1], bool)
    _, (rates, is_accepted) = jax.lax.scan(visit, start, (jnp.arange(num_blocks), uniforms))
    return rates, jnp.repeat(is_accepted, m)


def _check_precision(target):
    """See that float32 holds what a column takes from P: 1 − ψᵀPψ may be as small as σ²/‖ψ‖².

    Its rounding error is ε‖ψ‖²/σ², and that of ΔU, a logarithm of it, a few tenths of ε(‖ψ‖²/σ²)².
    """
    is_less, least = _noise_is_less(target)
    if least.dtype == jnp.float32 and is_known_to_be(1, is_less):
        raise ValueError(
            f"noise_std must be at least {float(least) ** 0.5:.2g} in float32 with {target.units.num_units} "
            f"units and {target.num_observations} observations; take more units, function_space_hmc, or "
            'float64 by jax.config.update("jax_enable_x64", True)'
        )


@jax.jit
def _noise_is_less(target):
    """Than the least σ² that float32 holds; and that one."""
    psi, _, noise = target.divided(target.embedding(target.draw_prior(jax.random.key(0))))
    least = LEAST_NOISE * jnp.sum(psi**2) / psi.shape[1]
    return jnp.min(jnp.asarray(noise)) < least, least


def _once(function):
    """In place of `jax.vmap` where all outputs have one σ: they are one regression."""
    return function


def _inverse_of_gram(psi, noise):
    """(σ²I + ΨᵀΨ)⁻¹."""
    identity = jnp.eye(psi.shape[1], dtype=psi.dtype)
    return cho_solve(cho_factor(psi.T @ psi + noise * identity), identity)


def _inverse(m):
    """M⁻¹ and log |det M| of a small matrix."""
    if m.shape == (2, 2):  # without the latency of a factorisation, once per unit
        det = m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]
        adjugate = jnp.stack([m[1, 1], -m[0, 1], -m[1, 0], m[0, 0]]).reshape(2, 2)
        return adjugate / det, jnp.log(jnp.abs(det))
    return jnp.linalg.inv(m), jnp.linalg.slogdet(m)[1]


def _small_product(a, b):
    """a @ b as a sum of outer products: the compiler fuses it, and calls no library once per unit."""
    return sum(a[:, i, None] * b[None, i, :] for i in range(a.shape[1]))


def _metropolis(change, uniform):
    rate = jnp.where(jnp.isnan(change), 0, jnp.exp(jnp.minimum(-change, 0)))
    return rate, uniform < rate
