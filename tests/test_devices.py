"""Chains and data over eight simulated devices, or over two processes, give what one device gives."""

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from widebnn.driver._devices import Devices

# As in this process: where compiled programs are kept, keep the small ones too.
ENVIRONMENT = os.environ | {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
HANGS = 1_800.0
"""Seconds after which processes wait for each other, on however busy a machine."""


@pytest.mark.nightly
def test_eight_devices_give_what_one_gives():
    script = Path(__file__).with_name("devices_check.py")
    options = {"capture_output": True, "text": True, "timeout": HANGS, "env": ENVIRONMENT}
    done = subprocess.run([sys.executable, script], **options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("all equal\n")


@pytest.mark.nightly
def test_two_processes_give_what_one_gives():
    script = Path(__file__).with_name("hosts_check.py")
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    command = [sys.executable, script, str(port)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": ENVIRONMENT}
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(subprocess.Popen([*command, number], **pipes)) for number in "01"]
        for process in processes:
            stack.callback(process.kill)
        for process in processes:
            out, err = process.communicate(timeout=HANGS)
            assert process.returncode == 0, err
            assert out.endswith("all equal\n")


def test_without_a_mesh_nothing_is_moved():
    devices = Devices(None, 4, 10)
    tree = {"a": jax.numpy.zeros(4)}
    assert devices.put(tree, "chain") is tree and devices.hold(tree) is tree
