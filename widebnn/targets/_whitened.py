"""Whitening: every dense layer reduced, exactly, to what the data can see of it.

Rotating the inputs (`rotated`) is the case of the first layer, whose inputs stay where they are. Above it, a
layer f^ℓ = A_ℓV_ℓ, A_ℓ = [σ_W h^(ℓ−1)/√d_(ℓ−1), σ_b 1], depends on V_ℓ ~ N(0, I) through ε_ℓ = Q_ℓV_ℓ alone,
where A_ℓ = L_ℓQ_ℓ. The map from the weights to (ε_ℓ, Q_ℓ^⊥V_ℓ) is orthogonal given the layers below: its
Jacobian is 1, and the posterior of ε is again a potential over N(0, I). A layer holds n d_ℓ numbers in place
of d_(ℓ−1)d_ℓ and costs 2n²d_ℓ + n³/3 operations in place of 2n d_(ℓ−1)d_ℓ, and the layers below it move f^ℓ
only through K_(ℓ−1), which changes little where they are wide.
"""

from collections.abc import Iterable
from dataclasses import field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from flax.traverse_util import flatten_dict, unflatten_dict
from jaxtyping import Array, Float, Key

from widebnn._check import is_known_to_be
from widebnn._compile import jitted
from widebnn._pytree import STATIC
from widebnn.models import BNN, Dense, Parameters
from widebnn.models._whitened_dense import WhitenedDense
from widebnn.models.embedding import Embedding, Inner, from_nnx
from widebnn.targets._network import NetworkTarget, required
from widebnn.targets._rotated import IrreducibleError, Reduced, Rotated, has_vector, is_dense, rotated
from widebnn.tree import Position, normal_like

Path = tuple[Any, ...]
"""Names and numbers that lead to a layer of a module."""

OUTSIDE = "the part of the weights outside the data"


class Whitened(Reduced):
    """A target on ε_ℓ in place of the weights of the dense layers above the first that `layers` names."""

    weights: NetworkTarget = field(kw_only=True)  # the target on weights, rotated
    layers: tuple[Path, ...] = field(metadata=STATIC, kw_only=True)

    @jitted
    def restored(self, position: Position, rng_key: Key[Array, ""] | None = None) -> Position:
        """The position of `weights`: V_ℓ = Q_ℓᵀε_ℓ + (I − Q_ℓᵀQ_ℓ)Z, Z ~ N(0, I) drawn with `rng_key`."""
        keys = jax.random.split(required(rng_key, OUTSIDE), len(self.layers))
        inner = flatten_dict(self.inner(position))
        seen = _observe(self.bnn.features, self.inner(position), self.x, self.layers)
        for key, path in zip(keys, self.layers, strict=True):
            layer, (h,) = seen[path]
            del inner[*path, "epsilon"]
            inner |= {(*path, name): leaf for name, leaf in layer.restore(h, key).items()}
        return _with_inner(position, unflatten_dict(inner))

    @jitted
    def to_parameters(self, position: Position, rng_key=None) -> Parameters:
        """θ, whole; what the data do not see of it is drawn with `rng_key`."""
        weights_key, rest_key = jax.random.split(required(rng_key, OUTSIDE))
        return self.weights.to_parameters(self.restored(position, weights_key), rest_key)

    @jitted
    def from_parameters(self, parameters: Parameters) -> Position:
        position = self.weights.from_parameters(parameters)
        below = _on_data(self.weights)
        return _with_inner(position, _whiten(below, self.weights.inner(position), self.layers))

    @jitted
    def embedding(self, position: Position, x=None, rng_key=None) -> Float[Array, "m p"]:
        """With one key, of one draw of the weights."""
        if x is None:
            return super().embedding(position)
        parameters = self.to_parameters(position, rng_key)
        return self.weights.bnn.embedding(parameters.inner, self.prepared(x))

    @property
    def _input_shape(self):
        return self.weights._input_shape


