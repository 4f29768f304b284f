"""One program for a whole function, with the arrays of its target as arguments."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.core

from widebnn._check import is_tracing
from widebnn._pytree import STATIC, pytree

MAX_MAPS = 40_000
"""Memory maps of a process, of which Linux allows 65,530. A fit of a new shape takes some 1,500."""


def jitted[T: Callable[..., Any]](method: T) -> T:
    """A method as one program where it is called on arrays, with the leaves of the object as arguments.

    The same program serves every object of the same structure and shapes. Where something is being traced the
    method is traced as it stands.
    """

    @functools.wraps(method)
    def call(self, *args, **kwargs):
        return _in_one(method, self, *args, **kwargs)

    return call  # pyright: ignore[reportReturnType]


@pytree
@dataclass(frozen=True, eq=False)
class asked:
    """`question(*of, position, rng_key)` as a function of `(position, rng_key=None)`."""

    question: Callable[..., Any] = field(metadata=STATIC)  # one object, such as a method of a class
    of: tuple[Any, ...]  # pytrees, whose leaves are arguments of its program: a target, and new inputs

    def __call__(self, position: Any, rng_key: Any = None) -> Any:
        return _in_one(self.question, *self.of, position, rng_key)


def make_room() -> None:
    """Forget all compiled programs where the process is about to run out of memory maps.

    JAX keeps every program, and without a map for the next one XLA ends the process: after about 40 fits of
    different shapes, as in a grid search.
    """
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MAX_MAPS:
        jax.clear_caches()


def _in_one(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if is_tracing() or any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves((args, kwargs))):
        return function(*args, **kwargs)
    return _jitted(function)(*args, **kwargs)


_jitted = functools.cache(jax.jit)
