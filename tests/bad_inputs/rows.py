"""What the tables of bad inputs are made of."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx

import widebnn as wb
from widebnn import automatic, checkpoints, driver, estimates, landscape, metrics, scale, streaming, versions

MODULES = {
    "widebnn": wb,
    "automatic": automatic,
    "checkpoints": checkpoints,
    "collectors": wb.collectors,
    "data": wb.data,
    "diagnostics": wb.diagnostics,
    "landscape": landscape,
    "estimates": estimates,
    "estimators": wb.estimators,
    "metrics": metrics,
    "models": wb.models,
    "nngp": wb.nngp,
    "plots": wb.plots,
    "samplers": wb.samplers,
    "driver": driver,
    "scale": scale,
    "streaming": streaming,
    "tables": wb.tables,
    "targets": wb.targets,
    "stopping": wb.stopping,
    "versions": versions,
    "vi": wb.vi,
}

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

    The arguments may end with those by keyword, `kw(...)`, or be one function that is called in place of the
    public one; where `call` is given it is called with them. Of the message a row holds what must be in it,
    with "…" for whatever stands between.
    """
    rows = []
    for *given, message in cases:
        is_error = isinstance(given[-1], type) and issubclass(given[-1], Exception)
        error = given.pop() if is_error else ValueError
        keywords = given.pop() if given and isinstance(given[-1], kw) else {}
        if call is None and len(given) == 1 and is_thunk(given[0]):
            (function,), given = given, []
        else:
            function = call or named(of)
        rows.append(Row(of, functools.partial(function, *given, **keywords), error, message.split("…")))
    return rows


def alike(module, names, *cases, call=None):
    """Rows of functions that check along one path: all cases of the first, and one case of each other.

    `call` takes the function before its arguments.
    """
    return [
        row
        for i, of in enumerate(f"{module}.{name}" for name in names)
        for row in refused(
            of, *(cases if i == 0 else cases[:1]), call=call and functools.partial(call, named(of))
        )
    ]


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


class Images(nnx.Module):
    """Forgets to flatten."""

    def __call__(self, x):
        return x[..., None]


class Pair(nnx.Module):
    """Returns what it has at hand."""

    def __call__(self, x):
        return x, x


def tuned(**options):
    return wb.samplers.tuned(**({"sampler": wb.samplers.pcn(0.1), "target_acceptance": 0.5} | options))
