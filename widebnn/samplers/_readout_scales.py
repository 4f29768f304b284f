"""Noise and readout scale from their exact conditional, at the price of one eigendecomposition.

K̂ = s²ΨΨᵀ + σ²I depends on s and σ through the eigenvalues of ΨΨᵀ alone: once they are there, an evaluation
of the conditional costs O(n d_out), and a slice sampler on (log s, log σ) is nearly free beside a step of the
network.
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from widebnn._check import at_least
from widebnn.samplers._base import Potential, Sampler
from widebnn.samplers._elliptical_slice import elliptical_slice

__all__ = ["readout_scales"]


@runtime_checkable
class HasScales(Protocol):
    """A target with scales in its position, which knows the conditional of its readout's."""

    @property
    def template(self) -> Any: ...

    @property
    def has_exact_scales(self) -> bool: ...

    def scale(self, name: str, /) -> Any: ...

    def readout_conditional(self, position: Any, /) -> Potential: ...

    def potential(self, position: Any, /) -> Float[Array, ""]: ...


class _Updates(NamedTuple):
    position: Any


def readout_scales(target: HasScales, num_updates: int = 10) -> Sampler:
    """A step is several updates of σ and of the readout's scale by elliptical slices, all else held fixed.

    Parameters
    ----------
    target
        `widebnn.targets.scaled`, of a target whose readout is integrated out.
    num_updates
        Number of slices per eigendecomposition.

    Raises
    ------
    TypeError
        If `target` has no scales; when a chain steps, if its readout is not integrated out.
    ValueError
        If `num_updates` is below 1.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from flax import nnx
    >>> import widebnn as wb
    >>> x = jnp.linspace(-1, 1, 8)[:, None]
    >>> def make(noise_std, readout_std):
    ...     features = wb.models.FCN(1, 16, rngs=nnx.Rngs(0))
    ...     scales = {"weight_std": readout_std, "bias_std": 0.1 * readout_std}
    ...     return wb.targets.marginal(wb.BNN(features, 1, noise_std, **scales), x, x**2)
    >>> prior = wb.targets.LogNormal(median=1.0, spread=0.5)
    >>> target = wb.targets.scaled(make, noise_std=prior, readout_std=prior)
    >>> sampler = wb.samplers.readout_scales(target)
    """
    if not isinstance(target, HasScales):
        raise TypeError(f"target must know its readout's scales, as scaled does; got {type(target).__name__}")
    at_least(1, num_updates=num_updates)

    def init(position, rng_key=None):
        return _Updates(position)

    def step(rng_key, state):
        slices = elliptical_slice(target.readout_conditional(state.position))

        def update(inside, key):
            return slices.step(key, inside)

        first = slices.init(state.position.readout_scales)
        last, info = jax.lax.scan(update, first, jax.random.split(rng_key, num_updates))
        moved = state.position._replace(readout_scales=last.position)
        # Eigenvalues stand rounding that a Cholesky factor does not: where the potential is not a number,
        # every other move and every prediction would fail, so that such an outcome is rejected.
        holds = jnp.isfinite(target.potential(moved))
        kept = jax.tree.map(lambda new, old: jnp.where(holds, new, old), moved, state.position)
        return _Updates(kept), jax.tree.map(lambda leaf: leaf[-1], info)

    return Sampler(init, step, (target.potential,))
