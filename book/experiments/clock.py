"""The one clock: what steps take, of several samplers in turn, so that a slow moment falls on all of them."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Float
from threadpoolctl import threadpool_limits

import widebnn as wb

__all__ = ["in_turn", "median_error", "on_one_thread", "step_times", "steps"]

on_one_thread = partial(threadpool_limits, 1, user_api="blas")
"""LAPACK as it is in `widebnn.sample`."""


def in_turn[Name: Hashable](
    timed: Mapping[Name, Callable[[], float]], rounds: int
) -> dict[Name, list[float]]:
    """Times of each, one per round."""
    with on_one_thread():
        times = [{name: run() for name, run in timed.items()} for _ in range(rounds)]
    return {name: [found[name] for found in times] for name in timed}


def steps(
    sampler: Any, target: wb.targets.Target, num_steps: int, initial: Any = None
) -> Callable[[], float]:
    """A function that makes `num_steps` steps of one chain and returns milliseconds per step.

    `initial` has leaves (1, ...), as in `widebnn.sample`.
    """
    once = partial(wb.sample, jax.random.key(0), sampler, target, num_samples=1, progress=False)

    def run() -> float:
        draws = once(thin=num_steps, burn_in=1, num_chains=1, initial=initial)
        return 1e3 * draws.seconds / (num_steps + 1)

    return run


def step_times(
    cases: Sequence[tuple[Any, wb.targets.Target, Any]], timed_seconds: float, num_rounds: int
) -> Float[np.ndarray, "round case"]:
    """Milliseconds a step of each sampler, on its target from where one chain of it starts.

    In each round each makes steps for about `timed_seconds`.
    """
    with on_one_thread():
        runs = [steps(*case[:2], _steps_in(timed_seconds, case), case[2]) for case in cases]
    found = in_turn(dict(enumerate(runs)), num_rounds)
    return np.array([found[i] for i in range(len(cases))]).T


def _steps_in(seconds: float, case: tuple[Any, wb.targets.Target, Any]) -> int:
    """How many steps take so long, by some that take a quarter of it: few are mostly the call."""
    sampler, target, initial = case
    num_steps = 1
    while (taken := num_steps * steps(sampler, target, num_steps, initial)()) < 1e3 * seconds / 4:
        num_steps *= 2
    return max(1, int(1e3 * num_steps * seconds / taken))


def median_error(values: np.ndarray) -> float:
    """The standard error of a median, from the median deviation, which a few slow rounds do not move.

    √(π/2) σ/√n for normal values, with σ their median absolute deviation × 1.4826.
    """
    deviation = 1.4826 * np.median(np.abs(values - np.median(values)))
    return float(math.sqrt(math.pi / 2) * deviation / math.sqrt(len(values)))
