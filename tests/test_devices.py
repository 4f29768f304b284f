"""Chains and data over eight simulated devices give what one device gives."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from widebnn.driver._devices import Devices

HANGS = 1_800.0
"""Seconds after which devices wait for each other, on however busy a machine."""


@pytest.mark.nightly
def test_eight_devices_give_what_one_gives():
    # As in this process: where compiled programs are kept, keep the small ones too.
    environment = os.environ | {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    script = Path(__file__).with_name("devices_check.py")
    options = {"capture_output": True, "text": True, "timeout": HANGS, "env": environment}
    done = subprocess.run([sys.executable, script], **options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("all equal\n")


def test_without_a_mesh_nothing_is_moved():
    devices = Devices(None, 4, 10)
    tree = {"a": jax.numpy.zeros(4)}
    assert devices.put(tree, "chain") is tree and devices.hold(tree) is tree
