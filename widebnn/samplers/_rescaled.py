"""A scale moves while the weights that it multiplies stay: sφ is held, and with it the network.

Yu & Meng, "To center or not to center: that is not the question", JCGS 2011, call the alternation with moves
at fixed φ interweaving. Where the data say much of the weights sφ, s hardly moves at fixed φ; where they say
little, it hardly moves at fixed sφ.
"""

from dataclasses import field
from typing import Any

import jax
import jax.numpy as jnp

from widebnn._check import at_least
from widebnn._pytree import STATIC
from widebnn.samplers._base import PositionState, Sampler
from widebnn.samplers._elliptical_slice import slices
from widebnn.samplers._readout_scales import check_scales


class rescaled(Sampler):
    """A step updates each scale $s$ of the layers several times, by elliptical slices at fixed $sφ$.

    With $D$ entries of $φ$, the density of the scale's coordinate $u$ given $sφ$ is proportional to
    $exp(−½u²) · s(u)^(−D) · exp(−‖sφ‖²/(2s(u)²))$. An update costs no more than $‖φ‖²$, since the network's
    outputs do not change. Where the data say much about the weights $sφ$, $s$ hardly moves at fixed $φ$;
    where they say little, it hardly moves at fixed $sφ$.

    The target is `widebnn.targets.scaled`. Scales of `widebnn.models.Dense` and `widebnn.models.Conv` move;
    others, which may do more than multiply weights, stay.

    Parameters
    ----------
    num_updates
        Number of slices per scale.

    Raises
    ------
    ValueError
        When it meets the target, if no scale of it multiplies weights alone.

    Examples
    --------
    >>> import widebnn as wb
    >>> sampler = wb.samplers.rescaled(num_updates=5)
    """

    num_updates: int = field(default=10, metadata=STATIC)

    def __post_init__(self):
        at_least(1, num_updates=self.num_updates)

    def prepare(self, target):
        check_scales(target)
        if not target.multiplied:
            raise ValueError(
                "target must have a scale that multiplies weights of Dense or Conv and does no more; those "
                f"below the readout are {sorted(target.template.scales)}"
            )
        return self

    def init(self, target, position, rng_key=None):
        return PositionState(position)

    def step(self, target, rng_key, state):
        position, info, names = state.position, None, list(target.multiplied)
        for name, key in zip(names, jax.random.split(rng_key, len(names)), strict=True):
            position, info = self._update(target, position, name, key)
        return PositionState(position), info

    def _update(self, target, position, name, key):
        """The scale, or each of several, one per input, which know nothing of one another given sφ."""
        weights, u = target.weights(position, name), position.scales[name]

        def total(of_weights):
            return sum(jnp.sum(part, _all_but_inputs(part) if u.ndim else None) for part in of_weights)

        def update(prior, u, size, square, key):
            here = prior.at(u)

            def potential(v):
                ratio = here / prior.at(v)
                return square * (ratio**2 - 1) / 2 - size * jnp.log(ratio)

            return slices(potential, u, key, self.num_updates)

        prior = target.priors[name]
        of_each = prior, u, total(map(jnp.ones_like, weights)), total(leaf**2 for leaf in weights)
        flat: Any = [jax.tree.map(lambda part: jnp.broadcast_to(part, u.shape).ravel(), a) for a in of_each]
        v, info = jax.vmap(update)(*[*flat, jax.random.split(key, u.size)])
        v, info = v.reshape(u.shape), jax.tree.map(lambda leaf: leaf[-1], info)
        ratio = prior.at(u) / prior.at(v)
        ratio = ratio[:, None] if u.ndim else ratio
        return target.with_weights(position, name, [ratio * leaf for leaf in weights], v), info


def _all_but_inputs(kernel):
    return tuple(axis for axis in range(kernel.ndim) if axis != kernel.ndim - 2)
