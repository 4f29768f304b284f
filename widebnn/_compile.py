"""A function compiled once, with the arrays it closes over as arguments."""

import functools
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from widebnn._devices import Devices

__all__ = ["Program"]


NUM_KEPT = 32
"""Compiled programs that are kept, which hold neither data nor the functions they were made from."""

_kept: OrderedDict[Hashable, jax.stages.Compiled] = OrderedDict()
_lock = threading.Lock()


class Program:
    """`function` traced at `args`, and compiled when first called.

    A jitted function takes the arrays it closes over as constants of the program: compilation then folds and
    copies the data, and a data set of some size makes it slow. Here they are lifted out and passed along, so
    that the same function of other data is the same program, which is not compiled again.

    Parameters
    ----------
    function
        Function of pytrees of arrays.
    args
        Where it is traced; later calls take arguments of the same shapes, cast to the same types.
    donate
        Position of the argument whose memory a call reuses for the result; none by default.
    devices
        Devices for the lifted arrays, and with them for the work; the default device unless given.
    out
        A pytree of arrays like the result, or a prefix of one: the result is sharded as they are.

    Attributes
    ----------
    constants
        The arrays that were lifted out, in the order in which the program meets them.

    Raises
    ------
    RuntimeError
        If JAX is set to leave constants in traced functions (`jax_use_simplified_jaxpr_constants`), where
        nothing would be lifted and programs of other data would be taken for the same.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *args: Any,
        donate: int | None = None,
        devices: Devices | None = None,
        out: Any = None,
    ):
        if not _constants_are_lifted():
            raise RuntimeError(
                "JAX's setting jax_use_simplified_jaxpr_constants must be off, as it is by default: widebnn "
                f"takes constants out of traced functions, and JAX {jax.__version__} leaves them there; "
                "jax.config.update('jax_use_simplified_jaxpr_constants', False) turns it off"
            )
        closed, result = jax.make_jaxpr(function, return_shape=True)(*args)
        treedef = jax.tree.structure(result)

        def with_constants(constants, *args):
            return treedef.unflatten(jax.core.eval_jaxpr(closed.jaxpr, constants, *jax.tree.leaves(args)))

        self.constants = closed.consts if devices is None else devices.shard_data(closed.consts)
        out_shardings = None if devices is None else devices.shardings(out)
        donated = () if donate is None else 1 + donate
        self._lowered = jax.jit(with_constants, donate_argnums=donated, out_shardings=out_shardings).lower(
            self.constants, *args
        )
        leaves = jax.tree.leaves(args)
        self._dtypes = [leaf.dtype for leaf in leaves]
        # Shapes and types besides: the text leaves out an argument that has no say in the result.
        self._placed = (
            jax.config.jax_default_device,
            *[
                (leaf.shape, leaf.dtype, getattr(leaf, "sharding", None), getattr(leaf, "committed", None))
                for leaf in [*self.constants, *leaves]
            ],
            *jax.tree.leaves(out_shardings),
        )

    @functools.cached_property
    def text(self) -> str:
        """The lowered program, without the places in source files that it comes from."""
        return self._lowered.as_text()

    @functools.cached_property
    def _compiled(self):
        if "callback" in self.text:  # to Python, by its number among those of this very program
            return self._lowered.compile()
        digest = hashlib.sha256(self.text.encode()).digest()
        key = digest, self._lowered.in_tree, self._lowered.out_tree, self._placed
        with _lock:
            if key in _kept:
                _kept.move_to_end(key)
                return _kept[key]
        compiled = self._lowered.compile()
        with _lock:
            _kept[key] = compiled
            while len(_kept) > NUM_KEPT:
                _kept.popitem(last=False)
        return compiled

    def compile(self) -> None:
        """Compile now what the first call would."""
        _ = self._compiled

    def __call__(self, *args: Any) -> Any:
        leaves, treedef = jax.tree.flatten(args)
        cast = [jnp.asarray(leaf, dtype) for leaf, dtype in zip(leaves, self._dtypes, strict=True)]
        return self._compiled(self.constants, *treedef.unflatten(cast))


def _constants_are_lifted() -> bool:
    # What JAX does, and not what it is set to: it announces to change the one and to drop the other.
    constant = np.zeros(2)
    return bool(jax.make_jaxpr(lambda u: u + constant)(constant).consts)
