"""Which parameters belong to the units of the top hidden layer, found by asking the network."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from widebnn._arrays import Inputs, Observations
from widebnn._compile import one_program
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
    template = bnn.features.template
    psi = jax.eval_shape(bnn.embedding, template, x)
    num_units = psi.shape[1] - int(bnn.has_bias)
    leaves, treedef = jax.tree.flatten(template)
    ends = {0, num_units - 1}
    tried = [(i, k) for i, leaf in enumerate(leaves) if leaf.shape[-1:] == (num_units,) for k in ends]

    def changes(rng_key, x):
        """Largest change of each column of Ψ, first with no parameter changed, then with each tried."""
        inner = jax.tree.leaves(normal_like(rng_key, template))

        def change(before, is_changed):
            changed = list(inner)
            for (i, k), term in zip(tried, is_changed, strict=True):
                changed[i] = changed[i].at[..., k].add(term.astype(changed[i].dtype))
            # by the same code each time, so that what does not change has the same bits
            after = bnn.embedding(treedef.unflatten(changed), x)
            return jnp.where(is_changed.any(), before, after), jnp.abs(after - before).max(axis=0)

        cases = jnp.eye(len(tried) + 1, len(tried), -1, dtype=bool)
        return jax.lax.scan(change, jnp.zeros(psi.shape, psi.dtype), cases)[1]

    found = np.asarray(one_program(changes)(jax.random.key(0), x))[1:] > 0
    belongs = [leaf.shape[-1:] == (num_units,) for leaf in leaves]
    for (i, k), is_changed in zip(tried, found, strict=True):
        belongs[i] &= np.array_equal(np.flatnonzero(is_changed), [k])
    is_unit = treedef.unflatten(belongs)
    if not any(jax.tree.leaves(is_unit)):
        raise ValueError(
            f"target must have parameters that feed one unit of the top hidden layer each, {num_units} along "
            "their last axis; found none"
        )
    return Units(functools.partial(bnn.embedding, x=x), is_unit, num_units, jnp.asarray(y), bnn.noise_std)
