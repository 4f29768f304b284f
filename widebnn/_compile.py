"""One program for a whole function, with the arrays of its target as arguments."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

MAX_MAPS = 40_000
"""Memory maps of a process, of which Linux allows 65,530. A fit of a new shape takes some 1,500."""


def jitted[T: Callable[..., Any]](method: T) -> T:
    """A method of a pytree as one program, which serves every object of the same structure and shapes."""
    return jax.jit(method)  # pyright: ignore[reportReturnType]


_process: int | None = None
"""Where JAX ran first, if anywhere."""


def refuse_fork() -> None:
    """Raise in a process that was forked after JAX had run: without its threads it would hang.

    Raises
    ------
    RuntimeError
        In such a process.
    """
    global _process
    if _process not in (None, os.getpid()):
        raise RuntimeError(
            "JAX ran before this process was forked, and would hang here: start it by "
            'multiprocessing.get_context("spawn"), or load models after the fork'
        )
    _process = os.getpid()


def make_room() -> None:
    """Forget all compiled programs where the process is about to run out of memory maps.

    JAX keeps every program, and without a map for the next one XLA ends the process: after about 40 fits of
    different shapes, as in a grid search.
    """
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MAX_MAPS:
        jax.clear_caches()
