"""Dataclasses as pytrees: arrays are leaves, and what programs know compares by its structure."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import Field, FrozenInstanceError, dataclass, field, fields
from types import MethodType
from typing import Any, dataclass_transform

import jax
import numpy as np

from widebnn._check import brief

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
    """A function as a pytree: itself if it is a `Partial` or holds arrays alone, else it is static.

    A method of a `Record` holds the record's arrays.
    """
    if isinstance(function, MethodType) and isinstance(function.__self__, Record):
        return jax.tree_util.Partial(function.__func__, function.__self__)
    is_pytree = isinstance(function, jax.tree_util.Partial) or all(
        isinstance(leaf, jax.Array | np.ndarray | float | int) for leaf in jax.tree.leaves(function)
    )
    return function if is_pytree else Static(function)


def pytree[T: type](cls: T) -> T:
    """Make a dataclass a pytree: arrays and numbers are its leaves, and fields marked `STATIC` its structure.

    Unlike `jax.tree_util.register_dataclass`, rebuilding one runs no `__init__` and no checks.
    """
    leaves = [field.name for field in fields(cls) if not field.metadata.get("static")]
    known = [field.name for field in fields(cls) if field.metadata.get("static")]

    def flatten_with_keys(made):
        children = [(jax.tree_util.GetAttrKey(name), getattr(made, name)) for name in leaves]
        return children, tuple(Static(getattr(made, name)) for name in known)

    def unflatten(static, children):
        made = object.__new__(cls)
        for name, value in zip(leaves, children, strict=True):
            object.__setattr__(made, name, value)
        for name, held in zip(known, static, strict=True):
            object.__setattr__(made, name, held.value)
        return made

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten)
    return cls


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
class Record:
    """What subclasses are made of: each is a frozen dataclass and a `pytree`, without a decorator."""

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        for name in inspect.get_annotations(cls):
            if getattr(getattr(cls, name, None), "__isabstractmethod__", False):
                setattr(cls, name, field())  # an abstract property that is a field here, and no default of it
        written = {name: value for name, value in vars(cls).items() if isinstance(value, Field)}
        pytree(dataclass(frozen=True, eq=False, repr=False)(cls))
        # A `@dataclass` above the class may follow, and is to find it as it was written.
        del cls.__setattr__, cls.__delattr__
        for name, value in written.items():
            setattr(cls, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __repr__(self) -> str:
        # arrays by their shapes: error messages name targets and samplers, and must not print the data
        shown = [f"{field.name}={_brief(getattr(self, field.name))}" for field in fields(self)]  # pyright: ignore
        return f"{type(self).__name__}({', '.join(shown)})"


def _brief(value: Any) -> str:
    value = value.value if isinstance(value, Static) else value
    value = value.func if isinstance(value, functools.partial) else value
    return value.__name__ if inspect.isroutine(value) or inspect.isclass(value) else brief(value)
