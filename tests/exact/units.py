"""A sweep of the unit-wise sampler, block by block, against the potential computed from scratch."""

from unittest import mock

import jax
import numpy as np

from widebnn.samplers import _unitwise, unitwise


def assert_changes_of_potential(target, block_size, potential=None, tolerance=1e-8):
    """Each ΔU of a sweep is the potential after the block's move less the one before, and Ψ is as moved.

    The potential is that of the target, unless another is given.
    """
    sampler, units = unitwise(block_size).bind(target), target.units
    changes, metropolis, normal_like = [], _unitwise._metropolis, _unitwise.normal_like

    def recording(change, uniform):
        rate, is_accepted = metropolis(change, uniform)
        jax.debug.callback(lambda *seen: changes.append(seen), change, is_accepted, ordered=True)
        return rate, is_accepted

    @jax.jit
    def sweep(start_key, step_key):
        fresh = []
        state = sampler.init(target.draw_prior(start_key))
        with (
            mock.patch.object(_unitwise, "_metropolis", recording),
            mock.patch.object(
                _unitwise, "normal_like", lambda *args: fresh.append(normal_like(*args)) or fresh[-1]
            ),
        ):
            moved, _ = sampler.step(step_key, state)
        return state.position, fresh[0], moved.position

    position, fresh, moved = jax.tree.map(np.array, sweep(jax.random.key(0), jax.random.key(1)))
    jax.effects_barrier()
    assert len(changes) == units.num_units // block_size
    potential, accepted = potential or jax.jit(target.potential), 0
    for k, (change, is_accepted) in enumerate(changes):
        block = slice(k * block_size, (k + 1) * block_size)

        def offered(is_unit, u, xi, block=block):
            u = u.copy()
            if is_unit:
                u[..., block] = xi[..., block]
            return u

        proposal = jax.tree.map(offered, units.is_unit, position, fresh)
        exact = potential(proposal) - potential(position)
        assert abs(change - exact) < tolerance * (1 + abs(exact)), f"change {change} where {exact} is right"
        if is_accepted:
            position, accepted = proposal, accepted + 1
    for leaf, expected in zip(jax.tree.leaves(moved), jax.tree.leaves(position), strict=True):
        np.testing.assert_allclose(leaf, expected, rtol=1e-14)
    return accepted
