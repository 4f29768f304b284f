"""What `test_checkpoint_kill` runs and kills, given the paths of a checkpoint and of a result."""

import sys
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import widebnn as wb
from widebnn.driver import _sample

path, result = map(Path, sys.argv[1:])
wb.keep_compiled()
warnings.simplefilter("ignore", wb.ChainWarning)  # it is short
_sample.CHUNK_SECONDS = 0.01
data = jnp.asarray(np.random.default_rng(0).normal(size=(300, 400)), jnp.float32)
draws = wb.sample(
    jax.random.key(0),
    wb.targets.from_potential(lambda u: jnp.sum(jnp.sin(data @ u)), jnp.zeros(400)),
    wb.samplers.tuned(wb.samplers.langevin(0.1, damping=0.1), 0.6),
    num_samples=6_000,
    thin=3,
    burn_in=6_000,
    num_chains=2,
    collect={"u": lambda _, u: u[:5], "noise": lambda _, u, rng_key: jax.random.normal(rng_key)},
    stream={"potential": wb.potential},
    checkpoint=wb.Checkpoint(path, every_seconds=0.1),
    progress=False,
)
kept = [draws.collected, draws.stats, draws.position, draws.step_size, draws.streamed["potential"].summary]
result.write_bytes(b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(kept)))
