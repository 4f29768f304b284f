"""What a step costs: our pCN against the papers' and against its own parts, a gradient against a potential, a
sweep of units against a potential, and repriorisation against none.
"""

import os
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
from threadpoolctl import threadpool_limits

import widebnn as wb
from benchmarks.paper_pcn import pcn_steps
from benchmarks.timing import Comparison, compare
from book.experiments.clock import Clock, steps
from book.experiments.posterior import Posterior, dense

STEP_SIZE = 0.1


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


def repriorised_overhead(data: wb.data.Dataset, width: int) -> Comparison:
    """A Langevin step in φ (all of it, not rotated) against one in θ: what the map itself costs."""
    bnn, both = posterior(data, width).bnn, []
    for make in (wb.targets.repriorised, wb.targets.standard):
        target = make(bnn, data.x_train, data.y_train)
        sampler = wb.samplers.langevin(step_size=1e-3, damping=0.1)
        both.append(steps(target, sampler, start(target))(max(10, 20_000 // width)))
    return compare(f"repriorised_overhead_{width}", *both)


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


def pcn_step_vs_parts(data: wb.data.Dataset, width: int) -> Comparison:
    """Our pCN step against the sum of what no pCN step can do without, each timed by itself.

    Two products of matrices (XW¹ and ΨΨᵀ), the activation, a Cholesky factor of n × n, and as many normal
    variates as there are weights.
    """
    target = posterior(data, width).rotated
    inner = start(target)
    kernel = inner["layers"][0]["kernel"]
    psi, n = target.embedding(inner), len(target.x)
    gram = psi @ psi.T + jnp.eye(n)
    parts = [
        repeated(lambda w: target.x @ w, kernel, 200),
        repeated(lambda psi: psi @ psi.T, psi, 200),
        repeated(wb.models.ACTIVATIONS["gelu"], target.x @ kernel, 200),
        repeated(jnp.linalg.cholesky, gram, 200),
        repeated(
            lambda seed: jax.random.normal(jax.random.key(seed[0].astype(int)), (kernel.size + width,)),
            jnp.zeros(1),
            200,
        ),
    ]
    return compare(f"pcn_step_vs_parts_{width}", pcn(target)(1_000), lambda: sum(part() for part in parts))


def gradient_vs_potential(data: wb.data.Dataset, width: int) -> Comparison:
    """A gradient (with its value) against a potential."""
    target = posterior(data, width).rotated
    inner = start(target)
    return compare(
        f"gradient_vs_potential_{width}",
        repeated(jax.value_and_grad(target.potential), inner, 100),
        repeated(target.potential, inner, 100),
    )


def sweep_vs_potential(data: wb.data.Dataset, width: int) -> Comparison:
    """A sweep of the unit-wise sampler against a potential."""
    target = posterior(data, width).rotated
    inner = start(target)
    return compare(
        f"sweep_vs_potential_{width}",
        steps(target, wb.samplers.unitwise(), inner)(30),
        repeated(target.potential, inner, 20),
    )
