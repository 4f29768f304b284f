"""One program for a whole function, with the arrays of its target as arguments."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax

from widebnn._pytree import STATIC, pytree

MAX_MAPS = 40_000
"""Memory maps of a process, of which Linux allows 65,530. A fit of a new shape takes some 1,500."""


def jitted[T: Callable[..., Any]](method: T) -> T:
    """A method of a pytree as one program, which serves every object of the same structure and shapes."""
    return jax.jit(method)  # pyright: ignore[reportReturnType]


@pytree
@dataclass(frozen=True, eq=False)
class asked:
    """`question(*of, position, rng_key)` as a function of `(position, rng_key=None)`."""

    question: Callable[..., Any] = field(metadata=STATIC)  # one object, such as a method of a class
    of: tuple[Any, ...]  # pytrees, whose leaves are arguments of its program: a target, and new inputs

    def __call__(self, position: Any, rng_key: Any = None) -> Any:
        return _jitted(self.question)(*self.of, position, rng_key)


def make_room() -> None:
    """Forget all compiled programs where the process is about to run out of memory maps.

    JAX keeps every program, and without a map for the next one XLA ends the process: after about 40 fits of
    different shapes, as in a grid search.
    """
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MAX_MAPS:
        jax.clear_caches()


_jitted = functools.cache(jax.jit)
