"""What a step costs: our pCN against the papers' and against its own parts, a gradient against a potential, a
sweep of units against a potential, and repriorisation against none.
"""

import os
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
from flax import nnx
from threadpoolctl import threadpool_limits

import widebnn as wb
from benchmarks.paper_pcn import pcn_steps
from benchmarks.timing import Comparison, compare
from book.experiments.clock import steps
from widebnn.targets._rotated import Rotated

__all__ = [
    "gradient_vs_potential",
    "pcn_step_vs_paper",
    "pcn_step_vs_parts",
    "repriorised_overhead",
    "sweep_vs_potential",
]

STEP_SIZE = 0.1


def network(data: wb.data.Dataset, width: int, depth: int = 1) -> wb.BNN:
    """The papers' network, GELU, σ = 0.1; with one hidden layer unless told otherwise."""
    features = wb.models.FCN(data.x_train.shape[1], width, depth, rngs=nnx.Rngs(0))
    return wb.BNN(features, data.y_train.shape[1], noise_std=0.1)


def marginal_target(data: wb.data.Dataset, width: int, depth: int = 1):
    """The readout integrated out, in data space."""
    return wb.targets.marginal(network(data, width, depth), data.x_train, data.y_train, space="data")


def informed_target(data: wb.data.Dataset, width: int) -> Rotated:
    """Marginal, rotated, in data space: the target of our own samplers."""
    return wb.targets.rotated(marginal_target(data, width))


def python_steps(run: Callable[[int], float], num_steps: int) -> Callable[[], float]:
    """The same for a sampler that is called from Python step by step.

    It has LAPACK with one thread and with one a core, and is given the faster.
    """
    run(2)  # compiles

    def timed(num_threads: int | None) -> float:
        with threadpool_limits(num_threads, user_api="blas"):
            start = time.perf_counter()
            run(num_steps)
            return 1e3 * (time.perf_counter() - start) / num_steps

    return lambda: min(timed(1), timed(os.cpu_count()))


def pcn_step_vs_paper(data: wb.data.Dataset, width: int) -> Comparison:
    """Our pCN step (rotated, marginal, data space) against the papers' algorithm."""
    target = informed_target(data, width)
    sampler = wb.samplers.pcn(target.potential, STEP_SIZE)
    papers = pcn_steps(network(data, width), data.x_train, data.y_train, STEP_SIZE)
    return compare(
        f"pcn_step_vs_paper_{width}",
        steps(sampler, target, num_steps=max(200, 1_000_000 // width)),
        python_steps(papers, max(5, 10_000 // width)),
    )


def repriorised_overhead(data: wb.data.Dataset, width: int) -> Comparison:
    """A Langevin step in φ (all of it, not rotated) against one in θ: what the map itself costs."""
    bnn = network(data, width)
    both = []
    for make in (wb.targets.repriorised, wb.targets.standard):
        target = make(bnn, data.x_train, data.y_train)
        sampler = wb.samplers.langevin(target.potential, step_size=1e-3, damping=0.1)
        both.append(steps(sampler, target, num_steps=max(10, 20_000 // width)))
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
        start = time.perf_counter()
        jax.block_until_ready(loop(argument))
        return 1e3 * (time.perf_counter() - start) / num_calls

    return timed


def pcn_step_vs_parts(data: wb.data.Dataset, width: int) -> Comparison:
    """Our pCN step against the sum of what no pCN step can do without, each timed by itself.

    Two products of matrices (XW¹ and ΨΨᵀ), the activation, a Cholesky factor of n × n, and as many normal
    variates as there are weights.
    """
    target = informed_target(data, width)
    inner = target.draw_prior(jax.random.key(0))
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
    sampler = wb.samplers.pcn(target.potential, STEP_SIZE)
    return compare(
        f"pcn_step_vs_parts_{width}",
        steps(sampler, target, num_steps=1_000),
        lambda: sum(part() for part in parts),
    )


def gradient_vs_potential(data: wb.data.Dataset, width: int) -> Comparison:
    """A gradient (with its value) against a potential."""
    target = informed_target(data, width)
    inner = target.draw_prior(jax.random.key(0))
    return compare(
        f"gradient_vs_potential_{width}",
        repeated(jax.value_and_grad(target.potential), inner, 100),
        repeated(target.potential, inner, 100),
    )


def sweep_vs_potential(data: wb.data.Dataset, width: int) -> Comparison:
    """A sweep of the unit-wise sampler against a potential."""
    target = informed_target(data, width)
    return compare(
        f"sweep_vs_potential_{width}",
        steps(wb.samplers.unitwise(target), target, num_steps=30),
        repeated(target.potential, target.draw_prior(jax.random.key(0)), 20),
    )
