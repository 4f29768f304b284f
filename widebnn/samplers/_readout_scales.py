"""Noise and readout scale from their exact conditional, at the price of one eigendecomposition.

K̂ = s²ΨΨᵀ + σ²I depends on s and σ through the eigenvalues of ΨΨᵀ alone: once they are there, an evaluation
of the conditional costs O(n d_out), and a slice sampler on (log s, log σ) is nearly free beside a step of the
network.
"""

from dataclasses import field
from typing import Any

import jax
import jax.numpy as jnp

from widebnn._check import at_least
from widebnn._pytree import STATIC
from widebnn.samplers._base import PositionState, Sampler
from widebnn.samplers._elliptical_slice import slices


class readout_scales(Sampler):
    """A step is several updates of $σ$ and of the readout's scale by elliptical slices, all else held fixed.

    The target is `widebnn.targets.scaled`, of a target whose readout is integrated out.

    Parameters
    ----------
    num_updates
        Number of slices per eigendecomposition.

    Raises
    ------
    TypeError
        When it meets the target, if that has no scales or its readout is not integrated out.
    """

    num_updates: int = field(default=10, metadata=STATIC)

    def __post_init__(self):
        at_least(1, num_updates=self.num_updates)

    def prepare(self, target):
        check_scales(target)
        return self

    def init(self, target, position, rng_key=None):
        return PositionState(position)

    def step(self, target, rng_key, state):
        conditional = target.readout_conditional(state.position)
        u, info = slices(conditional, state.position.readout_scales, rng_key, self.num_updates)
        moved = state.position._replace(readout_scales=u)
        # Eigenvalues stand rounding that a Cholesky factor does not: where the potential is not a number,
        # every other move and every prediction would fail, so that such an outcome is rejected.
        holds = jnp.isfinite(target.potential(moved))
        kept = jax.tree.map(lambda new, old: jnp.where(holds, new, old), moved, state.position)
        return PositionState(kept), info


def check_scales(target: Any) -> None:
    """See that a target has scales."""
    if not hasattr(target, "readout_conditional"):
        raise TypeError(f"target must be made by targets.scaled; got {type(target).__name__}")
