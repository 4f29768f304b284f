"""The idea that carries the package: a target is a potential over N(0, I)."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import field
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PyTree

from widebnn._arrays import NewInputs, Tabular, floating
from widebnn._check import brief
from widebnn._compile import jitted
from widebnn._pytree import STATIC, Record, as_pytree
from widebnn.tree import Position, normal_like


class Target(Record, ABC):
    """A density proportional to $exp(−½‖u‖² − U(u))$ on a pytree of arrays $u$.

    Every parametrisation of every model of this package is a target; most samplers know nothing else of it.
    A subclass is made a frozen dataclass and a pytree, as one of Equinox is: data and scales are its leaves,
    and fields that are marked ``field(metadata={"static": True})`` its structure.

    `widebnn.Draws.predict` and `widebnn.collectors` work with a target of one's own that has methods of the
    collectors' names, such as ``predictive_mean(position, x, rng_key)``.
    """

    @property
    @abstractmethod
    def template(self) -> PyTree[jax.ShapeDtypeStruct]:
        """Shapes and dtypes of a position."""

    @property
    def num_observations(self) -> int | None:
        """Number of observations, which a mesh may split; None for a target without data."""
        return None

    def given_scales(self, position: Position) -> "tuple[Target, Position]":
        """The target at the scales of a position, and the position there; this one, unless it has scales."""
        return self, position

    def prepared(self, x: NewInputs | Tabular) -> Any:
        """New inputs as the target's methods take them."""
        return floating(x=x)

    @abstractmethod
    def potential(self, position: Position) -> Float[Array, ""]:
        """$U$, minus the log density relative to $N(0, I)$, up to a constant."""

    @jitted
    def logdensity(self, position: Position) -> Float[Array, ""]:
        """$−½‖u‖² − U(u)$, up to a constant: what samplers of other libraries take.

        In float32, $½‖u‖²$ of a wide network is so large that differences of this sum are lost to rounding;
        the samplers of this package never form it.
        """
        return -sum(jnp.sum(u**2) for u in jax.tree.leaves(position)) / 2 - self.potential(position)

    @jitted
    def draw_prior(self, rng_key: Key[Array, ""]) -> Position:
        """A draw from $N(0, I)$, where chains start unless they are given other positions."""
        return normal_like(rng_key, self.template)


class _FromPotential(Target):
    function: Callable[[Position], Float[Array, ""]]
    shapes: PyTree[jax.ShapeDtypeStruct] = field(metadata=STATIC)

    @property
    def template(self):
        return self.shapes

    @jitted
    def potential(self, position):
        return self.function(position)


def from_potential(potential: Callable[[Position], Float[Array, ""]], template: PyTree) -> Target:
    """Any function of a pytree as a target.

    Parameters
    ----------
    potential
        $U$: takes a pytree shaped like `template`, returns a scalar. Arrays that it closes over are constants
        of its programs; those of a `jax.tree_util.Partial` are arguments, which others can replace.
    template
        Arrays or `jax.ShapeDtypeStruct`s with the shapes and dtypes of a position.
    """
    if not callable(potential):
        raise TypeError(f"potential must be a function of a position; got {brief(potential)}")
    template = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), template)
    value = jax.eval_shape(potential, template)
    if getattr(value, "shape", None) != () or not jnp.issubdtype(value.dtype, jnp.floating):
        raise ValueError(f"potential must return a real scalar; got {value}")
    return _FromPotential(as_pytree(potential), template)
