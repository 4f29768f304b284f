"""A scale moves while the weights that it multiplies stay: sφ is held, and with it the network.

Yu & Meng, "To center or not to center: that is not the question", JCGS 2011, call the alternation with moves
at fixed φ interweaving. Where the data say much of the weights sφ, s hardly moves at fixed φ; where they say
little, it hardly moves at fixed sφ.
"""

from collections.abc import Mapping
from dataclasses import field

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from widebnn._check import at_least
from widebnn._pytree import STATIC
from widebnn.samplers._base import PositionState, Sampler
from widebnn.samplers._elliptical_slice import slices
from widebnn.samplers._readout_scales import check_scales
from widebnn.tree import normal_like

NUM_INPUTS = 8
"""Observed inputs at which the network is seen to stay."""

TOLERANCE = 1e-3
"""Change of the embedding over σ, relative to its norm, up to which it counts as rounding."""


class rescaled(Sampler):
    """A step updates each scale $s$ named in `multiplies` several times, by elliptical slices at fixed $sφ$.

    With $D$ entries of $φ$, the density of the scale's coordinate $u$ given $sφ$ is proportional to
    $exp(−½u²) · s(u)^(−D) · exp(−‖sφ‖²/(2s(u)²))$. An update costs no more than $‖φ‖²$, since the network's
    outputs do not change. Where the data say much about the weights $sφ$, $s$ hardly moves at fixed $φ$;
    where they say little, it hardly moves at fixed $sφ$. The target is `widebnn.targets.scaled`.

    Parameters
    ----------
    multiplies
        A dict from scales below the readout to the last key of the leaves of ``position.network`` that each
        multiplies: ``{"weight_std": "kernel", "bias_std": "bias"}`` for `widebnn.models.FCN`.
    num_updates
        Number of slices per scale.

    Raises
    ------
    TypeError
        When it meets the target, if that has no scales.
    ValueError
        If there is no name or `num_updates` is below 1. When it meets the target, if a name is not one of its
        scales, no leaf has such a key, or the network changes although $sφ$ does not.

    Examples
    --------
    >>> import widebnn as wb
    >>> sampler = wb.samplers.rescaled({"weight_std": "kernel"})
    """

    multiplies: Mapping[str, str] = field(metadata=STATIC)
    num_updates: int = field(default=10, metadata=STATIC)

    def __post_init__(self):
        at_least(1, num_updates=self.num_updates)
        if not self.multiplies:
            raise ValueError("multiplies must name at least one scale; got none")

    def prepare(self, target):
        check_scales(target)
        for name, key in self.multiplies.items():
            if name not in target.template.scales:
                raise ValueError(
                    f"multiplies must name scales below the readout, {sorted(target.template.scales)}; "
                    f"got {name!r}"
                )
            if not any(jax.tree.leaves(_has_key(target.template.network, key))):
                raise ValueError(
                    f"multiplies must give a key of the network's leaves; none has the key {key!r}"
                )
        self._check_network_stays(target)
        return self

    def init(self, target, position, rng_key=None):
        return PositionState(position)

    def step(self, target, rng_key, state):
        position, info = state.position, None
        for name, key in zip(self.multiplies, jax.random.split(rng_key, len(self.multiplies)), strict=True):
            position, info = self._update(target, position, name, key)
        return PositionState(position), info

    def _at(self, target, position, name, u):
        """The position with sφ as it is and u as the scale's coordinate."""
        moved = position._replace(scales={**position.scales, name: u})
        ratio = target.scale(name)(position) / target.scale(name)(moved)
        is_scaled = _has_key(position.network, self.multiplies[name])
        network = jax.tree.map(
            lambda leaf, scaled: leaf * ratio if scaled else leaf, position.network, is_scaled
        )
        return moved._replace(network=network), ratio

    def _update(self, target, position, name, key):
        marked = _has_key(position.network, self.multiplies[name])
        leaves = [
            leaf for leaf, mark in zip(*map(jax.tree.leaves, (position.network, marked)), strict=True) if mark
        ]
        size, square = sum(leaf.size for leaf in leaves), sum(jnp.sum(leaf**2) for leaf in leaves)

        def potential(u):
            ratio = self._at(target, position, name, u)[1]
            return square * (ratio**2 - 1) / 2 - size * jnp.log(ratio)

        u, info = slices(potential, position.scales[name], key, self.num_updates)
        return self._at(target, position, name, u)[0], info

    @jax.jit
    def _embeddings(self, target):
        """At a draw from the prior, and where each scale is moved from there."""
        position = normal_like(jax.random.key(0), target.template)
        moved = [
            self._at(target, position, name, jnp.zeros_like(position.scales[name]))[0]
            for name in self.multiplies
        ]

        def embedding(there):
            model = target.at(there)
            psi = model.bnn.embedding(model.inner(there.network), model.x[:NUM_INPUTS])
            return psi / model.bnn.noise_std  # which a scale must leave alone too

        return jnp.stack([embedding(there) for there in (position, *moved)])

    def _check_network_stays(self, target):
        found = self._embeddings(target)
        if isinstance(found, jax.core.Tracer):  # data that are traced, where nothing can be seen
            return
        first, *others = np.asarray(found)
        for name, embedding in zip(self.multiplies, others, strict=True):
            change, norm = np.linalg.norm(embedding - first), np.linalg.norm(first)
            if change > TOLERANCE * norm:
                raise ValueError(
                    f"multiplies must name the leaves that {name} multiplies; with their product held the "
                    f"network's embedding over σ changed by {change / norm:.2g} of its norm"
                )


def _has_key(network: PyTree, key: str) -> PyTree:
    """Per leaf, whether its path ends with this key."""

    def ends(path, leaf):
        return bool(path) and str(getattr(path[-1], "key", getattr(path[-1], "name", path[-1]))) == key

    return jax.tree_util.tree_map_with_path(ends, network)
