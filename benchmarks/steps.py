"""What our step of pCN costs against the papers', a gradient on whitened layers against one on weights."""

import os
import time
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
from threadpoolctl import threadpool_limits

import widebnn as wb
from benchmarks.paper_pcn import pcn_steps
from benchmarks.timing import Comparison, compare
from book.experiments.clock import Clock, steps
from book.experiments.posterior import Posterior, dense

STEP_SIZE = 0.1
DEEP = ((1_024, 2), (2_048, 3), (4_096, 2), (4_096, 3))
"""Widths and depths at which gradients are compared."""


def posterior(data: wb.data.Dataset, width: int, depth: int = 1) -> Posterior:
    """Of the papers' network, GELU, σ = 0.1; with one hidden layer unless told otherwise."""
    return dense(data, width, depth, noise_std=0.1)


def start(target: wb.targets.Target):
    """A draw from the prior."""
    return target.draw_prior(jax.random.key(0))


def pcn(target: wb.targets.Target, step_size: float = STEP_SIZE) -> Clock:
    """Of our pCN."""
    return steps(target, wb.samplers.pcn(step_size), start(target))


def python_steps(run: Callable[[int], float]) -> Clock:
    """Of a sampler that is called from Python step by step.

    It has LAPACK with one thread and with one a core, and is given the faster.
    """
    run(2)  # compiles

    def timed(num_steps: int, num_threads: int | None) -> float:
        with threadpool_limits(num_threads, user_api="blas"):
            before = time.perf_counter()
            run(num_steps)
            return 1e3 * (time.perf_counter() - before) / num_steps

    return lambda num_steps: lambda: min(timed(num_steps, 1), timed(num_steps, os.cpu_count()))


def pcn_step_vs_paper(data: wb.data.Dataset, width: int) -> Comparison:
    """Our pCN step (rotated, marginal, data space) against the papers' algorithm."""
    ours = posterior(data, width)
    papers = pcn_steps(ours.bnn, data.x_train, data.y_train, STEP_SIZE)
    return compare(
        f"pcn_step_vs_paper_{width}",
        pcn(ours.rotated)(max(200, 1_000_000 // width)),
        python_steps(papers)(max(5, 10_000 // width)),
    )


def repeated(function: Callable, argument, num_calls: int) -> Callable[[], float]:
    """A function that calls `function` so often in one compiled loop and returns milliseconds a call.

    Every call waits for the one before: a billionth of its result is added to the argument.
    """

    def call(argument, _):
        out = jax.lax.optimization_barrier(function(argument))  # all of it, not the entry that is touched
        touch = 1e-9 * jnp.stack([leaf.reshape(-1)[0] for leaf in jax.tree.leaves(out)]).sum()
        return jax.tree.map(lambda leaf: leaf + touch.astype(leaf.dtype), argument), None

    loop = jax.jit(lambda argument: jax.lax.scan(call, argument, length=num_calls)[0])
    jax.block_until_ready(loop(argument))

    def timed() -> float:
        before = time.perf_counter()
        jax.block_until_ready(loop(argument))
        return 1e3 * (time.perf_counter() - before) / num_calls

    return timed


def gradients_whitened_vs_weights(data: wb.data.Dataset) -> Iterator[Comparison]:
    """A row for each size: gradients with their values, the inputs being rotated in both."""
    for width, depth in DEEP:
        marginal = posterior(data, width, depth).marginal
        num_calls = max(2, 4_000_000 // (width**2 * depth))
        gradients = [
            repeated(jax.value_and_grad(target.potential), start(target), num_calls)
            for target in (wb.targets.whitened(marginal), wb.targets.rotated(marginal))
        ]
        yield compare(f"gradient_whitened_vs_weights_{width}x{depth}", *gradients, rounds=5)
