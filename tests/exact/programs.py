"""Programs that are compiled, by whatever way, are counted."""

import jax

PROGRAMS: list[str] = []
"""Grows with every program."""


def _count(name, *_, **__):
    if name == "/jax/core/compile/backend_compile_duration":
        PROGRAMS.append(name)


jax.monitoring.register_event_duration_secs_listener(_count)


def num_compiled(function):
    before = len(PROGRAMS)
    function()
    return len(PROGRAMS) - before
