"""What a chapter was run with: its last cell says so."""

import os
import platform
from importlib.metadata import version

import jax

__all__ = ["device", "print_versions"]


def print_versions() -> None:
    """Print the versions of Python and of the packages that results depend on, and the device."""
    packages = ("widebnn", "jax", "flax", "arviz", "numpy", "matplotlib")
    found = {"python": platform.python_version()} | {name: version(name) for name in packages}
    width = max(map(len, found))
    for name, number in found.items():
        print(f"{name:<{width}}  {number}")
    print(f"{'device':<{width}}  {jax.devices()[0].device_kind}")


def device() -> str:
    """The device in words: a GPU by its name, a CPU by its kind and the number of cores it may use."""
    kind = jax.devices()[0].device_kind
    if jax.devices()[0].platform != "cpu":
        return kind
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{kind}, {platform.machine()}, {cores} core{'s' * (cores != 1)}"
