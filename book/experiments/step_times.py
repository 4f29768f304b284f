"""The wall time of a sampler's step: several samplers in turn, so that a slow moment falls on all of them."""

import math
import time
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from threadpoolctl import threadpool_limits

from widebnn._compile import Program
from widebnn.samplers._base import Sampler
from widebnn.tree import Position

__all__ = ["median_error", "step_times"]


def step_times(
    cases: Sequence[tuple[Sampler, Position]], timed_seconds: float, num_rounds: int
) -> Float[np.ndarray, "round case"]:
    """Milliseconds a step of each sampler from a start, in rounds in which each is timed once.

    Steps run for about `timed_seconds` in a compiled loop that has been run before it is timed.
    """
    with threadpool_limits(1, user_api="blas"):  # as in `widebnn.sample`
        clocks = [_clock(*case) for case in cases]
        counts = [_steps_in(1e3 * timed_seconds, clock) for clock in clocks]
        rounds = [[clock(count) for clock, count in zip(clocks, counts)] for _ in range(num_rounds)]
    return np.array(rounds)


def median_error(values: np.ndarray) -> float:
    """The standard error of a median, from the median deviation, which a few slow rounds do not move.

    √(π/2) σ/√n for normal values, with σ their median absolute deviation × 1.4826.
    """
    deviation = 1.4826 * np.median(np.abs(values - np.median(values)))
    return float(math.sqrt(math.pi / 2) * deviation / math.sqrt(len(values)))


def _steps_in(milliseconds: float, clock: Callable[[int], float]) -> int:
    """How many steps take so long, by some that take a quarter of it: few are mostly the call."""
    num_steps = 1
    while (taken := num_steps * clock(num_steps)) < milliseconds / 4:
        num_steps *= 2
    return max(1, int(num_steps * milliseconds / taken))


def _clock(sampler: Sampler, start: Position) -> Callable[[int], float]:
    rng_key = jax.random.key(0)
    state = jax.jit(sampler.init)(start, rng_key)

    def steps(state, num_steps):
        def step(i, state):
            return sampler.step(jax.random.fold_in(rng_key, i), state)[0]

        return jax.lax.fori_loop(0, num_steps, step, state)

    program = Program(steps, state, jnp.asarray(1))
    jax.block_until_ready(program(state, 1))  # compiles it; and the first call in a process is slow

    def milliseconds(num_steps: int) -> float:
        before = time.perf_counter()
        jax.block_until_ready(program(state, num_steps))
        return 1e3 * (time.perf_counter() - before) / num_steps

    return milliseconds
