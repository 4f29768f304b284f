"""The seconds that JAX takes to compile, by what it reports of itself."""

import contextlib
import threading
from collections.abc import Iterator

import jax.monitoring

__all__ = ["compiling"]

# Tracing is left out: a function that calls another is reported with it, and the other once more.
EVENTS = ("/jax/core/compile/jaxpr_to_mlir_module_duration", "/jax/core/compile/backend_compile_duration")


@contextlib.contextmanager
def compiling() -> Iterator[list[float]]:
    """A list of what each program that this thread lowers and compiles in the block takes, in seconds."""
    thread, seconds = threading.get_ident(), []

    def note(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event in EVENTS and threading.get_ident() == thread:
            seconds.append(duration_secs)

    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        yield seconds
    finally:
        jax.monitoring.unregister_event_duration_listener(note)
