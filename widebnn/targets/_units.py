"""Which parameters belong to the units of the top hidden layer, found by asking the network."""

import contextlib
import functools
from typing import Any, NamedTuple

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from widebnn.models import BNN
from widebnn.tree import normal_like


class Units(NamedTuple):
    """Which numbers of a position belong to the units of the top hidden layer."""

    is_unit: (
        Any  # per leaf, whether its last axis counts the units, of which entry k moves column k of Ψ alone
    )
    num_units: int  # d_L; their columns come first in Ψ


class UnitsError(ValueError):
    """No parameters belong to the units."""


def units_of(bnn: BNN, x: Any) -> Units:
    """The inner parameters that feed one unit of the top hidden layer each.

    A leaf belongs to the units if its last axis counts them and a change of entry k of that axis changes
    column k of Ψ and no other: kernel and bias of the last dense layer, or of the last convolution before a
    pooling over all pixels.
    """
    leaves, treedef = jax.tree.flatten(bnn.features.template)
    num_units = jax.eval_shape(bnn.embedding, bnn.features.template, x).shape[1] - int(bnn.has_bias)
    belongs = [leaf.shape[-1:] == (num_units,) for leaf in leaves]
    tried = tuple((i, k) for i, fits in enumerate(belongs) if fits for k in {0, num_units - 1})
    # Within it nothing is compiled as a whole, which outside of a trace would be twenty small programs.
    is_traced = isinstance(jax.device_put(np.zeros(())), jax.core.Tracer)
    with jax.ensure_compile_time_eval() if is_traced else contextlib.nullcontext():
        before, *after = np.asarray(_embeddings(*_untraced((bnn, x)), tried))
    for (i, k), psi in zip(tried, after, strict=True):
        belongs[i] &= np.array_equal(np.flatnonzero((psi != before).any(axis=0)), [k])
    is_unit = treedef.unflatten(belongs)
    if not any(jax.tree.leaves(is_unit)):
        raise UnitsError(
            f"target must have parameters that feed one unit of the top hidden layer each, {num_units} along "
            "their last axis; found none"
        )
    return Units(is_unit, num_units)


def _untraced[T](tree: T) -> T:
    """With ones for what is traced, such as data under `jax.vmap`: units are in the graph alone."""
    return jax.tree.map(
        lambda leaf: jnp.ones(leaf.shape, leaf.dtype) if isinstance(leaf, jax.core.Tracer) else leaf, tree
    )


@functools.partial(jax.jit, static_argnames="tried")
def _embeddings(bnn: BNN, x: Any, tried: tuple[tuple[int, int], ...]) -> Float[Array, "tried n p"]:
    """Ψ at a draw of the prior: as it is, then with entry k of the last axis of leaf i changed, for each."""
    inner, treedef = jax.tree.flatten(normal_like(jax.random.key(0), bnn.features.template))

    def at(is_changed):
        changed = list(inner)
        for (i, k), term in zip(tried, is_changed, strict=True):
            changed[i] = changed[i].at[..., k].add(term.astype(changed[i].dtype))
        return bnn.embedding(treedef.unflatten(changed), x)

    # By the same code each time: what does not change has the same bits.
    return jax.lax.map(at, jnp.eye(len(tried) + 1, len(tried), -1, dtype=bool))
