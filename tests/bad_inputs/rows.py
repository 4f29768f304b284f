"""What the tables of bad inputs are made of."""

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx

import widebnn as wb

NAMES = (
    "automatic checkpoints collectors data diagnostics driver estimates estimators landscape metrics models"
)
NAMES += " nngp plots samplers scale stopping streaming tables targets versions vi"
MODULES = {"widebnn": wb} | {name: importlib.import_module(f"widebnn.{name}") for name in NAMES.split()}

KEY = jax.random.key(0)
X, Y = jnp.ones((4, 3)), jnp.ones((4, 2))
X_NAN = X.at[0, 0].set(jnp.nan)
RNGS = nnx.Rngs(0)


class Row(NamedTuple):
    of: str
    call: Callable[[], Any]
    error: type[Exception]
    words: list[str]
    """Parts of the message in their order, the argument's name first."""


class kw(dict):
    """Keyword arguments."""


def named(of):
    """The public function of that name."""
    module, name = of.split(".")
    return getattr(MODULES[module], name)


def refused(of, *cases, call=None):
    """Rows of one public function, a line each: its arguments, the error if it is no ValueError, the message.

    The arguments may end with those by keyword, `kw(...)`, and go to `call` in place of the public function
    where it is given; or they are one function without arguments, which is called itself. Of the message a
    row holds what must be in it, with "…" for whatever stands between.
    """
    rows = []
    for *given, message in cases:
        is_error = given and isinstance(given[-1], type) and issubclass(given[-1], Exception)
        error = given.pop() if is_error else ValueError
        keywords = given.pop() if given and isinstance(given[-1], kw) else {}
        function = call or named(of)
        if len(given) == 1 and is_thunk(given[0]):
            (function,), given = given, []
        rows.append(Row(of, functools.partial(function, *given, **keywords), error, message.split("…")))
    return rows


def is_thunk(thing):
    """A function that needs no arguments."""
    return inspect.isfunction(thing) and all(
        parameter.default is not parameter.empty for parameter in inspect.signature(thing).parameters.values()
    )


def flat(u):
    return 0.0 * jnp.sum(u)


def fcn(**options):
    return wb.models.FCN(3, 4, **{"rngs": RNGS} | options)


def bnn(**options):
    return wb.BNN(options.pop("features", fcn()), 2, **({"noise_std": 0.1} | options))


@functools.cache
def target(kind="marginal"):
    return getattr(wb.targets, kind)(bnn(), X, Y)


def position(kind="marginal"):
    return target(kind).draw_prior(KEY)


def tuned(**options):
    return wb.samplers.tuned(**({"sampler": wb.samplers.pcn(0.1), "target_acceptance": 0.5} | options))
