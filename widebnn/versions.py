"""What a chapter was run with: its last cell says so."""

import platform
from importlib.metadata import version

import jax

__all__ = ["print_versions"]


def print_versions() -> None:
    """Print the versions of Python and of the packages that results depend on, and the device."""
    packages = ("widebnn", "jax", "flax", "arviz", "numpy", "matplotlib")
    found = {"python": platform.python_version()} | {name: version(name) for name in packages}
    width = max(map(len, found))
    for name, number in found.items():
        print(f"{name:<{width}}  {number}")
    print(f"{'device':<{width}}  {jax.devices()[0].device_kind}")
