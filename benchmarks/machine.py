"""What a machine can do at best, so that ratios measured on two of them can be read beside each other."""

import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

import jax
import jax.numpy as jnp

__all__ = ["Machine", "machine", "processor"]

ROUNDS = 7
SIDE = 2_048
"""Of the matrices that are multiplied, and of the one that is factorised."""
NUM_FLOATS = 32 * 2**20
"""That are copied: 128 MiB, beyond any cache."""
NUM_NORMALS = 4 * 2**20


class Machine(TypedDict):
    """A processor, and medians of what it does in float32 with as many threads as XLA takes."""

    processor: str
    cores: int
    products_gflops: float
    cholesky_gflops: float
    bandwidth_gb_per_s: float
    normals_millions_per_s: float


def processor() -> str:
    """Its name, as the system gives it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def machine() -> Machine:
    """Measure a product of matrices, a Cholesky factorisation, a sum of two arrays and normal variates."""
    a = jax.random.normal(jax.random.key(0), (SIDE, SIDE))
    spd = a @ a.T / SIDE + jnp.eye(SIDE)
    x, y = jnp.ones((2, NUM_FLOATS))
    return Machine(
        processor=processor(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        products_gflops=2 * SIDE**3 / _seconds(jnp.matmul, a, a) / 1e9,
        cholesky_gflops=SIDE**3 / 3 / _seconds(jnp.linalg.cholesky, spd) / 1e9,
        bandwidth_gb_per_s=3 * 4 * NUM_FLOATS / _seconds(jnp.add, x, y) / 1e9,
        normals_millions_per_s=NUM_NORMALS
        / _seconds(lambda key: jax.random.normal(key, (NUM_NORMALS,)), jax.random.key(1))
        / 1e6,
    )


def _seconds(function: Callable[..., jax.Array], *arguments: jax.Array) -> float:
    """The median of seven timings, after one that compiles."""
    compiled = jax.jit(function)
    jax.block_until_ready(compiled(*arguments))
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        jax.block_until_ready(compiled(*arguments))
        times.append(time.perf_counter() - start)
    return statistics.median(times)
