"""Rotating the inputs: the first dense layer reduced, exactly, to what the data can see of it.

The first layer meets W¹ only through XW¹. With X = RQᵀ, Q (d_in × r) orthonormal and r the rank of X, the
coordinates QᵀW¹ ~ N(0, I) carry all the data, and RQᵀW¹ is the layer applied to the inputs R with a kernel of
r rows. The rest of W¹ keeps its prior and is drawn only when new inputs look at it.
"""

import functools
from dataclasses import field, replace
from typing import Any, NamedTuple

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, Float64, Key

from widebnn._arrays import NewInputs, Tabular, is_tree
from widebnn._check import is_known_to_be
from widebnn._compile import jitted
from widebnn._pytree import STATIC
from widebnn.models import BNN, FCN, Dense, Parameters
from widebnn.models.bnn import scale_of
from widebnn.models.embedding import Inner
from widebnn.targets._network import NetworkTarget, required
from widebnn.targets._units import Units
from widebnn.tree import Position, normal_like


class IrreducibleError(ValueError):
    """The network, or its data, are none whose layers can be reduced to what the data see of them."""


class Reduced(NetworkTarget):
    """A target on the position of `base`, whose network is that of the observed inputs alone."""

    base: NetworkTarget = field(kw_only=True)

    @property
    def template(self) -> Any:
        return self.base.template

    def potential(self, position: Position) -> Float[Array, ""]:
        return self.base.potential(position)

    def log_normaliser(self) -> Float[Array, ""]:
        return self.base.log_normaliser()

    def inner(self, position: Position) -> Inner:
        """The inner parameters as `base` has them, which go with the observed inputs."""
        return self.base.inner(position)

    def readout(self, position: Position, rng_key=None) -> Float[Array, "p d_out"]:
        return self.base.readout(position, rng_key)

    @property
    def units(self) -> Units:
        """The units of `base`, where it has them."""
        return self.base.units  # pyright: ignore[reportAttributeAccessIssue]


class Seen(NamedTuple):
    """New inputs as the data see them."""

    inside: Float[Array, "m r"]  # X*Q
    outside: Float[Array, "m d_in"] | None  # X*(I − QQᵀ), unless all lie in the span of the data


class Rotated(Reduced):
    """A target on QᵀW¹ in place of W¹, everything else as in `base`, which is applied to R."""

    basis: Float64[np.ndarray, "d_in r"] = field(kw_only=True)
    kernel: tuple = field(metadata=STATIC, kw_only=True)

    @jitted
    def to_parameters(self, position: Position, rng_key=None) -> Parameters:
        """θ with the whole W¹ = Q(QᵀW¹) + (I − QQᵀ)Z, Z ~ N(0, I) drawn with `rng_key`."""
        readout_key, kernel_key = jax.random.split(required(rng_key, "the part of W¹ outside the data"))
        inner = self.inner(position)
        rotated = _by_path(inner)[self.kernel]
        q, z = jnp.asarray(self.basis, rotated.dtype), self._complement(kernel_key, rotated)
        whole = z + q @ (rotated - q.T @ z)
        return Parameters(_with(inner, self.kernel, whole), self.readout(position, readout_key))

    @jitted
    def from_parameters(self, parameters: Parameters) -> Position:
        whole = _by_path(parameters.inner)[self.kernel]
        rotated = jnp.asarray(self.basis, whole.dtype).T @ whole
        return self.base.from_parameters(
            Parameters(_with(parameters.inner, self.kernel, rotated), parameters.readout)
        )

    def prepared(self, x: NewInputs | Tabular) -> Seen:
        if isinstance(x, Seen):
            return x
        inputs: Array = super().prepared(x)
        if isinstance(inputs, jax.core.Tracer):  # whose numbers are not known
            basis = jnp.asarray(self.basis, inputs.dtype)
            return Seen(inputs @ basis, inputs - inputs @ basis @ basis.T)
        exact = np.asarray(inputs, np.float64)
        inside = exact @ self.basis
        outside = exact - inside @ self.basis.T
        is_seen = np.linalg.norm(outside, axis=1).max() <= _rounding(inputs)
        return Seen(
            jnp.asarray(inside, self.x.dtype), None if is_seen else jnp.asarray(outside, self.x.dtype)
        )

    @jitted
    def embedding(self, position: Position, x=None, rng_key=None) -> Float[Array, "m p"]:
        """X*W¹ = (X*Q)(QᵀW¹) + X*(I − QQᵀ)Z with the Z ~ N(0, I) of `to_parameters`.

        With one key, all inputs meet one network; it is needed where they do not lie in the span of the data.
        """
        inside, outside = (self.x, None) if x is None else self.prepared(x)
        inner = self.inner(position)
        if outside is not None:
            rotated = _by_path(inner)[self.kernel]
            z = self._complement(required(rng_key, "the part of W¹ that x sees and the data do not"), rotated)
            inner = _with(inner, self.kernel, jnp.concatenate([rotated, z]))
            inside = jnp.concatenate([inside, outside], axis=1)
        return self.bnn.embedding(inner, inside)

    def _complement(self, rng_key: Key[Array, ""], rotated: Array) -> Float[Array, "d_in d_1"]:
        """Z, of which (I − QQᵀ)Z is what W¹ has outside the data."""
        return jax.random.normal(rng_key, (len(self.basis), rotated.shape[1]), rotated.dtype)

    @property
    def _input_shape(self):
        return self.basis.shape[:1]


