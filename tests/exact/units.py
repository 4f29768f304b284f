"""A sweep of the unit-wise sampler, block by block, against the potential computed from scratch."""

from unittest import mock

import jax
import jax.numpy as jnp

from widebnn.samplers import _unitwise, unitwise


def assert_changes_of_potential(target, block_size):
    """Each ΔU of a sweep is the potential after the block's move less the one before, and Ψ is as moved."""
    sampler, units = unitwise(target, block_size), target.units
    state = sampler.init(target.draw_prior(jax.random.key(0)))
    changes, metropolis = [], _unitwise._metropolis

    def recording(change, uniform):
        rate, is_accepted = metropolis(change, uniform)
        changes.append((change, is_accepted))
        return rate, is_accepted

    fresh = []
    normal_like = _unitwise.normal_like
    with (
        mock.patch.object(_unitwise, "_metropolis", recording),
        mock.patch.object(
            _unitwise, "normal_like", lambda *args: fresh.append(normal_like(*args)) or fresh[-1]
        ),
        jax.disable_jit(),
    ):
        moved, _ = sampler.step(jax.random.key(1), state)
    assert len(changes) == units.num_units // block_size
    position, accepted = state.position, 0
    for k, (change, is_accepted) in enumerate(changes):
        block = slice(k * block_size, (k + 1) * block_size)

        def offered(is_unit, u, xi, block=block):
            return u.at[..., block].set(xi[..., block]) if is_unit else u

        proposal = jax.tree.map(offered, units.is_unit, position, fresh[0])
        exact = target.potential(proposal) - target.potential(position)
        assert abs(change - exact) < 1e-8 * (1 + abs(exact)), f"change {change} where {exact} is right"
        if is_accepted:
            position, accepted = proposal, accepted + 1
    for leaf, expected in zip(jax.tree.leaves(moved.position), jax.tree.leaves(position), strict=True):
        assert jnp.array_equal(leaf, expected)
    return accepted
