"""HMC of a wide network by NumPyro, which stores the draws of all weights; prints the peak memory in MiB.

The process of a peer (`benchmarks.peak_memory`): of this project it imports nothing.
"""

import math
import re
import sys
from pathlib import Path

import jax
import jax.numpy as jnp

D_IN, WIDTH, NUM_TRAIN, NUM_NEW, NUM_DRAWS = 784, 1_024, 64, 100, 500
STEP_SIZE, NUM_STEPS = 1e-3, 4
NOISE_STD = 0.1


def peak_mib() -> float:
    """The most that was resident of this process, as Linux counts it."""
    # getrusage would hand a child the peak of the process that started it
    status = Path("/proc/self/status").read_text()
    return int(re.findall(r"VmHWM:\s*(\d+) kB", status)[0]) / 1_024


def network(weights, x):
    """One hidden layer of GELU units; all weights have the prior N(0, 1)."""
    w, b, v = weights
    return jax.nn.gelu(math.sqrt(2 / x.shape[1]) * x @ w + 0.1 * b) @ v / math.sqrt(len(v))


def main(width: int, num_draws: int) -> None:
    import numpyro  # pyright: ignore[reportMissingImports]
    from numpyro.infer import HMC, MCMC  # pyright: ignore[reportMissingImports]

    keys = jax.random.split(jax.random.key(0), 3)
    x, new = (jax.random.normal(key, (num, D_IN)) for key, num in zip(keys, (NUM_TRAIN, NUM_NEW)))

    def model():
        shapes = {"w": (D_IN, width), "b": (width,), "v": (width,)}
        weights = [
            numpyro.sample(name, numpyro.distributions.Normal().expand(shape).to_event())
            for name, shape in shapes.items()
        ]
        numpyro.sample(
            "y", numpyro.distributions.Normal(network(weights, x), NOISE_STD), obs=jnp.sin(x[:, 0])
        )

    kernel = HMC(
        model,
        step_size=STEP_SIZE,
        num_steps=NUM_STEPS,
        trajectory_length=None,
        adapt_step_size=False,
        adapt_mass_matrix=False,
    )
    chain = MCMC(kernel, num_warmup=0, num_samples=num_draws, progress_bar=False)
    chain.run(keys[2])
    draws = chain.get_samples()
    weights = [draws[name] for name in "wbv"]
    jax.block_until_ready(jax.lax.map(lambda weights: network(weights, new), weights))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
    print(peak_mib())
