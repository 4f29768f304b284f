"""Run by test_devices.py in a process of its own, which has eight devices."""

import os
import tempfile
from pathlib import Path

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
import numpy as np
from exact.resume import assert_resumes
from flax import nnx

import widebnn as wb
from widebnn.driver._devices import Devices

assert len(jax.devices()) == 8
data = wb.data.digits(num_train=48, num_test=1)
bnn = wb.BNN(wb.models.FCN(64, 20, depth=2, rngs=nnx.Rngs(0)), out_features=10, noise_std=0.1)
wide = wb.BNN(wb.models.FCN(64, 60, depth=2, rngs=nnx.Rngs(0)), out_features=10, noise_std=0.1)


of_target = jax.jit(lambda target, u: jax.value_and_grad(target.potential)(u))
labels = np.argmax(data.y_train, axis=1)


def targets(dtype):
    x, y = jnp.asarray(data.x_train, dtype), jnp.asarray(data.y_train, dtype)
    yield "categorical", wb.targets.categorical(bnn, x, labels, map="gaussian")
    yield "marginal", wb.targets.marginal(bnn, x, y)
    yield "data space", wb.targets.marginal(bnn, x, y, space="data")
    yield "repriorised", wb.targets.repriorised(bnn, x, y)
    yield "rotated", wb.targets.rotated(wb.targets.marginal(bnn, x, y))
    yield "whitened", wb.targets.whitened(wb.targets.marginal(wide, x, y))


jax.config.update("jax_enable_x64", True)  # sums in another order then differ by nothing but rounding
for name, target in targets(jnp.float64):
    devices = Devices(jax.make_mesh((8,), ("data",)), 1, target.num_observations)
    position = target.draw_prior(jax.random.key(0))
    sharded = devices.shard_data(target)
    rows = [x for x in jax.tree.leaves(sharded) if np.shape(x)[:1] == (48,)]
    assert len(rows) >= 2, f"{name}: x and y are arguments"
    for x in rows:
        assert {shard.data.shape[0] for shard in x.addressable_shards} == {6}, f"{name}: six rows per device"
    single, split = (of_target(one, position) for one in (target, sharded))
    for a, b in zip(*map(jax.tree.leaves, (single, split)), strict=True):
        error, size = np.abs(np.asarray(a) - np.asarray(b)).max(), np.abs(np.asarray(a)).max()
        assert error <= 1e-11 * size, f"{name}: {error} of {size}"

target = dict(targets(jnp.float64))["marginal"]
runs = [
    wb.sample(
        jax.random.key(1),
        target,
        wb.samplers.tuned(wb.samplers.pcnl(0.1), 0.7),
        num_samples=20,
        burn_in=20,
        num_chains=4,
        stream={"potential": wb.potential},
        mesh=mesh,
    )
    for mesh in (
        None,
        jax.make_mesh((4, 2), ("chain", "data")),
        jax.make_mesh((8,), ("data",)),
    )
]
first = runs[0]
assert first.acceptance_rate > 0.3
for run in runs[1:]:
    np.testing.assert_allclose(run["potential"], first["potential"], rtol=1e-5)
    np.testing.assert_allclose(run.step_size, first.step_size, rtol=1e-5)
    np.testing.assert_allclose(run.streamed["potential"].mean, first.streamed["potential"].mean, rtol=1e-5)
leaf = jax.tree.leaves(runs[1].position)[0]
assert len({shard.data.shape[0] for shard in leaf.addressable_shards} - {1}) == 0, "one chain per device"

noisy = wb.targets.marginal(wb.BNN(bnn.features, 10, noise_std=2.0), target.x, target.y)
particles = [
    wb.smc(jax.random.key(1), noisy, num_particles=16, num_islands=2, mesh=mesh, progress=False)
    for mesh in (None, jax.make_mesh((4, 2), ("chain", "data")))
]
np.testing.assert_allclose(particles[1].log_evidences, particles[0].log_evidences, rtol=1e-5)

with tempfile.TemporaryDirectory() as folder:
    assert_resumes(
        Path(folder),
        target=target,
        sampler=wb.samplers.tuned(wb.samplers.pcnl(0.1), 0.6),
        collect={"potential": wb.potential},
        stream={"potential": wb.potential},
        mesh=jax.make_mesh((2, 4), ("chain", "data")),
    )
print("all equal")
