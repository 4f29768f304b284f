"""What `test_checkpoint_kill` runs and kills, given `path` (none where it is empty), `result` and `cache`."""

import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import widebnn as wb
from widebnn.driver import _sample

path, result, cache = (str(globals()[name]) for name in ("path", "result", "cache"))
os.environ["TQDM_DISABLE"] = "1"
jax.config.update("jax_compilation_cache_dir", cache)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
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
    checkpoint=wb.Checkpoint(path, every_seconds=0.1) if path else None,
)
kept = [draws.collected, draws.stats, draws.position, draws.step_size, draws.streamed["potential"].summary]
whole = Path(result).with_suffix(".partial")
whole.write_bytes(b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(kept)))
whole.replace(result)
