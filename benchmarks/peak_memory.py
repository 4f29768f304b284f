"""What a chain of a wide network takes of memory: ours with functions and moments, NumPyro's with its draws.

Both make 500 draws by HMC of a network of the same shape, one hidden layer of 1,024 units, on 64 inputs of
784 numbers, and end with its predictions for 100 others. NumPyro stores the draws of the weights, as its
users do, and predicts from them; ours collects the predictions, and streams the moments of the weights.
`python -m benchmarks.peak_memory` is the process of ours, `numpyro_hmc.py` the other.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
from flax import nnx
from jax.flatten_util import ravel_pytree

import widebnn as wb
from benchmarks.numpyro_hmc import D_IN, NUM_DRAWS, NUM_NEW, NUM_STEPS, NUM_TRAIN, STEP_SIZE, WIDTH, peak_mib
from benchmarks.timing import Comparison, can_run, compare

PEER = Path(__file__).with_name("numpyro_hmc.py")
NUMPYRO_PYTHON = os.environ.get("NUMPYRO_PYTHON", sys.executable)
"""The interpreter that has NumPyro: this one with the extra `bench`, or that of another environment."""


def peak_memory() -> Iterator[Comparison]:
    """The row; none, and why, where there is no NumPyro."""
    if can_run("peak_memory_vs_numpyro", NUMPYRO_PYTHON, "numpyro", "NumPyro"):
        yield peak_memory_vs_numpyro(WIDTH)


def peak_memory_vs_numpyro(width: int, num_draws: int = NUM_DRAWS, rounds: int = 3) -> Comparison:
    """Peak resident memory of both processes, interpreter and libraries included."""
    sizes = [str(width), str(num_draws)]
    row = compare(
        f"peak_memory_vs_numpyro_{width}",
        lambda: _peak([sys.executable, "-m", "benchmarks.peak_memory", *sizes]),
        lambda: _peak([NUMPYRO_PYTHON, str(PEER), *sizes]),
        rounds,
    )
    row["unit"] = "MiB"
    return row


def _peak(command: list[str]) -> float:
    return float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()[-1])


def chain(width: int, num_draws: int) -> wb.Draws:
    """Ours."""
    keys = jax.random.split(jax.random.key(0), 3)
    x, new = (jax.random.normal(key, (num, D_IN)) for key, num in zip(keys, (NUM_TRAIN, NUM_NEW)))
    features = wb.models.FCN(D_IN, width, depth=1, rngs=nnx.Rngs(0))
    bnn = wb.BNN(features, 1, noise_std=0.1)
    target = wb.targets.standard(bnn, x, jnp.sin(x[:, :1]))
    moments = wb.streaming.Stream(lambda _, u: ravel_pytree(u)[0], batches=False, quantiles=False)
    return wb.sample(
        keys[2],
        target,
        wb.samplers.hmc(STEP_SIZE, NUM_STEPS),
        num_samples=num_draws,
        burn_in=0,
        num_chains=1,
        num_positions=0,
        collect={"predictions": wb.output(new)},
        stream={"weights": moments},
        progress=False,
    )


if __name__ == "__main__":
    chain(*map(int, sys.argv[1:]))
    print(peak_mib())
