"""The package's own networks as JSON, and back: built by a name from a list, with numbers for arguments."""

import functools
import inspect
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from flax import nnx

from widebnn._check import Number
from widebnn.models._affine import Affine
from widebnn.models.bnn import BNN
from widebnn.models.cnn import CNN
from widebnn.models.fcn import FCN
from widebnn.models.wide_resnet import WideResNet20

__all__ = ["build", "described", "numbers"]

ARCHITECTURES: dict[str, type[nnx.Module]] = {kind.__name__: kind for kind in (CNN, FCN, WideResNet20)}
"""Those that a file may name; each keeps the arguments of its constructor as attributes of the same names."""

OF_READOUT = ("noise_std", "weight_std", "bias_std")


def _arguments(bnn: BNN) -> dict[str, Any] | None:
    """What the constructor of the layers below the readout was given; None where they are the user's own.

    Scales are read off a layer: those of the others are the same, or the network is not what was built.
    """
    module = bnn.features.module
    if module is None or ARCHITECTURES.get(type(module).__name__) is not type(module):
        return None
    names = inspect.signature(type(module).__init__).parameters.keys() - {"self", "rngs"}
    layers = [part for _, part in nnx.iter_modules(module) if isinstance(part, Affine)]
    known = (*layers[:1], module)
    return {name: getattr(part, name) for name in sorted(names) for part in known if hasattr(part, name)}


def numbers(bnn: BNN) -> dict[str, float | jax.Array | np.floating]:
    """By name, every real number that the network is built from; those below the readout as "features.…"."""
    of_features = {f"features.{name}": value for name, value in (_arguments(bnn) or {}).items()}
    named = {name: getattr(bnn, name) for name in OF_READOUT} | of_features
    return {name: x for name, x in named.items() if isinstance(x, float | jax.Array | np.floating)}


def described(bnn: BNN) -> dict[str, Any] | None:
    """The network in plain numbers and names, for JSON; None where it is the user's own."""
    if (arguments := _arguments(bnn)) is None:
        return None
    return {
        "features": type(bnn.features.module).__name__,
        "arguments": {name: _plain(value) for name, value in arguments.items()},
        "out_features": bnn.out_features,
    } | {name: _plain(getattr(bnn, name)) for name in OF_READOUT}


def build(description: Mapping[str, Any], **scales: Number) -> BNN:
    """The network that was described.

    Parameters
    ----------
    description
        What `described` returned.
    **scales
        Numbers to take in place of those described, by the names that `numbers` gives them.

    Raises
    ------
    KeyError, TypeError, ValueError
        If there is no such network.
    """
    inside = {name.removeprefix("features."): x for name, x in scales.items() if name.startswith("features.")}
    outside = {name: scales[name] if name in scales else description[name] for name in OF_READOUT}
    listed = {name: tuple(x) if isinstance(x, list) else x for name, x in description["arguments"].items()}
    make = functools.partial(ARCHITECTURES[description["features"]], **listed | inside)
    return BNN(make(rngs=nnx.Rngs(0)), description["out_features"], **outside)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    return value.item() if isinstance(value, jax.Array | np.generic | np.ndarray) else value
