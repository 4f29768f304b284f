"""Dataclasses as pytrees: arrays are leaves, and what programs know compares by its structure."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import jax
import numpy as np

STATIC = {"static": True}
"""Metadata of a field of a `pytree` that programs know, and that is no array."""


class Static:
    """A value that a program knows: two are the same where they compare equal, or are one object.

    A function may be called as it is.
    """

    def __init__(self, value: Any):
        self.value = value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.value(*args, **kwargs)

    def _key(self) -> Any:
        leaves, structure = jax.tree.flatten(self.value)
        return structure, tuple(leaves)

    def __hash__(self) -> int:
        try:
            return hash(self._key())
        except TypeError:  # it holds arrays, or a list that is no pytree
            return id(self.value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Static):
            return NotImplemented
        return self.value is other.value or (hash(self) == hash(other) and self._key() == other._key())


jax.tree_util.register_static(Static)


def as_pytree(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function as a pytree: itself if it is a `Partial` or holds arrays alone, else it is static."""
    is_pytree = isinstance(function, jax.tree_util.Partial) or all(
        isinstance(leaf, jax.Array | np.ndarray | float | int) for leaf in jax.tree.leaves(function)
    )
    return function if is_pytree else Static(function)


def pytree[T: type](cls: T) -> T:
    """Make a dataclass a pytree: arrays and numbers are its leaves, and fields marked `STATIC` its structure.

    Unlike `jax.tree_util.register_dataclass`, rebuilding one runs no `__init__` and no checks.
    """

    def names(wanted: bool) -> list[str]:
        return [field.name for field in fields(cls) if bool(field.metadata.get("static")) is wanted]

    def flatten_with_keys(made):
        children = [(jax.tree_util.GetAttrKey(name), getattr(made, name)) for name in names(False)]
        return children, tuple(Static(getattr(made, name)) for name in names(True))

    def unflatten(static, children):
        made = object.__new__(cls)
        for name, value in zip(names(False), children, strict=True):
            object.__setattr__(made, name, value)
        for name, held in zip(names(True), static, strict=True):
            object.__setattr__(made, name, held.value)
        return made

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten)
    return cls
