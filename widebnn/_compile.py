"""A function compiled once, with the arrays it closes over as arguments."""

import dataclasses
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
from jaxtyping import Array, Real

from widebnn._check import Number, is_tracing
from widebnn._devices import Devices

__all__ = ["Program", "asked", "lifted", "one_program", "one_program_method"]


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
    is_traced
        Whether one of these is being traced by someone else: then there is nothing to compile.

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
        self.is_traced = any(isinstance(x, jax.core.Tracer) for x in closed.consts)
        if self.is_traced:
            return
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


def lifted(number: Number) -> Callable[[], Number | Real[Array, ""]]:
    """A number that a `Program` takes as an argument, to be asked for where it is used.

    JAX writes a scalar into the program, where another one would have to be compiled again. It is held as an
    array of one entry, weakly typed where the number is Python's, so that float32 stays float32.
    """
    if isinstance(number, jax.core.Tracer):
        return lambda: number
    with jax.ensure_compile_time_eval():  # concrete while something else is traced
        held = jnp.reshape(1.0 * number, 1)
    return lambda: jnp.squeeze(held)


def one_program[**P, T](function: Callable[P, T]) -> Callable[P, T]:
    """`function`, compiled as a whole where it is called on arrays.

    Outside of `jit` each operation would be a program of its own. Where something is traced, `function` is
    traced as it stands: data that it closes over would be constants of a program within another.
    """
    programs = {}

    @functools.wraps(function)
    def call(*args, **kwargs):
        return _as_one(programs, function, *args, **kwargs)

    return call


def asked(question: Callable[..., Any], *of: Any) -> Callable[..., Any]:
    """`question(*of, position, rng_key)` as a function of `(position, rng_key=None)`.

    Parameters
    ----------
    question
        A function that stays the same object, such as a method of a class.
    *of
        Pytrees, whose leaves are arguments of its program: a target, and new inputs.
    """

    def answer(position, rng_key=None):
        return _in_one(question, *of, position, rng_key)

    return answer


class _Programs(dict):
    """The programs of an object, which stay behind where it is pickled for another process."""

    def __reduce__(self):
        return _Programs, ()


def one_program_method[T: Callable[..., Any]](method: T) -> T:
    """A method as one program where it is called on arrays, with the leaves of the object as arguments.

    The same program serves every object of the same structure and shapes. What a function closes over that
    the object holds is lifted out (`Program`), and its programs are kept by the object. Where something is
    being traced the method is traced as it stands.
    """

    @functools.wraps(method)
    def call(self, *args, **kwargs):
        if not self.holds_function and dataclasses.is_dataclass(self):
            return _in_one(method, self, *args, **kwargs)
        programs = vars(self).setdefault("_programs", _Programs()).setdefault(method, {})
        return _as_one(programs, functools.partial(method, self), *args, **kwargs)

    return call  # pyright: ignore[reportReturnType]


def _in_one(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if is_tracing() or any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves((args, kwargs))):
        return function(*args, **kwargs)
    return _jitted(function)(*args, **kwargs)


_jitted = functools.cache(jax.jit)


def _as_one(
    programs: dict[Hashable, Program], function: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    leaves, treedef = jax.tree.flatten((args, kwargs))
    is_array = [isinstance(x, jax.Array | np.ndarray) and not isinstance(x, jax.core.Tracer) for x in leaves]
    if not all(is_array) or is_tracing():
        return function(*args, **kwargs)
    leaves = [jnp.asarray(x) for x in leaves]
    args, kwargs = treedef.unflatten(leaves)
    settings = jax.config.jax_default_matmul_precision, jax.config.jax_default_device
    key = treedef, settings, *((x.shape, x.dtype, x.sharding) for x in leaves)
    if (program := programs.get(key)) is None:
        program = Program(lambda args, kwargs: function(*args, **kwargs), args, kwargs)
        if program.is_traced:
            return function(*args, **kwargs)
        programs[key] = program
    return program(args, kwargs)


def _constants_are_lifted() -> bool:
    # What JAX does, and not what it is set to: it announces to change the one and to drop the other.
    constant = np.zeros(2)
    return bool(jax.make_jaxpr(lambda u: u + constant)(constant).consts)
