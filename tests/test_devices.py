"""Chains and data over eight simulated devices give what one device gives."""

import subprocess
import sys
from pathlib import Path

import jax
import pytest

import widebnn as wb
from widebnn._devices import Devices


def test_eight_devices_give_what_one_gives():
    script = Path(__file__).with_name("devices_check.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("all equal\n")


def test_without_a_mesh_nothing_is_moved():
    devices = Devices(None, 4, 10)
    tree = {"a": jax.numpy.zeros(4)}
    assert devices.over_chains(tree) is tree and devices.everywhere(tree) is tree


@pytest.mark.parametrize("axes, found", [(("chain", "model"), "model"), (("rows",), "rows")])
def test_axes_are_chain_and_data(axes, found):
    mesh = jax.make_mesh((1,) * len(axes), axes)
    with pytest.raises(ValueError, match=f'axes "chain" and "data" alone; got .*{found}'):
        Devices(mesh, 4, 10)


def test_mesh_is_a_mesh():
    target = wb.targets.from_potential(lambda u: u.sum(), jax.numpy.zeros(2))
    with pytest.raises(TypeError, match=r"mesh must be a jax.sharding.Mesh; got 8"):
        wb.sample(jax.random.key(0), wb.samplers.pcn(target.potential, 0.1), target, num_samples=1, mesh=8)
