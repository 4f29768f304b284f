"""What is asked of a position, while chains run or afterwards: functions that hold no target.

A collector is a function of `(target, position, rng_key)`, or of `(target, position)` where nothing is drawn.
`widebnn.sample` calls it with the target that is sampled, whether its coordinates were given or chosen::

    collect={
        "potential": wb.potential,
        "f": wb.output(x),
        "log_likelihood": wb.log_likelihood,  # or wb.left_out_log_likelihood
        "posterior_predictive": wb.predictive_draw(x),  # or wb.predictive_probabilities(x)
        "θ₁": lambda target, position: position[0],
    }

By hand it is ``wb.output(x)(target, position)``. New inputs are the only arrays that a collector holds. Those
of this module see past the scales of `widebnn.targets.scaled`. The key draws what the position does not hold:
the readout of `widebnn.targets.marginal`, the weights that new inputs alone look at in
`widebnn.targets.rotated` and `widebnn.targets.whitened`, and noise.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Key

from widebnn._arrays import NewInputs, Tabular
from widebnn._check import brief, one_of
from widebnn._pytree import STATIC, as_pytree, pytree
from widebnn.tree import Position

__all__ = [
    "embedding",
    "left_out_log_likelihood",
    "log_likelihood",
    "output",
    "potential",
    "predictive_covariance",
    "predictive_draw",
    "predictive_mean",
    "predictive_moments",
    "predictive_probabilities",
    "predictive_variance",
    "scale",
    "weights",
]

MaybeKey = Key[Array, ""] | None

Collector = Callable[..., Any]
"""A function of `(target, position, rng_key)` or of `(target, position)`, that returns one array."""


@jax.jit
def potential(target: Any, position: Position, rng_key: MaybeKey = None) -> Float[Array, ""]:
    """$U$, of any target."""
    return _method(target, ("potential",))(position)


@jax.jit
def weights(target: Any, position: Position, rng_key: MaybeKey = None) -> Float[Array, " weight"]:
    """All weights $θ$ of a network in one vector; memory grows with every draw by all of them.

    `widebnn.Draws.predict` needs the target and its data. Weights need the network alone:

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> from flax import nnx
    >>> import widebnn as wb
    >>> bnn = wb.BNN(wb.models.FCN(1, 8, rngs=nnx.Rngs(0)), 1, noise_std=0.1)
    >>> x, x_new = np.linspace(-1, 1, 3)[:, None], np.zeros((2, 1))
    >>> target = wb.targets.marginal(bnn, x, x)
    >>> draws = wb.sample(
    ...     jax.random.key(0),
    ...     target,
    ...     num_samples=10,
    ...     burn_in=10,
    ...     collect={"theta": wb.collectors.weights},
    ...     progress=False,
    ... )
    >>> zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), bnn.template(x_new))
    >>> flat, to_parameters = jax.flatten_util.ravel_pytree(zeros)
    >>> thetas = draws["theta"].reshape(-1, flat.size)
    >>> f = jax.jit(jax.vmap(lambda theta: bnn(to_parameters(theta), x_new)))(thetas)
    >>> f.shape
    (40, 2, 1)
    """
    return ravel_pytree(_method(target, ("to_parameters",))(position, rng_key))[0]


@jax.jit
def log_likelihood(target: Any, position: Position, rng_key: MaybeKey = None) -> Float[Array, " n"]:
    """$log p(y_i | θ)$ of each observation $i$, over all its outputs.

    A readout that the position does not hold is drawn from its exact posterior with `rng_key`, so that $θ$
    follows the posterior. Collected as "log_likelihood" it is what `arviz.loo` takes. Where a wide network
    fits the data closely, the importance weights of `arviz.loo` vary too much, and `left_out_log_likelihood`
    is the better choice.
    """
    target, position = _given_scales(target, position)
    return _method(target, ("log_likelihood",))(position, rng_key)


@jax.jit
def left_out_log_likelihood(target: Any, position: Position, rng_key: MaybeKey = None) -> Float[Array, " n"]:
    """$log p(y_i | θ^≤L, y_−i)$ of observation $i$ given all others, with the readout integrated out.

    Up to a constant, $1/p(y_i | θ^≤L, y_−i)$ is the density of $θ^≤L$ without observation $i$ relative to the
    posterior. From it `arviz.loo` therefore estimates the same expected log predictive density as from
    `log_likelihood`, with weights that depend on $θ^≤L$ alone; its `p_loo` then has no meaning (integrated
    importance sampling, Vehtari et al. 2016).
    """
    target, position = _given_scales(target, position)
    return _method(target, ("left_out_log_likelihood",))(position)


@pytree
@dataclass(frozen=True, eq=False)
class At:
    """One of several methods of the network's target, the first that it has, at inputs."""

    methods: tuple[str, ...] = field(metadata=STATIC)
    x: Any  # None for the observed ones, which the target holds

    def __call__(self, target: Any, position: Position, rng_key: MaybeKey = None) -> Any:
        return _answer(self.prepare(target), target, position, rng_key)

    def prepare(self, target: Any) -> "At":
        """The same with inputs as the target takes them, found once."""
        return self if self.x is None else replace(self, x=_method(target, ("prepared",))(self.x))