def whitened(target: NetworkTarget) -> Whitened:
    """The same posterior, a `NetworkTarget`, with dense layers reduced to what the $n$ observed inputs see.

    The first layer is rotated (`rotated`), unless it is already or has one $σ_W$ per input. Every layer above
    it that has more weights per unit than there are inputs holds $ε_ℓ$, $(n, d_ℓ)$, in place of its weights:
    its outputs are $f^ℓ = L_ℓε_ℓ$, with $L_ℓL_ℓᵀ$ their covariance $K_(ℓ−1)$ given the layers below. At fixed
    $n$, a step then costs time linear in the width, whatever the depth. The rest of the weights is drawn from
    its exact posterior, which is its prior, where new inputs see it. Effective sample sizes of it say nothing
    about a chain: report those of what the data inform.

    Equal inputs make $K_(ℓ−1)$ singular. $K_(ℓ−1) + δI$ takes its place, as if $f^ℓ$ had independent noise of
    variance $δ$: $δ$ is $n$ times the rounding error of the mean of the diagonal, $3·10⁻⁵$ of that mean at
    $n = 256$ in float32 and $6·10⁻¹⁴$ in float64. What the data say of eigenvalues below $δ$ is lost.

    Parameters
    ----------
    target
        `standard`, `repriorised` or `marginal`, rotated or not, without `block_size`. Its network must be an
        NNX module, of which the layers that are `widebnn.models.Dense` are whitened.

    Raises
    ------
    TypeError
        If `target` is not a target of a network with an inverse or is whitened already, or its network is not
        an NNX module.
    ValueError
        If `target` has a `block_size`, or a layer that is to be whitened is applied more than once, to
        something other than one row per input, or is used otherwise than by applying it.
    """
    if not isinstance(target, NetworkTarget) or isinstance(target, Whitened):
        raise TypeError(
            "target must be a network's target with an inverse, not yet whitened; got "
            f"{type(target).__name__}"
        )
    if target.bnn.features.graph is None:
        raise TypeError("target must have a flax.nnx.Module as its network; layers of others are not known")
    if target.block_size is not None:
        raise IrreducibleError(
            f"target must have block_size=None, as all rows are taken; got {target.block_size}"
        )
    if isinstance(target, Rotated):
        first = target.kernel[:-1]
    else:
        seen = [path for path, (_, inputs) in _applied(target).items() if any(is_x for is_x, _ in inputs)]
        first = seen[0] if len(seen) == 1 else None  # the dense layer that the inputs themselves go through
        if first is not None and np.ndim(target.x) == 2 and not has_vector(target.bnn, first):
            target = rotated(target, (*first, "kernel"))
    below = _on_data(target)
    bnn, layers = _whitened_network(below, first)
    base = replace(below, bnn=bnn)
    made = Whitened(bnn, below.x, target.y, target.space, base=base, weights=target, layers=layers)
    try:
        is_same = not layers or is_dense(below.bnn) or _is_same(below, made)
    except AttributeError:  # the module asks a layer for its weights
        is_same = False
    if is_known_to_be(0, is_same):
        named = ", ".join("/".join(map(str, path)) for path in layers)
        raise IrreducibleError(
            f"target must see the weights of the layers {named} through their outputs alone"
        )
    return made


def _on_data(target: NetworkTarget) -> NetworkTarget:
    """The target whose network goes with its own inputs: beneath a rotation, that on R."""
    return target.base if isinstance(target, Rotated) else target


class _Observed(nnx.Module):
    """A layer that keeps what it is applied to."""

    def __init__(self, layer: nnx.Module, inputs: list):
        self.layer = layer
        self.keep = inputs.append

    def __call__(self, h):
        self.keep(h)
        return self.layer(h)

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "layer"), name)


def _observe(features: Embedding, inner: Inner, x: Array, paths: Iterable[Path]) -> dict[Path, Any]:
    """Each of the layers at `paths`, with its parameters, and what it is applied to when the network runs."""
    seen = {}

    def watched(path, part):
        if path not in paths:
            return part
        seen[path] = part, []
        return _Observed(*seen[path])

    try:
        module = nnx.recursive_map(watched, features.merged(inner))
    except ValueError as error:
        raise IrreducibleError(f"target must have a network whose modules make no circle: {error}") from error
    module(x)
    return seen


def _applied(target: NetworkTarget) -> dict[Path, tuple[Any, list[tuple[bool, tuple[int, ...]]]]]:
    """Each dense layer, and whether what it is applied to is x itself, and its shape."""
    features: Any = target.bnn.features
    paths = [path for path, part in nnx.iter_modules(features.module) if isinstance(part, Dense)]
    applied = {}

    def look(inner, x):
        for path, (layer, inputs) in _observe(features, inner, x, paths).items():
            applied[path] = layer, [(h is x, h.shape) for h in inputs]

    jax.eval_shape(look, features.template, target.x)
    return applied


def _whitened_network(below: NetworkTarget, first: Path | None) -> tuple[BNN, tuple[Path, ...]]:
    """The network on ε, and the paths of the layers that have it."""
    features, n, layers = below.bnn.features, len(below.x), []
    for path, (layer, inputs) in _applied(below).items():
        rows = layer.in_features + (layer.bias is not None)
        if path == first or rows <= n or not inputs:
            continue
        if (shapes := [shape for _, shape in inputs]) != [(n, layer.in_features)]:
            raise IrreducibleError(
                f"target must apply the layer {'/'.join(map(str, path))} once, to one row for each of its "
                f"{n} inputs; it is applied to arrays of shape {', '.join(map(str, shapes))}"
            )
        layers.append(path)
    module = nnx.recursive_map(
        lambda path, part: WhitenedDense(part, n) if path in layers else part,
        features.merged(features.template),
    )
    return replace(below.bnn, features=replace(from_nnx(module), num_rows=n)), tuple(layers)


def _whiten(below: NetworkTarget, inner: Inner, layers: tuple[Path, ...]) -> Inner:
    """The inner parameters with ε_ℓ = L_ℓ⁻¹f^ℓ in place of weights."""
    flat: Any = flatten_dict(inner)
    for path, (layer, (h,)) in _observe(below.bnn.features, inner, below.x, layers).items():
        for name in ("kernel", "bias"):
            flat.pop((*path, name), None)
        flat[*path, "epsilon"] = WhitenedDense(layer, len(h)).whiten(h, layer(h))
    return unflatten_dict(flat)


def _with_inner(position: Position, inner: Inner) -> Position:
    return position._replace(inner=inner) if isinstance(position, Parameters) else inner


@jax.jit
def _is_same(below: NetworkTarget, made: Whitened) -> Array:
    inner = normal_like(jax.random.key(0), below.bnn.features.template)
    reduced = _whiten(below, inner, made.layers)
    before, after = below.bnn.embedding(inner, below.x), made.bnn.embedding(reduced, below.x)
    return jnp.abs(after - before).max() <= 1e-3 * jnp.abs(before).max()
