"""Which parameters belong to the units of the top hidden layer, found by asking the network."""

import functools

import jax
import jax.numpy as jnp

from widebnn._arrays import Inputs, Observations
from widebnn.models import BNN
from widebnn.samplers._unitwise import Units
from widebnn.tree import normal_like

__all__ = ["units_of"]


def units_of(bnn: BNN, x: Inputs, y: Observations) -> Units:
    """The posterior of the inner parameters as a sum over the units of the top hidden layer.

    A leaf belongs to the units if its last axis counts them and a change of entry k of that axis changes
    column k of Ψ and no other: kernel and bias of the last dense layer, or of the last convolution before a
    pooling over all pixels.

    Raises
    ------
    ValueError
        If no leaf does.
    """
    inner = normal_like(jax.random.key(0), bnn.features.template)
    psi = bnn.embedding(inner, x)
    num_units = psi.shape[1] - int(bnn.has_bias)
    leaves, treedef = jax.tree.flatten(inner)

    def belongs(i: int) -> bool:
        if leaves[i].shape[-1:] != (num_units,):
            return False
        for k in {0, num_units - 1}:
            other = [leaf.at[..., k].add(1) if i == j else leaf for j, leaf in enumerate(leaves)]
            change = jnp.abs(bnn.embedding(treedef.unflatten(other), x) - psi).max(axis=0)
            if not change[k] > 0 or change.at[k].set(0).max() > 0:
                return False
        return True

    is_unit = treedef.unflatten([belongs(i) for i in range(len(leaves))])
    if not any(jax.tree.leaves(is_unit)):
        raise ValueError(
            f"target must have parameters that feed one unit of the top hidden layer each, {num_units} along "
            "their last axis; found none"
        )
    return Units(functools.partial(bnn.embedding, x=x), is_unit, num_units, jnp.asarray(y), bnn.noise_std)