@jax.jit
def _answer(asked: At, target: Any, position: Position, rng_key: Any) -> Any:
    target, position = _given_scales(target, position)
    return _method(target, asked.methods)(position, asked.x, rng_key)


def _given_scales(target: Any, position: Position) -> tuple[Any, Position]:
    return _method(target, ("given_scales",))(position)


def _method(target: Any, names: tuple[str, ...]) -> Callable[..., Any]:
    for name in names:
        if (method := getattr(target, name, None)) is not None:
            return method
    raise TypeError(f"target must be one with {' or '.join(names)}; {type(target).__name__} has none")


def output(x: NewInputs | Tabular | None = None) -> Collector:
    """$f_θ(x)$, $(m, d_out)$; logits of a classifier.

    Parameters
    ----------
    x
        Inputs $(m, ...)$, as in all collectors of this module: the observed ones unless given.
    """
    return At(("output",), x)


def embedding(x: NewInputs | Tabular | None = None) -> Collector:
    """$Ψ$ at $x$, $(m, p)$: the outputs of the layers below the readout, scaled."""
    return At(("embedding",), x)


def predictive_mean(x: NewInputs | Tabular | None = None) -> Collector:
    """$E[y* | θ]$, $(m, d_out)$, or under Gaussian noise $E[f(x) | θ^≤L, D] = Ψ*μ$.

    There the readout is integrated out exactly (Rao–Blackwell), in every parametrisation. The mean varies no
    more over the posterior than `output`, nor does its average over a chain that holds no readout.
    """
    return At(("predictive_mean",), x)


def predictive_covariance(x: NewInputs | Tabular | None = None) -> Collector:
    """$Cov[f_j(x) | θ^≤L, D] = Ψ*ΣΨ*ᵀ$, $(m, m)$, for each output $j$; the noise $σ² I$ is not in it.

    Where each output has its own $σ$, they differ, $(m, m, d_out)$.
    """
    return At(("predictive_covariance",), x)


def predictive_variance(x: NewInputs | Tabular | None = None) -> Collector:
    """$Var[f_j(x) | θ^≤L, D]$, $(m,)$ or $(m, d_out)$, the diagonal of `predictive_covariance`."""
    return At(("predictive_variance",), x)


