"""Run twice by test_devices.py, in two processes of two devices each, which make one run together."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

import widebnn as wb

jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"localhost:{sys.argv[1]}", num_processes=2, process_id=int(sys.argv[2]))

assert (jax.local_device_count(), jax.device_count()) == (2, 4)
jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(0)
x, y = jnp.asarray(rng.normal(size=(6, 3))), jnp.asarray(rng.normal(size=(6, 2)))
target = wb.targets.linear(x, y, 0.5)


def run(mesh, checkpoint=None):
    sampler = wb.samplers.pcn(0.3)
    functions = {"potential": wb.potential}
    return wb.sample(
        jax.random.key(0),
        target,
        sampler,
        num_samples=300,
        burn_in=0,
        num_chains=2,
        collect=functions,
        stream=functions,
        checkpoint=checkpoint,
        mesh=mesh,
    )


mesh = jax.make_mesh((2, 2), ("chain", "data"))
here, together = run(None), run(mesh)
assert 0 < here.acceptance_rate < 1
np.testing.assert_allclose(together["potential"], here["potential"], rtol=1e-10)
np.testing.assert_allclose(together.streamed["potential"].mean, here.streamed["potential"].mean, rtol=1e-10)
for leaf in jax.tree.leaves(together.position):
    assert not leaf.is_fully_addressable, "a chain in each process"
try:
    run(mesh, wb.Checkpoint("never made"))
except ValueError as error:
    assert str(error) == "checkpoint must be None where mesh spans several processes"
    print("all equal")