def rotated(target: NetworkTarget, kernel: tuple | None = None) -> Rotated:
    """The same posterior, a `NetworkTarget`, with the first dense layer reduced to the rank of the data.

    With 256 images of CIFAR-10, chains run on $256 × d_1$ numbers in place of $3072 × d_1$. The rest of the
    layer is drawn from its exact posterior, which is its prior, where new inputs see it. Effective sample
    sizes of it say nothing about a chain: report those of what the data inform.

    Parameters
    ----------
    target
        A `NetworkTarget` on inputs of shape $(n, d_in)$.
    kernel
        Path of the first layer's kernel $(d_in, d_1)$ in the pytree of inner parameters, such as
        ``("layers", 0, "kernel")``, or ``(0, 0)`` in a list of lists. It may be left out where only one leaf
        of that shape is named "kernel".

    Raises
    ------
    TypeError
        If `target` is not a target of a network with an inverse, or is rotated already.
    ValueError
        If the kernel is not found, or the network computes something else with the reduced layer: the first
        layer must be a `widebnn.models.Dense`, or one that scales likewise, applied to the inputs themselves.
    """
    import scipy.linalg  # a fifth of a second at import, and no other target needs it

    if not isinstance(target, NetworkTarget) or isinstance(target, Rotated):
        raise TypeError(
            f"target must be a network's target with an inverse, not yet rotated; got {type(target).__name__}"
        )
    if is_tree(target.x) or target.x.ndim != 2:
        raise IrreducibleError(f"target must have inputs of shape (n, d_in); got {target!r}")
    bnn, d_in = target.bnn, target.x.shape[1]
    shapes = _by_path(bnn.features.template)
    fitting = [path for path, leaf in shapes.items() if leaf.ndim == 2 and leaf.shape[0] == d_in]
    named = [path for path in fitting if path[-1:] == ("kernel",)]
    if kernel is None and len(named) == 1:
        kernel = named[0]
    if not isinstance(kernel, tuple | list) or (kernel := tuple(kernel)) not in fitting:
        got = "None, which finds it where one of these alone is named 'kernel'" if kernel is None else kernel
        raise IrreducibleError(
            f"kernel must be the path of the first layer's kernel, a leaf of shape ({d_in}, d_1) among the "
            f"inner parameters, where such leaves are at {fitting or 'no path'}; got {got}"
        )

    if has_vector(bnn, kernel[:-1]):
        raise IrreducibleError(
            f"kernel {kernel} must have one weight_std for all inputs: where each has its own, what the data "
            "see of the layer changes with them"
        )

    exact = np.asarray(target.x, np.float64)
    factors: Any = scipy.linalg.qr(exact.T, mode="economic", pivoting=True)
    basis = factors[0][:, np.abs(np.diag(factors[1])) > _rounding(target.x)]
    if basis.shape[1] == 0:
        raise IrreducibleError("target must have inputs with an entry other than 0; got zeros only")
    leaf = shapes[kernel]
    smaller = jax.ShapeDtypeStruct((basis.shape[1], *leaf.shape[1:]), leaf.dtype)
    features = replace(bnn.features, template=_with(bnn.features.template, kernel, smaller))
    rotated_bnn = replace(bnn, features=features)
    known = (exact @ basis, target.x.dtype), (basis, leaf.dtype)
    r, q = (jnp.asarray(array.astype(dtype), dtype) for array, dtype in known)  # NumPy's compiles nothing
    try:
        is_known = is_dense(bnn) and kernel == ("layers", 0, "kernel")
        is_same = is_known or _is_same(bnn, rotated_bnn, target.x, r, q, kernel)
    except (TypeError, ValueError):  # shapes no longer fit
        is_same = False
    if is_known_to_be(0, is_same):
        raise IrreducibleError(
            f"kernel {kernel} must enter as scale · x @ kernel alone, with a scale that does not change with "
            "its number of rows; the network's embedding changed under the rotation"
        )
    base = replace(target, bnn=rotated_bnn, x=r)
    shared = (target.y, target.space, target.block_size)
    return Rotated(rotated_bnn, r, *shared, base=base, basis=basis, kernel=kernel)


