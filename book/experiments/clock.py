"""The one clock: what steps take, of several samplers in turn, so that a slow moment falls on all of them."""

import math
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float, Int, Key
from threadpoolctl import threadpool_limits

from widebnn.samplers import Sampler
from widebnn.targets import Target
from widebnn.tree import Position

__all__ = ["Clock", "in_turn", "median_error", "on_one_thread", "step_times", "steps"]

Clock = Callable[[int], Callable[[], float]]
"""From a number of steps to a function that makes them and returns the milliseconds of one."""

on_one_thread = partial(threadpool_limits, 1, user_api="blas")
"""LAPACK as it is in `widebnn.sample`."""


def in_turn[Name: Hashable](
    timed: Mapping[Name, Callable[[], float]], rounds: int
) -> dict[Name, list[float]]:
    """Times of each, one per round."""
    with on_one_thread():
        times = [{name: run() for name, run in timed.items()} for _ in range(rounds)]
    return {name: [found[name] for found in times] for name in timed}


def steps(target: Target, sampler: Sampler, start: Position) -> Clock:
    """Of a chain in a compiled loop, which has run before it is timed.

    A call of `widebnn.sample` takes some milliseconds besides its steps, more than many small ones.
    """
    rng_key, sampler = jax.random.key(0), sampler.prepare(target)
    state = _first(target, sampler, start, rng_key)
    jax.block_until_ready(_chain(target, sampler, state, rng_key, 1))  # the first call compiles, and is slow

    def run(num_steps: int) -> float:
        before = time.perf_counter()
        jax.block_until_ready(_chain(target, sampler, state, rng_key, num_steps))
        return 1e3 * (time.perf_counter() - before) / num_steps

    return lambda num_steps: partial(run, num_steps)


@jax.jit
def _first(target: Target, sampler: Sampler, position: Position, rng_key: Key[Array, ""]) -> Any:
    return sampler.init(target, position, rng_key)


@jax.jit
def _chain(
    target: Target, sampler: Sampler, state: Any, rng_key: Key[Array, ""], num_steps: int | Int[Array, ""]
) -> Any:
    """The state after so many steps."""

    def step(i, state):
        return sampler.step(target, jax.random.fold_in(rng_key, i), state)[0]

    return jax.lax.fori_loop(0, num_steps, step, state)


def step_times(
    clocks: Sequence[Clock], timed_seconds: float, num_rounds: int
) -> Float[np.ndarray, "round clock"]:
    """Milliseconds a step by each clock, which runs for about `timed_seconds` in every round."""
    with on_one_thread():
        runs = [clock(_steps_in(timed_seconds, clock)) for clock in clocks]
    return np.array([*in_turn(dict(enumerate(runs)), num_rounds).values()]).T


def _steps_in(seconds: float, clock: Clock) -> int:
    """How many steps take so long, by some that take a quarter of it: few are mostly the call."""
    num_steps = 1
    while (taken := num_steps * clock(num_steps)()) < 1e3 * seconds / 4:
        num_steps *= 2
    return max(1, int(1e3 * num_steps * seconds / taken))


def median_error(values: np.ndarray) -> float:
    """The standard error of a median, from the median deviation, which a few slow rounds do not move.

    √(π/2) σ/√n for normal values, with σ their median absolute deviation × 1.4826.
    """
    deviation = 1.4826 * np.median(np.abs(values - np.median(values)))
    return float(math.sqrt(math.pi / 2) * deviation / math.sqrt(len(values)))
