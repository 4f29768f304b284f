"""neural-tangents on a current JAX: the one place that knows what it takes.

The library is archived at 0.6.5 and looks for names that JAX has moved or dropped. They are put back while it
is imported and taken away again, whether that fails or not. Its `experimental` part, which alone needs
TensorFlow, is left out.
"""

import contextlib
import functools
import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any
from unittest import mock

import jax
import jax.core
import jax.extend.core
import jax.interpreters.ad

__all__ = ["neural_tangents"]


@functools.cache
def neural_tangents() -> ModuleType:
    """The module ``neural_tangents`` (Novak et al. 2020), imported under a JAX that it was not written for.

    Its ``stax`` builds convolutional and residual networks with their infinite-width kernels; `stax_kernel`
    turns one into a kernel of this package. Its ``predict`` and its empirical kernels (implementations 1 and
    2) work as well.
    """
    try:
        with _older_jax():
            return importlib.import_module("neural_tangents")
    except ModuleNotFoundError as error:
        if error.name not in ("neural_tangents", "frozendict"):
            raise
        raise ImportError(
            "kernels of convolutional and residual networks need neural-tangents: "
            "pip install --no-deps neural-tangents frozendict "
            "(--no-deps keeps TensorFlow out, which is not used)"
        ) from error


@contextlib.contextmanager
def _older_jax() -> Iterator[None]:
    util: Any = ModuleType("jax.util")
    util.safe_map = lambda f, *args: [f(*each) for each in zip(*args, strict=True)]
    util.safe_zip = lambda *args: list(zip(*args, strict=True))
    modules = {"jax.util": util, "neural_tangents.experimental": ModuleType("neural_tangents.experimental")}
    moved = {
        name: getattr(jax.extend.core, name) for name in ("Jaxpr", "JaxprEqn", "Literal", "Primitive", "Var")
    }
    with contextlib.ExitStack() as restored:
        for name, value in moved.items():
            restored.enter_context(mock.patch.object(jax.core, name, value, create=True))
        restored.enter_context(mock.patch.object(jax.interpreters.ad, "zeros_like_p", object(), create=True))
        for name, module in modules.items():
            restored.enter_context(_module(name, module))
        yield


@contextlib.contextmanager
def _module(name: str, module: ModuleType) -> Iterator[None]:
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        yield
    finally:
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before
