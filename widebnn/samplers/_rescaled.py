"""A scale moves while the weights that it multiplies stay: sφ is held, and with it the network.

Yu & Meng, "To center or not to center: that is not the question", JCGS 2011, call the alternation with moves
at fixed φ interweaving. Where the data say much of the weights sφ, s hardly moves at fixed φ; where they say
little, it hardly moves at fixed sφ.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from widebnn._check import at_least
from widebnn._compile import one_program
from widebnn.samplers._base import Sampler
from widebnn.samplers._elliptical_slice import elliptical_slice
from widebnn.samplers._readout_scales import HasScales
from widebnn.tree import normal_like

__all__ = ["rescaled"]


class _Rescaled(NamedTuple):
    position: Any


def rescaled(target: HasScales, multiplies: Mapping[str, str], num_updates: int = 10) -> Sampler:
    """A step updates each scale s named in `multiplies` several times, by elliptical slices at fixed sφ.

    With D entries of φ, the density of the scale's coordinate u given sφ is proportional to
    exp(−½u²) s(u)^(−D) exp(−‖sφ‖²/(2s(u)²)). An update costs no more than ‖φ‖², since the network's outputs
    do not change. Where the data say much about the weights sφ, s hardly moves at fixed φ; where they say
    little, it hardly moves at fixed sφ.

    Parameters
    ----------
    target
        `widebnn.targets.scaled`.
    multiplies
        By name of a scale below the readout, the last key of the leaves of ``position.network`` that it
        multiplies: ``{"weight_std": "kernel", "bias_std": "bias"}`` for `widebnn.models.FCN`.
    num_updates
        Number of slices per scale.

    Raises
    ------
    TypeError
        If the target has no scales.
    ValueError
        If there is no name, a name is not one of the scales, no leaf has such a key, `num_updates` is below
        1, or the potential changes although sφ does not.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from flax import nnx
    >>> import widebnn as wb
    >>> def make(weight_std):
    ...     features = wb.models.FCN(3, 16, weight_std=weight_std, rngs=nnx.Rngs(0))
    ...     bnn = wb.BNN(features, out_features=1, noise_std=0.1)
    ...     return wb.targets.marginal(bnn, jnp.eye(3), jnp.ones((3, 1)))
    >>> target = wb.targets.scaled(make, weight_std=wb.targets.LogNormal(median=1.4, spread=0.5))
    >>> sampler = wb.samplers.rescaled(target, {"weight_std": "kernel"})
    """
    if not isinstance(target, HasScales):
        raise TypeError(f"target must be made by targets.scaled; got {type(target).__name__}")
    at_least(1, num_updates=num_updates)
    if not multiplies:
        raise ValueError("multiplies must name at least one scale; got none")
    for name, key in multiplies.items():
        if name not in target.template.scales:
            raise ValueError(
                f"multiplies must name scales below the readout, {sorted(target.template.scales)}; "
                f"got {name!r}"
            )
        if not any(jax.tree.leaves(_has_key(target.template.network, key))):
            raise ValueError(f"multiplies must give a key of the network's leaves; none has the key {key!r}")

    def at(position, name, u):
        """The position with sφ as it is and u as the scale's coordinate."""
        scales = {**position.scales, name: u}
        moved = position._replace(scales=scales)
        ratio = target.scale(name)(position) / target.scale(name)(moved)
        is_scaled = _has_key(position.network, multiplies[name])
        network = jax.tree.map(
            lambda leaf, scaled: leaf * ratio if scaled else leaf, position.network, is_scaled
        )
        return moved._replace(network=network), ratio

    _check_network_stays(target, at, multiplies)

    def of_scale(position, name, key):
        marked = _has_key(position.network, multiplies[name])
        leaves = [
            leaf for leaf, mark in zip(*map(jax.tree.leaves, (position.network, marked)), strict=True) if mark
        ]
        size, square = sum(leaf.size for leaf in leaves), sum(jnp.sum(leaf**2) for leaf in leaves)

        def potential(u):
            ratio = at(position, name, u)[1]
            return square * (ratio**2 - 1) / 2 - size * jnp.log(ratio)

        slices = elliptical_slice(potential)
        keys = jax.random.split(key, num_updates)
        last, info = jax.lax.scan(lambda s, k: slices.step(k, s), slices.init(position.scales[name]), keys)
        return at(position, name, last.position)[0], info

    def init(position, rng_key=None):
        return _Rescaled(position)

    def step(rng_key, state):
        position, info = state.position, None
        for name, key in zip(multiplies, jax.random.split(rng_key, len(multiplies)), strict=True):
            position, info = of_scale(position, name, key)
        return _Rescaled(position), jax.tree.map(lambda leaf: leaf[-1], info)

    return Sampler(init, step, (target.potential,))


def _has_key(network: PyTree, key: str) -> PyTree:
    """Per leaf, whether its path ends with this key."""

    def ends(path, leaf):
        return bool(path) and str(getattr(path[-1], "key", getattr(path[-1], "name", path[-1]))) == key

    return jax.tree_util.tree_map_with_path(ends, network)


def _check_network_stays(target: Any, at: Any, multiplies: Mapping[str, str]) -> None:
    def potentials(rng_key):
        position = normal_like(rng_key, target.template)
        moved = [at(position, name, jnp.zeros_like(position.scales[name]))[0] for name in multiplies]
        return jnp.stack([target.potential(there) for there in (position, *moved)])

    found = one_program(potentials)(jax.random.key(0))
    if isinstance(found, jax.core.Tracer):  # data that are traced, where nothing can be seen
        return
    first, *others = np.asarray(found)
    for name, potential in zip(multiplies, others, strict=True):
        if not np.isclose(potential, first, rtol=1e-3):
            raise ValueError(
                f"multiplies must name the leaves that {name} multiplies; with their product held the "
                f"potential went from {first:.6g} to {potential:.6g}"
            )
