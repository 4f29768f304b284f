"""One program for a whole function, with the arrays of its target as arguments."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

MAX_MAPS = 40_000
"""Memory maps of a process, of which Linux allows 65,530. A fit of a new shape takes some 1,500."""


def jitted[T: Callable[..., Any]](method: T) -> T:
    """A method of a pytree as one program, which serves every object of the same structure and shapes."""
    return jax.jit(method)  # pyright: ignore[reportReturnType]


def make_room() -> None:
    """Forget all compiled programs where the process is about to run out of memory maps.

    JAX keeps every program, and without a map for the next one XLA ends the process: after about 40 fits of
    different shapes, as in a grid search.
    """
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MAX_MAPS:
        jax.clear_caches()