def predictive_moments(x: NewInputs | Tabular | None = None) -> Callable[..., Any]:
    """Mean $(m, d_out)$ and variance $(m,)$ of $y* = f(x) + σ ε$ given $θ^≤L$ and $D$, by hand alone.

    Under another likelihood they are those of $y*$ given $θ$. There, and where each output has its own $σ$,
    the variance is $(m, d_out)$.

    Examples
    --------
    >>> import jax
    >>> import numpy as np
    >>> from flax import nnx
    >>> import widebnn as wb
    >>> bnn = wb.BNN(wb.models.FCN(1, 8, rngs=nnx.Rngs(0)), 1, noise_std=0.1)
    >>> target = wb.targets.marginal(bnn, np.ones((3, 1)), np.ones(3))
    >>> position = target.draw_prior(jax.random.key(0))
    >>> mean, variance = wb.predictive_moments([[0.0], [1.0]])(target, position)
    >>> mean.shape, variance.shape
    ((2, 1), (2,))
    """
    return At(("predictive_moments",), x)


def predictive_draw(x: NewInputs | Tabular | None = None) -> Collector:
    """Predictive draw $y* = f_θ(x) + σ ε$, $(m, d_out)$, or of another likelihood; class numbers $(m,)$."""
    return At(("predictive_draw",), x)


def predictive_probabilities(x: NewInputs | Tabular | None = None) -> Collector:
    """Probabilities of the classes, $(m, d_out)$."""
    return At(("predictive_probabilities",), x)


def prediction(x: NewInputs | Tabular) -> Collector:
    """Probabilities of a classifier, else the mean of an observation."""
    return At(("predictive_probabilities", "predictive_mean"), x)


def observation(x: NewInputs | Tabular) -> Callable[..., Any]:
    """Probabilities of a classifier, else mean and variance of an observation, or its mean alone."""
    return At(("predictive_probabilities", "predictive_moments", "predictive_mean"), x)


@pytree
@dataclass(frozen=True, eq=False)
class _Scale:
    name: str = field(metadata=STATIC)

    def __call__(self, target: Any, position: Any) -> Float[Array, ""]:
        one_of(target.priors, name=self.name)
        return target.scales(position)[self.name]


def scale(name: str) -> Collector:
    """One scale of `widebnn.targets.scaled`, such as "noise_std"."""
    return _Scale(name)


def prepared(function: Collector, target: Any) -> Collector:
    """A collector as an argument of programs on a target."""
    return function.prepare(target) if isinstance(function, At) else as_pytree(function)


def takes_key(function: Collector) -> bool:
    """Whether a function has an argument `rng_key`."""
    return "rng_key" in _parameters(function)


def value(argument: str, function: Collector, target: Any, position: Position, rng_key: Any) -> Array:
    """What a collector returns, one array, where `argument` is its name."""
    key = {"rng_key": rng_key} if takes_key(function) else {}
    found = function(target, position, **key)
    if not jnp.isscalar(found) and not hasattr(found, "dtype"):
        raise TypeError(f"{argument} must return one array; it returned {brief(found)}")
    return jnp.asarray(found)


def values_of(
    argument: str, functions: Mapping[str, Collector], target: Any, position: Position, rng_key: Any
) -> dict[str, Array]:
    """What several collectors return, each with a key of its own."""
    return {
        name: value(f"{argument}[{name!r}]", function, target, position, jax.random.fold_in(rng_key, i))
        for i, (name, function) in enumerate(functions.items())
    }


def check(argument: str, function: Any) -> None:
    """See that it is a function of a target and a position."""
    wanted = f"{argument} must be a function of (target, position), such as wb.potential"
    if not callable(function):
        raise TypeError(f"{wanted}; got {brief(function)}")
    key = {"rng_key": None} if takes_key(function) else {}
    try:
        inspect.signature(function).bind(None, None, **key)
    except TypeError:
        raise TypeError(
            f"{wanted} or lambda target, position: ...; got one of ({', '.join(_parameters(function))})"
        ) from None
    except ValueError:  # a builtin that does not tell
        pass


def _parameters(function: Any) -> Any:
    function = getattr(function, "value", function)  # of a `Static`
    try:
        return inspect.signature(function).parameters
    except ValueError:
        return {}
