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

    A block is accepted with probability $min(1, exp(−ΔU))$. $K̂_σ² = ΨΨᵀ + σ²I$ changes by
    $VSVᵀ$, where $V$ holds the new and the old columns of the block in $Ψ$, and $S = diag(+1, …, −1, …)$.
    With $P = K̂_σ²⁻¹$, $G = PV$, $M = S + VᵀG$ and $b = Gᵀy$,
    $ΔU = −½ ∑_j b_:jᵀM⁻¹b_:j + (d_out/2) log |det M|$, and an acceptance makes $P ← P − GM⁻¹Gᵀ$: $8n²d_L$
    operations per sweep, besides the product that makes all proposals. $P$ is computed anew for each sweep.
    Where $n > p$, float32 asks for a $σ²$ of at least $10⁻³$ of the mean square length of the columns of $Ψ$.

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
        When it meets the target, if `block_size` does not divide the number of units, each output has a $σ$
        of its own, or $n > p$ and $σ$ is too small for float32.
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
        if has_noise_per_output(target):
            raise ValueError("target must have one noise_std for all outputs; take function_space_hmc")
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
        beta = jnp.asarray(self.inverse_temperature, new.dtype)
        # the noise of the potential where the sweep begins, and the rows of the regression that has it
        (old_rows, y, noise), (new_rows, *_) = target.regression(state.embedding), target.divided(new)
        rows = accept_key, y, noise, num_units, old_rows, new_rows
        rates, is_accepted = _sweep(*rows, self.block_size, beta)

        def moved(new, old):
            return jnp.where(is_accepted.reshape((1,) * (new.ndim - 1) + (-1,)), new, old)

        position = jax.tree.map(lambda unit, v, u: moved(v, u) if unit else u, is_unit, fresh, state.position)
        units = moved(new[:, :num_units], state.embedding[:, :num_units])
        embedding = jnp.concatenate([units, new[:, num_units:]], axis=1)
        return UnitwiseState(position, embedding), Info(rates.mean(), is_accepted.any())


def _sweep(rng_key, y, noise, num_units: int, old, new, m: int, beta):
    """The sweep with P = (σ²I + ΨΨᵀ)⁻¹: chance of each block, and which units moved.

    P is needed at the columns V of the blocks alone. So a group of blocks has VᵀPV and VᵀPy made at once,
    its blocks take their turns on that small table, and P itself moves once a group: the same chain as one
    block after another on P, with products of matrices where there were many of matrix and vector.
    """
    num_blocks = num_units // m
    per_group = min(max(1, GROUP // m), num_blocks)
    num_groups, q = -(-num_blocks // per_group), m * per_group
    sign = jnp.repeat(jnp.asarray([1, -1], old.dtype), m)

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

        rows, across = both(table, block), both(table, block, axis=1)
        inverse, log_det = _inverse(jnp.diag(sign) + both(rows, block, axis=1))
        b = rows[:, 2 * q :]
        change = (b.shape[1] * log_det - jnp.sum(b * _small_product(inverse, b))) / 2
        rate, is_accepted = _metropolis(beta * change, uniform)
        taken = _small_product(across, _small_product(jnp.where(is_accepted, inverse, 0), rows))
        return table - taken, (rate, is_accepted)

    def visit_group(precision, group):
        v = jnp.concatenate(
            [jax.lax.dynamic_slice_in_dim(psi, group * q, q, axis=1) for psi in (new, old_columns)], axis=1
        )
        g = precision @ v
        table = jnp.concatenate([v.T @ g, g.T @ y], axis=1)
        _, (rates, is_accepted) = jax.lax.scan(visit_block, table, (jnp.arange(per_group), uniforms[group]))
        is_in = jnp.tile(jnp.repeat(is_accepted, m), 2)  # as if the others had not been offered
        among = jnp.where(is_in[:, None] & is_in[None, :], table[:, : 2 * q], 0)
        gained, lost = _exchange(jnp.where(is_in[:, None], g.T, 0), among, q)
        return precision - gained.T @ gained + lost.T @ lost, (rates, is_accepted)

    _, offered = jax.lax.scan(visit_group, _inverse_of_kernel(old, noise), jnp.arange(num_groups))
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


def has_noise_per_output(target) -> bool:
    """Whether each output has a σ of its own."""
    shape = jnp.shape(target.bnn.noise_std)
    return len(shape) == 2 and shape[1] > 1


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


def _inverse_of_kernel(psi, noise):
    """(ΨΨᵀ + σ²I)⁻¹."""
    identity = jnp.eye(len(psi), dtype=psi.dtype)
    return cho_solve(cho_factor(psi @ psi.T + noise * identity), identity)


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