def is_dense(bnn: BNN) -> bool:
    """Whether the network is the package's own of dense layers, which need no look at what they compute."""
    if bnn.features.graph is None:
        return False
    kinds = {getattr(node, "type", nnx.Param) for node in bnn.features.graph.nodes}
    return FCN in kinds and {kind for kind in kinds if issubclass(kind, nnx.Module)} <= {FCN, Dense, nnx.List}


def has_vector(bnn: BNN, layer: tuple) -> bool:
    """Whether σ_W of the layer is an array."""
    found = jax.tree.leaves_with_path(bnn.features)
    return any(jnp.ndim(leaf) and scale_of(path, [layer_scale((*layer, None))]) for path, leaf in found)


def layer_scale(kernel: tuple) -> str:
    """The name of σ_W of the layer of a kernel."""
    return ".".join(map(str, (*kernel[:-1], "weight_std")))


@functools.partial(jax.jit, static_argnames="kernel")
def _is_same(bnn: BNN, rotated: BNN, x: Array, r: Array, basis: Array, kernel: tuple) -> Array:
    """Whether the network computes on R what it does on the inputs, at a draw from the prior."""
    inner = normal_like(jax.random.key(0), bnn.features.template)
    before = bnn.embedding(inner, x)
    after = rotated.embedding(_with(inner, kernel, basis.T @ _by_path(inner)[kernel]), r)
    return jnp.abs(after - before).max() <= 1e-3 * jnp.abs(before).max()


def _rounding(x: Array) -> float:
    """Length of a row that is no more than the rounding of the rows of x."""
    return 10 * float(jnp.finfo(x.dtype).eps * np.abs(np.asarray(x)).max() * np.sqrt(x.shape[1]))


def _by_path(tree: Any) -> dict[tuple, Any]:
    """Leaves of any pytree by their path: keys, indices and names of attributes."""
    return {
        tuple(getattr(key, "key", getattr(key, "idx", getattr(key, "name", None))) for key in path): leaf
        for path, leaf in jax.tree.leaves_with_path(tree)
    }


def _with(tree: Any, path: tuple, leaf: Any) -> Any:
    """`tree` with another leaf at `path`."""
    leaves = _by_path(tree) | {path: leaf}
    return jax.tree.structure(tree).unflatten(list(leaves.values()))
